/* gpu_crew.h - launchd-nodecheck on this node: one process for each GPU, as a job's workers are,
 * and what the first of them says. For a process that has nothing else to do. */
#ifndef LAUNCHD_DAEMON_CHECK_GPU_CREW_H
#define LAUNCHD_DAEMON_CHECK_GPU_CREW_H

#include <stdint.h>

struct failure;
struct text;

enum { GPU_CREW_MAX = 64 };

struct gpu_crew {
	const char *program;
	const char *const *env; /* what it inherits */
	const char *nccl_home;  /* NULL: as it inherits it */
	const char *keys;       /* with which its keys in the store begin */
	const char *store_host;
	unsigned store_port;                /* 0: there is none, as there is one process */
	unsigned node, first, count, ranks; /* its node, ranks and how many there are in the job */
	unsigned limit_s;                   /* of each of its steps */
	const char *least;                  /* of its --least; NULL: none */
	int64_t until_ms;                   /* CLOCK_MONOTONIC; whoever runs then is killed */
};

/* Adds what the first process has written to stdout to ret_out, and the last line that any of them
 * has written to stderr to ret_said. Nothing of it is left when this returns. Negative errno with a
 * sentence: they could not be started, or their time was over. */
int gpu_crew_run(
	const struct gpu_crew *c, struct text *ret_out, struct text *ret_said, struct failure *why);

#endif
