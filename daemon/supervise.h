/* supervise.h - the supervisor's whole life, from the fork to its exit code. */
#ifndef LAUNCHD_DAEMON_SUPERVISE_H
#define LAUNCHD_DAEMON_SUPERVISE_H

#include <stdbool.h>

struct arena;
struct failure;
struct guard;
struct heritage;
struct plan;

struct supervision {
	const struct plan *plan;
	const struct heritage *heritage;
	struct guard *guard;
	const char *hostname;
	struct arena *arena;
	bool quiet, verbose;
};

/* Runs the plan, says what became of it, and removes the run's directory. Returns the exit code;
 * negative errno: no worker was started, why says what failed. */
int supervise(const struct supervision *s, struct failure *why);

#endif
