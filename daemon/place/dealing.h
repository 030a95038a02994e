/* dealing.h - from which part of the machine each worker gets its cores. Pure; what placement.c
 * consists of. */
#ifndef LAUNCHD_DAEMON_PLACE_DEALING_H
#define LAUNCHD_DAEMON_PLACE_DEALING_H

#include <stdbool.h>

#include "daemon/place/cores.h"
#include "daemon/place/placing.h"

struct failure;

/* What a worker gets its cores from. */
struct chosen {
	struct part part;
	bool by_gpu;            /* the part is its GPU's; else it is by the worker's number */
	bool split;             /* among those who have the same part; else all have all of it */
	unsigned index, shares; /* of a split part */
};

struct dealing {
	const struct placing *in;
	struct cores cores;
	struct arena *arena;
	int *gpu_numa;        /* by the machine's GPUs: whose CPUs are for it; MACHINE_NOWHERE */
	struct chosen *homes; /* by local rank: its GPU's NUMA node; without one, by its number */
	struct chosen *of;    /* by local rank: what it gets its cores from */
};

/* Finds the cores and the homes. -ENOMEM. */
int dealing_begin(struct dealing *d, const struct placing *in, struct arena *arena);

/* Fills in d->of. -EINVAL: a GPU's place is asked for, and a worker has no GPU. */
int dealing_choose(struct dealing *d, struct failure *why);

#endif
