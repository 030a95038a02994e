/* models.c - see models.h */
#include "tests/unit/daemon/place/models.h"

#include <string.h>

#include "common/bits.h"

const struct model models[MODELS] = {
	[MODEL_DGX] = { 2, 1, 1, 56, 2, "00001111", NULL, NULL, NULL, 0 },
	[MODEL_NPS4] = { 2, 4, 2, 8, 2, "33117755", NULL, NULL, NULL, 0 },
	[MODEL_GRACE] = { 2, 1, 1, 72, 1, "01", NULL, "2-3", NULL, 0 },
	[MODEL_LAPTOP] = { 1, 1, 1, 6, 2, "0", NULL, NULL, NULL, 0 },
	[MODEL_UNEVEN] = { 2, 1, 3, 5, 2, "0000111", NULL, NULL, NULL, 0 },
	[MODEL_HOLES] = { 2, 1, 2, 4, 2, "011", "1-2,5-7,9,12-15,17,21,28-30", NULL, NULL, 0 },
};

static struct bits set_of(const char *text, struct arena *arena)
{
	struct bits b = { 0 };

	if (text)
		(void)bits_parse(text, strlen(text), arena, &b);
	return b;
}

static void make_cpus(const struct model *m, struct machine *ret, struct arena *arena)
{
	unsigned per_numa = (m->l3s ? m->l3s : 1) * m->cores;
	unsigned all = m->packages * m->numas * per_numa;
	struct bits usable = set_of(m->usable, arena);
	struct machine_cpu *cpus = arena_alloc(arena, (size_t)all * m->threads * sizeof *cpus);

	for (unsigned i = 0; cpus && i < all * m->threads; i++) {
		unsigned core = i / m->threads, number = core + i % m->threads * all;

		cpus[i] = (struct machine_cpu){ .number = number,
			.core = (int)core,
			.l3 = m->l3s ? (int)(core / m->cores) : MACHINE_NOWHERE,
			.numa = (int)(core / per_numa),
			.package = (int)(core / per_numa / m->numas),
			.usable = !m->usable || bits_have(&usable, number) };
	}
	ret->cpus = cpus;
	ret->cpu_count = (size_t)all * m->threads;
	ret->core_count = all;
	ret->l3_count = m->l3s ? all / m->cores : 0;
	ret->package_count = m->packages;
}

static void make_numas(const struct model *m, struct machine *ret, struct arena *arena)
{
	struct bits far = set_of(m->far_memory, arena), barred = set_of(m->no_memory, arena);
	unsigned with_cpus = m->packages * m->numas;
	size_t count = with_cpus + bits_count(&far);
	unsigned *distance = arena_alloc(arena, count * count * sizeof *distance);
	int number = bits_next(&far, 0);

	ret->numas = arena_alloc(arena, count * sizeof *ret->numas);
	ret->numa_count = count;
	ret->numa_distance = distance;
	for (unsigned i = 0; ret->numas && i < count; i++) {
		ret->numas[i] = (struct machine_numa){ .number = i,
			.package = i < with_cpus ? (int)(i / m->numas) : 0,
			.memory_bytes = 1ull << 36,
			.has_cpus = i < with_cpus };
		if (i >= with_cpus) {
			ret->numas[i].number = (unsigned)number;
			number = bits_next(&far, (unsigned)number + 1);
		}
		ret->numas[i].usable = !bits_have(&barred, ret->numas[i].number);
	}
	for (size_t i = 0; distance && i < count * count; i++) {
		const struct machine_numa *a = &ret->numas[i / count], *b = &ret->numas[i % count];

		distance[i] = a == b ? 10 : a->package == b->package ? 12 : 32;
	}
}

struct machine model_make(const struct model *m, struct arena *arena)
{
	struct machine ret = {
		.quota = m->quota, .from = "a model", .devices_read = true, .is_this = true
	};
	size_t gpus = strlen(m->gpus);

	make_cpus(m, &ret, arena);
	make_numas(m, &ret, arena);
	ret.gpus = arena_alloc(arena, (gpus + 1) * sizeof *ret.gpus);
	ret.gpu_count = gpus;
	for (unsigned i = 0; ret.gpus && i < gpus; i++)
		ret.gpus[i] = (struct machine_gpu){ .maker = GPU_NVIDIA,
			.index = i,
			.bus = arena_printf(arena, "0000:%02x:00.0", i),
			.numa = m->gpus[i] == '?' ? MACHINE_NOWHERE : m->gpus[i] - '0' };
	return ret;
}
