/* step_file.h - --progress FILE: a child that looks at the file every STEP_FILE_EVERY_S seconds,
 * whatever file system it is on: on one that hangs nothing but the child waits, and on one of a
 * network nothing would tell that another host has written. */
#ifndef LAUNCHD_DAEMON_RUN_WATCH_STEP_FILE_H
#define LAUNCHD_DAEMON_RUN_WATCH_STEP_FILE_H

#include <stdint.h>
#include <uv.h>

#include "daemon/os/helper.h"

enum { STEP_FILE_EVERY_S = 2 };

/* Begins as { 0 }. */
struct step_file {
	struct helper helper; /* private, as is the rest */
	const char *path;
};

struct step_file_seen {
	uint64_t changes; /* that the child has seen; how the file was when it came is none */
	uint64_t number;  /* the latest in the file, or 0 */
	bool numbered;    /* it holds one */
	uint64_t
		at_ns; /* when the file changed, CLOCK_MONOTONIC, to within a look of the child's */
};

/* Starts the child; path is borrowed, argv is as struct helper has it. Where it can't be started
 * nothing is seen. */
void step_file_start(struct step_file *f, uv_loop_t *loop, const char *path, char **argv);

struct step_file_seen step_file_look(const struct step_file *f);

/* Ends the child; the loop runs on until it has. */
void step_file_stop(struct step_file *f);

#endif
