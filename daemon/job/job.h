/* job.h - the whole job as node rank 0's launcher sees it: who is there, who failed, what follows.
 * Pure: events in, orders out; no clock (every event brings its time), no sockets.
 *
 * A job on one node is a job with one node: the same path decides about restarts.
 *
 *   MEETING --all joined--> RUNNING --failure, request, lost node--> STOPPING
 *   RUNNING, STOPPING --the last node has ended--> PAUSED (a restart follows) or OVER
 *   PAUSED --job_resume()--> RUNNING, the next attempt */
#ifndef LAUNCHD_DAEMON_JOB_JOB_H
#define LAUNCHD_DAEMON_JOB_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/job/ending.h"
#include "daemon/job/goodput.h"
#include "daemon/job/history.h"

struct arena;
struct sm;

enum node_state {
	NODE_AWAITED, /* has not joined */
	NODE_JOINED,  /* its workers start, or run */
	NODE_ENDED,   /* all its workers of this attempt have ended, and what they left behind */
	NODE_LEFT,    /* ended with 0 and gone: nothing can make it start again */
	NODE_LOST,
	NODE_ABSENT, /* never came; the job runs without its launcher (--control auto) */
	NODE_STATES,
};

enum job_state { JOB_MEETING, JOB_RUNNING, JOB_STOPPING, JOB_PAUSED, JOB_OVER, JOB_STATES };

extern const struct sm job_life, node_life; /* of these states */

/* How urgently workers are to end: as the first, second, third signal to one launcher. */
enum urgency { URGENCY_NONE, URGENCY_STOP, URGENCY_HURRY, URGENCY_KILL };

/* What a node may need, beyond a stop's grace, until it has told of its end: for workers that
 * SIGKILL does not end at once, for what is left below it, for what they wrote last. */
enum { STOP_REST_MS = 20000 };

/* How a stop is carried out on every node. Its grace is the most that any of them has, as its
 * workers may be stopping already for a reason of their own. */
struct stop {
	unsigned attempt;
	enum urgency urgency;
	int signal;        /* to the workers, first */
	uint64_t grace_ms; /* until SIGKILL */
	struct cause cause;
};

/* Decides about restarts. */
struct restart_policy {
	unsigned max_restarts;
	uint64_t delay_ms; /* doubled with each restart, up to RESTART_DELAY_MAX_MS */
	uint64_t min_uptime_ms;
	bool hangs; /* a hang is a failure that may be followed by a restart: --on-hang restart */
	const char *on, *not_on; /* as --restart-on and --no-restart-on have it; NULL: not given */
	uint64_t window_ms;      /* only restarts of this last time count; 0: all */
	/* so many failed attempts in a row without a step beyond the best one end the job; 0: none
	 * do */
	unsigned no_progress;
	bool other_hosts; /* whoever has given the nodes may give others */
};

enum { RESTART_DELAY_MAX_MS = 300000, WHY_NOT_SIZE = 160 };

/* One node's part of an attempt, when it has ended there. Times are the node's own. */
struct node_end {
	unsigned attempt;
	struct cause cause; /* why it ended there: CAUSE_NONE where all workers ended with 0 */
	struct outcome *outcomes;
	size_t count;
	unsigned left, left_killed;
	bool left_unknown;
	struct survivor survivors[SURVIVORS_MAX];
	unsigned survivor_count;
	uint64_t started_ns, ended_ns;
};

struct job_node {
	enum node_state state;
	struct node about;
	unsigned nproc;
	int64_t offset_ns; /* its clock minus ours */
	struct node_end end;
	bool has_ended;        /* end tells of this attempt; also in a node that was lost later */
	struct outcome failed; /* the first failure that it told of; asked: ASKED_NOTHING */
	bool has_failed;
	struct cause lost; /* NODE_LOST: why, and when it was last heard of, on our clock */
	uint64_t due_ns;   /* NODE_LOST: as struct loss has it */
};

/* A node's launcher is gone. Times are on our clock. */
struct loss {
	uint64_t heard_ns;  /* its last word */
	uint64_t due_ns;    /* when the next one should have come; where its end was seen, then */
	const char *detail; /* borrowed: "its connection was closed" */
	const struct cause *own; /* it is this launcher that was missed; NULL: it was not */
	int signal; /* of which its supervisor died, as its guard says; 0: nobody does */
};

/* How far the job has come: --progress. Steps count up, over all attempts; times are on our clock.
 */
struct job_steps {
	bool known;    /* there was one, in any attempt */
	uint64_t best; /* the highest of all attempts */
	bool attempt_known;
	uint64_t attempt_best; /* of this one */
	uint64_t at_ns;        /* when an attempt last came to a step that was new to it */
	uint64_t beyond_ns;    /* when this one came beyond all before; 0: it has not */
};

enum { SUSPECTS_MAX = 16 };

/* Whom --on-hang has seen elsewhere while the others of this attempt waited. */
struct job_suspects {
	unsigned ranks[SUSPECTS_MAX];
	size_t count;
	uint64_t cleared_ns; /* when the job moved again; 0: it has not */
};

struct job {
	enum job_state state;
	unsigned nnodes, attempt;
	uint64_t grace_ms; /* for a stop that no request has brought */
	struct restart_policy policy;
	struct job_node *nodes;
	struct stop stop;         /* the one that was ordered; urgency NONE: none */
	struct cause asked;       /* the first request to end the job, on our clock; NONE: none */
	struct cause restart;     /* likewise to start another attempt in place of this one */
	unsigned asked_restarts;  /* attempts that began so: --max-restarts does not count them */
	struct cause lost;        /* the node that was missed first; NONE: none */
	uint64_t started_ns;      /* of this attempt, on our clock */
	struct outcome *outcomes; /* the whole job's, when the last node has ended */
	size_t room;              /* for outcomes: attempts share the memory */
	struct node *told;        /* the nodes, as results have them */
	struct result result;     /* of the attempt that ended last */
	uint64_t delay_ms;        /* PAUSED: until the next one */
	struct history past;      /* the attempts that are over */
	/* What a worker that failed says of where that was, for the history; NULL: nobody knows.
	 * The owner's, as is what it gets. */
	void (*find_site)(void *owner, unsigned rank, struct crash_site *ret);
	void *owner;
	struct job_steps steps;
	struct job_suspects suspects;
	struct goodput goodput;
	/* OVER: why no restart follows a failure, where --max-restarts was given: "the limit is
	 * reached", "exit code 2 is not in --restart-on"; "" otherwise */
	char why_not[WHY_NOT_SIZE];
	struct arena *arena; /* for outcomes; failed: there was no room for all */
};

/* What the owner must do now. */
enum order {
	ORDER_NONE,
	ORDER_STOP,    /* job.stop is new, more urgent, or has another cause: to all that run */
	ORDER_RESTART, /* after job.delay_ms: job_resume(), then the attempt starts everywhere */
	ORDER_OVER,    /* job.result is the job's, and all nodes may go */
};

/* A job of nnodes nodes, none joined. Memory is the arena's, later too. -ENOMEM. */
int job_init(struct job *j, unsigned nnodes, const struct restart_policy *policy, uint64_t grace_ms,
	struct arena *arena);

/* A node is there, with that many workers. To be called in MEETING. */
void job_joined(struct job *j, unsigned node, unsigned nproc, const char *name);

/* It went away before the job began: it is awaited again. */
void job_unjoined(struct job *j, unsigned node);

/* Begins the first attempt; nodes that have not joined are ABSENT from now on. */
void job_begin(struct job *j, uint64_t now_ns);

/* The estimate of a node's clock: its own minus ours, and by how much that may be wrong. */
void job_clock(struct job *j, unsigned node, int64_t offset_ns, uint64_t error_ns);

/* A worker failed that nobody had asked to end; node_end tells the whole story later. STOP, too,
 * where the job ends for a failure already, but this one came before: all are told of it instead.
 * An event of another attempt than this one changes nothing, here and below. */
enum order job_failed(struct job *j, unsigned node, const struct outcome *o, uint64_t now_ns);

/* A launcher is asked to end the job: by a signal, --max-runtime, its guard's death. The times of
 * the cause are the node's own. A request is for the job, whatever attempt it names: none follows.
 * Before the job has begun, and between two attempts, it ends at once: OVER. The cause's node is
 * the one that asks, but where a node is bad.
 *
 * CAUSE_RESTART: the attempt is to end, and another one follows without delay, unless a request to
 * end the job comes as well, or a node is lost. NONE, and nothing follows: no attempt runs, or a
 * node is gone that could not start its workers again. */
enum order job_asked(struct job *j, unsigned node, const struct stop *asked);

/* Names the host of a cause's node for the other launchers. Not where there are none: of a job on
 * one node the user knows the node by another number. */
void job_name_host(const struct job *j, struct cause *c);

/* All workers of a node have ended. Its outcomes are borrowed until job_resume(); the result has
 * copies. Where there is no memory for them the arena has failed, and they are missing from it. */
enum order job_ended(struct job *j, unsigned node, const struct node_end *end, uint64_t now_ns);

/* A node's launcher is gone without a word, or has been silent too long. In a node that has ended
 * with 0 and said so it is no loss. May stop the job, and may be the last event that it waited for.
 * Between two attempts it ends the job. */
enum order job_lost(struct job *j, unsigned node, const struct loss *loss, uint64_t now_ns);

/* The restart that ORDER_RESTART announced is impossible: the failure before it ends the job. */
enum order job_give_up(struct job *j, const char *why, uint64_t now_ns);

/* A node whose workers have ended with 0 leaves: only where no restart can follow, as after this
 * none does. Before it has ended that is a loss. */
enum order job_left(struct job *j, unsigned node, uint64_t now_ns);

/* Workers of a node have come to a step, at that time of its clock. True: this attempt had not
 * reached it. */
bool job_step(struct job *j, unsigned node, uint64_t step, uint64_t node_ns);

/* --on-hang suspects these ranks now, in place of those before; 0: the job moves again. */
void job_suspect(struct job *j, const unsigned *ranks, size_t count, uint64_t now_ns);

/* Begins the next attempt. */
void job_resume(struct job *j, uint64_t now_ns);

#endif
