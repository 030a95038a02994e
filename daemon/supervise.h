/* supervise.h - the supervisor's whole life, from the fork to its exit code. */
#ifndef LAUNCHD_DAEMON_SUPERVISE_H
#define LAUNCHD_DAEMON_SUPERVISE_H

#include <stdbool.h>

#include "common/notes.h"
#include "daemon/observe/event_file.h"

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

	/* The plan for good, once the nodes have met. NULL: there is none, why says so. */
	const struct plan *(*decide)(void *owner, const struct meeting *m, struct failure *why);
	void *owner;

	/* supervise()'s own */
	struct events events;
	bool ranked; /* this node's rank is known */
};

/* Meets the other nodes, runs the plan, says what became of it, and removes the run's directory.
 * Returns the exit code; negative errno: no worker was started, why says what failed. */
int supervise(struct supervision *s, struct failure *why);

#endif
