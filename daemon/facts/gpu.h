/* gpu.h - which GPUs there are, asked of NVIDIA's NVML. */
#ifndef LAUNCHD_DAEMON_FACTS_GPU_H
#define LAUNCHD_DAEMON_FACTS_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/facts/machine.h"

struct arena;
struct dlib;
struct failure;

extern const struct dlib nvml_library;

/* What NVML calls a GPU; "" where it doesn't say. */
struct gpu_id {
	char uuid[96]; /* "GPU-8f3a2c10-..." */
	char bus[32];  /* "0000:3b:00.0" */
	char name[96]; /* "NVIDIA H100 80GB HBM3" */
};

struct gpus {
	bool known;  /* NVML has answered. Else there is no driver of NVIDIA's, or it was not asked
		      */
	bool loaded; /* NVML's library was found */
	bool here;   /* NVIDIA's driver or GPUs are here, but NVML counts none: their number is
			unknown */
	unsigned count;          /* if known */
	const struct gpu_id *at; /* by its numbers; NULL: only their number was asked for */
	enum gpu_maker maker;    /* whose the kernel shows; else NVIDIA's */
	const char *said;        /* why NVML counts none, with its words; "" or NULL: it counts */
};

enum {
	GPUS_MAX = 64,
	/* NVML starts every GPU that nothing keeps awake (nvidia-persistenced), one after the other
	 */
	GPUS_LIMIT_MS = 30000,
};

/* Asks NVML in a child: a driver that hangs is given up after limit_ms, and what NVML allocates is
 * gone with the child. SIGCHLD must not be awaited yet. with_ids: ret->at, the arena's, too, for
 * GPUS_MAX of them. A driver that fails or hangs is no failure here: see `here` and `said`. */
int gpus_read(bool with_ids, uint64_t limit_ms, struct arena *arena, struct gpus *ret,
	struct failure *why);

/* Tells the machine NVML's numbers and names of its GPUs. In a container NVML has fewer than there
 * are: the others are GPU_HIDDEN. Where none is the machine's, which is another one then, nothing
 * changes. */
void gpus_name(const struct gpus *gpus, struct machine *m);

#endif
