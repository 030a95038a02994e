/* test_place_workers.c - what settings, GPUs and limits make of a placement; how workers are dealt
 * out is test_placement.c's. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "daemon/facts/facts.h"
#include "daemon/place/placing.h"
#include "daemon/plan/decide.h"
#include "daemon/plan/plan.h"
#include "tests/unit/daemon/place/models.h"

/* On the machine with 8 NUMA nodes and 8 GPUs, which are at 3, 3, 1, 1, 7, 7, 5 and 5. */
static const struct decide_row {
	const char *says;
	unsigned workers;
	struct setting_given put[3];
	const char *env;
	const char *cpus[2]; /* of the first two workers */
	enum memory_how memory;
	unsigned threads; /* of the first */
	const char *note; /* NULL: none */
} rows[] = {
	{ "nothing but threads", 4, { { SET_OMP_THREADS, "auto", 0 } }, NULL, { "", "" },
		MEMORY_LEFT, 32, NULL },
	{ "a bind comes with its memory", 8, { { SET_BIND, "numa", 0 } }, NULL,
		{ "0-15,128-143", "16-31,144-159" }, MEMORY_PREFER, 16, NULL },
	{ "... unless it is to come alone", 8,
		{ { SET_BIND, "numa", 0 }, { SET_MEMBIND, "none", 0 } }, NULL,
		{ "0-15,128-143", "16-31,144-159" }, MEMORY_LEFT, 16, NULL },
	{ "memory alone", 8, { { SET_MEMBIND, "local", 0 } }, NULL, { "", "" }, MEMORY_LOCAL, 16,
		NULL },
	{ "torchrun's node", 8, { { SET_NUMA_BINDING, "node", 0 } }, NULL,
		{ "48-63,176-191", "48-63,176-191" }, MEMORY_PREFER, 8, NULL },
	{ "torchrun's exclusive", 8, { { SET_NUMA_BINDING, "exclusive", 0 } }, NULL,
		{ "48-55,176-183", "56-63,184-191" }, MEMORY_PREFER, 8, NULL },
	{ "torchrun's socket", 8, { { SET_NUMA_BINDING, "socket", 0 } }, NULL,
		{ "0-63,128-191", "0-63,128-191" }, MEMORY_LOCAL, 16, NULL },
	{ "torchrun's core complex", 8, { { SET_NUMA_BINDING, "core-complex", 0 } }, NULL,
		{ "48-55,176-183", "56-63,184-191" }, MEMORY_PREFER, 8, NULL },
	{ "the closer of two to the job: torchrun's", 8,
		{ { SET_BIND, "core", LEVEL_SYSTEM_FILE }, { SET_NUMA_BINDING, "node", 0 } }, NULL,
		{ "48-63,176-191", "48-63,176-191" }, MEMORY_PREFER, 8, NULL },
	{ "the closer of two to the job: ours", 8,
		{ { SET_BIND, "core", 0 }, { SET_NUMA_BINDING, "node", LEVEL_SYSTEM_FILE } }, NULL,
		{ "0-15,128-143", "16-31,144-159" }, MEMORY_PREFER, 16, NULL },
	{ "a number of cores alone is auto", 8, { { SET_CPUS_PER_WORKER, "2", 0 } }, NULL,
		{ "48-49,176-177", "56-57,184-185" }, MEMORY_PREFER, 2, NULL },
	{ "only some GPUs", 2, { { SET_BIND, "gpu", 0 } }, "CUDA_VISIBLE_DEVICES=7, 2",
		{ "80-95,208-223", "16-31,144-159" }, MEMORY_PREFER, 16, NULL },
	{ "a list that ends early", 2, { { SET_BIND, "auto", 0 } }, "CUDA_VISIBLE_DEVICES=7,8",
		{ "80-95,208-223", "64-79,192-207" }, MEMORY_PREFER, 16, NULL },
	{ "no GPU at all", 8, { { SET_BIND, "auto", 0 } }, "CUDA_VISIBLE_DEVICES=",
		{ "0-15,128-143", "16-31,144-159" }, MEMORY_PREFER, 16, NULL },
	{ "AMD's list", 2, { { SET_BIND, "gpu", 0 } }, "HIP_VISIBLE_DEVICES=2",
		{ "16-31,144-159", "" }, MEMORY_PREFER, 16, "" },
	{ "CPU time of a cgroup for each", 4,
		{ { SET_OMP_THREADS, "auto", 0 }, { SET_CGROUP_CPUS, "2.5", 0 } }, NULL, { "", "" },
		MEMORY_LEFT, 2, NULL },
	{ "less than a CPU", 4, { { SET_OMP_THREADS, "auto", 0 }, { SET_CGROUP_CPUS, "0.5", 0 } },
		NULL, { "", "" }, MEMORY_LEFT, 1, NULL },
	{ "others place the workers", 4,
		{ { SET_BIND, "core", LEVEL_SYSTEM_FILE }, { SET_NODE_ENV, "1", 0 } }, NULL,
		{ "", "" }, MEMORY_LEFT, 32, NULL },
	{ "who has no GPU is told", 4, { { SET_NUMA_BINDING, "node", 0 } },
		"CUDA_VISIBLE_DEVICES=-1", { "0-15,128-143", "32-47,160-175" }, MEMORY_PREFER, 16,
		"--numa-binding: 4 of 4 workers have no GPU" },
};

static void fill(struct settings_fixture *b, const struct setting_given *put, size_t count)
{
	for (size_t i = 0; i < count && put[i].text; i++)
		settings_fixture_put_at(b, put[i].id, put[i].text,
			put[i].level ? put[i].level : LEVEL_COMMAND_LINE,
			arena_printf(&b->arena, "--%s", setting_rows[put[i].id].flag));
}

/* As decide_placement() finds it. */
static struct plan plan_for(const struct deciding *d, unsigned workers)
{
	struct plan p = { .nproc = workers, .limits.cpus = settings_number(d->s, SET_CGROUP_CPUS) };

	assert_int_equal(
		visible_choose(d->s, d->facts->env, &d->facts->gpus, &p.visible, d->why), 0);
	return p;
}

/* What a list of AMD's shows is AMD's. */
static void change_maker(struct machine *m)
{
	for (size_t i = 0; i < m->gpu_count; i++)
		m->gpus[i].maker = GPU_AMD;
}

static void test_decide(void **state)
{
	const struct decide_row *row = *state;
	const char *env[] = { row->env, NULL };
	struct settings_fixture b;
	struct machine machine;
	struct facts facts = { .env = env, .machine = &machine };
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };
	struct plan p;
	int rc;

	settings_fixture_make(&b, false);
	machine = model_make(&models[MODEL_NPS4], &b.arena);
	if (row->env && *row->env == 'H')
		change_maker(&machine);
	fill(&b, row->put, 3);
	p = plan_for(&d, row->workers);
	rc = decide_placement(&d, &p);
	if (row->note && !*row->note) { /* a GPU is asked for that isn't there */
		assert_outcome(rc, -EINVAL, &b.why, "local rank 1 has no GPU");
		settings_fixture_done(&b);
		return;
	}
	assert_outcome(rc, 0, &b.why, NULL);
	assert_int_equal(p.placement->count, row->workers);
	for (unsigned i = 0; i < 2; i++) {
		assert_string_equal(bits_text(&p.placement->of[i].cpus, &b.arena), row->cpus[i]);
		assert_int_equal(p.placement->of[i].memory, row->memory);
	}
	assert_int_equal(p.placement->of[0].threads, row->threads);
	assert_note(&b.notes, row->note ? NOTE_INFO : NOTE_VERBOSE, row->note);
	settings_fixture_done(&b);
}

/* Said once, and not where nobody would have had a policy. */
static void test_no_policies(void **state)
{
	static const struct {
		struct setting_given put;
		bool said;
	} cases[] = { { { SET_BIND, "core", 0 }, true },
		{ { SET_OMP_THREADS, "auto", 0 }, false } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *env[] = { NULL };
		struct settings_fixture b;
		struct machine machine;
		struct facts facts = { .env = env, .machine = &machine };
		const struct deciding d = { &b.s, &facts, &b.notes, &b.why };
		struct plan p;

		settings_fixture_make(&b, false);
		machine = model_make(&models[MODEL_LAPTOP], &b.arena);
		machine.memory_error = EPERM;
		fill(&b, &cases[i].put, 1);
		p = plan_for(&d, 2);
		assert_int_equal(decide_placement(&d, &p), 0);
		assert_int_equal(p.placement->of[1].memory, MEMORY_LEFT);
		assert_int_equal(p.placement->of[1].nodes.words, 0);
		assert_note(&b.notes, cases[i].said ? NOTE_WARNING : NOTE_VERBOSE,
			cases[i].said ? "set_mempolicy is refused here (Operation not permitted" :
					NULL);
		settings_fixture_done(&b);
	}
}

static void test_nobody_asks(void **state)
{
	struct settings_fixture b;
	const struct facts facts = { 0 };
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };
	struct plan p = { .nproc = 2 };

	(void)state;
	settings_fixture_make(&b, false);
	assert_int_equal(decide_placement(&d, &p), 0);
	assert_null(p.placement);
	settings_fixture_done(&b);
}

TESTS(place_workers)
{
	static struct suite s;

	SUITE_ROWS(&s, test_decide, rows);
	suite_add(&s, "memory policies are refused", test_no_policies, NULL, NULL);
	suite_add(&s, "the machine isn't known, as nobody asks", test_nobody_asks, NULL, NULL);
	return suite_run(&s);
}
