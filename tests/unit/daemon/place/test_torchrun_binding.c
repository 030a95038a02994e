/* test_torchrun_binding.c - --numa-binding does what torchrun's does, by what torch itself said on
 * the same machines (torchrun_rows.py); where torch refuses, nobody is left without a core. */
#include "tests/unit/unit.h"

#include <string.h>

#include "daemon/place/placement.h"
#include "tests/unit/daemon/place/models.h"

static const struct torchrun_row {
	const char *says;
	int model;
	const char *mode;
	const char *cpus[MODEL_GPUS_MAX]; /* by GPU, which is by worker */
} rows[] = {
#include "tests/unit/daemon/place/torchrun_rows.h"
};

static enum bind_how mode_of(const char *word)
{
	return strcmp(word, "node") == 0       ? BIND_GPU_NODE :
		strcmp(word, "socket") == 0    ? BIND_GPU_SOCKET :
		strcmp(word, "exclusive") == 0 ? BIND_EXCLUSIVE :
						 BIND_COMPLEX;
}

/* Each worker has the GPU of its local rank; `workers` may be less than there are GPUs, which
 * changes nothing for those that are there. */
static void compare(const struct torchrun_row *row, unsigned workers)
{
	static const int gpus[MODEL_GPUS_MAX] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
		15 };
	struct arena arena = { 0 };
	struct failure why = { 0 };
	struct machine m = model_make(&models[row->model], &arena);
	const struct placing in = { .machine = &m,
		.workers = workers,
		.gpus = gpus,
		.gpu_count = m.gpu_count,
		.gpu_of = gpus,
		.bind = mode_of(row->mode),
		.bind_from = "--numa-binding" };
	struct placement p;

	assert_int_equal(placement_make(&in, &arena, &p, &why), 0);
	assert_int_equal(p.count, workers);
	for (unsigned i = 0; i < workers; i++) {
		if (strcmp(row->cpus[i], "refused") == 0)
			assert_true(bits_count(&p.of[i].cpus) > 0);
		else
			assert_string_equal(bits_text(&p.of[i].cpus, &arena), row->cpus[i]);
		assert_contains(p.of[i].why, "near GPU ");
	}
	arena_done(&arena);
}

static void test_as_torchrun(void **state)
{
	const struct torchrun_row *row = *state;
	unsigned gpus = 0;

	while (gpus < MODEL_GPUS_MAX && row->cpus[gpus])
		gpus++;
	assert_true(gpus > 0);
	for (unsigned workers = 1; workers <= gpus; workers++)
		compare(row, workers);
}

TESTS(torchrun_binding)
{
	static struct suite s;

	SUITE_ROWS(&s, test_as_torchrun, rows);
	return suite_run(&s);
}
