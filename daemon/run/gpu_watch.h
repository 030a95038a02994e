/* gpu_watch.h - a child that reads how much memory of this node's GPUs is in use before a job's
 * first attempt, and listens to what NVML tells of them until its end. It sleeps inside NVML until
 * there is something, and nobody waits for it: where it can't be started, fails or hangs, less is
 * known, and that is all. */
#ifndef LAUNCHD_DAEMON_RUN_GPU_WATCH_H
#define LAUNCHD_DAEMON_RUN_GPU_WATCH_H

#include <stdbool.h>
#include <uv.h>

#include "daemon/os/helper.h"

struct plan;
struct xids;

/* Begins as { 0 }. */
struct gpu_watch {
	bool tried;          /* private, as is the rest */
	const char *visible; /* while it starts */
	struct helper helper;
};

/* Whether the workers have GPUs of NVIDIA's, or may have. */
bool gpu_watch_may_see(const struct plan *plan);

/* Starts it, once in a job: it is not tried again. visible: the job's CUDA_VISIBLE_DEVICES; NULL:
 * all GPUs are its own. argv: as struct helper has it. */
void gpu_watch_start(struct gpu_watch *w, uv_loop_t *loop, const char *visible, char **argv);

/* Whether it still reads how much memory is in use: workers wait until it has, to be no part of it.
 */
bool gpu_watch_is_reading(const struct gpu_watch *w);

/* What it has seen, in memory that is there until gpu_watch_stop(). NULL: it was never started. */
const struct xids *gpu_watch_xids(const struct gpu_watch *w);

/* Ends it; the loop runs on until it has. What was never started can be stopped. */
void gpu_watch_stop(struct gpu_watch *w);

#endif
