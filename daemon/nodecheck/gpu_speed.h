/* gpu_speed.h - how fast a GPU of a kind has to be, by its name. Pure. */
#ifndef LAUNCHD_DAEMON_NODECHECK_GPU_SPEED_H
#define LAUNCHD_DAEMON_NODECHECK_GPU_SPEED_H

#include <stddef.h>
#include <stdint.h>

struct gpu_speed {
	const char *words;  /* a part of the name that the driver gives it, whole words of it */
	uint64_t memory_mb; /* MB/s of its memory, by its data sheet */
	/* MB/s of bus bandwidth that operators of large fleets demand of an all-reduce over NVLink
	 * of a whole node, of so many GPUs; 0: they say nothing */
	uint64_t node_mb;
	unsigned node_gpus;
};

/* What is demanded of a figure of the table, in percent: a copy in memory reaches about 90 of what
 * the data sheet says; operators measure with larger messages than we do. */
enum { MEMORY_PERCENT = 75, NODE_PERCENT = 85 };

/* NULL: no such name is in the table. The rows end with one without words, for tests. */
const struct gpu_speed *gpu_speed_find(const char *name);
extern const struct gpu_speed gpu_speeds[];

#endif
