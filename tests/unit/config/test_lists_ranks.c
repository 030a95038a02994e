/* test_lists_ranks.c - ranges of numbers, and lists of ranks. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "config/lists.h"

static const struct range_row {
	const char *says;
	const char *text;
	uint64_t min, max;
	int rc;
	uint64_t first, last;
} ranges[] = {
	{ "one number is a range of one", "7", 0, 9, 0, 7, 7 },
	{ "two numbers", "4-7", 0, 9, 0, 4, 7 },
	{ "a number with itself", "4-4", 0, 9, 0, 4, 4 },
	{ "the bounds belong to it", "1-255", 1, 255, 0, 1, 255 },
	{ "zeros in front", "04-007", 0, 9, 0, 4, 7 },
	{ "below the least", "0-3", 1, 9, -ERANGE, 0, 0 },
	{ "above the most", "3-10", 0, 9, -ERANGE, 0, 0 },
	{ "the wrong way round", "7-4", 0, 9, -ERANGE, 0, 0 },
	{ "nothing", "", 0, 9, -EINVAL, 0, 0 },
	{ "no first", "-4", 0, 9, -EINVAL, 0, 0 },
	{ "no last", "4-", 0, 9, -EINVAL, 0, 0 },
	{ "two dashes", "4--7", 0, 9, -EINVAL, 0, 0 },
	{ "three numbers", "1-2-3", 0, 9, -EINVAL, 0, 0 },
	{ "a blank", "4 -7", 0, 9, -EINVAL, 0, 0 },
	{ "ten digits", "4294967295", 0, UINT32_MAX, 0, UINT32_MAX, UINT32_MAX },
	{ "eleven digits", "00000000001", 0, 9, -EINVAL, 0, 0 },
};

static void test_range(void **state)
{
	const struct range_row *row = *state;
	struct range r;

	assert_int_equal(
		range_parse(row->text, strlen(row->text), row->min, row->max, &r), row->rc);
	if (row->rc < 0)
		return;
	assert_true(r.first == row->first && r.last == row->last);
}

/* Only its bytes count, whatever follows them. */
static void test_part(void **state)
{
	struct range r;

	(void)state;
	assert_int_equal(range_parse("4-71:3", 3, 0, 9, &r), 0);
	assert_true(r.first == 4 && r.last == 7);
	assert_int_equal(range_parse("4-7", 1, 0, 9, &r), 0);
	assert_true(r.first == 4 && r.last == 4);
}

static const struct list_row {
	const char *says;
	const char *text;
	bool good;
	const char *has; /* '1' where the list has the rank of that place */
	uint64_t last;
} lists[] = {
	{ "one rank", "2", true, "0010", 2 },
	{ "ranks and ranges", "0,2-3", true, "101100", 3 },
	{ "in any order", "5,0-1", true, "1100010", 5 },
	{ "ranges that overlap", "0-3,2-4", true, "111110", 4 },
	{ "an empty entry", "0,,1", false, "", 0 },
	{ "a comma at the end", "0,", false, "", 0 },
	{ "nothing", "", false, "", 0 },
	{ "a blank", "0, 1", false, "", 0 },
	{ "a word", "all", false, "", 0 },
	{ "an open range", "1-", false, "", 0 },
	{ "the highest rank there can be", "0-2147483647", true, "1", 2147483647 },
	{ "above any rank", "2147483648", false, "", 0 },
	{ "... at a range's end", "0-2147483648", false, "", 0 },
};

static void test_list(void **state)
{
	const struct list_row *row = *state;

	assert_true((ranks_check(row->text) == 0) == row->good);
	for (unsigned i = 0; row->has[i]; i++)
		assert_true(ranks_contain(row->text, i) == (row->has[i] == '1'));
	if (row->good)
		assert_true(ranks_last(row->text) == row->last);
}

TESTS(lists_ranks)
{
	static struct suite s;

	SUITE_ROWS(&s, test_range, ranges);
	suite_add(&s, "a part of a text", test_part, NULL, NULL);
	SUITE_ROWS(&s, test_list, lists);
	return suite_run(&s);
}
