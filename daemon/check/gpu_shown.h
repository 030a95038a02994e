/* gpu_shown.h - which GPUs a CUDA_VISIBLE_DEVICES shows: by number, UUID or MIG device. */
#ifndef LAUNCHD_DAEMON_CHECK_GPU_SHOWN_H
#define LAUNCHD_DAEMON_CHECK_GPU_SHOWN_H

#include <stdbool.h>

struct nvml_api;

/* A GPU as NVML has it. */
struct gpu_listed {
	const struct nvml_api *nvml; /* asked for MIG devices only */
	bool numbered;               /* CUDA's numbers are NVML's; else none shows it for sure */
	void *device;
	unsigned number, present; /* of so many */
	const char *uuid;
};

/* Returns how many entries of the list show the GPU, or a part of it, as CUDA reads the list: it
 * ends at the first entry that is no device, and a repeated one empties it. 0: a program doesn't
 * see it. list NULL: 1. *ret_part: only MIG devices of it are shown. */
unsigned gpu_shown(const char *list, const struct gpu_listed *gpu, bool *ret_part);

/* Whether it is shown, or that isn't known. Asks NVML; device NULL: it gives no handle. */
bool gpu_may_be_shown(const char *list, const struct nvml_api *nvml, void *device, unsigned number,
	unsigned present);

#endif
