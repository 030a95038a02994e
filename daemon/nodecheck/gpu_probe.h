/* gpu_probe.h - the test of one GPU: memory and compute, right and fast. In the child of part.h,
 * which may be killed in it. */
#ifndef LAUNCHD_DAEMON_NODECHECK_GPU_PROBE_H
#define LAUNCHD_DAEMON_NODECHECK_GPU_PROBE_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/nodecheck/sighting.h"

struct failure;
struct gpu_about;
struct gpu_ops;
struct gpu_wrong;

/* Tests so many percent of the free memory of the GPU that is open; `tell` is called with what
 * comes next, for who finds it hanging there. What it finds is in *ret; never fails. */
void gpu_probe(const struct gpu_ops *gpu, const struct gpu_about *about, unsigned memory_percent,
	void (*tell)(const char *doing), struct gpu_sight *ret);

/* A step that failed: BROKEN where the GPU or its library reports an error of theirs (-EIO), HUNG
 * where its time was over (-ETIMEDOUT), NONE where another rank did not take part (-ENOENT), who
 * has a reason of its own to tell; else FAILED. */
void sighting_of_failure(struct gpu_sight *s, int rc, const struct failure *why);

/* Values that are wrong; unit: "words". */
void sighting_of_wrong(
	struct gpu_sight *s, const struct gpu_wrong *wrong, uint64_t of, const char *unit);

#endif
