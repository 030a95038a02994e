/* near_memory.h - which memory a worker gets: --membind. Pure. */
#ifndef LAUNCHD_DAEMON_PLACE_NEAR_MEMORY_H
#define LAUNCHD_DAEMON_PLACE_NEAR_MEMORY_H

#include "daemon/place/placing.h"

struct failure;

/* Fills in a worker's policy and its nodes; its CPUs are there. -EINVAL: no node is usable where
 * one is asked for, or the list is not for these workers and nodes. */
int memory_choose(const struct placing *in, unsigned worker, struct arena *arena,
	struct placement *ret, struct failure *why);

#endif
