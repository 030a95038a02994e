/* supervise.h - the supervisor's whole life, from the fork to its exit code. */
#ifndef LAUNCHD_DAEMON_SUPERVISE_H
#define LAUNCHD_DAEMON_SUPERVISE_H

#include "common/notes.h"
#include "daemon/observe/bus.h"
#include "daemon/observe/event_file.h"
#include "daemon/observe/reporter.h"

struct arena;
struct failure;
struct guard;
struct inherited;
struct meeting;
struct member_config;
struct output;
struct plan;

struct supervision {
	const struct plan *plan; /* where nodes have yet to meet, not for good */
	const struct member_config *member;
	const struct inherited *inherited;
	struct guard *guard;
	struct output *output; /* supervise()'s own */
	const char *hostname;
	struct arena *arena;
	enum note_level least; /* of launchd's notes these and what is above them are said */

	/* The final plan, once the nodes have met. NULL: there is none, why says so. */
	const struct plan *(*bind)(void *owner, const struct meeting *m, struct failure *why);
	void *owner;

	/* supervise()'s own */
	struct bus bus;
	struct reporter reporter;
	struct events events;
};

/* Meets the other nodes, runs the plan, says what became of it, and removes the run's directory.
 * Returns the exit code; negative errno: no worker was started, why says what failed. */
int supervise(struct supervision *s, struct failure *why);

#endif
