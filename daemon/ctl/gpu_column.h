/* gpu_column.h - how much of this machine's GPU memory each worker holds, with what it has started.
 *
 * launchctl asks, not the launcher: a driver may hang, and takes its time. It is asked in a child
 * with a time limit. */
#ifndef LAUNCHD_DAEMON_CTL_GPU_COLUMN_H
#define LAUNCHD_DAEMON_CTL_GPU_COLUMN_H

#include <stddef.h>
#include <sys/types.h>

struct arena;
struct gpu_bytes;
struct text;

/* For each of the workers, by pid; the list is the arena's. NULL: there are no GPUs, or it can't be
 * had, and then *said says why. */
struct gpu_bytes *gpu_column(
	const pid_t *workers, size_t count, struct arena *arena, struct text *said);

#endif
