/* run.h - carries a plan out: the event loop from the first worker to the last. */
#ifndef LAUNCHD_DAEMON_WORKERS_RUN_H
#define LAUNCHD_DAEMON_WORKERS_RUN_H

#include <stddef.h>

struct arena;
struct failure;
struct heritage;
struct outcome;
struct plan;
struct result;

/* Runs the plan to its end; blocks as long. `started` is called once when all workers run (the
 * outcomes have their pids), NULL: not.
 * Negative errno: nothing was started, why says what failed; else 0 and *ret. Why may hold a
 * sentence also then: why a worker could not be started. */
int run_plan(const struct plan *plan, const struct heritage *heritage, struct arena *arena,
	void (*started)(const struct outcome *outcomes, size_t count), struct result *ret,
	struct failure *why);

#endif
