/* gpu.h - how many GPUs a worker's CUDA would show, without CUDA. */
#ifndef LAUNCHD_DAEMON_FACTS_GPU_H
#define LAUNCHD_DAEMON_FACTS_GPU_H

struct failure;

/* Asks NVML, loaded for this call only, and applies CUDA_VISIBLE_DEVICES of env. No driver or no
 * library: 0 GPUs. -EIO: NVML is there and fails. */
int gpu_count(const char *const *env, unsigned *ret, struct failure *why);

/* Of `present` devices, how many CUDA shows with this CUDA_VISIBLE_DEVICES (NULL: not set): the
 * list ends at its first entry that is no device, and a repeated one empties it, as in torch's
 * device_count(). Names (GPU-..., MIG-...) count one each. Pure. */
unsigned gpu_visible(const char *visible, unsigned present);

#endif
