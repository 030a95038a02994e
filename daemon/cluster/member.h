/* member.h - this launcher's part in the job: what the run tells the others, and hears from them.
 *
 * Node rank 0's launcher is the hub, which decides for all (job.h); every other one has a link to
 * it. A job on one node, or without a control channel, is a hub that nobody dials. The run asks no
 * more than: have we met, what must I do; and it tells what happened here.
 *
 * Events come from the loop, or from within a call of member_*(). After `over` or `failed` no other
 * comes but `closed`, and those of lines, before it.
 *
 * Lines of workers (--merge-logs), where config.merge_logs says so on node rank 0 and on the node:
 * the node's owner sends what its workers print, prefixed already, whenever there is room;
 * node rank 0's owner hears it, in each node's order, and says when its console has taken it. Until
 * then it holds 16 MiB of all nodes at most: 64 KiB of one, or its share where there are more than
 * 256 nodes, 1 KiB at least. A node whose lines are not taken waits by itself, no other one with
 * it. What else nodes tell one another waits for the rest of one message of 16 KiB where it is
 * sent, and for what of that node's share is on the way.
 *
 * At the end lines delay nothing but `closed`, by a second at most. A node that leaves, after the
 * verdict or because its workers have ended well, goes on sending from member_close() on until its
 * owner says that this was all, but not for longer than that second; node rank 0 tells the verdict,
 * and its `over`, at once, and then hears the last lines until the nodes have left. What could not
 * be sent is still the owner's. */
#ifndef LAUNCHD_DAEMON_CLUSTER_MEMBER_H
#define LAUNCHD_DAEMON_CLUSTER_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/cluster/doubt.h"
#include "daemon/cluster/hub.h"
#include "daemon/cluster/party.h"
#include "daemon/cluster/spoke.h"
#include "daemon/meet/finder.h"
#include "daemon/meet/pmix.h"
#include "daemon/net/sodium.h"

enum member_role { MEMBER_NONE, MEMBER_HUB, MEMBER_SPOKE };

struct member {
	struct party party;
	enum member_role role;
	struct sodium sodium;
	struct pmix_exchange pmix;
	struct finder finder;
	struct doubt doubt;
	struct hub hub;
	struct spoke spoke;
	struct sockaddr_storage hub_addresses[FINDER_ADDRESSES];
	struct member_config alone; /* the config of a node that has to do without the others */
	bool finds, doubts;         /* these are in the loop */
};

/* Begins to meet the others. The config is borrowed. Where that fails, `failed` tells. What the
 * others say of an attempt goes to `memory`, which the owner empties when the next one starts. What
 * happens to this node and the others is told on the bus. */
void member_start(struct member *m, uv_loop_t *loop, const struct member_config *c,
	const struct member_events *on, void *owner, const struct bus *bus, struct arena *memory);

/* A worker failed that nobody had asked to end. */
void member_failed(struct member *m, const struct outcome *o);

/* This launcher is asked to end the job. */
void member_asked(struct member *m, const struct stop *s);

/* A signal for all nodes that is only passed on. */
void member_forward(struct member *m, int signal);

/* All workers of the attempt have ended here, with what some of them say. The end's outcomes and
 * the evidence are borrowed until the next attempt starts. */
void member_ended(
	struct member *m, const struct node_end *end, const struct evidence *list, size_t count);

/* These of this node's workers have not joined the store, as far as can be seen; none: all have. */
void member_waiting(struct member *m, unsigned attempt, const unsigned *ranks, size_t count);

/* Whether node rank 0 takes this node's lines: from the start of the first attempt on, if ever,
 * until it is lost, this node has left, or member_log_end(). False at node rank 0 itself. */
bool member_merges(const struct member *m);

/* How many bytes of lines can be sent now: 0, or 16 KiB (with more than 256 nodes, from a quarter
 * of a node's share on). It becomes 0 while the link is behind, or node rank 0's console;
 * `log_room` tells when it isn't any more. What has no line's end within it can be sent in pieces.
 */
size_t member_log_room(const struct member *m);

/* Sends 1 to member_log_room() bytes of lines; stream 1 or 2. They are copied. */
void member_log(struct member *m, int stream, const char *at, size_t len);

/* This node has no more lines for the job. To be called once all were sent, before or after
 * member_close(), which else waits for them. Not needed where member_merges() is false. */
void member_log_end(struct member *m);

/* Node rank 0: its console has taken, or thrown away, so many more bytes of what came from a node,
 * which may be lost already. */
void member_log_taken(struct member *m, unsigned node, size_t len);

/* Leaves; `closed` follows from the loop, once the last lines are sent or have come. */
void member_close(struct member *m);

/* Once it is closing: leaves at once, whoever may still read its last words or send lines. */
void member_hurry(struct member *m);

/* member_meet.c: begins to look for the others, as the config says. */
void member_meet(struct member *m);

#endif
