/* merged_lines.h - workers' lines on their way to node rank 0's console; see member.h for what they
 * promise.
 *
 * Flow: with the welcome the hub gives each node credit. A node sends while it has some, and only
 * when nothing else waits in its link's queue: what it says itself, a failure or an end, waits for
 * the rest of one such message at most. The hub's owner says what its console has taken, and that
 * much the node may send again. Other nodes' credit is their own.
 *
 * The end: who leaves has LOGS_LAST_MS for what its output still holds. The hub leaves its links
 * open as long, after it has told the verdict; whoever has said all closes its own. */
#ifndef LAUNCHD_DAEMON_CLUSTER_MERGED_LINES_H
#define LAUNCHD_DAEMON_CLUSTER_MERGED_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "daemon/cluster/credit.h"

struct caller;
struct hub;
struct link;
struct spoke;

enum { LOGS_LAST_MS = 1000 };

struct hub_logs {
	bool lasting;     /* the verdict is told, and last lines may come */
	uv_timer_t clock; /* in the loop while lasting */
};

struct spoke_logs {
	struct credit credit;
	bool ended;   /* this node has no more of them */
	bool lasting; /* it leaves as soon as it has none */
};

/* Gives all nodes their credit, where this node wants their lines; they were welcomed. */
void hub_logs_offer(struct hub *h);

void hub_hear_log(struct caller *p, const unsigned char *at, size_t len);

/* So many bytes of a node are taken. It may be lost. */
void hub_logs_taken(struct hub *h, unsigned node, size_t len);

/* The verdict is being told. */
void hub_logs_last(struct hub *h);

/* Whether this connection stays open for its last lines; its node closes it. */
bool hub_logs_awaits(const struct caller *p);

/* A connection has closed. */
void hub_logs_lost(struct hub *h);

/* Whether node rank 0 takes this node's lines, and will take more. */
bool spoke_merges(const struct spoke *s);

/* What may be sent now. */
size_t spoke_log_room(const struct spoke *s);

void spoke_log(struct spoke *s, int stream, const char *at, size_t len);

/* No more will be sent. */
void spoke_log_end(struct spoke *s);

void spoke_hear_log_room(struct spoke *s, const unsigned char *at, size_t len);

/* The link's on_idle. */
void spoke_logs_idle(struct link *l);

/* The job starts: says where this node and node rank 0 do not have the same wishes. */
void spoke_logs_start(const struct spoke *s);

/* The spoke is closing. False: at once; true: there may be last lines, spoke_leave() is called. */
bool spoke_logs_last(struct spoke *s);

/* The link has closed. */
void spoke_logs_lost(struct spoke *s);

#endif
