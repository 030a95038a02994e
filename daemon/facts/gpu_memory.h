/* gpu_memory.h - which processes hold memory of this machine's GPUs, without CUDA. */
#ifndef LAUNCHD_DAEMON_FACTS_GPU_MEMORY_H
#define LAUNCHD_DAEMON_FACTS_GPU_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct failure;

/* What one process holds on one GPU. */
struct gpu_use {
	pid_t pid;
	uint64_t bytes;
};

/* Asks NVML for up to `room` of them. A driver may hang: who calls it does so in a process that may
 * be left behind (os/helper.h), and ends afterwards, with which NVML ends. -ELIBACC: there is no
 * NVML, or no driver or GPU for it; -ELIBBAD: an NVML of a driver before 510; -EIO: it fails, or no
 * GPU answers. */
int gpu_memory_read(struct gpu_use *ret, size_t room, size_t *ret_count, struct failure *why);

#endif
