/* cores.h - the cores that this process may use, as they lie in caches, NUMA nodes and packages.
 * Pure. */
#ifndef LAUNCHD_DAEMON_PLACE_CORES_H
#define LAUNCHD_DAEMON_PLACE_CORES_H

#include <stdbool.h>
#include <stddef.h>

#include "common/bits.h"

struct arena;
struct machine;

/* A core of which at least one hardware thread is usable. */
struct core {
	int id; /* the machine's */
	int l3, numa, package;
	unsigned lowest; /* the kernel's lowest number of its CPUs, usable or not */
	unsigned cpus;   /* usable ones */
	size_t first;    /* of the machine's CPUs; its others follow */
};

enum part_kind { PART_ALL, PART_L3, PART_NUMA, PART_SOCKET };

/* A part of the machine: all, or that of its kind with this number. */
struct part {
	enum part_kind kind;
	int id;
};

struct cores {
	const struct machine *machine;
	struct core *at; /* as the machine has them, so neighbours stand together; the arena's */
	unsigned count;
	unsigned *picked; /* room for as many indices */
	int *ids;         /* and for as many parts */
};

/* Out of memory: none, and the arena is failed. */
struct cores cores_find(const struct machine *m, struct arena *arena);

bool part_has(struct part p, const struct core *c);

/* The cores of a part, as indices in c->picked; valid until the next call. Returns how many. */
unsigned cores_pick(struct cores *c, struct part p);

/* The parts of a kind that have usable cores inside another part, in their order, in c->ids; cores
 * outside of any, as where there is no such cache, are in none. Returns how many. */
unsigned cores_parts(struct cores *c, enum part_kind kind, struct part inside);

/* The part of that kind for worker `index` of `workers`, which are dealt out in order: to each its
 * fair share of the cores; to every n-th part one worker where there are more parts. Where no part
 * has any core: all. */
struct part cores_deal(struct cores *c, enum part_kind kind, unsigned index, unsigned workers);

/* Of `count` things for `workers`, those of worker `index`: sizes differ by one at most. More
 * workers than things: one thing each, the same for several. */
struct slice {
	unsigned first, count;
};
struct slice slice_of(unsigned count, unsigned index, unsigned workers);

/* Adds the usable CPUs of a core, by the kernel's numbers. */
void core_add_cpus(const struct cores *c, unsigned core, struct bits *add_to);

/* "NUMA node 1", by the kernel's numbers where it has any; "the machine". */
const char *part_name(const struct machine *m, struct part p, struct arena *arena);

#endif
