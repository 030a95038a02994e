/* run.h - carries a plan out: the supervisor's event loop from the first worker to the last. */
#ifndef LAUNCHD_DAEMON_WORKERS_RUN_H
#define LAUNCHD_DAEMON_WORKERS_RUN_H

#include <stddef.h>

struct arena;
struct failure;
struct guard;
struct heritage;
struct outcome;
struct plan;
struct result;

struct run_input {
	const struct plan *plan;
	const struct heritage *heritage;
	struct guard *guard; /* as guard_fork() left it in the supervisor; its pipe is taken over */
	const char *run_dir;
	struct arena *arena;

	/* NULL: not. Both get all workers' outcomes as they stand. Called once when all workers
	 * run; and when some have ended with 0 and the others still run plan->unfinished_note_ms
	 * later. */
	void (*on_started)(void *owner, const struct outcome *o, size_t count);
	void (*on_unfinished)(void *owner, const struct outcome *o, size_t count);
	void *owner;
};

/* Runs the plan to its end; blocks as long. When it returns nothing that was started is left, but
 * for the survivors that it names.
 * Negative errno: nothing was started, why says what failed; else 0 and *ret. Why may hold a
 * sentence also then: why a worker could not be started. */
int run_plan(const struct run_input *in, struct result *ret, struct failure *why);

#endif
