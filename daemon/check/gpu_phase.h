/* gpu_phase.h - the phase that runs launchd-nodecheck on all nodes at once: GPUs, and what lies
 * between them. One process for each GPU that CUDA would show a program here. */
#ifndef LAUNCHD_DAEMON_CHECK_GPU_PHASE_H
#define LAUNCHD_DAEMON_CHECK_GPU_PHASE_H

struct arena;
struct failure;
struct phase;

extern const struct phase gpu_phase;

/* Finds the program: beside this one, else on PATH. A usage failure: this build, or this node, has
 * none. */
int gpu_phase_program(
	const char *const *env, struct arena *arena, const char **ret, struct failure *why);

#endif
