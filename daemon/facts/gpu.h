/* gpu.h - how many GPUs a worker's CUDA would show, without CUDA. */
#ifndef LAUNCHD_DAEMON_FACTS_GPU_H
#define LAUNCHD_DAEMON_FACTS_GPU_H

struct dlib;
struct failure;

extern const struct dlib nvml_library;

/* Asks NVML, loaded for this call only, and applies CUDA_VISIBLE_DEVICES of env. No driver or no
 * library: 0 GPUs. -EIO, -ELIBBAD: NVML is there and fails. */
int gpu_count(const char *const *env, unsigned *ret, struct failure *why);

#endif
