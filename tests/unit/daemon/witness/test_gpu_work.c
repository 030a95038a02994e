/* test_gpu_work.c - see gpu_work.h */
#include "daemon/witness/gpu_work.h"

#include "tests/unit/unit.h"

enum { WORKS_MW = 310000 };

/* A minute of a job, whose GPU works half of the time, and then three looks. */
static const struct row {
	const char *says;
	unsigned latest_mw[WORK_LOOKS]; /* 0: no kernel runs */
	enum gpu_activity is;
} rows[] = {
	{ "as much as ever", { WORKS_MW, WORKS_MW, WORKS_MW }, GPU_BUSY },
	{ "once as much as ever", { 0, WORKS_MW, 0 }, GPU_BUSY },
	{ "far less: the kernels wait", { 120000, 119000, 121000 }, GPU_WAITS },
	{ "a bit less: nobody knows", { 240000, 240000, 240000 }, GPU_UNKNOWN },
	{ "no kernel runs", { 0, 0, 0 }, GPU_IDLE },
};

static void test_tells(void **state)
{
	const struct row *row = *state;
	struct gpu_work p = { .looks = 0 };

	for (unsigned i = 0; i < 60; i++)
		gpu_work_see(&p, WORKS_MW + i * 100, i % 2 == 0, TENSOR_UNKNOWN);
	gpu_work_moved(&p);
	for (unsigned i = 0; i < WORK_LOOKS; i++)
		gpu_work_see(&p, row->latest_mw[i], row->latest_mw[i] > 0, TENSOR_UNKNOWN);
	assert_int_equal(gpu_work_tells(&p), row->is);
}

/* What was seen of a hang is not what is usual, however long it lasts. */
static void test_a_hang_is_not_learned(void **state)
{
	struct gpu_work p = { .looks = 0 };

	(void)state;
	for (unsigned i = 0; i < WORK_ENOUGH; i++)
		gpu_work_see(&p, WORKS_MW, true, TENSOR_UNKNOWN);
	gpu_work_moved(&p);
	for (unsigned i = 0; i < 1000; i++)
		gpu_work_see(&p, 100000, true, TENSOR_UNKNOWN);
	assert_int_equal(gpu_work_tells(&p), GPU_WAITS);
	gpu_work_moved(&p); /* it was none */
	assert_int_equal(gpu_work_tells(&p), GPU_BUSY);
}

static void test_not_enough_is_known(void **state)
{
	struct gpu_work p = { .looks = 0 };

	(void)state;
	assert_int_equal(gpu_work_tells(&p), GPU_NONE);
	for (unsigned i = 0; i < WORK_LOOKS; i++)
		gpu_work_see(&p, 60000, false, TENSOR_UNKNOWN);
	assert_int_equal(gpu_work_tells(&p), GPU_NONE); /* the worker may not use it */
	gpu_work_see(&p, WORKS_MW, true, TENSOR_UNKNOWN);
	gpu_work_moved(&p);
	assert_int_equal(gpu_work_tells(&p), GPU_UNKNOWN);
}

static void test_beyond_all_cards(void **state)
{
	struct gpu_work p = { .looks = 0 };

	(void)state;
	for (unsigned i = 0; i < WORK_ENOUGH; i++)
		gpu_work_see(&p, 4000000000u, true, TENSOR_UNKNOWN);
	gpu_work_moved(&p);
	assert_int_equal(gpu_work_tells(&p), GPU_BUSY);
}

/* A minute of a job whose tensor units work for 300 of 1000, or another part of the time, and then
 * three looks. */
static const struct tensor_row {
	const char *says;
	int usual;
	unsigned latest_mw;
	int latest;
	enum gpu_activity is;
} tensor_rows[] = {
	{ "the units rest, and the power is in between", 300, 240000, 4, GPU_WAITS },
	{ "they work, and the power is in between", 300, 240000, 250, GPU_BUSY },
	{ "they work a bit: nobody knows", 300, 240000, 90, GPU_UNKNOWN },
	{ "they work at little power", 300, 100000, 250, GPU_BUSY },
	{ "they rest at full power: other kernels may work", 300, WORKS_MW, 0, GPU_BUSY },
	{ "a job that hardly uses them", 8, 240000, 0, GPU_UNKNOWN },
	{ "they can't be asked any more", 300, 240000, TENSOR_UNKNOWN, GPU_UNKNOWN },
	{ "... at little power", 300, 100000, TENSOR_UNKNOWN, GPU_WAITS },
};

static void test_tensor(void **state)
{
	const struct tensor_row *row = *state;
	struct gpu_work w = { .looks = 0 };

	for (unsigned i = 0; i < 60; i++)
		gpu_work_see(&w, WORKS_MW, true, row->usual);
	gpu_work_moved(&w);
	for (unsigned i = 0; i < WORK_LOOKS; i++)
		gpu_work_see(&w, row->latest_mw, true, row->latest);
	assert_int_equal(gpu_work_tells(&w), row->is);
}

static void test_two_gpus(void **state)
{
	(void)state;
	assert_int_equal(gpu_activity_of_both(GPU_IDLE, GPU_BUSY), GPU_BUSY);
	assert_int_equal(gpu_activity_of_both(GPU_WAITS, GPU_UNKNOWN), GPU_UNKNOWN);
	assert_int_equal(gpu_activity_of_both(GPU_WAITS, GPU_IDLE), GPU_WAITS);
	assert_int_equal(gpu_activity_of_both(GPU_NONE, GPU_IDLE), GPU_IDLE);
	assert_int_equal(gpu_activity_of_both(GPU_NONE, GPU_NONE), GPU_NONE);
}

TESTS(gpu_work)
{
	static struct suite s;

	SUITE_ROWS(&s, test_tells, rows);
	SUITE_ROWS(&s, test_tensor, tensor_rows);
	suite_add(&s, "a hang is not learned", test_a_hang_is_not_learned, NULL, NULL);
	suite_add(&s, "not enough is known", test_not_enough_is_known, NULL, NULL);
	suite_add(&s, "more power than any card draws", test_beyond_all_cards, NULL, NULL);
	suite_add(&s, "a worker with two", test_two_gpus, NULL, NULL);
	return suite_run(&s);
}
