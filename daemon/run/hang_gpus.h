/* hang_gpus.h - a child that asks NVML once a second how much power the GPUs of this node's workers
 * draw and how much their tensor units work, and tells what they do: with --on-hang, where there
 * are GPUs of NVIDIA's. Nobody waits for it: where the driver hangs, fails, or is too old, nothing
 * is known of them. */
#ifndef LAUNCHD_DAEMON_RUN_HANG_GPUS_H
#define LAUNCHD_DAEMON_RUN_HANG_GPUS_H

#include <stdbool.h>
#include <uv.h>

#include "daemon/os/helper.h"
#include "daemon/witness/sample.h"

struct plan;

/* Begins as { 0 }. */
struct hang_gpus {
	struct helper helper; /* private, as is the rest */
	const struct plan *plan;
	bool expected; /* this node seems to have some */
};

/* Starts it, where there are GPUs; once in a job, as what is usual for them counts in all attempts.
 * argv: as struct helper has it. */
void hang_gpus_start(struct hang_gpus *g, uv_loop_t *loop, const struct plan *plan, char **argv);

/* Instead: NVML is not asked, so what GPUs do is unknown, if there are some. */
void hang_gpus_expect(struct hang_gpus *g, const struct plan *plan);

/* The job moves. */
void hang_gpus_moved(struct hang_gpus *g);

/* What those do of the n-th worker that this node starts. May be called in a child that is forked
 * later. */
enum gpu_activity hang_gpus_tell(const struct hang_gpus *g, unsigned worker);

/* Ends it; the loop runs on until it has. What was never started can be stopped. */
void hang_gpus_stop(struct hang_gpus *g);

#endif
