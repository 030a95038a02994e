/* hub_parts.h - the hub as its own files see it, from the ground up: hub_peers.c (connections),
 * hub_lines.c (workers' lines), hub_check.c (how nodes are checked), hub_act.c (what the job
 * decides), hub_meet.c (the meeting and the beginning), hub_join.c (who may take part), hub.c. Each
 * calls those before it only. */
#ifndef LAUNCHD_DAEMON_CLUSTER_HUB_PARTS_H
#define LAUNCHD_DAEMON_CLUSTER_HUB_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "common/failure.h"
#include "daemon/cluster/credit.h"
#include "daemon/cluster/message.h"
#include "daemon/cluster/party.h"
#include "daemon/job/job.h"
#include "daemon/net/beat.h"
#include "daemon/net/link.h"
#include "daemon/net/listener.h"

struct caller;
struct sm;
struct store;

enum hub_state {
	HUB_MEETING,   /* nodes are waited for */
	HUB_PREPARING, /* all are there, or are not waited for any more: they make their plans */
	HUB_RUNNING,   /* attempts, as all have a plan */
	HUB_OVER,      /* the verdict, or that there is no job, is told */
	HUB_CLOSED,    /* it leaves the loop */
	HUB_STATES,
};

extern const struct sm hub_life;

/* A failed worker's evidence. */
struct remembered {
	struct evidence said;
	struct remembered *next; /* that came before */
};

struct hub {
	struct party *party;
	enum hub_state state;
	struct job job;
	unsigned self; /* this node in the job */
	struct listener listener;
	struct beat beat;
	struct caller **peers; /* by node rank, of those that have joined */
	struct caller *all;    /* every connection */
	unsigned joined;
	unsigned *nproc;   /* by node rank */
	struct peer *told; /* by node rank; of a node that has not joined, what this one is */
	/* The state's: MEETING: the join timeout and its notes. PREPARING: how long a node may
	 * take to get ready. RUNNING: how long one may take to end once it is to stop, then the
	 * pause before an attempt. OVER: for how long late nodes are told of a refusal. */
	uv_timer_t clock;
	uint64_t stop_grace_ms;  /* of the order to stop */
	uint64_t overdue_ms;     /* when all must have ended; uv_now() */
	struct store *store;     /* the workers'; NULL: rank 0 hosts it */
	uint64_t port_waited_ms; /* before this restart, for the master port */
	int port_fd; /* reserves the attempt's port; -1: it was given, or the store has it */
	const char *master_addr;
	unsigned master_port, restarts;
	struct remembered *said; /* of the attempt, in its memory */
	bool *unjoined;          /* by rank; NULL: no node has reported a missing one */
	struct {
		bool lasting;     /* the verdict is told, and last lines may come */
		uv_timer_t clock; /* in the loop while lasting */
	} lines;
	bool *late; /* by node rank: it came late and starts its workers alone, or has heard of
		       the refusal */
	/* OVER: why there is no job, told also to nodes that come now; code 0: nothing is told. */
	struct failure refusal;
	uint64_t after_end_ms; /* the longest of all nodes' */
	unsigned awaited;      /* nodes that have not heard of it */
	unsigned unready;      /* nodes that have joined, and have no plan yet */
	unsigned strangers;    /* connections that passed the handshake but have not joined */
	unsigned turned_away;  /* a bit for each enum link_end that was reported */
	bool crowded;          /* too many strangers came, and that was reported */
	bool met_another_job;  /* and that was reported */
	bool met_other_wishes;
	bool agent_store;
	unsigned handles; /* of the loop: the clock, the listener, beats, connections */
};

/* A connection to a node. */
struct caller {
	struct link link;
	struct hub *hub;
	struct caller *next; /* of all */
	bool early;          /* it came while PMIx was at work here */
	bool stranger, joined, ready;
	bool told;     /* it knows the verdict, or was refused */
	unsigned node; /* joined */
	struct message_join about;
	struct outcome *outcomes; /* of the attempt, as far as they came; the attempt's memory */
	size_t count;
	size_t kept_bytes;    /* of what it sent in this attempt */
	struct credit credit; /* for its workers' lines */
};

/* --- hub_peers.c --- */

/* The only writer of the state. */
void hub_goto(struct hub *h, enum hub_state next);
void hub_handle_closed(struct hub *h);
/* Sends to all that have joined but `except` (NULL: to all). */
void hub_tell(struct hub *h, const struct message *m, const struct caller *except);
/* Refuses one that has not joined; the others hear nothing of it. */
__attribute__((format(printf, 4, 5))) void hub_turn_away(
	struct caller *p, enum refusal why, int code, const char *fmt, ...);
/* Refuses the job on all nodes, this one too. code: as in message_refused. Where nodes contradict
 * one another (-EINVAL) this one stays for those that have not come yet, REFUSED_MS at most: who
 * finds nobody would wait until the join timeout. */
__attribute__((format(printf, 3, 4))) void hub_refuse(
	struct hub *h, int code, const char *fmt, ...);
/* Ends that stay. */
void hub_refuse_no_more(struct hub *h);
/* Whether this is the first launcher of its node that hears of the refusal. */
bool hub_is_first(struct hub *h, const struct caller *p);
/* The name by which users know a peer: its host's, and where it comes from. To be used at once:
 * hub_peer(p).text in a printf's list. */
struct peer_name {
	char text[5 * NODE_NAME_SIZE + ADDRESS_SIZE];
};
struct peer_name hub_peer(const struct caller *p);

/* --- hub_lines.c: workers' lines, on their way to this node's console; see member.h ---
 *
 * With the welcome the hub gives each node credit. A node sends while it has some, and only when
 * nothing else waits in its link's queue: its own messages, a failure or an end, wait for the rest
 * of one such message at most. The hub's owner reports what its console has written, and the node
 * may send that much again. Each node has its own credit.
 *
 * At the end a node that leaves has LINES_LAST_MS to send what its output still holds. After the
 * verdict the hub keeps its links open for as long; a node that has sent all closes its own. */

/* Gives all nodes their credit, where this node wants their lines; they were welcomed. */
void hub_lines_offer(struct hub *h);
void hub_lines_hear(struct caller *p, const struct message *m);
/* So many bytes of a node were written. It may be lost already. */
void hub_lines_taken(struct hub *h, unsigned node, size_t len);
/* The verdict is being told. */
void hub_lines_last(struct hub *h);
/* Whether this connection stays open for its last lines; its node closes it. */
bool hub_lines_await(const struct caller *p);
/* A connection has closed. */
void hub_lines_lost(struct hub *h);

/* --- hub_check.c --- */

/* Calls the check of this node. */
void hub_check_call(const struct hub *h, const struct message_start *start);
void hub_hear_check(struct caller *p, const struct message *m);

/* --- hub_act.c --- */

/* The address of --local-addr, or the best one of --interface: where to listen, and nowhere else.
 * NULL: neither is given, or it is a name. */
const char *hub_asked_addr(const struct hub *h);

/* Opens the workers' store, where this launcher hosts it, before anybody is told of it: at
 * h->master_addr, where only the job's nodes may connect. Sets h->master_port either way. */
int hub_find_port(struct hub *h, struct failure *why);
/* All nodes have their plans. */
void hub_start_first(struct hub *h);
/* Sends job.stop to all. A node that has not reported its end within the grace, STOP_REST_MS and
 * the node timeout is lost. */
void hub_tell_stop(struct hub *h);
/* Does what the job has decided. */
void hub_obey(struct hub *h, enum order what);
/* Keeps a failed worker's evidence; what it points to lives as long as the attempt's memory. */
void hub_remember(struct hub *h, const struct evidence *said);

/* Of the hub that is the owner: what a worker that failed says of where that was. */
void hub_find_site(void *owner, unsigned rank, struct crash_site *ret);
/* These of a node's workers have not joined the store: a job that hangs at its start says so. */
void hub_waiting(struct hub *h, unsigned node, const struct message_ranks *m);

/* --- hub_meet.c --- */

/* Waits for the other nodes from now on, until the join timeout, and says so from time to time. By
 * PMIx only when its exchange has ended: it has the same limit. After the meeting: nothing. */
void hub_wait(struct hub *h);
/* All nodes have joined, or are not waited for any more. Later calls do nothing. */
void hub_begin(struct hub *h);
/* Begins once all nodes have joined and none of their connections is broken. */
void hub_begin_if_complete(struct hub *h);
/* A node takes its rank: the one that it was given, or one of those that are left. */
void hub_take_place(struct hub *h, struct caller *p, unsigned node);
/* A node that had joined is gone before the job begins; why: how that showed. */
void hub_leave_place(struct caller *p, const char *why);
/* Gives a rank to all who have joined without. -ENOMEM. */
int hub_rank_rest(struct hub *h);
/* Messages of a node that makes its plan. */
void hub_hear_ready(struct caller *p, const struct message *m);
void hub_hear_refusal(struct caller *p, const struct message *m);
/* A node that had joined is gone before the job has started. */
void hub_lose_early(struct caller *p, const char *why);

/* --- hub_join.c --- */

void hub_hear_join(struct caller *p, const struct message *m);

#endif
