/* test_utc.c - moments of the wall clock. */
#include "tests/unit/unit.h"

#include <time.h>

#include "common/utc.h"

static const struct row {
	const char *says;
	int64_t wall_ns;
	unsigned digits;
	const char *text;
} rows[] = {
	{ "the epoch", 0, 0, "1970-01-01T00:00:00Z" },
	{ "milliseconds", 1763705999345678901, 3, "2025-11-21T06:19:59.345Z" },
	{ "microseconds", 1763705999345678901, 6, "2025-11-21T06:19:59.345678Z" },
	{ "nanoseconds", 1763705999345678901, 9, "2025-11-21T06:19:59.345678901Z" },
	{ "no more digits than there are", 1, 12, "1970-01-01T00:00:00.000000001Z" },
	{ "leading zeros", 1000, 6, "1970-01-01T00:00:00.000001Z" },
	{ "cut, not rounded", 1999999999, 3, "1970-01-01T00:00:01.999Z" },
	{ "a leap day", 1709164800000000000, 0, "2024-02-29T00:00:00Z" },
	{ "before 1970", -1, 3, "1969-12-31T23:59:59.999Z" },
	{ "a whole second before", -1000000000, 3, "1969-12-31T23:59:59.000Z" },
	{ "the last one", INT64_MAX, 3, "2262-04-11T23:47:16.854Z" },
};

static void test_row(void **state)
{
	const struct row *row = *state;
	char got[UTC_SIZE];

	utc_write(got, row->wall_ns, row->digits);
	assert_string_equal(got, row->text);
}

static void test_now(void **state)
{
	time_t before = time(NULL);
	int64_t now_ns = utc_now_ns();

	(void)state;
	/* time() may be a tick behind */
	assert_in_range(now_ns / 1000000000, before, time(NULL) + 1);
}

TESTS(utc)
{
	static struct suite s;

	SUITE_ROWS(&s, test_row, rows);
	suite_add(&s, "now", test_now, NULL, NULL);
	return suite_run(&s);
}
