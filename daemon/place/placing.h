/* placing.h - what is asked of a placement, and what it says of each worker. Pure. */
#ifndef LAUNCHD_DAEMON_PLACE_PLACING_H
#define LAUNCHD_DAEMON_PLACE_PLACING_H

#include <stdbool.h>
#include <stddef.h>

#include "common/bits.h"
#include "common/vec.h"

struct arena;
struct machine;

/* The choices of --bind in their order, then what other settings mean. */
enum bind_how {
	BIND_NONE,
	BIND_CORE,   /* cores of its own: an even share of all */
	BIND_L3,     /* all cores of an L3 cache */
	BIND_NUMA,   /* of a NUMA node */
	BIND_SOCKET, /* of a package */
	BIND_GPU,    /* of the NUMA node that its GPU is closest to */
	BIND_AUTO,   /* that of its GPU; without GPUs a NUMA node; with one of these a share */
	BIND_LIST,   /* what a list says for each */
	/* torchrun's --numa-binding; without GPUs by the worker's number */
	BIND_GPU_NODE,   /* the NUMA node of its GPU */
	BIND_GPU_SOCKET, /* the package of its GPU */
	BIND_EXCLUSIVE,  /* its GPU's share of that NUMA node */
	BIND_COMPLEX,    /* an L3 cache of that NUMA node */
	BIND_HOWS,
};

/* The choices of --membind in their order. What is near is the NUMA nodes of a worker's CPUs. */
enum membind_how {
	MEMBIND_NONE,
	MEMBIND_BIND,       /* only what is near */
	MEMBIND_PREFERRED,  /* what is near while there is any */
	MEMBIND_LOCAL,      /* of the node on which a thread runs */
	MEMBIND_INTERLEAVE, /* page by page in turn what is near */
	MEMBIND_LIST,       /* only the nodes of a list */
	MEMBIND_HOWS,
};

/* What is asked for. */
struct placing {
	const struct machine *machine;
	unsigned workers; /* on this node */
	/* The GPUs that workers may see, as indices of machine->gpus in CUDA's order; and by local
	 * rank the index of each worker's own, or MACHINE_NOWHERE. NULL: none. */
	const int *gpus;
	size_t gpu_count;
	const int *gpu_of;
	enum bind_how bind;
	const char *bind_list; /* "0-3,16-19:4-7": CPUs of each worker; only for BIND_LIST */
	enum membind_how membind;
	const char *membind_list; /* "0:1", or "0-1" for all; only for MEMBIND_LIST */
	unsigned cores;           /* so many for each; 0: as many as there are */
	bool own_mask; /* the CPUs that this process may use are one worker's: --per-process */
	/* who asks: "--bind", "job.ini:12: membind"; of what isn't asked NULL */
	const char *bind_from, *membind_from, *cores_from;
};

/* A policy of set_mempolicy(2). */
enum memory_how {
	MEMORY_LEFT, /* as the launcher has it */
	MEMORY_BIND,
	MEMORY_PREFER,
	MEMORY_LOCAL,
	MEMORY_INTERLEAVE,
	MEMORY_HOWS,
};

struct worker_place {
	struct bits cpus; /* the kernel's numbers; none: not bound */
	unsigned cores;   /* of these CPUs; if not bound, of those that there are for all */
	unsigned sharing; /* how many workers may run on one of these cores; 1: it alone */
	unsigned threads; /* that its cores, and its part of the cgroup's quota, are enough for */
	enum memory_how memory;
	struct bits nodes; /* of that memory, the kernel's numbers; none: the policy has no nodes */
	int gpu;           /* of placing.gpu_of */
	int nic;           /* an index of machine->nics, or MACHINE_NOWHERE: for --nic to fill in */
	const char *why;   /* "NUMA node 1, near GPU 5 (0000:5b:00.0)"; never NULL */
};

/* Of all workers, by local rank. */
struct placement {
	struct worker_place *of;
	unsigned count;
	bool binds;       /* to CPUs */
	struct vec notes; /* sentences on what isn't as one would expect */
};

/* Adds a note, once. */
void placement_note(struct placement *p, struct arena *arena, const char *sentence);

/* "prefer", "bind": the policy as /proc/PID/numa_maps calls it; "as it is". */
const char *memory_word(enum memory_how how);

#endif
