/* cores.c - see cores.h */
#include "daemon/place/cores.h"

#include <stdint.h>

#include "common/arena.h"
#include "daemon/facts/machine.h"

struct cores cores_find(const struct machine *m, struct arena *arena)
{
	struct cores c = { .machine = m };

	c.at = arena_alloc(arena, (m->cpu_count + 1) * sizeof *c.at);
	c.picked = arena_alloc(arena, (m->cpu_count + 1) * sizeof *c.picked);
	c.ids = arena_alloc(arena, (m->cpu_count + 1) * sizeof *c.ids);
	if (!c.at || !c.picked || !c.ids)
		return (struct cores){ .machine = m };
	for (size_t i = 0; i < m->cpu_count;) {
		struct core *core = &c.at[c.count];
		const struct machine_cpu *cpu = &m->cpus[i];

		*core = (struct core){ .id = cpu->core,
			.l3 = cpu->l3,
			.numa = cpu->numa,
			.package = cpu->package,
			.lowest = cpu->number,
			.first = i };
		for (; i < m->cpu_count && m->cpus[i].core == core->id; i++) {
			core->cpus += m->cpus[i].usable;
			if (m->cpus[i].number < core->lowest)
				core->lowest = m->cpus[i].number;
		}
		c.count += core->cpus > 0;
	}
	return c;
}

static int place_in(enum part_kind kind, const struct core *c)
{
	switch (kind) {
	case PART_ALL:
		return 0;
	case PART_L3:
		return c->l3;
	case PART_NUMA:
		return c->numa;
	case PART_SOCKET:
		return c->package;
	}
	return MACHINE_NOWHERE;
}

bool part_has(struct part p, const struct core *c)
{
	return p.kind == PART_ALL || place_in(p.kind, c) == p.id;
}

unsigned cores_pick(struct cores *c, struct part p)
{
	unsigned count = 0;

	for (unsigned i = 0; i < c->count; i++)
		if (part_has(p, &c->at[i]))
			c->picked[count++] = i;
	return count;
}

unsigned cores_parts(struct cores *c, enum part_kind kind, struct part inside)
{
	unsigned count = 0;

	for (unsigned i = 0; i < c->count; i++) {
		int id = place_in(kind, &c->at[i]);
		bool known = id == MACHINE_NOWHERE || !part_has(inside, &c->at[i]);

		for (unsigned k = count; k-- > 0 && !known;)
			known = c->ids[k] == id;
		if (!known)
			c->ids[count++] = id;
	}
	return count;
}

struct part cores_deal(struct cores *c, enum part_kind kind, unsigned index, unsigned workers)
{
	const struct part all = { PART_ALL, 0 };
	unsigned parts = cores_parts(c, kind, all), total = 0, before = 0;
	uint64_t at;

	if (parts == 0 || workers == 0)
		return all;
	for (unsigned i = 0; i < parts; i++)
		total += cores_pick(c, (struct part){ kind, c->ids[i] });
	/* the core in the middle of its share decides; with less workers than parts its first: then
	 * two workers on 8 nodes have the first of each socket */
	at = workers < parts ? (uint64_t)index * total / workers :
			       (2 * (uint64_t)index + 1) * total / (2 * (uint64_t)workers);
	for (unsigned i = 0; i < parts; i++) {
		before += cores_pick(c, (struct part){ kind, c->ids[i] });
		if (at < before)
			return (struct part){ kind, c->ids[i] };
	}
	return all;
}

struct slice slice_of(unsigned count, unsigned index, unsigned workers)
{
	unsigned each = count / workers, more = count % workers;

	if (each == 0)
		return (struct slice){ (unsigned)((uint64_t)index * count / workers), count > 0 };
	return (struct slice){ index * each + (index < more ? index : more),
		each + (index < more) };
}

void core_add_cpus(const struct cores *c, unsigned core, struct bits *add_to)
{
	const struct machine *m = c->machine;

	for (size_t i = c->at[core].first; i < m->cpu_count && m->cpus[i].core == c->at[core].id;
		i++)
		if (m->cpus[i].usable)
			bits_add(add_to, m->cpus[i].number);
}

const char *part_name(const struct machine *m, struct part p, struct arena *arena)
{
	switch (p.kind) {
	case PART_ALL:
		break;
	case PART_L3:
		return arena_printf(arena, "L3 cache %d", p.id);
	case PART_NUMA:
		return arena_printf(arena, "NUMA node %u", m->numas[p.id].number);
	case PART_SOCKET:
		return arena_printf(arena, "socket %d", p.id);
	}
	return "the machine";
}
