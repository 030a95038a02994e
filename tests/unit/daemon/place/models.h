/* models.h - machines for the tests of placement: regular ones, of which some CPUs may be out of
 * reach. CPUs have the numbers that Linux gives them: the first threads of all cores come first. */
#ifndef LAUNCHD_TESTS_UNIT_MODELS_H
#define LAUNCHD_TESTS_UNIT_MODELS_H

#include "common/arena.h"
#include "daemon/facts/machine.h"

enum { MODEL_GPUS_MAX = 16 };

struct model {
	unsigned packages, numas, l3s, cores,
		threads;        /* each of one of the thing before; l3s 0: none */
	const char *gpus;       /* NUMA nodes of GPUs, a digit each */
	const char *usable;     /* CPUs; NULL: all */
	const char *far_memory; /* numbers of nodes without CPUs at the first package; NULL: none */
	const char *no_memory;  /* nodes that this process may not use; NULL: none */
	uint64_t quota;
};

/* As torchrun_rows.py has them. */
enum {
	MODEL_DGX,    /* 8 GPUs, 2 sockets, a NUMA node each */
	MODEL_NPS4,   /* 8 GPUs, 2 EPYCs, 8 NUMA nodes */
	MODEL_GRACE,  /* 2 sockets without hyperthreads, a GPU each, GPU memory as NUMA nodes */
	MODEL_LAPTOP, /* one of everything */
	MODEL_UNEVEN, /* 4 and 3 GPUs for 15 cores, 3 L3 caches each */
	MODEL_HOLES,  /* a cpuset that takes some threads, and most of a NUMA node */
	MODELS,
};

extern const struct model models[MODELS];

/* The machine, all its memory the arena's. */
struct machine model_make(const struct model *m, struct arena *arena);

#endif
