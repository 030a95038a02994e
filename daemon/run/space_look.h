/* space_look.h - a child that reads once, before a job's first attempt, how much is free where the
 * job writes: file systems may hang. Nothing waits for it, and without it less is known. */
#ifndef LAUNCHD_DAEMON_RUN_SPACE_LOOK_H
#define LAUNCHD_DAEMON_RUN_SPACE_LOOK_H

#include <uv.h>

#include "daemon/os/helper.h"

struct settings;
struct disk_space;

/* Begins as { 0 }; private. */
struct space_look {
	struct helper helper;
	const struct settings *settings;
	const char *const *env;
};

/* Starts it. Both are borrowed until it is stopped; argv: as struct helper has it. */
void space_look_start(struct space_look *l, uv_loop_t *loop, const struct settings *settings,
	const char *const *env, char **argv);

/* What it has found, in memory that is there until space_look_stop(). NULL: it was never started.
 */
const struct disk_space *space_look_found(const struct space_look *l);

/* Ends it; the loop runs on until it has. What was never started can be stopped. */
void space_look_stop(struct space_look *l);

#endif
