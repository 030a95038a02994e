/* run_parts.h - what run.c, run_signals.c and attempt.c share, and nobody else. */
#ifndef LAUNCHD_DAEMON_RUN_RUN_PARTS_H
#define LAUNCHD_DAEMON_RUN_RUN_PARTS_H

#include <uv.h>

#include "daemon/observe/bus.h"
#include "daemon/output/front.h"
#include "daemon/plan/plan.h"
#include "daemon/run/run.h"
#include "daemon/workers/lifeline.h"
#include "daemon/workers/pool.h"
#include "daemon/workers/signals.h"

enum run_state {
	RUN_MEETING,
	RUN_OPENING,  /* an attempt's log files are being opened */
	RUN_WORKING,  /* an attempt's workers are there, or what they left behind */
	RUN_DRAINING, /* they have ended: what they wrote is read to its end */
	RUN_WAITING,  /* ours have ended: for the others, for the next attempt */
	RUN_OVER,
};

/* --merge-logs, once the first attempt has started. */
enum run_merge {
	MERGE_NONE,
	MERGE_SENDS, /* this node's lines go to node rank 0 */
	MERGE_HEARS, /* it is node rank 0 */
};

struct run {
	const struct run_input *in;
	const struct plan *plan;
	struct run_end *end;
	struct failure *why;
	int rc; /* negative: there was no job */
	enum run_state state;
	uv_loop_t loop;
	struct signals signals;
	struct lifeline lifeline;
	struct member member;
	struct pool pool;
	bool shared;        /* other nodes end with the same code as this one */
	struct cause known; /* why the attempt ends, as far as this node knows; NONE: it goes on */
	struct attempt attempt;
	uv_timer_t max_runtime, unfinished, joining, draining, status;
	uv_timer_t merging; /* until the member is closed */
	enum run_merge merge;
	bool status_over; /* no status line any more */
	bool has_words;   /* the output thread has told what workers wrote last */
	bool timed;       /* --max-runtime counts from the first attempt */
	unsigned store_port;
	uint64_t joining_ms;         /* between two looks at who has joined the store */
	bool said_missing;           /* the last look found one that had not */
	unsigned asked_to_end[WAYS]; /* how often, by each way */
	enum urgency urgency;        /* of the stop that workers have had */
	struct outcome *outcomes;    /* made before the first worker; copied from the pool's */
};

/* Carries a stop out here; one that is not more urgent than the one before changes nothing. */
void run_stop_here(struct run *r, const struct stop *s);

/* The same, and the other nodes hear of it. */
void run_stop_everywhere(struct run *r, const struct stop *s);

/* This is why the attempt ends; the first one counts, but of failures that which all nodes are
 * told. */
void run_know(struct run *r, const struct cause *c);

/* A cause that was found here, now. */
struct cause run_cause(const struct run *r, enum cause_kind kind);

/* Listens to signals and to what started launchd. On failure why is set, and some of it may be
 * open: both of the following in either case. Signals are heard longer: while the others are told
 * of the job's end. */
int run_listen(struct run *r);
void run_stop_watching(struct run *r);
void run_stop_listening(struct run *r);

/* A signal that is only passed on: to this node's workers. */
void run_forward_here(struct run *r, int signal);

/* Opens an attempt's log files and starts its workers; that they can't be started is its end. */
void run_start_attempt(struct run *r, unsigned number, unsigned master_port);

/* The attempt ends before its workers were started. */
void run_end_unstarted(struct run *r, const struct cause *cause);

/* The guard was killed, and this node's part has ended: whoever did that may be gone before the
 * other nodes have told how theirs did. Else nothing. */
void run_tell_own(const struct run *r);

/* Which workers of this node have joined the store, as far as can be seen: one flag each, the
 * arena's. NULL: it can't be seen. */
const bool *run_joined(const struct run *r, struct arena *arena);

/* The status line of an attempt whose workers run; see run_status.c. */
void run_status_watch(struct run *r); /* before the first worker may write */
void run_status_start(struct run *r);
void run_status_stop(struct run *r);

/* --merge-logs, see run_merge.c: an attempt starts; the last one is over, when the state says so;
 * the timer is closed. */
void run_merge_init(struct run *r);
void run_merge_start(struct run *r);
void run_merge_last(struct run *r);
void run_merge_stop(struct run *r);

/* The output thread has lines or has taken some, or the member has room or takes none any more. */
void run_merge_lines(struct run *r);

/* Another node's, on node rank 0. */
void run_merge_hear(struct run *r, unsigned node, int stream, const char *at, size_t len);

/* What the output thread has to tell. */
extern const struct output_events run_output_events;

/* A stop, once it is carried out here. */
void run_tell_stop(const struct run *r, const struct stop *s);

#endif
