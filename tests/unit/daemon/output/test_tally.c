/* test_tally.c - counts of several threads. */
#include "tests/unit/unit.h"

#include <uv.h>

#include "daemon/output/tally.h"

enum { TIMES = 20000 };

static void test_read(void **state)
{
	struct tally t = { .read_bytes = { 1, 2 } };
	struct output_counts c;

	(void)state;
	tally_add(&t.read_bytes[1], 40);
	tally_add(&t.log_bytes[0], 5);
	tally_add(&t.dropped_lines[1], UINT64_MAX);
	tally_add(NULL, 7);
	c = tally_read(&t);
	assert_true(c.read_bytes[0] == 1 && c.read_bytes[1] == 42);
	assert_true(c.log_bytes[0] == 5 && c.log_bytes[1] == 0);
	assert_true(c.dropped_lines[0] == 0 && c.dropped_lines[1] == UINT64_MAX);
}

static void add_often(void *tally)
{
	struct tally *t = tally;

	for (int i = 0; i < TIMES; i++)
		tally_add(&t->log_bytes[0], 3);
}

static void test_threads(void **state)
{
	static struct tally t;
	uv_thread_t other;

	(void)state;
	assert_int_equal(uv_thread_create(&other, add_often, &t), 0);
	add_often(&t);
	assert_int_equal(uv_thread_join(&other), 0);
	assert_int_equal(tally_read(&t).log_bytes[0], 2 * 3 * TIMES);
}

TESTS(tally)
{
	static struct suite s;

	suite_add(&s, "each count is its own", test_read, NULL, NULL);
	suite_add(&s, "nothing is lost between two threads", test_threads, NULL, NULL);
	return suite_run(&s);
}
