/* placement.c - see placement.h */
#include "daemon/place/placement.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "daemon/facts/machine.h"
#include "daemon/place/cores.h"
#include "daemon/place/dealing.h"
#include "daemon/place/near_memory.h"

static const struct part everything = { PART_ALL, 0 };

/* torchrun counts cores by the kernel's lowest number of their CPUs, which need not be the order of
 * the machine. */
static void sort_by_number(struct cores *c, unsigned count)
{
	for (unsigned i = 1; i < count; i++)
		for (unsigned k = i;
			k > 0 && c->at[c->picked[k]].lowest < c->at[c->picked[k - 1]].lowest; k--) {
			unsigned core = c->picked[k];

			c->picked[k] = c->picked[k - 1];
			c->picked[k - 1] = core;
		}
}

/* Of a slice the first n cores that are of one NUMA node; there need not be such. */
static struct slice part_of_slice(const struct cores *c, struct slice s, unsigned n)
{
	for (unsigned i = 0; i + n <= s.count; i++) {
		unsigned first = c->picked[s.first + i], last = c->picked[s.first + i + n - 1];

		if (c->at[first].numa == c->at[last].numa)
			return (struct slice){ s.first + i, n };
	}
	return (struct slice){ s.first, n };
}

static int check_cores(
	const struct dealing *d, const struct chosen *c, unsigned there, struct failure *why)
{
	const struct placing *in = d->in;
	const struct machine *m = in->machine;

	if ((uint64_t)c->shares * in->cores > there)
		return failure_usage(why,
			"%s: %u worker%s with %u core%s each: %s has %u that this process may use, so "
			"at most %u each",
			in->cores_from, c->shares, c->shares == 1 ? "" : "s", in->cores,
			in->cores == 1 ? "" : "s", part_name(m, c->part, d->arena), there,
			there / c->shares);
	if (m->quota > 0 && (uint64_t)in->workers * in->cores * 1000 > m->quota + 999)
		return failure_usage(why,
			"%s: %u worker%s with %u core%s each: the cgroup's quota is the time of "
			"%llu.%03llu CPUs",
			in->cores_from, in->workers, in->workers == 1 ? "" : "s", in->cores,
			in->cores == 1 ? "" : "s", (unsigned long long)(m->quota / 1000),
			(unsigned long long)(m->quota % 1000));
	return 0;
}

static const char *reason(struct dealing *d, unsigned worker, unsigned there, struct slice s)
{
	const struct machine *m = d->in->machine;
	const struct chosen *c = &d->of[worker];
	const char *part = part_name(m, c->part, d->arena);
	const char *of = s.count == there ?
		part :
		arena_printf(d->arena, "%u of %u cores of %s", s.count, there, part);
	const struct machine_gpu *gpu = c->by_gpu ? &m->gpus[d->in->gpu_of[worker]] : NULL;

	if (!gpu)
		return c->part.kind == PART_ALL ? of :
						  arena_printf(d->arena, "%s, by its number", of);
	return arena_printf(d->arena, "%s, near GPU %u (%s)", of, gpu->index, gpu->bus);
}

static int take_cores(
	struct dealing *d, unsigned worker, struct placement *ret, struct failure *why)
{
	const struct placing *in = d->in;
	const struct chosen *c = &d->of[worker];
	struct worker_place *w = &ret->of[worker];
	unsigned there = cores_pick(&d->cores, c->part);
	struct slice s = { 0, there };

	if (in->bind == BIND_EXCLUSIVE)
		sort_by_number(&d->cores, there);
	if (in->cores && check_cores(d, c, there, why) < 0)
		return why->code;
	if (c->split || in->cores)
		s = slice_of(there, c->index, c->shares);
	if (c->split && there < c->shares)
		placement_note(ret, d->arena,
			arena_printf(d->arena,
				"%u workers share %u core%s of %s: some have the same one",
				c->shares, there, there == 1 ? "" : "s",
				part_name(in->machine, c->part, d->arena)));
	if (in->cores)
		s = part_of_slice(&d->cores, s, in->cores);
	for (unsigned i = 0; i < s.count; i++)
		core_add_cpus(&d->cores, d->cores.picked[s.first + i], &w->cpus);
	w->cores = s.count;
	w->why = reason(d, worker, there, s);
	return 0;
}

/* --bind LIST */
static int take_list(const struct dealing *d, const struct bits *usable, unsigned worker,
	struct placement *ret, struct failure *why)
{
	const struct placing *in = d->in;
	const struct machine *m = in->machine;
	struct worker_place *w = &ret->of[worker];
	int missing;

	w->cpus = bits_nth(in->bind_list, worker, d->arena);
	missing = bits_outside(&w->cpus, usable);
	if (missing >= 0)
		return failure_usage(why,
			"%s: CPU %d is none of those that this process may use, which are %s",
			in->bind_from, missing, bits_text(usable, d->arena));
	for (unsigned i = 0; i < d->cores.count; i++) {
		bool has = false;

		for (size_t k = d->cores.at[i].first;
			k < m->cpu_count && m->cpus[k].core == d->cores.at[i].id; k++)
			has |= bits_have(&w->cpus, m->cpus[k].number);
		w->cores += has;
	}
	w->why = in->bind_from;
	return 0;
}

static struct bits usable_cpus(const struct machine *m, struct arena *arena)
{
	size_t room = 0;
	struct bits b;

	for (size_t i = 0; i < m->cpu_count; i++)
		if (m->cpus[i].number >= room)
			room = m->cpus[i].number + 1;
	b = bits_make(arena, room);
	for (size_t i = 0; i < m->cpu_count; i++)
		if (m->cpus[i].usable)
			bits_add(&b, m->cpus[i].number);
	return b;
}

static int bind_workers(struct dealing *d, struct placement *ret, struct failure *why)
{
	const struct placing *in = d->in;
	const struct bits usable = usable_cpus(in->machine, d->arena);
	int lists = in->bind == BIND_LIST ? bits_lists(in->bind_list) : 0;

	if (in->bind == BIND_LIST && lists != (int)in->workers)
		return failure_usage(why,
			"%s: %d list%s of CPUs for %u worker%s: give one for each", in->bind_from,
			lists, lists == 1 ? "" : "s", in->workers, in->workers == 1 ? "" : "s");
	if (dealing_choose(d, why) < 0)
		return why->code;
	for (unsigned i = 0; i < in->workers; i++) {
		int rc;

		ret->of[i].cpus = bits_make(d->arena, usable.words * CHAR_BIT * sizeof *usable.at);
		rc = in->bind == BIND_LIST ? take_list(d, &usable, i, ret, why) :
					     take_cores(d, i, ret, why);
		if (rc < 0)
			return rc;
	}
	return arena_failed(d->arena) ? failure_oom(why) : 0;
}

/* How many workers each one's cores are for, at most. */
static void count_sharing(const struct placement *p)
{
	for (unsigned i = 0; i < p->count; i++)
		for (unsigned k = 0; k < p->count; k++)
			p->of[i].sharing += !p->binds || bits_meet(&p->of[i].cpus, &p->of[k].cpus);
}

/* Other launchers of the host need cores, too: of an unbound process's each worker has its part. */
static void count_threads(const struct placing *in, struct placement *ret)
{
	for (unsigned i = 0; i < in->workers; i++) {
		struct worker_place *w = &ret->of[i];
		uint64_t paid = in->machine->quota / 1000 / in->workers;
		uint64_t part = in->machine->core_count / in->workers;
		uint64_t n = !in->own_mask ? w->cores / w->sharing :
			part < w->cores    ? part :
					     w->cores;

		if (in->machine->quota > 0 && paid < n)
			n = paid;
		w->threads = n ? (unsigned)n : 1;
	}
}

/* What one may have expected to be told apart. */
static void note_unusual(struct dealing *d, struct placement *ret)
{
	const struct placing *in = d->in;
	bool wants_gpu = in->bind == BIND_GPU_NODE || in->bind == BIND_GPU_SOCKET ||
		in->bind == BIND_EXCLUSIVE || in->bind == BIND_COMPLEX || in->bind == BIND_GPU;
	unsigned without = 0;

	for (unsigned i = 0; i < in->workers; i++)
		without += !d->homes[i].by_gpu;
	if (wants_gpu && without > 0)
		placement_note(ret, d->arena,
			arena_printf(d->arena,
				"%s: %u of %u workers have no GPU whose place is known: they are dealt "
				"out by their numbers",
				in->bind_from, without, in->workers));
	if ((in->bind == BIND_L3 || in->bind == BIND_COMPLEX) &&
		cores_parts(&d->cores, PART_L3, everything) == 0)
		placement_note(ret, d->arena,
			arena_printf(d->arena,
				"%s: this machine shows no L3 cache: workers are bound to NUMA nodes",
				in->bind_from));
}

int placement_make(
	const struct placing *in, struct arena *arena, struct placement *ret, struct failure *why)
{
	struct placement p = { .count = in->workers, .binds = in->bind != BIND_NONE };
	struct dealing d;

	p.of = arena_alloc(arena, in->workers * sizeof *p.of);
	if (dealing_begin(&d, in, arena) < 0)
		return failure_oom(why);
	for (unsigned i = 0; i < in->workers; i++)
		p.of[i] = (struct worker_place){ .cores = p.binds ? 0 : d.cores.count,
			.gpu = in->gpu_of ? in->gpu_of[i] : MACHINE_NOWHERE,
			.nic = MACHINE_NOWHERE,
			.why = "not bound" };
	if (p.binds && d.cores.count == 0)
		return failure_set(why, -EIO, "%s: %s shows no CPU that this process may use",
			in->bind_from, in->machine->from);
	if (p.binds && bind_workers(&d, &p, why) < 0)
		return why->code;
	count_sharing(&p);
	count_threads(in, &p);
	for (unsigned i = 0; i < in->workers; i++)
		if (memory_choose(in, i, arena, &p, why) < 0)
			return why->code;
	if (p.binds)
		note_unusual(&d, &p);
	if (arena_failed(arena))
		return failure_oom(why);
	*ret = p;
	return 0;
}
