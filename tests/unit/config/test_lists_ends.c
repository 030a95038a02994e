/* test_lists_ends.c - lists of exit codes and signals, as --restart-on has them. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>

#include "config/lists.h"

static const struct check_row {
	const char *says, *list;
	int rc;
} checks[] = {
	{ "one exit code", "1", 0 },
	{ "the highest exit code", "255", 0 },
	{ "an exit code too high", "256", -EINVAL },
	{ "exit code 0 is no failure", "0", -EINVAL },
	{ "a range", "64-77", 0 },
	{ "a range from 0", "0-77", -EINVAL },
	{ "a range the wrong way round", "77-64", -EINVAL },
	{ "a range without an end", "64-", -EINVAL },
	{ "a range without a begin", "-77", -EINVAL },
	{ "three numbers", "1-2-3", -EINVAL },
	{ "a signal", "SIGSEGV", 0 },
	{ "a signal without SIG", "segv", 0 },
	{ "a real-time signal", "RTMIN+3", 0 },
	{ "no signal", "SIGNOTHING", -EINVAL },
	{ "a range of signals", "SIGSEGV-SIGBUS", -EINVAL },
	{ "all of them, and blanks", "1, 64-77 ,SIGSEGV", 0 },
	{ "an empty entry", "1,,2", -EINVAL },
	{ "a comma too many", "1,", -EINVAL },
	{ "nothing", "", -EINVAL },
	{ "a number with a sign", "+1", -EINVAL },
	{ "a number of many digits", "00000000000001", -EINVAL },
};

static void test_check(void **state)
{
	const struct check_row *row = *state;

	assert_int_equal(ends_check(row->list), row->rc);
}

static const struct contain_row {
	const char *says, *list;
	bool is_signal;
	int value;
	bool there;
} contains[] = {
	{ "the code itself", "77", false, 77, true },
	{ "another code", "77", false, 78, false },
	{ "the first of a range", "64-77", false, 64, true },
	{ "the last of a range", "64-77", false, 77, true },
	{ "below a range", "64-77", false, 63, false },
	{ "behind other entries", "SIGTERM,1,64-77", false, 70, true },
	{ "the signal", "1,SIGSEGV", true, SIGSEGV, true },
	{ "another signal", "1,SIGSEGV", true, SIGBUS, false },
	{ "a number is no signal", "11", true, 11, false },
	{ "a signal is no exit code", "SIGSEGV", false, SIGSEGV, false },
	{ "a shell's code of a signal is an exit code", "SIGSEGV", false, 139, false },
};

static void test_contain(void **state)
{
	const struct contain_row *row = *state;

	assert_int_equal(ends_contain(row->list, row->is_signal, row->value), row->there);
}

static const struct overlap_row {
	const char *says, *one, *other;
	bool there, is_signal;
	int value;
} overlaps[] = {
	{ "nothing in common", "1-10,SIGSEGV", "64-77,SIGBUS,11", false, false, 0 },
	{ "a code", "1,77", "77", true, false, 77 },
	{ "a code in a range", "77", "64-80", true, false, 77 },
	{ "the first code of two ranges", "10-20", "15-30", true, false, 15 },
	{ "a signal", "1,segv", "SIGSEGV", true, true, SIGSEGV },
};

static void test_overlap(void **state)
{
	const struct overlap_row *row = *state;
	bool is_signal = false;
	int value = 0;

	assert_int_equal(ends_overlap(row->one, row->other, &is_signal, &value), row->there);
	assert_int_equal(is_signal, row->is_signal);
	assert_int_equal(value, row->value);
}

TESTS(lists_ends)
{
	static struct suite s;

	SUITE_ROWS(&s, test_check, checks);
	SUITE_ROWS(&s, test_contain, contains);
	SUITE_ROWS(&s, test_overlap, overlaps);
	return suite_run(&s);
}
