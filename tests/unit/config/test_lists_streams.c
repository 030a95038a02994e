/* test_lists_streams.c - which streams --redirects and --tee mean. */
#include "tests/unit/unit.h"

#include <errno.h>

#include "config/lists.h"

static const struct streams_row {
	const char *says, *text;
	int rc;
	uint64_t last;
	struct {
		unsigned rank, streams;
	} of[6]; /* 0, 0 behind the first: no more */
} rows[] = {
	{ "none", "0", 0, 0, { { 0, 0 }, { 7, 0 } } },
	{ "stdout of all", "1", 0, 0, { { 0, 1 }, { 99, 1 } } },
	{ "stderr of all", "2", 0, 0, { { 0, 2 }, { 99, 2 } } },
	{ "both of all", "3", 0, 0, { { 0, 3 }, { 2147483647, 3 } } },
	{ "of one rank", "0:3", 0, 0, { { 0, 3 }, { 1, 0 }, { 3, 0 } } },
	{ "torchrun's own example", "0:1,1:2", 0, 1, { { 0, 1 }, { 1, 2 }, { 2, 0 } } },
	{ "ranks of several digits", "10:1,127:2", 0, 127,
		{ { 10, 1 }, { 127, 2 }, { 1, 0 }, { 12, 0 } } },
	{ "a range", "2-4:3", 0, 4, { { 2, 3 }, { 3, 3 }, { 4, 3 }, { 1, 0 }, { 5, 0 } } },
	{ "a range of one", "5-5:1", 0, 5, { { 5, 1 }, { 4, 0 }, { 6, 0 } } },
	{ "the highest not at the end", "8-9:1,3:2", 0, 9, { { 8, 1 }, { 9, 1 }, { 3, 2 } } },
	{ "the later entry counts", "0-7:3,2:0,3:1", 0, 7, { { 1, 3 }, { 2, 0 }, { 3, 1 } } },
	{ "also where it is the wider one", "2:1,0-7:2", 0, 7, { { 2, 2 }, { 1, 2 } } },
	{ "the highest rank there can be", "2147483647:1", 0, 2147483647, { { 2147483647, 1 } } },
	{ "a rank too high", "2147483648:1", -EINVAL, 0, { { 0, 0 } } },
	{ "nothing", "", -EINVAL, 0, { { 0, 0 } } },
	{ "another number", "4", -EINVAL, 0, { { 0, 0 } } },
	{ "two digits", "33", -EINVAL, 0, { { 0, 0 } } },
	{ "a word", "out", -EINVAL, 0, { { 0, 0 } } },
	{ "a rank and no value behind it", "0:", -EINVAL, 0, { { 0, 0 } } },
	{ "a value for no rank", ":3", -EINVAL, 0, { { 0, 0 } } },
	{ "another value", "0:4", -EINVAL, 0, { { 0, 0 } } },
	{ "a value of two digits", "0:11", -EINVAL, 0, { { 0, 0 } } },
	{ "a range that is open", "1-:3", -EINVAL, 0, { { 0, 0 } } },
	{ "a range without a begin", "-1:3", -EINVAL, 0, { { 0, 0 } } },
	{ "a range backwards", "3-1:3", -EINVAL, 0, { { 0, 0 } } },
	{ "a range of three", "1-2-3:3", -EINVAL, 0, { { 0, 0 } } },
	{ "a range and no value", "1-2", -EINVAL, 0, { { 0, 0 } } },
	{ "an entry without a value", "0:1,1", -EINVAL, 0, { { 0, 0 } } },
	{ "an empty entry", "0:1,,1:1", -EINVAL, 0, { { 0, 0 } } },
	{ "a comma at the end", "0:1,", -EINVAL, 0, { { 0, 0 } } },
	{ "a value for all in a list", "3,0:1", -EINVAL, 0, { { 0, 0 } } },
	{ "a blank", "0:1, 1:1", -EINVAL, 0, { { 0, 0 } } },
	{ "another sign between", "0:1;1:1", -EINVAL, 0, { { 0, 0 } } },
	{ "a number without end", "00000000000000000000001:1", -EINVAL, 0, { { 0, 0 } } },
};

static void test_streams(void **state)
{
	const struct streams_row *row = *state;

	assert_int_equal(streams_check(row->text), row->rc);
	if (row->rc < 0)
		return;
	assert_true(streams_last(row->text) == row->last);
	for (size_t i = 0; i < 6 && (i == 0 || row->of[i].rank || row->of[i].streams); i++)
		assert_int_equal(streams_of(row->text, row->of[i].rank), row->of[i].streams);
}

/* A text that nobody checked counts as far as it is right. */
static void test_unchecked(void **state)
{
	(void)state;
	assert_int_equal(streams_of("1:2,x,1:3", 1), STREAMS_STDERR);
	assert_true(streams_last("4:2,x,9:3") == 4);
}

TESTS(lists_streams)
{
	static struct suite s;

	suite_add(&s, "what is wrong ends a list", test_unchecked, NULL, NULL);
	SUITE_ROWS(&s, test_streams, rows);
	return suite_run(&s);
}
