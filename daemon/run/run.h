/* run.h - the supervisor's event loop: from the meeting of the nodes to the verdict. */
#ifndef LAUNCHD_DAEMON_RUN_RUN_H
#define LAUNCHD_DAEMON_RUN_RUN_H

#include <stddef.h>

#include "common/arena.h"
#include "daemon/cluster/member.h"
#include "daemon/job/ending.h"

struct event;
struct failure;
struct guard;
struct inherited;
struct output;
struct plan;
struct run_end;

struct run_events {
	/* The nodes have met: the plan for good. NULL: there is none, why says so. */
	const struct plan *(*on_met)(void *owner, const struct meeting *m, struct failure *why);
	/* All workers' outcomes as they stand: called when all workers of an attempt run; and when
	 * some have ended with 0 and the others still run plan->unfinished_note_ms later. */
	void (*on_started)(void *owner, const struct outcome *o, size_t count);
	void (*on_unfinished)(void *owner, const struct outcome *o, size_t count);
	/* An attempt has ended, another one follows. */
	void (*on_pause)(void *owner, const struct job_end *end, uint64_t delay_ms);
	/* The job's first process was killed on node rank 0, whose workers have ended; the end's
	 * job and whole are not known yet. */
	void (*on_own)(void *owner, const struct run_end *end);
	void (*say)(void *owner, bool warning, const char *text);
	/* Something has happened; in order, workers' deaths too. NULL: nobody wants to know. */
	void (*event)(void *owner, const struct event *e);
};

struct run_input {
	/* where nodes have yet to meet, ranks and addresses in it are not for good */
	const struct plan *plan;
	const struct member_config *member;
	const struct inherited *inherited;
	struct guard *guard; /* as guard_fork() left it in the supervisor; its pipe is taken over */
	struct output *output; /* its thread writes what workers write */
	bool status; /* a line on the terminal tells how far workers are, while they start */
	const char *run_dir;
	struct arena *arena;
	const struct run_events *on;
	void *owner;
};

/* What came of it. */
struct run_end {
	const struct plan *plan; /* the one that was carried out */
	struct result own; /* of the last attempt on this node; no outcomes: none was started */
	struct job_end job;
	struct result whole;         /* what job.result points to */
	struct evidence own_culprit; /* what own.culprit says; no record: nothing */
	struct arena memory;         /* of the two; see run_end_done() */
};

/* How many files a run has open at the most. */
unsigned run_descriptors(const struct plan *plan);

/* Whether so many may be open. -EMFILE with a sentence. To be asked before the first of them is:
 * libuv aborts where it gets no descriptor for its loop. */
int run_check_descriptors(const struct plan *plan, struct failure *why);

/* Runs the job to its end; blocks as long. When it returns nothing that was started is left, but
 * for the survivors that it names.
 * Negative errno: nothing was started, why says what failed; else 0 and *ret. Why may hold a
 * sentence also then: why a worker could not be started. */
int run_job(const struct run_input *in, struct run_end *ret, struct failure *why);

void run_end_done(struct run_end *end);

#endif
