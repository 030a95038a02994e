/* test_placement.c - which CPUs and which memory workers get: rows that spell it out, and what
 * holds on any machine. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "daemon/place/placement.h"
#include "tests/unit/daemon/place/models.h"

#define DGX \
	{ \
		2, 1, 1, 56, 2, "00001111", NULL, NULL, NULL, 0 \
	}
#define NPS4 \
	{ \
		2, 4, 2, 8, 2, "33117755", NULL, NULL, NULL, 0 \
	}
#define GRACE \
	{ \
		2, 1, 1, 72, 1, "01", NULL, "2-3", NULL, 0 \
	}
#define LAPTOP \
	{ \
		1, 1, 1, 6, 2, "", NULL, NULL, NULL, 0 \
	}
#define NO_L3 \
	{ \
		2, 1, 0, 2, 1, "", NULL, NULL, NULL, 0 \
	}
#define L3S \
	{ \
		1, 1, 4, 2, 1, "", NULL, NULL, NULL, 0 \
	}
#define NO_GPUS \
	{ \
		2, 1, 1, 4, 2, "", NULL, NULL, NULL, 0 \
	}
#define QUOTA \
	{ \
		1, 1, 1, 8, 2, "", NULL, NULL, NULL, 3500 \
	}
/* the cpuset has a quarter of the second socket */
#define SLICE \
	{ \
		2, 1, 1, 4, 1, "01", "0-4", NULL, NULL, 0 \
	}
/* ... and nothing of it */
#define HALF \
	{ \
		4, 1, 1, 2, 1, "0123", "0-1,4-5", NULL, NULL, 0 \
	}
/* ... nor its memory */
#define NO_MEMORY \
	{ \
		2, 1, 1, 2, 1, "", NULL, NULL, "1", 0 \
	}

static const struct place_row {
	const char *says;
	struct model model;
	unsigned workers;
	enum bind_how bind;
	const char *list;
	unsigned cores;
	int rc;
	const char *cpus;    /* of each worker, or a part of the sentence */
	const char *threads; /* of each; NULL: not looked at */
	const char *note;    /* a part of one; NULL: there is none */
} rows[] = {
	{ "nobody is bound, and all threads are divided", DGX, 4, BIND_NONE, NULL, 0, 0,
		":::", "28:28:28:28", NULL },
	{ "more workers than cores, not bound", LAPTOP, 8, BIND_NONE, NULL, 0, 0,
		":::::::", "1:1:1:1:1:1:1:1", NULL },

	{ "cores: hardware threads stay together", LAPTOP, 2, BIND_CORE, NULL, 0, 0,
		"0-2,6-8:3-5,9-11", "3:3", NULL },
	{ "cores: one more for the first", LAPTOP, 4, BIND_CORE, NULL, 0, 0,
		"0-1,6-7:2-3,8-9:4,10:5,11", "2:2:1:1", NULL },
	{ "cores: fewer than workers", LAPTOP, 8, BIND_CORE, NULL, 0, 0,
		"0,6:0,6:1,7:2,8:3,9:3,9:4,10:5,11", "1:1:1:1:1:1:1:1",
		"8 workers share 6 cores of the machine: some have the same one" },
	{ "cores: one worker has all", NO_GPUS, 1, BIND_CORE, NULL, 0, 0, "0-15", "8", NULL },
	{ "cores: only those of the cpuset", SLICE, 2, BIND_CORE, NULL, 0, 0, "0-2:3-4", "3:2",
		NULL },

	{ "L3 caches, one each", L3S, 4, BIND_L3, NULL, 0, 0, "0-1:2-3:4-5:6-7", "2:2:2:2", NULL },
	{ "L3 caches for fewer workers", L3S, 2, BIND_L3, NULL, 0, 0, "0-1:4-5", "2:2", NULL },
	{ "L3 caches for more workers", L3S, 6, BIND_L3, NULL, 0, 0, "0-1:2-3:2-3:4-5:6-7:6-7",
		"2:1:1:2:1:1", NULL },
	{ "no L3 cache: NUMA nodes instead", NO_L3, 2, BIND_L3, NULL, 0, 0, "0-1:2-3", "2:2",
		"--bind: this machine shows no L3 cache: workers are bound to NUMA nodes" },

	{ "NUMA nodes, one each", NPS4, 8, BIND_NUMA, NULL, 0, 0,
		"0-15,128-143:16-31,144-159:32-47,160-175:48-63,176-191:64-79,192-207:80-95,208-223:"
		"96-111,224-239:112-127,240-255",
		"16:16:16:16:16:16:16:16", NULL },
	{ "NUMA nodes for two workers: one of each socket", NPS4, 2, BIND_NUMA, NULL, 0, 0,
		"0-15,128-143:64-79,192-207", "16:16", NULL },
	{ "NUMA nodes for three workers", NO_GPUS, 3, BIND_NUMA, NULL, 0, 0,
		"0-3,8-11:4-7,12-15:4-7,12-15", "4:2:2", NULL },
	{ "NUMA nodes in proportion to what is usable", SLICE, 5, BIND_NUMA, NULL, 0, 0,
		"0-3:0-3:0-3:0-3:4", "1:1:1:1:1", NULL },
	{ "sockets", NPS4, 4, BIND_SOCKET, NULL, 0, 0,
		"0-63,128-191:0-63,128-191:64-127,192-255:64-127,192-255", "32:32:32:32", NULL },

	{ "GPUs' NUMA nodes", NPS4, 4, BIND_GPU, NULL, 0, 0,
		"48-63,176-191:48-63,176-191:16-31,144-159:16-31,144-159", "8:8:8:8", NULL },
	{ "a worker without a GPU", GRACE, 3, BIND_GPU, NULL, 0, -EINVAL,
		"--bind: local rank 2 has no GPU whose place is known: 2 GPUs here for 3 workers; auto "
		"takes NUMA nodes then",
		NULL, NULL },
	{ "GPU memory has no CPUs to offer", GRACE, 2, BIND_NUMA, NULL, 0, 0, "0-71:72-143",
		"72:72", NULL },
	{ "a GPU whose NUMA node is out of reach: the nearest with CPUs", HALF, 4, BIND_GPU, NULL,
		0, 0, "0-1:0-1:4-5:0-1", "1:1:2:1", NULL },
	{ "torchrun's mode without GPUs", NO_GPUS, 2, BIND_EXCLUSIVE, NULL, 0, 0,
		"0-3,8-11:4-7,12-15", "4:4",
		"--bind: 2 of 2 workers have no GPU whose place is known: they are dealt out by their "
		"numbers" },
	{ "... its sockets", NO_GPUS, 2, BIND_GPU_SOCKET, NULL, 0, 0, "0-3,8-11:4-7,12-15", "4:4",
		"have no GPU" },
	{ "a share for each, where a NUMA node has more GPUs than cores",
		{ 1, 1, 1, 2, 2, "0000", NULL, NULL, NULL, 0 }, 4, BIND_EXCLUSIVE, NULL, 0, 0,
		"0,2:0,2:1,3:1,3", "1:1:1:1", "4 workers share 2 cores of NUMA node 0" },
	{ "a GPU whose place nobody knows", { 2, 1, 1, 2, 1, "?1", NULL, NULL, NULL, 0 }, 2,
		BIND_GPU_NODE, NULL, 0, 0, "0-1:2-3", "2:2",
		"1 of 2 workers have no GPU whose place is known" },
	{ "... where there is only one place", { 1, 1, 1, 2, 1, "?", NULL, NULL, NULL, 0 }, 1,
		BIND_GPU, NULL, 0, 0, "0-1", "2", NULL },

	{ "auto: by the GPU", GRACE, 2, BIND_AUTO, NULL, 0, 0, "0-71:72-143", "72:72", NULL },
	{ "auto: by NUMA node", NO_GPUS, 4, BIND_AUTO, NULL, 0, 0,
		"0-3,8-11:0-3,8-11:4-7,12-15:4-7,12-15", "2:2:2:2", NULL },
	{ "auto: shares", LAPTOP, 3, BIND_AUTO, NULL, 0, 0, "0-1,6-7:2-3,8-9:4-5,10-11", "2:2:2",
		NULL },

	{ "cores by number, near the GPU", DGX, 8, BIND_GPU, NULL, 3, 0,
		"0-2,112-114:14-16,126-128:28-30,140-142:42-44,154-156:56-58,168-170:70-72,182-184:"
		"84-86,196-198:98-100,210-212",
		"3:3:3:3:3:3:3:3", NULL },
	{ "cores by number, of one NUMA node where they can be",
		{ 2, 1, 1, 3, 1, "", NULL, NULL, NULL, 0 }, 2, BIND_CORE, NULL, 2, 0, "0-1:3-4",
		"2:2", NULL },
	{ "... and of two where they can't", { 2, 1, 1, 3, 1, "", NULL, NULL, NULL, 0 }, 1,
		BIND_CORE, NULL, 4, 0, "0-3", "4", NULL },
	{ "more cores than a NUMA node has", DGX, 8, BIND_GPU, NULL, 15, -EINVAL,
		"--cpus-per-worker: 4 workers with 15 cores each: NUMA node 0 has 56 that this process "
		"may use, so at most 14 each",
		NULL, NULL },
	{ "more cores than there are", LAPTOP, 1, BIND_AUTO, NULL, 7, -EINVAL,
		"--cpus-per-worker: 1 worker with 7 cores each: the machine has 6 that this process "
		"may use, so at most 6 each",
		NULL, NULL },
	{ "as many as the quota is for", QUOTA, 2, BIND_CORE, NULL, 2, 0, "0-1,8-9:4-5,12-13",
		"1:1", NULL },
	{ "more than the quota", QUOTA, 5, BIND_CORE, NULL, 1, -EINVAL,
		"--cpus-per-worker: 5 workers with 1 core each: the cgroup's quota is the time of "
		"3.500 CPUs",
		NULL, NULL },
	{ "a quota is for threads, not for CPUs", QUOTA, 2, BIND_CORE, NULL, 0, 0,
		"0-3,8-11:4-7,12-15", "1:1", NULL },
	{ "a quota and one worker", QUOTA, 1, BIND_NONE, NULL, 0, 0, "", "3", NULL },

	{ "lists", NO_GPUS, 2, BIND_LIST, "0-1,8:3,7", 0, 0, "0-1,8:3,7", "2:2", NULL },
	{ "lists that overlap", NO_GPUS, 2, BIND_LIST, "0-3:3-4", 0, 0, "0-3:3-4", "2:1", NULL },
	{ "too few lists", NO_GPUS, 3, BIND_LIST, "0-1:2", 0, -EINVAL,
		"--bind: 2 lists of CPUs for 3 workers: give one for each", NULL, NULL },
	{ "a CPU that isn't there", NO_GPUS, 1, BIND_LIST, "12-16", 0, -EINVAL,
		"--bind: CPU 16 is none of those that this process may use, which are 0-15", NULL,
		NULL },
	{ "a CPU of another cpuset", SLICE, 1, BIND_LIST, "3-6", 0, -EINVAL,
		"--bind: CPU 5 is none of those that this process may use, which are 0-4", NULL,
		NULL },
	{ "no CPU at all", { 1, 1, 1, 2, 1, "", "7", NULL, NULL, 0 }, 1, BIND_AUTO, NULL, 0, -EIO,
		"--bind: a model shows no CPU that this process may use", NULL, NULL },
};

/* The i-th GPU for worker i. */
static void gpus_by_number(
	const struct machine *m, unsigned workers, struct arena *arena, struct placing *in)
{
	int *gpus = arena_alloc(arena, (m->gpu_count + 1) * sizeof *gpus);
	int *of = arena_alloc(arena, workers * sizeof *of);

	assert_true(gpus && of);
	for (unsigned i = 0; i < m->gpu_count; i++)
		gpus[i] = (int)i;
	for (unsigned i = 0; i < workers; i++)
		of[i] = i < m->gpu_count ? (int)i : MACHINE_NOWHERE;
	in->gpus = gpus;
	in->gpu_count = m->gpu_count;
	in->gpu_of = of;
}

/* "0-1:2-3" */
static const char *all_cpus(const struct placement *p, struct arena *arena)
{
	struct text out = { 0 };
	const char *ret;

	for (unsigned i = 0; i < p->count; i++) {
		text_add(&out, i ? ":" : "");
		bits_add_text(&p->of[i].cpus, &out);
	}
	ret = arena_strdup(arena, text_string(&out));
	text_done(&out);
	return ret;
}

static const char *all_threads(const struct placement *p, struct arena *arena)
{
	struct text out = { 0 };
	const char *ret;

	for (unsigned i = 0; i < p->count; i++)
		text_printf(&out, "%s%u", i ? ":" : "", p->of[i].threads);
	ret = arena_strdup(arena, text_string(&out));
	text_done(&out);
	return ret;
}

static void test_rows(void **state)
{
	const struct place_row *row = *state;
	struct arena arena = { 0 };
	struct failure why = { 0 };
	struct machine m = model_make(&row->model, &arena);
	struct placing in = { .machine = &m,
		.workers = row->workers,
		.bind = row->bind,
		.bind_list = row->list,
		.bind_from = "--bind",
		.cores = row->cores,
		.cores_from = "--cpus-per-worker" };
	struct placement p = { 0 };
	int rc;

	gpus_by_number(&m, row->workers, &arena, &in);
	rc = placement_make(&in, &arena, &p, &why);
	assert_outcome(rc, row->rc, &why, row->rc ? row->cpus : NULL);
	if (rc == 0) {
		assert_string_equal(all_cpus(&p, &arena), row->cpus);
		assert_string_equal(all_threads(&p, &arena), row->threads);
		assert_int_equal(p.notes.count, row->note != NULL);
	}
	if (row->note)
		assert_contains(p.notes.at[0], row->note);
	arena_done(&arena);
}

/* --- memory --- */

static const struct memory_row {
	const char *says;
	struct model model;
	enum bind_how bind;
	enum membind_how membind;
	const char *list;
	int rc;
	const char *memory; /* of two workers, or a part of the sentence */
	bool note;
} memories[] = {
	{ "as the launcher has it", NO_GPUS, BIND_NUMA, MEMBIND_NONE, NULL, 0,
		"as it is :as it is ", false },
	{ "the CPUs' node first", NO_GPUS, BIND_NUMA, MEMBIND_PREFERRED, NULL, 0,
		"prefer 0:prefer 1", false },
	{ "only the CPUs' node", NO_GPUS, BIND_NUMA, MEMBIND_BIND, NULL, 0, "bind 0:bind 1",
		false },
	{ "several nodes: each thread from its own", NPS4, BIND_SOCKET, MEMBIND_PREFERRED, NULL, 0,
		"local :local ", false },
	{ "only those of several nodes", NPS4, BIND_SOCKET, MEMBIND_BIND, NULL, 0,
		"bind 0-3:bind 4-7", false },
	{ "these in turn", NPS4, BIND_SOCKET, MEMBIND_INTERLEAVE, NULL, 0,
		"interleave 0-3:interleave 4-7", false },
	{ "local", NPS4, BIND_NONE, MEMBIND_LOCAL, NULL, 0, "local :local ", false },
	{ "unbound and preferred is local", NO_GPUS, BIND_NONE, MEMBIND_PREFERRED, NULL, 0,
		"local :local ", false },
	{ "unbound and in turn: all nodes with CPUs, so no GPU memory", GRACE, BIND_NONE,
		MEMBIND_INTERLEAVE, NULL, 0, "interleave 0-1:interleave 0-1", false },
	{ "never a GPU's memory", GRACE, BIND_GPU, MEMBIND_BIND, NULL, 0, "bind 0:bind 1", false },
	{ "... unless it is named", GRACE, BIND_GPU, MEMBIND_LIST, "0,2:1,3", 0,
		"bind 0,2:bind 1,3", false },
	{ "one list for all", GRACE, BIND_NONE, MEMBIND_LIST, "0-1", 0, "bind 0-1:bind 0-1",
		false },
	{ "three lists for two", GRACE, BIND_NONE, MEMBIND_LIST, "0:1:2", -EINVAL,
		"--membind: 3 lists of NUMA nodes for 2 workers: give one for each, or one for all",
		false },
	{ "a node that isn't there", GRACE, BIND_NONE, MEMBIND_LIST, "0,4", -EINVAL,
		"--membind: NUMA node 4 has no memory that this process may use; it may use that of "
		"0-3",
		false },
	{ "a node of another cpuset, and nobody asked", NO_MEMORY, BIND_NUMA, MEMBIND_PREFERRED,
		NULL, 0, "prefer 0:as it is ", true },
	{ "... and somebody did", NO_MEMORY, BIND_NUMA, MEMBIND_BIND, NULL, -EINVAL,
		"--membind: local rank 1: the NUMA nodes of its CPUs have no memory that this process "
		"may use",
		false },
};

static void test_memory(void **state)
{
	const struct memory_row *row = *state;
	struct arena arena = { 0 };
	struct failure why = { 0 };
	struct machine m = model_make(&row->model, &arena);
	struct placing in = { .machine = &m,
		.workers = 2,
		.bind = row->bind,
		.bind_from = "--bind",
		.membind = row->membind,
		.membind_list = row->list,
		.membind_from = row->note ? NULL : "--membind" };
	struct placement p = { 0 };
	int rc;

	gpus_by_number(&m, 2, &arena, &in);
	rc = placement_make(&in, &arena, &p, &why);
	assert_outcome(rc, row->rc, &why, row->rc ? row->memory : NULL);
	if (rc == 0) {
		const char *got = arena_printf(&arena, "%s %s:%s %s", memory_word(p.of[0].memory),
			bits_text(&p.of[0].nodes, &arena), memory_word(p.of[1].memory),
			bits_text(&p.of[1].nodes, &arena));

		assert_string_equal(got, row->memory);
		assert_int_equal(p.notes.count, row->note);
	}
	arena_done(&arena);
}

/* --- a mask that is one worker's --- */

static void test_own_mask(void **state)
{
	static const struct {
		struct model model;
		unsigned threads; /* of one of four workers on the host */
	} cases[] = {
		{ LAPTOP, 1 },                                                /* nobody bound it */
		{ { 1, 1, 1, 16, 2, "", "0-1,16-17", NULL, NULL, 0 }, 2 },    /* to two cores */
		{ { 1, 1, 1, 16, 2, "", NULL, NULL, NULL, 0 }, 4 },           /* a larger machine */
		{ { 1, 1, 1, 16, 2, "", "0-1,16-17", NULL, NULL, 4000 }, 1 }, /* a quota for all */
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct arena arena = { 0 };
		struct failure why = { 0 };
		struct machine m = model_make(&cases[i].model, &arena);
		const struct placing in = { .machine = &m, .workers = 4, .own_mask = true };
		struct placement p;

		assert_int_equal(placement_make(&in, &arena, &p, &why), 0);
		assert_int_equal(p.of[3].threads, cases[i].threads);
		arena_done(&arena);
	}
}

/* --- any machine --- */

static unsigned below(unsigned n)
{
	return (unsigned)rand() % n;
}

static struct model any_model(struct arena *arena)
{
	struct model m = { 1 + below(3), 1 + below(4), below(3), 1 + below(5), 1 + below(2), "",
		NULL, NULL, NULL, 0 };
	unsigned numas = m.packages * m.numas, gpus = below(9);
	unsigned cpus = numas * (m.l3s ? m.l3s : 1) * m.cores * m.threads;
	char *places = arena_alloc(arena, gpus + 1);
	struct bits usable = bits_make(arena, cpus);

	for (unsigned i = 0; i < gpus; i++)
		places[i] = below(8) == 0 ? '?' : (char)('0' + below(numas < 10 ? numas : 10));
	m.gpus = places;
	for (unsigned i = 0; i < cpus; i++)
		if (below(3) > 0)
			bits_add(&usable, i);
	bits_add(&usable, below(cpus));
	if (below(2))
		m.usable = bits_text(&usable, arena);
	return m;
}

/* Of each worker: some CPU; none that isn't usable; all usable threads of a core or none. */
static void check_worker(const struct machine *m, const struct worker_place *w)
{
	assert_false(bits_are_empty(&w->cpus));
	assert_true(w->threads >= 1 && w->threads <= w->cores && w->sharing >= 1);
	for (size_t i = 0; i < m->cpu_count; i++) {
		bool has = bits_have(&w->cpus, m->cpus[i].number);

		assert_true(!has || m->cpus[i].usable);
		for (size_t k = 0; k < m->cpu_count; k++)
			if (m->cpus[k].core == m->cpus[i].core && m->cpus[k].usable &&
				m->cpus[i].usable)
				assert_int_equal(has, bits_have(&w->cpus, m->cpus[k].number));
	}
	for (int n = bits_next(&w->nodes, 0); n >= 0; n = bits_next(&w->nodes, (unsigned)n + 1))
		assert_true(m->numas[n].usable && m->numas[n].has_cpus);
	assert_true(w->why && *w->why);
}

/* Fair: nobody has two cores more than another, and cores are shared only where there are too few
 * of them; else all are used. */
static void check_shares(const struct machine *m, const struct placement *p)
{
	unsigned least = UINT32_MAX, most = 0;

	for (unsigned i = 0; i < p->count; i++) {
		least = p->of[i].cores < least ? p->of[i].cores : least;
		most = p->of[i].cores > most ? p->of[i].cores : most;
	}
	assert_true(most - least <= 1);
	for (unsigned i = 0; i < p->count; i++)
		assert_true(p->of[i].sharing == 1 || most == 1);
	for (size_t i = 0; i < m->cpu_count && p->of[0].sharing == 1; i++) {
		bool used = !m->cpus[i].usable;

		for (unsigned k = 0; k < p->count && !used; k++)
			used = bits_have(&p->of[k].cpus, m->cpus[i].number);
		assert_true(used);
	}
}

static void test_any(void **state)
{
	(void)state;
	srand(18);
	for (int round = 0; round < 3000; round++) {
		struct arena arena = { 0 };
		struct failure why = { 0 };
		struct model model = any_model(&arena);
		struct machine m = model_make(&model, &arena);
		struct placing in = { .machine = &m,
			.workers = 1 + below(20),
			.bind = (enum bind_how)(BIND_CORE + below(BIND_HOWS - BIND_CORE)),
			.membind = MEMBIND_PREFERRED,
			.bind_from = "--bind",
			.cores_from = "--cpus-per-worker" };
		struct placement p;

		if (in.bind == BIND_LIST)
			in.bind = BIND_CORE;
		if (in.bind <= BIND_AUTO && below(4) == 0)
			in.cores = 1 + below(3);
		gpus_by_number(&m, in.workers, &arena, &in);
		if (placement_make(&in, &arena, &p, &why) < 0) {
			assert_true(
				why.class == FAILURE_USAGE && (in.cores || in.bind == BIND_GPU));
			arena_done(&arena);
			continue;
		}
		for (unsigned i = 0; i < p.count; i++) {
			check_worker(&m, &p.of[i]);
			if (in.cores)
				assert_true(p.of[i].cores == in.cores && p.of[i].sharing == 1);
		}
		if (in.bind == BIND_CORE && !in.cores)
			check_shares(&m, &p);
		arena_done(&arena);
	}
}

TESTS(placement)
{
	static struct suite s;

	SUITE_ROWS(&s, test_rows, rows);
	SUITE_ROWS(&s, test_memory, memories);
	suite_add(&s, "threads of a worker that others have bound", test_own_mask, NULL, NULL);
	suite_add(&s, "what holds on any machine", test_any, NULL, NULL);
	return suite_run(&s);
}
