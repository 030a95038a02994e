/* member.h - this launcher's part in the job: what the run tells the others, and hears from them.
 *
 * Node rank 0's launcher is the hub, which decides for all (job.h); every other one has a link to
 * it. A job on one node, or without a control channel, is a hub that nobody dials. The run asks no
 * more than: have we met, what must I do; and it tells what happened here.
 *
 * Events come from the loop, or from within a call of member_*(). After `over` or `failed` no other
 * comes but `closed`. */
#ifndef LAUNCHD_DAEMON_CLUSTER_MEMBER_H
#define LAUNCHD_DAEMON_CLUSTER_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/cluster/config.h"
#include "daemon/cluster/doubt.h"
#include "daemon/cluster/finder.h"
#include "daemon/cluster/hub.h"
#include "daemon/cluster/job.h"
#include "daemon/cluster/link.h"
#include "daemon/cluster/pmix.h"
#include "daemon/cluster/sodium.h"
#include "daemon/cluster/spoke.h"
#include "daemon/cluster/verdict.h"
#include "daemon/report/last_words.h"

struct arena;
struct error_record;
struct failure;

/* What a failed worker says of itself. */
struct testimony {
	unsigned rank;
	const struct error_record *record; /* NULL: nothing */
	const char *command;               /* as a shell would have it */
	struct last_words words;
};

/* What the nodes have agreed on. */
struct meeting {
	unsigned node_rank, nnodes;
	const unsigned *nproc_of_node; /* borrowed until the loop ends */
	const char *master_addr;       /* NULL: as the settings have it */
	unsigned master_port;          /* of the first attempt; never 0 */
	/* of the job, as node rank 0 has it; none and false where the others could not be met */
	unsigned max_restarts;
	bool agent_store;
	bool alone; /* the others could not be met: node rank and sizes are as the settings say */
};

/* How a job ended. */
struct job_end {
	struct verdict verdict;
	const struct result *result; /* the whole job's; NULL: this node has not heard it all */
	bool alone; /* node rank 0 was lost: nobody else tells how this node's workers ended */
	const struct testimony *testimony; /* of result->culprit; NULL: none */
	unsigned restarts;
	const char *why_not;     /* why no more restarts; "" */
	const unsigned *waiting; /* ranks that had not joined the store when they were looked for */
	size_t waiting_count;
};

struct member_events {
	/* The plan can be made; the first attempt starts when all nodes have theirs. Negative
	 * errno: it can't be made, why says so, and the other nodes are told: `failed` follows. */
	int (*met)(void *owner, const struct meeting *m, struct failure *why);
	/* End all workers, or more urgently than before. */
	void (*stop)(void *owner, const struct stop *s);
	void (*forward)(void *owner, int signal);
	/* An attempt has ended as `end` says, and the next one follows after delay_ms. */
	void (*pause)(void *owner, const struct job_end *end, uint64_t delay_ms);
	void (*start)(void *owner, unsigned attempt, unsigned master_port);
	void (*over)(void *owner, const struct job_end *end);
	/* There is no job: nodes contradict one another, or did not come. Nothing was started. */
	void (*failed)(void *owner, int code, const char *text);
	void (*closed)(void *owner); /* nothing of it is in the loop any more */
	void (*say)(void *owner, bool warning, const char *text);
};

enum member_role { MEMBER_NONE, MEMBER_HUB, MEMBER_SPOKE };

struct member {
	const struct member_config *config;
	const struct member_events *on;
	void *owner;
	uv_loop_t *loop;
	struct arena *memory; /* of the attempt, for what others say of it */
	enum member_role role;
	struct link_auth auth;
	struct sodium sodium;
	struct pmix_exchange pmix;
	struct finder finder;
	struct doubt doubt;
	struct hub hub;
	struct spoke spoke;
	struct sockaddr_storage hub_addresses[FINDER_ADDRESSES];
	struct member_config alone; /* the config of a node that has to do without the others */
	uint64_t began_ns;
	unsigned parts; /* of the six above, that are in the loop */
	bool finds, doubts, closing;
};

/* Begins to meet the others. The config is borrowed. Where that fails, it is told by an event. What
 * the others say of an attempt goes to `memory`, which the owner empties when the next one starts.
 */
void member_start(struct member *m, uv_loop_t *loop, const struct member_config *c,
	const struct member_events *on, void *owner, struct arena *memory);

/* A worker failed that nobody had asked to end. */
void member_failed(struct member *m, const struct outcome *o);

/* This launcher is asked to end the job. */
void member_asked(struct member *m, const struct stop *s);

/* A signal for all nodes that is only passed on. */
void member_forward(struct member *m, int signal);

/* All workers of the attempt have ended here, with what some of them say. The end's outcomes and
 * the testimonies are borrowed until the next attempt starts. */
void member_ended(
	struct member *m, const struct node_end *end, const struct testimony *list, size_t count);

/* These of this node's workers have not joined the store, as far as can be seen; none: all have. */
void member_waiting(struct member *m, unsigned attempt, const unsigned *ranks, size_t count);

/* Leaves; `closed` follows from the loop. */
void member_close(struct member *m);

/* Once it is closing: leaves at once, whoever may still read its last words. */
void member_hurry(struct member *m);

/* For the parts of it: this one has nothing in the loop any more. */
void member_part_closed(struct member *m);

/* For the spoke: the hub is not to be had, so this node's workers start without, or not at all. */
void member_miss(struct member *m, const char *why);

/* For the hub and the spoke: tells `met`, and the user who asked for every word. */
int member_met(struct member *m, const struct meeting *met, struct failure *why);

/* Asks the hub behind a link for this node's place in the job. */
void member_introduce(const struct member *m, struct link *hub);

/* For member.c and member_meet.c among themselves. */

void member_fail(struct member *m, int code, const char *text);
/* See hub_start(). */
int member_start_hub(struct member *m, const struct sockaddr *const *bound, unsigned count,
	unsigned port, struct failure *why);
/* To the user of this node. */
void member_say(const struct member *m, bool warning, const char *text);
/* That the channel has no key: once in a job, by the node that all others trust. */
void member_say_unkeyed(struct member *m);
/* Begins to dial hub_addresses. */
void member_start_spoke(struct member *m, unsigned count);
/* The key that the user gave, if any. False: it can't be used, and that is the end. */
bool member_use_key(struct member *m);
void member_meet_static(struct member *m);
void member_meet_by_pmix(struct member *m);

#endif
