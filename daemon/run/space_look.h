/* space_look.h - a child that reads once, before a job's first attempt, how much is free where the
 * job writes. File systems may hang, so the launcher never waits for it. */
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

/* Returns its result, valid until space_look_stop(). NULL: it was never started. */
const struct disk_space *space_look_found(const struct space_look *l);

/* Kills it; the loop runs until it is reaped. May be called if it was never started. */
void space_look_stop(struct space_look *l);

#endif
