/* place_workers.c - decide_placement(), see decide.h: what is asked for, as daemon/place knows it.
 */
#include "daemon/plan/decide.h"

#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/notes.h"
#include "config/settings.h"
#include "daemon/facts/facts.h"
#include "daemon/facts/machine.h"
#include "daemon/place/near_nic.h"
#include "daemon/place/placement.h"
#include "daemon/plan/plan.h"

/* --bind or --numa-binding, whichever is said more closely to the job. */
static void choose_bind(const struct settings *s, struct placing *in)
{
	static const enum bind_how modes[] = { BIND_GPU_NODE, BIND_GPU_SOCKET, BIND_EXCLUSIVE,
		BIND_COMPLEX };
	const struct value *bind = &s->value[SET_BIND], *numa = &s->value[SET_NUMA_BINDING];
	const struct value *cores = &s->value[SET_CPUS_PER_WORKER];

	if (numa->from.level > bind->from.level) {
		in->bind = modes[numa->number];
		in->bind_from = settings_label(s, SET_NUMA_BINDING);
		return;
	}
	in->bind = (enum bind_how)bind->number;
	in->bind_list = bind->text;
	in->bind_from = settings_label(s, SET_BIND);
	if (cores->from.level <= LEVEL_DEFAULT)
		return;
	in->cores = (unsigned)cores->number;
	in->cores_from = settings_label(s, SET_CPUS_PER_WORKER);
	if (in->bind == BIND_NONE) {
		in->bind = BIND_AUTO;
		in->bind_from = in->cores_from;
	}
}

static void choose_memory(const struct settings *s, struct placing *in)
{
	in->membind = in->bind == BIND_NONE ? MEMBIND_NONE : MEMBIND_PREFERRED;
	if (!settings_given(s, SET_MEMBIND))
		return;
	in->membind = (enum membind_how)settings_number(s, SET_MEMBIND);
	in->membind_list = settings_text(s, SET_MEMBIND);
	in->membind_from = settings_label(s, SET_MEMBIND);
}

/* The GPUs that workers see, in their order; where nobody knows them all of a maker's. */
static void find_gpus(const struct deciding *d, const struct plan *p, struct placing *in)
{
	const struct machine *m = in->machine;
	const struct visible *v = &p->visible;
	size_t room = m->gpu_count + v->list.count + 1, count = 0;
	int *gpus = arena_alloc(d->s->arena, room * sizeof *gpus);

	for (size_t i = 0; gpus && v->known && i < v->list.count; i++) {
		int gpu = visible_gpu(v, m, v->list.at[i]);

		if (gpu != MACHINE_NOWHERE)
			gpus[count++] = gpu;
	}
	for (size_t i = 0; gpus && !v->known && i < m->gpu_count; i++)
		if (m->gpus[i].maker == v->own.maker)
			gpus[count++] = (int)i;
	in->gpus = gpus;
	in->gpu_count = count;
}

/* Each worker's own, all of them; placement counts the first. */
static void deal_gpus(const struct deciding *d, struct plan *p, struct placing *in)
{
	const struct visible *v = &p->visible;
	int *all = arena_alloc(d->s->arena, (size_t)in->workers * v->per_worker * sizeof *all);
	int *of = arena_alloc(d->s->arena, in->workers * sizeof *of);

	for (unsigned i = 0; all && of && i < in->workers; i++) {
		for (unsigned n = 0; n < v->per_worker; n++)
			all[i * v->per_worker + n] = visible_is_there(v, i, n) ?
				visible_gpu(v, in->machine, visible_device(v, i, n, d->s->arena)) :
				MACHINE_NOWHERE;
		of[i] = all[i * v->per_worker];
	}
	p->gpus_of = all;
	in->gpu_of = of;
}

/* For what is shown. */
static void add_nics(const struct machine *m, struct placement *ret)
{
	for (unsigned i = 0; i < ret->count; i++)
		ret->of[i].nic = near_nic(m, ret->of[i].gpu);
}

/* A policy that is refused would keep workers from starting. */
static void leave_memory(const struct deciding *d, struct placement *ret)
{
	int error = d->facts->machine->memory_error;
	bool asked = false;

	for (unsigned i = 0; error && i < ret->count; i++) {
		asked |= ret->of[i].memory != MEMORY_LEFT;
		ret->of[i].memory = MEMORY_LEFT;
		ret->of[i].nodes = (struct bits){ 0 };
	}
	if (asked)
		notes_add(d->notes, NOTE_WARNING,
			"set_mempolicy is refused here (%s; containers need CAP_SYS_NICE for it): "
			"workers get their CPUs, and no memory policy",
			strerror(error));
}

int decide_placement(const struct deciding *d, struct plan *p)
{
	const struct settings *s = d->s;
	bool by_others = settings_flag(s, SET_NODE_ENV) || p->process.is;
	struct placing in = {
		.machine = d->facts->machine,
		.workers = p->nproc,
		.own_mask = p->process.is,
	};
	struct placement *ret;

	if (!in.machine)
		return 0;
	ret = arena_alloc(s->arena, sizeof *ret);
	if (!ret)
		return failure_oom(d->why);
	if (!by_others) {
		choose_bind(s, &in);
		choose_memory(s, &in);
	}
	find_gpus(d, p, &in);
	deal_gpus(d, p, &in);
	if (arena_failed(s->arena))
		return failure_oom(d->why);
	if (placement_make(&in, s->arena, ret, d->why) < 0)
		return d->why->code;
	for (size_t i = 0; i < ret->notes.count; i++)
		notes_add(d->notes, NOTE_INFO, "%s", ret->notes.at[i]);
	leave_memory(d, ret);
	add_nics(in.machine, ret);
	for (unsigned i = 0; i < ret->count && p->limits.cpus > 0; i++) {
		struct worker_place *w = &ret->of[i];
		uint64_t most = p->limits.cpus < 1000 ? 1 : p->limits.cpus / 1000;

		w->threads = most < w->threads ? (unsigned)most : w->threads;
	}
	p->placement = ret;
	p->machine = in.machine;
	return 0;
}
