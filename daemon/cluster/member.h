/* member.h - this launcher's part in the job: what the run tells the other nodes and hears from
 * them.
 *
 * Node rank 0's launcher is the hub, which decides for all (job.h); every other one has a link to
 * it. A job on one node, or without a control channel, is a hub that nobody dials. The run only
 * wants to know whether the nodes have met and what it must do, and it tells what happened here.
 *
 * Events come from the loop, or from within a call of member_*(). After `over` or `failed` only
 * `closed` follows, and before it those of lines.
 *
 * Lines of workers (--merge-logs), if config.merge_logs is set on node rank 0 and on the node: the
 * node's owner sends what its workers print, already prefixed, whenever there is room. Node rank
 * 0's owner gets it, in each node's order, and reports when its console has written it. Until then
 * it holds at most 16 MiB of all nodes: 64 KiB of each, or an equal share with more than 256 nodes,
 * but at least 1 KiB. A node whose lines are not written waits alone, the others go on. Other
 * messages between nodes are delayed by the rest of one message of 16 KiB at most where they are
 * sent, and by what is in flight of that node's share.
 *
 * At the end lines delay only `closed`, and by a second at most. A node that leaves, after the
 * verdict or because its workers have ended well, goes on sending from member_close() until its
 * owner says that this was all, or that second is over. Node rank 0 tells the verdict, and its
 * `over`, at once, and then takes the last lines until the nodes have left. What could not be sent
 * stays with the owner. */
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
	struct member_config alone; /* the config once this node goes on without the others */
	bool finds, doubts;         /* these are in the loop */
};

/* Begins to meet the others. *m is zero, as most of its 70 KB a lone node never touches. The config
 * is borrowed. Where that fails, `failed` tells. What the others say of an attempt goes to
 * `memory`, which the owner empties when the next one starts. What happens to this node and the
 * others is told on the bus. */
void member_start(struct member *m, uv_loop_t *loop, const struct member_config *c,
	const struct member_events *on, void *owner, const struct bus *bus, struct arena *memory);

/* A worker failed without having been asked to end. */
void member_failed(struct member *m, const struct outcome *o);

/* This launcher is asked to end the job. */
void member_asked(struct member *m, const struct stop *s);

/* Node rank 0: the check of this attempt is over, and workers may start on all nodes. */
void member_checked(struct member *m);

/* A word of the check of all nodes: to node rank 0, or from there to all others. It is copied. */
void member_check(struct member *m, const struct message_check *word);

/* Forwards a signal to all nodes. */
void member_forward(struct member *m, int signal);

/* All workers of the attempt have ended here; list: what failed ones reported. The end's outcomes
 * and the evidence are borrowed until the next attempt starts. */
void member_ended(
	struct member *m, const struct node_end *end, const struct evidence *list, size_t count);

/* These of this node's workers do not seem to have joined the store; none: all have. */
void member_waiting(struct member *m, unsigned attempt, const unsigned *ranks, size_t count);

/* Whether node rank 0 takes this node's lines: from the start of the first attempt on, if ever,
 * until it is lost, this node has left, or member_log_end(). False at node rank 0 itself. */
bool member_merges(const struct member *m);

/* How many bytes of lines can be sent now: 0, or 16 KiB (with more than 256 nodes at least a
 * quarter of a node's share). It is 0 while the link or node rank 0's console lags behind;
 * `log_room` tells when that is over. A line that is longer can be sent in pieces. */
size_t member_log_room(const struct member *m);

/* Sends 1 to member_log_room() bytes of lines; stream 1 or 2. They are copied. */
void member_log(struct member *m, int stream, const char *at, size_t len);

/* This node has no more lines for the job. To be called once all were sent, before or after
 * member_close(), which waits for it. Not needed if member_merges() is false. */
void member_log_end(struct member *m);

/* Node rank 0: its console has written, or dropped, so many more bytes of a node's lines; the node
 * may be lost already. */
void member_log_taken(struct member *m, unsigned node, size_t len);

/* Node rank 0: asks all other nodes that are in the job how they are; `status` tells what they say.
 * ret[i]: node i was asked; how many were. 0 where no job has begun, and elsewhere. */
size_t member_query(struct member *m, unsigned query, bool *ret);

/* Other nodes: the answer, at most MESSAGE_STATUS_MAX bytes; it is copied. */
void member_status(struct member *m, const struct message_status *told);

/* Other nodes: how quiet the workers are, to node rank 0; it is copied. False: nothing was
 * said, as node rank 0 lags behind in reading, or is lost. */
bool member_look(struct member *m, const struct message_look *told);

/* Node rank 0: to all other nodes that are in the job. */
void member_hang(struct member *m, const struct message_hang *told);

/* Other nodes: what this one has kept of a failure, to node rank 0; before member_ended(). */
void member_bundle(struct member *m, const struct message_bundle *told);

/* This node's workers have come to a new step, of that attempt; before member_ended(). On node rank
 * 0 `step` may follow at once. */
void member_step(struct member *m, const struct message_step *told);

/* Node rank 0: --on-hang suspects these ranks of that attempt; 0: the job moves again. */
void member_suspects(struct member *m, unsigned attempt, const unsigned *ranks, size_t count);

/* Leaves; `closed` follows from the loop once the last lines are sent or received. */
void member_close(struct member *m);

/* After member_close(): leaves at once, without waiting for others to read or to send lines. */
void member_hurry(struct member *m);

/* member_meet.c: begins to look for the others, as the config says. */
void member_meet(struct member *m);

#endif
