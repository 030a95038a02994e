/* test_num.c - strict numbers. */
#include "tests/unit/unit.h"

#include <errno.h>

#include "common/num.h"

static const uint64_t UNTOUCHED = 4711;

static const struct number_row {
	const char *says, *text;
	uint64_t min, max;
	int rc;
	uint64_t n;
} numbers[] = {
	{ "zero", "0", 0, 10, 0, 0 },
	{ "leading zeros count for nothing", "0007", 0, 10, 0, 7 },
	{ "the least", "3", 3, 10, 0, 3 },
	{ "the most", "10", 3, 10, 0, 10 },
	{ "one too few", "2", 3, 10, -ERANGE, 0 },
	{ "one too many", "11", 3, 10, -ERANGE, 0 },
	{ "the largest number of all", "18446744073709551615", 0, UINT64_MAX, 0, UINT64_MAX },
	{ "one more than the largest", "18446744073709551616", 0, UINT64_MAX, -ERANGE, 0 },
	{ "far more than the largest", "99999999999999999999999", 0, UINT64_MAX, -ERANGE, 0 },
	{ "nothing", "", 0, 10, -EINVAL, 0 },
	{ "a sign", "+1", 0, 10, -EINVAL, 0 },
	{ "a negative number", "-1", 0, 10, -EINVAL, 0 },
	{ "a blank before", " 1", 0, 10, -EINVAL, 0 },
	{ "a blank behind", "1 ", 0, 10, -EINVAL, 0 },
	{ "a newline behind", "1\n", 0, 10, -EINVAL, 0 },
	{ "letters behind", "12abc", 0, 100, -EINVAL, 0 },
	{ "hexadecimal", "0x1", 0, 10, -EINVAL, 0 },
	{ "a fraction", "1.0", 0, 10, -EINVAL, 0 },
	{ "digits of another script", "\xd9\xa3", 0, 10, -EINVAL, 0 },
};

static void test_number(void **state)
{
	const struct number_row *row = *state;
	uint64_t n = UNTOUCHED;

	assert_int_equal(num_parse(row->text, row->min, row->max, &n), row->rc);
	assert_true(n == (row->rc == 0 ? row->n : UNTOUCHED));
}

static const struct seconds_row {
	const char *says, *text;
	int rc;
	uint64_t ms;
} seconds[] = {
	{ "whole seconds", "30", 0, 30000 },
	{ "none", "0", 0, 0 },
	{ "a tenth", "0.5", 0, 500 },
	{ "a hundredth", "0.05", 0, 50 },
	{ "a thousandth", "1.001", 0, 1001 },
	{ "trailing zeros", "1.500", 0, 1500 },
	{ "the most", "100", 0, 100000 },
	{ "the most, with decimals", "100.000", 0, 100000 },
	{ "a little over the most", "100.001", -ERANGE, 0 },
	{ "over the most", "101", -ERANGE, 0 },
	{ "a number with more digits than any", "111111111111111111111111111", -EINVAL, 0 },
	{ "more than an unsigned holds", "99999999999999999999", -ERANGE, 0 },
	{ "finer than a millisecond", "1.0001", -EINVAL, 0 },
	{ "no digit behind the point", "1.", -EINVAL, 0 },
	{ "no digit before the point", ".5", -EINVAL, 0 },
	{ "two points", "1.2.3", -EINVAL, 0 },
	{ "a sign", "-1", -EINVAL, 0 },
	{ "seconds by name", "30s", 0, 30000 },
	{ "milliseconds", "500ms", 0, 500 },
	{ "minutes", "1m", 0, 60000 },
	{ "minutes by their longer name", "1min", 0, 60000 },
	{ "a part of an hour", "0.025h", 0, 90000 },
	{ "a part of a day", "0.001d", 0, 86400 },
	{ "more hours than the most", "1h", -ERANGE, 0 },
	{ "a part too much", "1.667m", -ERANGE, 0 },
	{ "finer than a millisecond, by its unit", "1.5ms", -EINVAL, 0 },
	{ "a unit that is none", "1w", -EINVAL, 0 },
	{ "a unit in capitals", "1M", -EINVAL, 0 },
	{ "a unit alone", "s", -EINVAL, 0 },
	{ "two units", "1m30s", 0, 90000 },
	{ "three units, with decimals", "1m10.5s250ms", 0, 70750 },
	{ "two units that are too much together", "1m41s", -ERANGE, 0 },
	{ "a shorter unit before a longer one", "30s1m", -EINVAL, 0 },
	{ "a unit twice", "10s10s", -EINVAL, 0 },
	{ "a unit twice, by two names", "1m1min", -EINVAL, 0 },
	{ "a number without a unit behind one with it", "1m30", -EINVAL, 0 },
	{ "a number with a unit behind one without", "1.5.5s", -EINVAL, 0 },
	{ "a blank between two", "1m 30s", -EINVAL, 0 },
	{ "a sign between two", "1m-30s", -EINVAL, 0 },
	{ "two units as one", "1ms", 0, 1 },
	{ "letters of units in no order", "1sm", -EINVAL, 0 },
	{ "a blank before the unit", "1 s", -EINVAL, 0 },
	{ "an exponent", "1e2", -EINVAL, 0 },
	{ "a comma", "0,5", -EINVAL, 0 },
	{ "nothing", "", -EINVAL, 0 },
};

static void test_seconds(void **state)
{
	const struct seconds_row *row = *state;
	uint64_t ms = UNTOUCHED;

	assert_int_equal(num_parse_seconds(row->text, 100, &ms), row->rc);
	assert_true(ms == (row->rc == 0 ? row->ms : UNTOUCHED));
}

static const struct print_row {
	const char *says;
	uint64_t ms;
	const char *text;
} prints[] = {
	{ "printed: whole seconds", 30000, "30" },
	{ "printed: none", 0, "0" },
	{ "printed: a half", 2500, "2.5" },
	{ "printed: a hundredth", 10, "0.01" },
	{ "printed: a quarter", 250, "0.25" },
	{ "printed: a thousandth", 1001, "1.001" },
	{ "printed: zeros within", 60050, "60.05" },
	{ "printed: the most", UINT64_MAX, "18446744073709551.615" },
};

static void test_print(void **state)
{
	const struct print_row *row = *state;
	struct num_text printed = num_seconds(row->ms);
	uint64_t ms;

	assert_string_equal(printed.text, row->text);
	assert_int_equal(num_parse_seconds(printed.text, UINT64_MAX / 1000, &ms),
		row->ms == UINT64_MAX ? -ERANGE : 0);
	assert_true(row->ms == UINT64_MAX || ms == row->ms);
}

static const struct size_row {
	const char *says;
	uint64_t bytes;
	const char *text;
} sizes[] = {
	{ "none", 0, "0 bytes" },
	{ "one", 1, "1 byte" },
	{ "below all units", 1023, "1023 bytes" },
	{ "a whole unit", UINT64_C(2) << 30, "2 GiB" },
	{ "half of one", UINT64_C(3) << 29, "1.5 GiB" },
	{ "a third is rounded", 1365, "1.333 KiB" },
	{ "a bit less is no less", (UINT64_C(2) << 30) - 1, "1.999 GiB" },
	{ "the largest unit", UINT64_C(1) << 60, "1 EiB" },
};

static void test_size(void **state)
{
	const struct size_row *row = *state;

	assert_string_equal(num_size(row->bytes).text, row->text);
}

TESTS(num)
{
	static struct suite s;

	SUITE_ROWS(&s, test_number, numbers);
	SUITE_ROWS(&s, test_seconds, seconds);
	SUITE_ROWS(&s, test_print, prints);
	SUITE_ROWS(&s, test_size, sizes);
	return suite_run(&s);
}
