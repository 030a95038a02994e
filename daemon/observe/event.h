/* event.h - the things that happen in a run, and each as one JSON object on a line (--events).
 * Pure: clocks are passed in. Described in launchd(1), EVENTS: a change here is one there. */
#ifndef LAUNCHD_DAEMON_OBSERVE_EVENT_H
#define LAUNCHD_DAEMON_OBSERVE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/notes.h"

struct cause;
struct job_end;
struct outcome;
struct plan;
struct run_end;
struct sender;
struct text;

enum event_kind {
	EVENT_JOB_STARTED, /* the nodes have met */
	EVENT_ATTEMPT_STARTED,
	EVENT_WORKER_STARTED,
	EVENT_WORKER_ENDED,
	EVENT_SIGNAL_RECEIVED,
	EVENT_SIGNAL_FORWARDED, /* to this node's workers */
	EVENT_STOP,             /* this node's workers are being ended, or more urgently */
	EVENT_NODE_JOINED,
	EVENT_NODE_LOST,
	EVENT_RESTART,       /* an attempt is over, and another one follows */
	EVENT_CHECK_STARTED, /* of the nodes, before an attempt's workers (--preflight) */
	EVENT_CHECK_ENDED,   /* as node rank 0 knows it, or a node that is checked alone */
	EVENT_HANG,          /* what node rank 0 thinks of the job's quiet has changed: --on-hang */
	EVENT_BLACKBOX,      /* this node has kept what can be known of a failure, or could not */
	EVENT_PREEMPTION,    /* the job ends as a node is about to be taken away */
	EVENT_STEP, /* the job has come to a new step, as node rank 0 knows it: --progress */
	EVENT_VERDICT,
	EVENT_JOB_ENDED,          /* the last one: all output is written */
	EVENT_LINES,              /* how many kinds have a line in --events; the others: */
	EVENT_NOTE = EVENT_LINES, /* a sentence for the user */
	EVENT_WORKERS_JOINED,     /* this node's are connected to the store, or it can't be seen */
	EVENT_UNFINISHED,         /* some workers are done, others still run some time later */
	EVENT_KILLED, /* the guard was, and this node's workers have ended: what it knows */
	EVENT_KINDS,
};

/* How urgent a stop is, in words. */
#define EVENT_STOP_STOP  "stop"
#define EVENT_STOP_HURRY "hurry"
#define EVENT_STOP_KILL  "kill"

/* One event. All pointers are borrowed for the call that tells of it. */
struct event {
	enum event_kind kind;
	uint64_t at_ns; /* CLOCK_MONOTONIC, when it happened */
	union {
		struct {
			const struct plan *plan;
			const char *host;
		} job_started;
		struct {
			unsigned attempt;
			const char *master_addr;
			unsigned master_port;
		} attempt_started;
		const struct outcome *worker; /* WORKER_STARTED, WORKER_ENDED */
		struct {
			int signal;
			const struct sender *sender;
			const char *reaction; /* as --on-signal spells it */
		} received;
		int forwarded; /* a signal */
		struct {
			const struct cause *cause;
			const char *urgency;
			int signal; /* that the workers get; 0: none is left */
			uint64_t grace_ms;
		} stop;
		struct {
			unsigned rank;
			const char *name;
			const char *detail; /* how a loss showed */
		} other;                    /* NODE_JOINED, NODE_LOST */
		struct {
			unsigned attempt; /* the next one */
			uint64_t delay_ms;
			const struct job_end *end; /* of the one that is over */
		} restart;
		struct {
			unsigned attempt;
			const char *phases; /* "quick, links" */
			uint64_t limit_ms;
		} check_started;
		struct {
			unsigned attempt, nodes, bad, unknown; /* nodes; the rest is good */
			uint64_t took_ns;
			const char *exclude; /* the bad ones' hosts, "gpu07,gpu12"; NULL */
		} check_ended;
		struct {
			const char *state; /* "suspect", "cleared", "certain" */
			const char *kind;  /* "outside", as hang_class_word() has it */
			const unsigned *ranks;
			size_t count; /* of ranks; 0: all are alike */
			uint64_t quiet_ms;
			const char *text;
		} hang;
		struct {
			unsigned attempt;
			const char *path;  /* of the bundle; NULL: there is none */
			const char *error; /* why there is none, or what it lacks; NULL */
		} blackbox;
		struct {
			const struct cause *cause; /* CAUSE_PREEMPTED */
			uint64_t left_ms;
			int signal; /* that the workers get; 0: none runs here */
		} preemption;
		struct {
			unsigned attempt;
			uint64_t step;
		} step;
		struct {
			unsigned attempt;
			int exit_code;
			const char *text;
			const struct outcome *culprit; /* NULL: none, or another node knows */
			const struct cause *cause;
			const char
				*why_not; /* why no restart follows; NULL, "": none was awaited */
		} verdict;
		struct {
			int exit_code;
			const struct run_end *end; /* NULL: no job was run */
		} job_ended;
		struct {
			enum note_level level;
			const char *text;
		} note;
		struct {
			const struct outcome *outcomes; /* of all workers of this node */
			size_t count;
		} unfinished;
		const struct run_end *killed; /* without its job and whole */
	};
};

/* Where and when lines are written: the node, and one moment on both clocks. */
struct event_frame {
	bool node_known; /* else node is null */
	unsigned node;   /* node rank of this launcher */
	uint64_t now_ns; /* CLOCK_MONOTONIC */
	int64_t wall_ns; /* CLOCK_REALTIME */
};

/* Adds the line of an event whose kind is below EVENT_LINES, with its newline. */
void event_add(struct text *out, const struct event *e, const struct event_frame *frame);

#endif
