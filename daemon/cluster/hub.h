/* hub.h - node rank 0's side of the control channel: it hears all nodes, decides by job.h, and
 * tells all what follows. A job that nobody dials has a hub, too. */
#ifndef LAUNCHD_DAEMON_CLUSTER_HUB_H
#define LAUNCHD_DAEMON_CLUSTER_HUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/cluster/merged_lines.h"
#include "daemon/cluster/message.h"
#include "daemon/job/job.h"
#include "daemon/net/beat.h"
#include "daemon/net/link.h"
#include "daemon/net/listener.h"

struct arena;
struct failure;
struct member;
struct caller;
struct stop;
struct store;
struct evidence;
struct text;

struct hub {
	struct member *member;
	struct job job;
	unsigned self; /* this node in the job */
	struct listener listener;
	struct beat beat;
	bool listening;
	struct caller **peers; /* by node rank, of those that have joined */
	struct caller *all;    /* every connection */
	unsigned joined;
	unsigned *nproc;  /* by node rank */
	uv_timer_t clock; /* the join timeout and its notes; then how long a node may take to get
			   * ready, and, once it is to stop, to end; then the pause before an
			   * attempt */
	uint64_t stop_grace_ms; /* of the order to stop */
	uint64_t overdue_ms;    /* when all must have ended; uv_now() */
	struct store *store;    /* the workers'; NULL: rank 0 hosts it */
	int port_fd; /* keeps the attempt's port; -1: it was given, or the store has it */
	const char *master_addr;
	unsigned master_port, restarts;
	struct evidence *said;
	bool *unjoined; /* by rank; NULL: nobody has said that one is missing */
	size_t said_count, said_room;
	struct hub_logs logs;
	bool *late;         /* by node rank: it came late, and its workers start; NULL: none did */
	unsigned unready;   /* nodes that have joined, and have no plan yet */
	unsigned strangers; /* connections that are ready, and have not joined */
	unsigned turned_away; /* a bit for each enum link_end that was said of one */
	bool crowded;         /* too many strangers came, and that was said */
	bool met_another_job; /* and that was said */
	bool met_other_wishes;
	bool begun;   /* every node is there, or is not waited for any more */
	bool started; /* the first attempt, as all have a plan */
	bool agent_store;
	bool over, closing;
	unsigned handles; /* of the loop: the clock, the listener, beats, connections */
};

/* Begins: alone, at once; else where others may dial, at that port (0: a free one) and, with
 * bound_count above 0, at these addresses only. */
int hub_start(struct hub *h, struct member *m, const struct sockaddr *const *bound,
	unsigned bound_count, unsigned port, struct failure *why);

/* What happens on this node; see member.h. */
void hub_failed(struct hub *h, const struct outcome *o);
void hub_asked(struct hub *h, const struct stop *s);
void hub_forward(struct hub *h, int signal);
void hub_ended(
	struct hub *h, const struct node_end *end, const struct evidence *list, size_t count);

/* Ranks of a node that have not joined the store; see hub_waiting.c. */
void hub_waiting(
	struct hub *h, unsigned node, unsigned attempt, const unsigned *ranks, size_t count);

/* Those of all nodes, in order; the attempt's memory. */
const unsigned *hub_all_waiting(const struct hub *h, size_t *ret_count);

/* The hub's port, once it listens. */
unsigned hub_port(const struct hub *h);

/* Closes everything; hub->member hears member_part_closed() when nothing is left in the loop. */
void hub_close(struct hub *h);

/* After hub_close(): waits no longer until the others have read what they were told. */
void hub_hurry(struct hub *h);

/* For the hub's files among themselves. */

/* A connection to a node. */
struct caller {
	struct link link;
	struct hub *hub;
	struct caller *next; /* of all */
	bool stranger, joined, ready;
	bool told;     /* it knows the verdict, or was refused */
	unsigned node; /* joined */
	struct message_join about;
	struct outcome *outcomes; /* of the attempt, as far as they came; the attempt's memory */
	size_t count;
	size_t kept_bytes;    /* of what it said in this attempt */
	struct credit credit; /* for its workers' lines */
};

int hub_listen(struct hub *h, const struct sockaddr *const *bound, unsigned bound_count,
	unsigned port, struct failure *why);
/* hub_missing.c. Waits for the other nodes from now on, until the join timeout, and says so from
 * time to time. By PMIx only when its exchange has ended: it has the same limit. Once the job has
 * begun: nothing. */
void hub_wait(struct hub *h);
/* hub_join.c: what comes of a node before the job has started. */
void hub_hear_join(struct caller *p, const unsigned char *at, size_t len);
void hub_hear_ready(struct caller *p);
/* For those that have joined to be ready, no longer than a silent node is waited for. */
void hub_await_ready(struct hub *h);
void hub_hear_refusal(struct caller *p, const unsigned char *at, size_t len);
/* A node that had joined is gone before the job has started. */
void hub_lose_early(struct caller *p, const char *why);
/* Those who have joined without a rank, in the order in which they will have one. NULL: no memory.
 */
struct caller **hub_unranked(const struct hub *h, struct arena *arena, unsigned *ret_count);
/* Gives a rank to all of them. -ENOMEM. */
int hub_rank_rest(struct hub *h);
/* All nodes have their plans. */
void hub_start_first(struct hub *h);
/* Sends to all that have joined, but not to `except` (NULL: to all). */
void hub_tell(struct hub *h, enum message_type type, const void *at, size_t len,
	const struct caller *except);
/* Ends all connections with a last message. */
void hub_dismiss(struct hub *h, enum message_type type, const void *at, size_t len);
/* hub_refuse.c. Refuses the job on all nodes, this one too. code: as in message_refused */
void hub_refuse(struct hub *h, int code, const char *text);
/* Refuses one that has not joined; the others hear nothing of it. */
void hub_turn_away(struct caller *p, enum refusal why, int code, const char *text);
/* hub_late.c: the same, when the job has begun. */
void hub_turn_away_late(struct caller *p);
/* Whether p, which has said what it is, can't join: it was refused, or the job was. */
bool hub_turns_away(struct caller *p);
/* The name by which users know a peer: its host's, and where it comes from. */
void hub_add_peer(struct text *t, const struct caller *p);
/* Every node that can come is there, or is not waited for any more. Later calls do nothing. */
void hub_begin(struct hub *h);
/* hub_stop.c. Tells all what job.stop says. Who has not told of its end by the grace, STOP_REST_MS
 * and the node timeout later is lost. */
void hub_tell_stop(struct hub *h);
/* Does what the job has decided. */
void hub_obey(struct hub *h, enum order what, const struct orders *orders);
void hub_handle_closed(struct hub *h);
/* Keeps what a failed worker says; what it points to lives as long as the attempt's memory. */
void hub_remember(struct hub *h, const struct evidence *said);
/* Stops listening and watching, and closes what connections are left. */
void hub_hang_up(struct hub *h);

#endif
