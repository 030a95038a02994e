/* test_natural.c - the order in which people count names. */
#include "tests/unit/unit.h"

#include "common/natural.h"

static const struct order_row {
	const char *says, *a, *b;
	int order;
} rows[] = {
	{ "numbers by their size", "node2", "node10", -1 },
	{ "letters before numbers decide", "a10", "b2", -1 },
	{ "letters behind numbers decide", "n1a", "n1b", -1 },
	{ "the second number", "r1n2", "r1n10", -1 },
	{ "the first number before the second", "r2n1", "r10n0", -1 },
	{ "the same", "node2", "node2", 0 },
	{ "nothing and nothing", "", "", 0 },
	{ "nothing before something", "", "a", -1 },
	{ "a name before its continuation", "node", "node1", -1 },
	{ "zeros in front don't count", "n007", "n8", -1 },
	{ "unless all else is the same", "n1", "n01", -1 },
	{ "which what follows decides before", "n01a", "n1b", -1 },
	{ "numbers beyond any type", "n99999999999999999999998", "n99999999999999999999999", -1 },
	{ "a number and a longer one", "n9", "n99999999999999999999999", -1 },
	{ "a number of zeros", "n0", "n00", -1 },
	{ "addresses", "10.0.0.9", "10.0.0.10", -1 },
	{ "bytes above 127 come last", "nz", "n\xc3\xa4", -1 },
	{ "a digit and a letter", "n1", "na", -1 },
};

static int sign(int n)
{
	return (n > 0) - (n < 0);
}

static void test_order(void **state)
{
	const struct order_row *row = *state;

	assert_int_equal(sign(natural_compare(row->a, row->b)), row->order);
	assert_int_equal(sign(natural_compare(row->b, row->a)), -row->order);
}

TESTS(natural)
{
	static struct suite s;

	SUITE_ROWS(&s, test_order, rows);
	return suite_run(&s);
}
