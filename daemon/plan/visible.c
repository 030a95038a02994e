/* visible.c - see visible.h */
#include "daemon/plan/visible.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/num.h"
#include "common/words.h"
#include "config/lists.h"
#include "config/settings.h"
#include "daemon/facts/gpu.h"

/* On the way to a choice. */
struct choosing {
	const struct settings *s;
	const struct gpus *gpus;
	struct visible *v;
	struct vec base; /* what the launcher sees */
	bool base_known;
	struct failure *why;
};

static const char *number(struct arena *a, unsigned n)
{
	return arena_printf(a, "%u", n);
}

/* CUDA shows a list up to its first entry that is no device. */
static void find_base(struct choosing *c)
{
	const struct device_list *own = &c->v->own;
	bool counted = own->maker == GPU_NVIDIA && c->gpus->known;
	unsigned count = 0;

	if (own->list)
		count = counted ? devices_visible(own->list, c->gpus->count) :
				  devices_count(own->list);
	else if (own->outer)
		count = devices_count(own->outer);
	else if (counted)
		count = c->gpus->count;
	c->base_known = own->list || own->outer || counted;
	for (unsigned i = 0; i < count; i++)
		vec_add(c->s->arena, &c->base,
			own->list ? devices_nth(c->s->arena, own->list, i) :
				    number(c->s->arena, i));
}

/* Where what the launcher sees is from. */
static const char *seen_by(const struct settings *s, const struct device_list *own)
{
	if (own->list)
		return arena_printf(s->arena, "%s=%s", own->variable, own->list);
	return own->outer ? arena_printf(s->arena, ROCR_DEVICES "=%s", own->outer) : "NVML";
}

static int refuse(const struct choosing *c, const char *entry)
{
	return failure_usage(c->why,
		"%s: there is no %s among the %zu GPU%s that launchd sees (%s)",
		settings_label(c->s, SET_GPUS), entry, c->base.count, c->base.count == 1 ? "" : "s",
		seen_by(c->s, &c->v->own));
}

static int take_number(struct choosing *c, unsigned n)
{
	const char *entry = number(c->s->arena, n);

	if (c->base_known && n >= c->base.count)
		return refuse(c, arena_printf(c->s->arena, "GPU %u", n));
	vec_add(c->s->arena, &c->v->list, c->base_known ? c->base.at[n] : entry);
	return 0;
}

static bool is_in_base(const struct choosing *c, const char *entry)
{
	for (size_t i = 0; i < c->base.count; i++)
		if (strcmp(c->base.at[i], entry) == 0)
			return true;
	return false;
}

/* CUDA takes the beginning of a UUID for it. */
static bool is_name_in_base(const struct choosing *c, const char *name)
{
	for (size_t i = 0; i < c->base.count; i++) {
		size_t len = strlen(c->base.at[i]), other = strlen(name);

		if (strncmp(c->base.at[i], name, len < other ? len : other) == 0)
			return true;
	}
	return false;
}

/* NVML's number of the GPU whose UUID begins so, as CUDA takes it; GPUS_MAX: none, or several. */
static unsigned gpu_of_uuid(const struct gpus *gpus, const char *uuid)
{
	unsigned found = GPUS_MAX;

	for (unsigned i = 0; gpus->at && i < gpus->count && i < GPUS_MAX; i++) {
		if (strncmp(gpus->at[i].uuid, uuid, strlen(uuid)) != 0)
			continue;
		if (found != GPUS_MAX)
			return GPUS_MAX;
		found = i;
	}
	return found;
}

/* A UUID where the launcher's own list has numbers, or says nothing. Of MIG devices nobody tells
 * here where they are. */
static int check_uuid(const struct choosing *c, const char *uuid)
{
	bool is_mig = strncmp(uuid, "MIG-", 4) == 0;
	unsigned n = is_mig ? GPUS_MAX : gpu_of_uuid(c->gpus, uuid);

	if (is_mig && !c->v->own.list)
		return 0;
	if (n < GPUS_MAX && is_in_base(c, number(c->s->arena, n)))
		return 0;
	if (is_mig || !c->gpus->known)
		return failure_usage(c->why,
			"%s: whether %s is among %s isn't known here: give its number there",
			settings_label(c->s, SET_GPUS), uuid, seen_by(c->s, &c->v->own));
	return refuse(c, uuid);
}

/* "0.1": it, or the whole device 0, is in the mask. */
static int check_part(const struct choosing *c, const char *part)
{
	if (c->v->own.maker != GPU_INTEL)
		return failure_usage(c->why,
			"%s: %s is a part of a GPU as " ZE_DEVICES " has them, for Intel's only",
			settings_label(c->s, SET_GPUS), part);
	if (!c->base_known || is_in_base(c, part) ||
		is_in_base(c, arena_strndup(c->s->arena, part, strcspn(part, "."))))
		return 0;
	return refuse(c, part);
}

static int take_name(struct choosing *c, const char *name)
{
	bool is_part = *name >= '0' && *name <= '9', names = false;
	int rc = 0;

	for (size_t i = 0; i < c->base.count; i++)
		names = names || strncmp(c->base.at[i], name, 4) == 0;
	if (is_part)
		rc = check_part(c, name);
	else if (names && !is_name_in_base(c, name))
		rc = refuse(c, name);
	else if (!names && c->base_known)
		rc = check_uuid(c, name);
	if (rc == 0)
		vec_add(c->s->arena, &c->v->list, name);
	return rc;
}

/* --gpus LIST */
static int take_list(struct choosing *c)
{
	const char *at = settings_text(c->s, SET_GPUS), *name;
	struct range range;
	size_t len;
	int kind;

	while ((kind = gpus_next(&at, &range, &name, &len)) > 0) {
		if (kind == 2 && take_name(c, arena_strndup(c->s->arena, name, len)) < 0)
			return c->why->code;
		for (uint64_t n = range.first; kind == 1 && n <= range.last; n++)
			if (take_number(c, (unsigned)n) < 0)
				return c->why->code;
	}
	c->v->known = true;
	return 0;
}

/* The setting that asks for so many: for a sentence. */
static const char *who_asks(const struct settings *s)
{
	static const enum setting_id ids[] = { SET_GPUS_PER_WORKER, SET_GPUS,
		SET_VIRTUAL_LOCAL_RANK };

	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
		if (settings_given(s, ids[i]))
			return settings_label(s, ids[i]);
	return settings_label(s, SET_VISIBLE_DEVICES);
}

int visible_choose(const struct settings *s, const char *const *env, const struct gpus *gpus,
	struct visible *ret, struct failure *why)
{
	bool is_virtual = settings_flag(s, SET_VIRTUAL_LOCAL_RANK);
	const char *order = env_given(s->env, env, CUDA_ORDER);
	struct visible v = {
		.how = is_virtual ? VISIBLE_ONE :
				    (enum visible_how)settings_number(s, SET_VISIBLE_DEVICES),
		.own = devices_find(env, gpus->maker),
		.chosen = strcmp(settings_text(s, SET_GPUS), "all") != 0,
		.share = settings_flag(s, SET_SHARE_GPUS),
		.by_bus = devices_are_by_bus(order),
		.per_worker = (unsigned)settings_number(s, SET_GPUS_PER_WORKER),
	};
	struct choosing c = { .s = s, .gpus = gpus, .v = &v, .why = why };

	v.from = settings_where(s, is_virtual ? SET_VIRTUAL_LOCAL_RANK : SET_VISIBLE_DEVICES);
	v.list_from = settings_where(s, SET_GPUS);
	v.asked = v.how == VISIBLE_ONE || v.chosen || settings_given(s, SET_GPUS_PER_WORKER);
	find_base(&c);
	/* without NVML, as in some containers, the numbers are taken as they are */
	if (v.asked && !c.base_known && v.own.maker == GPU_NVIDIA && gpus->here && gpus->loaded)
		return failure_usage(
			why, "%s: which GPUs are here isn't known: %s", who_asks(s), gpus->said);
	if (v.how == VISIBLE_NONE && v.own.maker == GPU_INTEL)
		return failure_usage(why,
			"%s: no value of " ZE_DEVICES " hides all GPUs of Intel's: leave it out",
			settings_label(s, SET_VISIBLE_DEVICES));
	if (v.chosen) {
		if (take_list(&c) < 0)
			return why->code;
	} else {
		v.list = c.base;
		v.known = c.base_known;
	}
	*ret = v;
	return 0;
}

int visible_check(
	const struct settings *s, const struct visible *v, unsigned workers, struct failure *why)
{
	const char *from = v->chosen ? settings_label(s, SET_GPUS) : seen_by(s, &v->own);
	size_t there = v->list.count, need = (size_t)workers * v->per_worker;

	if (!v->asked || v->how == VISIBLE_NONE)
		return 0;
	if (!v->known)
		return !v->share ? 0 :
				   failure_usage(why,
					   "%s: how many GPUs there are to share isn't known here: "
					   "name them with --gpus, as in --gpus 0-3",
					   settings_label(s, SET_SHARE_GPUS));
	if (there >= need || (v->share && there >= v->per_worker))
		return 0;
	if (v->share)
		return failure_usage(why, "%s: a worker needs %u GPUs, but there are %zu (%s)",
			who_asks(s), v->per_worker, there, from);
	return failure_usage(why,
		"%s: %u workers need %zu GPUs, but there are %zu (%s): start fewer, or let them share "
		"with --share-gpus",
		who_asks(s), workers, need, there, from);
}

unsigned visible_workers(const struct visible *v)
{
	return v->known ? (unsigned)(v->list.count / v->per_worker) : 0;
}

/* With --share-gpus they are used in turn. */
static size_t index_of(const struct visible *v, unsigned local_rank, unsigned n)
{
	unsigned groups = visible_workers(v);

	return (size_t)(v->share && groups > 0 ? local_rank % groups : local_rank) * v->per_worker +
		n;
}

bool visible_is_there(const struct visible *v, unsigned local_rank, unsigned n)
{
	return !v->known || index_of(v, local_rank, n) < v->list.count;
}

const char *visible_device(
	const struct visible *v, unsigned local_rank, unsigned n, struct arena *arena)
{
	size_t index = index_of(v, local_rank, n);

	return index < v->list.count ? v->list.at[index] : number(arena, (unsigned)index);
}

/* "a" and "b" become "a,b". */
static const char *with(struct arena *arena, const char *list, const char *entry)
{
	return *list ? arena_printf(arena, "%s,%s", list, entry) : entry;
}

const char *visible_own(const struct visible *v, unsigned local_rank, struct arena *arena)
{
	const char *list = "";

	for (unsigned n = 0; n < v->per_worker; n++)
		list = with(arena, list, visible_device(v, local_rank, n, arena));
	return list;
}

const char *visible_all(const struct visible *v, struct arena *arena)
{
	const char *list = "";

	for (size_t i = 0; i < v->list.count; i++)
		list = with(arena, list, v->list.at[i]);
	return list;
}

/* NVIDIA's of several models: CUDA numbers them by speed. */
static bool are_mixed(const struct machine *m)
{
	const char *first = NULL, *name;

	for (size_t i = 0; i < m->gpu_count; i++) {
		name = m->gpus[i].name;
		if (m->gpus[i].maker != GPU_NVIDIA || m->gpus[i].index == GPU_HIDDEN || !name)
			continue;
		if (first && strcmp(first, name) != 0)
			return true;
		first = name;
	}
	return false;
}

static int gpu_of_number(const struct visible *v, const struct machine *m, uint64_t n)
{
	if (v->own.maker == GPU_NVIDIA && !v->by_bus && are_mixed(m))
		return MACHINE_NOWHERE;
	for (size_t i = 0; i < m->gpu_count; i++)
		if (m->gpus[i].maker == v->own.maker && m->gpus[i].index == n)
			return (int)i;
	return MACHINE_NOWHERE;
}

/* As CUDA takes it: the beginning of one GPU's only. */
static int gpu_of_name(const struct machine *m, const char *uuid)
{
	int found = MACHINE_NOWHERE;

	for (size_t i = 0; i < m->gpu_count; i++) {
		if (!m->gpus[i].uuid || strncmp(m->gpus[i].uuid, uuid, strlen(uuid)) != 0)
			continue;
		if (found != MACHINE_NOWHERE)
			return MACHINE_NOWHERE;
		found = (int)i;
	}
	return found;
}

int visible_gpu(const struct visible *v, const struct machine *m, const char *device)
{
	static const char old_mig[] = "MIG-GPU-"; /* "MIG-GPU-8f3a.../1/0" */
	char name[96];
	uint64_t n;

	if (v->own.outer && num_parse(device, 0, UINT32_MAX, &n) == 0) {
		const char *outer = v->own.outer, *entry = NULL;
		size_t len = list_next(&outer, &entry);

		for (; len > 0 && n > 0; n--)
			len = list_next(&outer, &entry);
		(void)snprintf(name, sizeof name, "%.*s", (int)len, entry);
	} else if (strncmp(device, old_mig, sizeof old_mig - 1) == 0) {
		(void)snprintf(
			name, sizeof name, "%.*s", (int)strcspn(device + 4, "/"), device + 4);
	} else {
		(void)snprintf(name, sizeof name, "%s", device);
	}
	if (num_parse_len(name, strcspn(name, "."), 0, UINT32_MAX, &n) == 0)
		return gpu_of_number(v, m, n);
	return *name ? gpu_of_name(m, name) : MACHINE_NOWHERE;
}
