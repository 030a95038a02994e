/* party.h - what the parts of this launcher's control channel share: its hub or its spoke, and what
 * looks for the other nodes. They don't know struct member, which owns them (member.h). */
#ifndef LAUNCHD_DAEMON_CLUSTER_PARTY_H
#define LAUNCHD_DAEMON_CLUSTER_PARTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "common/address.h"
#include "common/notes.h"
#include "daemon/cluster/config.h"
#include "daemon/job/job.h"
#include "daemon/job/job_end.h"
#include "daemon/net/link.h"

struct arena;
struct beat;
struct bus;
struct failure;
struct message_bundle;
struct message_check;
struct message_hang;
struct message_look;
struct message_status;

/* What the nodes have agreed on. */
struct meeting {
	unsigned node_rank, nnodes;
	const unsigned *nproc_of_node; /* borrowed until the loop ends */
	const struct peer *peers;      /* by node rank, likewise; NULL: alone */
	const char *master_addr;       /* NULL: as the settings have it */
	unsigned master_port;          /* of the first attempt; never 0 */
	/* of the job, as node rank 0 has it; 0 and false if the others could not be met */
	unsigned max_restarts;
	bool agent_store;
	bool alone; /* the others could not be met: node rank and sizes are as the settings say */
};

/* How all nodes are checked before the workers of an attempt start. */
struct check_call {
	unsigned phases;  /* as daemon/check numbers them; 0: they are not */
	uint64_t gate_ms; /* how long the gate among them may take */
	bool together;    /* false: this node is the only one */
	/* This node's address on the way to node rank 0, and node rank 0's from here. Loopback:
	 * they lead to this host. */
	struct address own, hub;
};

struct member_events {
	/* The plan can be made; the first attempt starts when all nodes have theirs. Negative
	 * errno: it can't be made, why says so, and the other nodes are told: `failed` follows. */
	int (*met)(void *owner, const struct meeting *m, struct failure *why);
	/* Stop all workers, or more urgently than before. */
	void (*stop)(void *owner, const struct stop *s);
	void (*forward)(void *owner, int signal);
	/* An attempt has ended as `end` says, and the next one follows after delay_ms. */
	void (*pause)(void *owner, const struct job_end *end, uint64_t delay_ms);
	void (*start)(void *owner, unsigned attempt, unsigned master_port);
	/* Right before `start`. Where the nodes are checked no worker may start before `checked`
	 * or, on node rank 0, before the owner calls member_checked(). Borrowed. May be NULL. */
	void (*check)(void *owner, const struct check_call *c);
	/* A word of the check: from node rank 0, or there of another node; borrowed, and from
	 * another host. May be NULL. */
	void (*check_word)(void *owner, unsigned node, const struct message_check *m);
	/* Other nodes: the workers may start. May be NULL. */
	void (*checked)(void *owner);
	void (*over)(void *owner, const struct job_end *end);
	/* There is no job: nodes contradict one another, or did not come. Nothing was started. */
	void (*failed)(void *owner, const struct failure *why);
	void (*closed)(void *owner); /* nothing of it is in the loop any more */
	/* Node rank 0: bytes that a node's workers printed, borrowed; stream 1 or 2. A line may
	 * come in pieces. member_log_taken() must follow, now or later. NULL: they are dropped. */
	void (*log)(void *owner, unsigned node, int stream, const char *at, size_t len);
	/* Other nodes: ask for member_log_room() again, or node rank 0 was lost and
	 * member_merges() is false now. May be NULL. */
	void (*log_room)(void *owner);
	/* Other nodes: node rank 0 asks how this one is; member_status() tells, now or later. May
	 * be NULL. */
	void (*query)(void *owner, unsigned query);
	/* Node rank 0: a node has told; borrowed, and from another host: whether anybody has asked,
	 * and what it is, is for the owner to see. May be NULL. */
	void (*status)(void *owner, unsigned node, const struct message_status *told);
	/* Node rank 0: another node has looked at its workers; borrowed, and as above. May be NULL.
	 */
	void (*look)(void *owner, unsigned node, const struct message_look *told);
	/* Other nodes: what node rank 0 wants of them, or thinks. May be NULL. */
	void (*hang)(void *owner, const struct message_hang *told);
	/* Node rank 0: another node has kept something of a failure; borrowed, and as above. May be
	 * NULL. */
	void (*bundle)(void *owner, unsigned node, const struct message_bundle *told);
	/* Node rank 0: the job has come to a step that this attempt had not reached; see struct
	 * job_steps. May be NULL. */
	void (*step)(void *owner, uint64_t step, uint64_t at_ns);
};

enum { LINES_LAST_MS = 1000 }; /* for workers' last lines, when the verdict is told */

struct party {
	const struct member_config *config;
	const struct member_events *on;
	void *owner;
	const struct bus *bus;
	uv_loop_t *loop;
	struct arena *memory; /* of the attempt, for what others report of it */
	struct link_auth auth;
	uint64_t began_ns;
	uint64_t job_ms;      /* see struct message_start; 0: no attempt has started */
	uint64_t deadline_ms; /* when the nodes have to have met; uv_now() */
	unsigned parts;       /* that are in the loop */
	bool closing;         /* `closed` follows when none is */
};

/* A part has nothing in the loop any more. */
void party_part_closed(struct party *p);

/* To the user of this node. */
__attribute__((format(printf, 3, 4))) void party_say(
	const struct party *p, enum note_level level, const char *fmt, ...);

/* Another node was lost (why: how that showed) or has joined (NULL). */
void party_tell_node(const struct party *p, unsigned node, const char *name, const char *why);

/* There is no job; code: negative errno, as another node may have told it. */
__attribute__((format(printf, 3, 4))) void party_fail(
	const struct party *p, int code, const char *fmt, ...);

/* The job is over for that cause, before anything was started. */
void party_over_unstarted(const struct party *p, const struct cause *cause);

/* Tells `met`, and the user who asked for every word. */
int party_met(const struct party *p, const struct meeting *met, struct failure *why);

/* Whether it was this node that was suspended, so that the others lost it: why the job ends. */
bool party_slept(const struct beat *b, unsigned node, struct cause *ret);

/* Calls back after `ms`. Returns when that is: uv_now(). */
uint64_t party_wait(const struct party *p, uv_timer_t *t, uv_timer_cb then, uint64_t ms);

/* Whether this node was suspended past that time: what came meanwhile is to be read first. */
bool party_overslept(const struct party *p, uint64_t overdue_ms);

/* How long is left until then: uv_now(). */
uint64_t party_left_ms(const struct party *p, uint64_t until_ms);

/* The address of this host that a link has; none: it has no connection by TCP now. */
struct address party_own_address(const struct link *l);

/* Sends it; a link that is lost reports that by its on_closed. */
void party_send(struct link *to, const struct message *m);

/* Asks the hub behind a link for this node's place in the job. */
void party_introduce(const struct party *p, struct link *hub);

#endif
