/* dealing.c - see dealing.h */
#include "daemon/place/dealing.h"

#include <errno.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/failure.h"
#include "daemon/facts/machine.h"

static const struct part everything = { PART_ALL, 0 };

/* --- which NUMA node is a GPU's --- */

/* Of those with usable cores. */
static int nearest_usable(struct dealing *d, int numa)
{
	const struct machine *m = d->in->machine;
	unsigned count = cores_parts(&d->cores, PART_NUMA, everything);
	unsigned best_far = UINT32_MAX;
	int best = MACHINE_NOWHERE;

	for (unsigned i = 0; i < count; i++) {
		int other = d->cores.ids[i];
		bool same_socket = m->numas[other].package == m->numas[numa].package;
		unsigned far = m->numa_distance ?
			m->numa_distance[(size_t)numa * m->numa_count + (size_t)other] :
			1;

		far = other == numa ? 0 : 2 * far + !same_socket;
		if (far < best_far) {
			best_far = far;
			best = other;
		}
	}
	return best;
}

/* The NUMA node whose CPUs are for a GPU; MACHINE_NOWHERE: that isn't known. */
static int numa_of_gpu(struct dealing *d, size_t gpu)
{
	int numa = d->in->machine->gpus[gpu].numa;

	if (numa == MACHINE_NOWHERE) /* the kernel says so on machines that have only one */
		return cores_parts(&d->cores, PART_NUMA, everything) == 1 ? d->cores.ids[0] :
									    MACHINE_NOWHERE;
	return nearest_usable(d, numa);
}

static int gpu_of(const struct placing *in, unsigned worker)
{
	return in->gpu_of ? in->gpu_of[worker] : MACHINE_NOWHERE;
}

/* --- from which part of the machine a worker gets its cores --- */

static struct chosen by_number(struct dealing *d, unsigned worker, enum part_kind kind)
{
	return (struct chosen){ .part = cores_deal(&d->cores, kind, worker, d->in->workers) };
}

/* Its GPU's NUMA node; without one, by its number. */
static struct chosen home(struct dealing *d, unsigned worker)
{
	int gpu = gpu_of(d->in, worker);
	int numa = gpu == MACHINE_NOWHERE ? MACHINE_NOWHERE : d->gpu_numa[gpu];

	if (numa == MACHINE_NOWHERE)
		return by_number(d, worker, PART_NUMA);
	return (struct chosen){ .part = { PART_NUMA, numa }, .by_gpu = true };
}

static struct chosen home_socket(struct dealing *d, unsigned worker)
{
	struct chosen c = d->homes[worker];
	int socket = c.by_gpu ? d->in->machine->numas[c.part.id].package : MACHINE_NOWHERE;

	if (!c.by_gpu)
		return by_number(d, worker, PART_SOCKET);
	if (socket != MACHINE_NOWHERE)
		c.part = (struct part){ PART_SOCKET, socket };
	return c;
}

static struct chosen automatic(struct dealing *d, unsigned worker)
{
	struct chosen c = d->homes[worker];

	if (!c.by_gpu && cores_parts(&d->cores, PART_NUMA, everything) < 2)
		return (struct chosen){ .part = everything, .split = true };
	return c;
}

static bool is_same(struct part a, struct part b)
{
	return a.kind == b.kind && a.id == b.id;
}

/* Of a home, as torchrun divides it: a share for each GPU there, in the order of their numbers,
 * whether a worker uses it or not; for each worker of a GPU that several share; and for each worker
 * that is there by its number. */
static void claim(struct dealing *d, unsigned worker, struct chosen *c)
{
	const struct placing *in = d->in;
	unsigned claims = 0;

	for (size_t i = 0; i < in->gpu_count; i++) {
		unsigned users = 0;

		if (d->gpu_numa[in->gpus[i]] != c->part.id)
			continue;
		for (unsigned w = 0; w < in->workers; w++) {
			if (gpu_of(in, w) != in->gpus[i])
				continue;
			if (w == worker)
				c->index = claims + users;
			users++;
		}
		claims += users ? users : 1;
	}
	for (unsigned w = 0; w < in->workers; w++) {
		struct chosen other = d->homes[w];

		if (other.by_gpu || !is_same(other.part, c->part))
			continue;
		if (w == worker)
			c->index = claims;
		claims++;
	}
	c->shares = claims;
}

/* Whether torchrun would take the L3 cache `a` before `b`: more CPUs, then lower numbers. */
static bool is_before(struct dealing *d, int a, int b)
{
	unsigned cpus[2] = { 0 }, lowest[2] = { UINT32_MAX, UINT32_MAX };

	for (unsigned i = 0; i < d->cores.count; i++) {
		const struct core *core = &d->cores.at[i];

		for (int k = 0; k < 2; k++)
			if (core->l3 == (k ? b : a)) {
				cpus[k] += core->cpus;
				lowest[k] = core->lowest < lowest[k] ? core->lowest : lowest[k];
			}
	}
	return cpus[0] != cpus[1] ? cpus[0] > cpus[1] : lowest[0] < lowest[1];
}

/* An L3 cache of its home. */
static struct chosen complex_of(struct dealing *d, unsigned worker)
{
	struct chosen c = d->homes[worker];
	unsigned count, nth;
	int *ids = d->cores.ids;

	claim(d, worker, &c);
	count = cores_parts(&d->cores, PART_L3, c.part);
	if (count == 0)
		return c;
	nth = c.index % count;
	for (unsigned i = 0; i <= nth; i++) /* as far as a selection sort is needed */
		for (unsigned k = i + 1; k < count; k++)
			if (is_before(d, ids[k], ids[i])) {
				int id = ids[i];

				ids[i] = ids[k];
				ids[k] = id;
			}
	c.part = (struct part){ PART_L3, ids[nth] };
	return c;
}

static struct chosen exclusive(struct dealing *d, unsigned worker)
{
	struct chosen c = d->homes[worker];

	claim(d, worker, &c);
	c.split = true;
	return c;
}

static int choose(struct dealing *d, unsigned worker, struct failure *why)
{
	const struct placing *in = d->in;
	struct chosen *c = &d->of[worker];

	switch (in->bind) {
	case BIND_NONE:
	case BIND_LIST:
	case BIND_HOWS:
		break;
	case BIND_CORE:
		*c = (struct chosen){ .part = everything, .split = true };
		break;
	case BIND_L3:
		*c = by_number(d, worker,
			cores_parts(&d->cores, PART_L3, everything) > 0 ? PART_L3 : PART_NUMA);
		break;
	case BIND_NUMA:
		*c = by_number(d, worker, PART_NUMA);
		break;
	case BIND_SOCKET:
		*c = by_number(d, worker, PART_SOCKET);
		break;
	case BIND_GPU:
		if (gpu_of(in, worker) == MACHINE_NOWHERE)
			return failure_usage(why,
				"%s: local rank %u has no GPU whose place is known: %zu GPU%s here for "
				"%u worker%s; auto takes NUMA nodes then",
				in->bind_from, worker, in->gpu_count, in->gpu_count == 1 ? "" : "s",
				in->workers, in->workers == 1 ? "" : "s");
		*c = d->homes[worker];
		break;
	case BIND_GPU_NODE:
		*c = d->homes[worker];
		break;
	case BIND_AUTO:
		*c = automatic(d, worker);
		break;
	case BIND_GPU_SOCKET:
		*c = home_socket(d, worker);
		break;
	case BIND_EXCLUSIVE:
		*c = exclusive(d, worker);
		break;
	case BIND_COMPLEX:
		*c = complex_of(d, worker);
		break;
	}
	return 0;
}

/* Who has the same part, where torchrun's rule hasn't said already. */
static void count_shares(struct dealing *d)
{
	for (unsigned w = 0; w < d->in->workers; w++) {
		struct chosen *c = &d->of[w];

		if (c->shares)
			continue;
		for (unsigned v = 0; v < d->in->workers; v++) {
			if (!is_same(d->of[v].part, c->part))
				continue;
			c->index += v < w;
			c->shares++;
		}
	}
}

int dealing_begin(struct dealing *d, const struct placing *in, struct arena *arena)
{
	const struct machine *m = in->machine;

	*d = (struct dealing){ .in = in, .arena = arena, .cores = cores_find(m, arena) };
	d->gpu_numa = arena_alloc(arena, (m->gpu_count + 1) * sizeof *d->gpu_numa);
	d->homes = arena_alloc(arena, in->workers * sizeof *d->homes);
	d->of = arena_alloc(arena, in->workers * sizeof *d->of);
	if (arena_failed(arena))
		return -ENOMEM;
	for (size_t i = 0; i < m->gpu_count; i++)
		d->gpu_numa[i] = numa_of_gpu(d, i);
	for (unsigned i = 0; i < in->workers; i++)
		d->homes[i] = home(d, i);
	return 0;
}

int dealing_choose(struct dealing *d, struct failure *why)
{
	for (unsigned i = 0; i < d->in->workers; i++)
		if (choose(d, i, why) < 0)
			return why->code;
	count_shares(d);
	return 0;
}
