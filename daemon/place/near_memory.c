/* near_memory.c - see near_memory.h */
#include "daemon/place/near_memory.h"

#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "daemon/facts/machine.h"

static size_t room_for_nodes(const struct machine *m)
{
	size_t room = 0;

	for (size_t i = 0; i < m->numa_count; i++)
		if (m->numas[i].number >= room)
			room = m->numas[i].number + 1;
	return room;
}

static struct bits usable_nodes(const struct machine *m, struct arena *arena)
{
	struct bits nodes = bits_make(arena, room_for_nodes(m));

	for (size_t i = 0; i < m->numa_count; i++)
		if (m->numas[i].usable)
			bits_add(&nodes, m->numas[i].number);
	return nodes;
}

/* Usable ones of the worker's CPUs; if it isn't bound, of all that there are. Memory of a node
 * without CPUs is a GPU's, or far. */
static struct bits near_nodes(
	const struct machine *m, const struct worker_place *w, struct arena *arena)
{
	struct bits nodes = bits_make(arena, room_for_nodes(m));

	for (size_t i = 0; i < m->cpu_count; i++) {
		const struct machine_cpu *cpu = &m->cpus[i];

		if (cpu->numa != MACHINE_NOWHERE && m->numas[cpu->numa].usable &&
			(w->cpus.words ? bits_have(&w->cpus, cpu->number) : cpu->usable))
			bits_add(&nodes, m->numas[cpu->numa].number);
	}
	return nodes;
}

static int take_list(const struct placing *in, unsigned worker, struct arena *arena,
	struct worker_place *w, struct failure *why)
{
	const struct bits usable = usable_nodes(in->machine, arena);
	int lists = bits_lists(in->membind_list), missing;

	if (lists != 1 && lists != (int)in->workers)
		return failure_usage(why,
			"%s: %d lists of NUMA nodes for %u worker%s: give one for each, or one for all",
			in->membind_from, lists, in->workers, in->workers == 1 ? "" : "s");
	w->nodes = bits_nth(in->membind_list, worker, arena);
	missing = bits_outside(&w->nodes, &usable);
	if (missing >= 0)
		return failure_usage(why,
			"%s: NUMA node %d has no memory that this process may use; it may use that of %s",
			in->membind_from, missing, bits_text(&usable, arena));
	w->memory = MEMORY_BIND;
	return 0;
}

/* Of a policy that is for certain nodes there must be some. */
static int take_near(const struct placing *in, unsigned worker, struct arena *arena,
	enum memory_how how, struct placement *ret, struct failure *why)
{
	struct worker_place *w = &ret->of[worker];
	struct bits nodes = near_nodes(in->machine, w, arena);

	if (!bits_are_empty(&nodes)) {
		/* the kernel takes one node only; threads that run on several have the memory of
		 * each anyway */
		w->memory = how == MEMORY_PREFER && (!w->cpus.words || bits_count(&nodes) > 1) ?
			MEMORY_LOCAL :
			how;
		if (w->memory != MEMORY_LOCAL)
			w->nodes = nodes;
		return 0;
	}
	if (in->membind_from)
		return failure_usage(why,
			"%s: local rank %u: the NUMA nodes of its CPUs have no memory that this process may use",
			in->membind_from, worker);
	placement_note(ret, arena,
		"The NUMA nodes of some workers' CPUs have no memory that this process may use: these "
		"workers' memory policy is left as it is");
	return 0;
}

int memory_choose(const struct placing *in, unsigned worker, struct arena *arena,
	struct placement *ret, struct failure *why)
{
	struct worker_place *w = &ret->of[worker];

	switch (in->membind) {
	case MEMBIND_NONE:
	case MEMBIND_HOWS:
		break;
	case MEMBIND_BIND:
		return take_near(in, worker, arena, MEMORY_BIND, ret, why);
	case MEMBIND_PREFERRED:
		return take_near(in, worker, arena, MEMORY_PREFER, ret, why);
	case MEMBIND_LOCAL:
		w->memory = MEMORY_LOCAL;
		break;
	case MEMBIND_INTERLEAVE:
		return take_near(in, worker, arena, MEMORY_INTERLEAVE, ret, why);
	case MEMBIND_LIST:
		return take_list(in, worker, arena, w, why);
	}
	return 0;
}
