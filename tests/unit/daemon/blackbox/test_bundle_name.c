/* test_bundle_name.c - what failures are called, and which of them are to go. */
#include "tests/unit/unit.h"

#include <string.h>

#include "daemon/blackbox/bundle_name.h"

#define JOB_MS UINT64_C(1795692153123) /* 2026-11-26 11:22:33.123 UTC */

static const struct name_row {
	const char *says;
	struct bundle_name name;
	const char *text;
} names[] = {
	{ "an attempt's end", { JOB_MS, 0, 0 }, "failure-20261126T112233.123Z-attempt-0" },
	{ "a later attempt", { JOB_MS, 12, 0 }, "failure-20261126T112233.123Z-attempt-12" },
	{ "one that goes on", { JOB_MS, 1, 3 }, "failure-20261126T112233.123Z-attempt-1-look-3" },
	{ "a job that has no time", { 0, 0, 0 }, "failure-19700101T000000.000Z-attempt-0" },
};

static void test_name(void **state)
{
	const struct name_row *row = *state;
	char text[BUNDLE_NAME_SIZE];
	struct bundle_name back;

	bundle_name_write(&row->name, text);
	assert_string_equal(text, row->text);
	assert_true(bundle_name_read(text, &back));
	assert_int_equal(bundle_name_compare(&back, &row->name), 0);
}

static const struct foreign_row {
	const char *says, *text;
} foreign[] = {
	{ "no name at all", "" },
	{ "a directory of the user's", "failure-analysis" },
	{ "more behind it", "failure-20261126T112233.123Z-attempt-0.bak" },
	{ "a look without a number", "failure-20261126T112233.123Z-attempt-0-look-" },
	{ "the look 0, which there is none of", "failure-20261126T112233.123Z-attempt-0-look-0" },
	{ "a number with a zero before it", "failure-20261126T112233.123Z-attempt-00" },
	{ "a month that is none", "failure-20261326T112233.123Z-attempt-0" },
	{ "a negative attempt", "failure-20261126T112233.123Z-attempt--1" },
	{ "a blank", "failure-20261126T112233.123Z-attempt- 1" },
	{ "a path", "../failure-20261126T112233.123Z-attempt-0" },
	{ "a very long one",
		"failure-20261126T112233.123Z-attempt-0000000000000000000000000000000000000000000"
		"0000000000000000000000" },
};

static void test_foreign(void **state)
{
	const struct foreign_row *row = *state;
	struct bundle_name back = { 7, 7, 7 };

	assert_false(bundle_name_read(row->text, &back));
	assert_int_equal(back.attempt, 7);
}

/* By time, then by attempt; an attempt's end is later than what was taken while it went on. */
static void test_who_goes(void **state)
{
	const struct bundle_name sorted[] = { { 1, 0, 0 }, { 1, 1, 1 }, { 1, 1, 2 }, { 1, 1, 0 },
		{ 2, 0, 0 } };
	enum { COUNT = 5 };

	(void)state;
	for (size_t keep = 1; keep <= COUNT + 1; keep++) {
		struct bundle_name list[COUNT] = { sorted[3], sorted[0], sorted[4], sorted[2],
			sorted[1] };
		size_t go = bundle_names_to_go(list, COUNT, keep, &sorted[4]);

		assert_int_equal(go, keep < COUNT ? COUNT - keep : 0);
		for (size_t i = 0; i < go; i++)
			assert_int_equal(bundle_name_compare(&list[i], &sorted[i]), 0);
	}
}

/* Clocks may go back: what was just written is not the first to go. */
static void test_mine_stays(void **state)
{
	const struct bundle_name mine = { 1, 0, 0 };
	struct bundle_name list[] = { { 2, 0, 0 }, { 3, 0, 0 }, { 1, 0, 0 } };

	(void)state;
	assert_int_equal(bundle_names_to_go(list, 3, 1, &mine), 2);
	assert_int_equal(list[0].job_ms, 2);
	assert_int_equal(list[1].job_ms, 3);
}

TESTS(bundle_name)
{
	static struct suite s;

	SUITE_ROWS(&s, test_name, names);
	SUITE_ROWS(&s, test_foreign, foreign);
	suite_add(
		&s, "the oldest go, and as many as there are too many", test_who_goes, NULL, NULL);
	suite_add(&s, "one's own stays, however old it looks", test_mine_stays, NULL, NULL);
	return suite_run(&s);
}
