/* post_attempt.h - --post-attempt: a command of the user's on every node, when an attempt's workers
 * and what they left behind have ended there.
 *
 * It runs below a child of its own, which takes what it prints, and the node's end is told when it
 * is over: so it is before the next attempt on every node, and before the check of all nodes. Its
 * failure is a warning. Without the setting there is no process. */
#ifndef LAUNCHD_DAEMON_RUN_POST_ATTEMPT_H
#define LAUNCHD_DAEMON_RUN_POST_ATTEMPT_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/os/helper.h"

struct bus;
struct cause;
struct plan;

/* What has ended. Pointers are borrowed until on_over. */
struct attempt_over {
	unsigned attempt;
	const struct cause *cause; /* why, as far as this node knows; of kind NONE: it went well */
	const char *bundle;        /* this node's part of it; NULL: there is none */
	uint64_t left_ms;          /* until this node is taken away; 0: it is not */
};

/* Begins as { 0 }. */
struct post_attempt {
	/* the owner's, before it starts; all are borrowed */
	const struct plan *plan;
	const struct bus *bus;
	char **argv; /* as struct helper has it */
	/* The command has ended, with all that it has started. */
	void (*on_over)(void *owner);
	void *owner;

	/* private */
	struct helper helper;
	struct attempt_over what;
};

/* Runs the command; on_over follows from the loop. False: there is none. */
bool post_attempt_start(struct post_attempt *p, uv_loop_t *loop, const struct attempt_over *what);

/* Ends one that runs. */
void post_attempt_end(struct post_attempt *p);

#endif
