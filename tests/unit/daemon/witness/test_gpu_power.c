/* test_gpu_power.c - see gpu_power.h */
#include "daemon/witness/gpu_power.h"

#include "tests/unit/unit.h"

enum { WORKS_MW = 310000 };

/* A minute of a job, whose GPU works half of the time, and then three looks. */
static const struct row {
	const char *says;
	unsigned latest_mw[POWER_LOOKS]; /* 0: no kernel runs */
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
	struct gpu_power p = { .count = 0 };

	for (unsigned i = 0; i < 60; i++)
		gpu_power_see(&p, WORKS_MW + i * 100, i % 2 == 0);
	gpu_power_moved(&p);
	for (unsigned i = 0; i < POWER_LOOKS; i++)
		gpu_power_see(&p, row->latest_mw[i], row->latest_mw[i] > 0);
	assert_int_equal(gpu_power_tells(&p), row->is);
}

/* What was seen of a hang is not what is usual, however long it lasts. */
static void test_a_hang_is_not_learned(void **state)
{
	struct gpu_power p = { .count = 0 };

	(void)state;
	for (unsigned i = 0; i < POWER_ENOUGH; i++)
		gpu_power_see(&p, WORKS_MW, true);
	gpu_power_moved(&p);
	for (unsigned i = 0; i < 1000; i++)
		gpu_power_see(&p, 100000, true);
	assert_int_equal(gpu_power_tells(&p), GPU_WAITS);
	gpu_power_moved(&p); /* it was none */
	assert_int_equal(gpu_power_tells(&p), GPU_BUSY);
}

static void test_not_enough_is_known(void **state)
{
	struct gpu_power p = { .count = 0 };

	(void)state;
	assert_int_equal(gpu_power_tells(&p), GPU_NONE);
	for (unsigned i = 0; i < POWER_LOOKS; i++)
		gpu_power_see(&p, 60000, false);
	assert_int_equal(gpu_power_tells(&p), GPU_NONE); /* the worker may not use it */
	gpu_power_see(&p, WORKS_MW, true);
	gpu_power_moved(&p);
	assert_int_equal(gpu_power_tells(&p), GPU_UNKNOWN);
}

static void test_beyond_all_cards(void **state)
{
	struct gpu_power p = { .count = 0 };

	(void)state;
	for (unsigned i = 0; i < POWER_ENOUGH; i++)
		gpu_power_see(&p, 4000000000u, true);
	gpu_power_moved(&p);
	assert_int_equal(gpu_power_tells(&p), GPU_BUSY);
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

int main(void)
{
	static struct suite s;

	SUITE_ROWS(&s, test_tells, rows);
	suite_add(&s, "a hang is not learned", test_a_hang_is_not_learned, NULL, NULL);
	suite_add(&s, "not enough is known", test_not_enough_is_known, NULL, NULL);
	suite_add(&s, "more power than any card draws", test_beyond_all_cards, NULL, NULL);
	suite_add(&s, "a worker with two", test_two_gpus, NULL, NULL);
	return suite_run(&s);
}
