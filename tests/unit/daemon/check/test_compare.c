/* test_compare.c - who is not as the others are. */
#include "tests/unit/unit.h"

#include "daemon/check/compare.h"
#include "daemon/check/phase.h"

enum { NODES = 5 };

/* What is said of each node: NULL: nothing. */
static void assert_said(const struct charges *c, const char *const *texts, enum health health)
{
	size_t seen = 0;

	for (unsigned i = 0; i < NODES; i++) {
		if (!texts[i])
			continue;
		assert_true(seen < c->count);
		assert_int_equal(c->at[seen].node, i);
		assert_int_equal(c->at[seen].finding.health, health);
		assert_string_equal(c->at[seen].finding.text, texts[i]);
		seen++;
	}
	assert_int_equal(c->count, seen);
	assert_false(c->failed);
}

#define DIFFER "the nodes differ, and no value is that of more than half of them"

static const struct value_row {
	const char *says, *values[NODES];
	enum health health;
	const char *texts[NODES];
} values[] = {
	{ "all are alike", { "1", "1", "1", "1", "1" }, HEALTH_GOOD, { NULL } },
	{ "nothing is known", { NULL }, HEALTH_GOOD, { NULL } },
	{ "one is known", { NULL, "1" }, HEALTH_GOOD, { NULL } },
	{ "one is odd", { "1", "1", "2", "1", "1" }, HEALTH_BAD,
		{ NULL, NULL, "2, but 4 of 5 nodes have 1" } },
	{ "the first is odd", { "2", "1", "1" }, HEALTH_BAD, { "2, but 2 of 3 nodes have 1" } },
	{ "two are, each in its way", { "2", "1", "1", "3", "1" }, HEALTH_BAD,
		{ "2, but 3 of 5 nodes have 1", NULL, NULL, "3, but 3 of 5 nodes have 1" } },
	{ "a node that says nothing does not count", { "1", NULL, "1", NULL, "2" }, HEALTH_BAD,
		{ NULL, NULL, NULL, NULL, "2, but 2 of 3 nodes have 1" } },
	{ "two that differ", { "1", "2" }, HEALTH_UNKNOWN, { DIFFER, DIFFER } },
	{ "half is not most", { "1", "1", "2", "2" }, HEALTH_UNKNOWN,
		{ DIFFER, DIFFER, DIFFER, DIFFER } },
};

static void test_values(void **state)
{
	const struct value_row *row = *state;
	struct charges c = { 0 };

	compare_values("driver_version", row->values, NODES, &c);
	assert_said(&c, row->texts, row->health);
	for (size_t i = 0; i < c.count; i++)
		assert_string_equal(c.at[i].finding.check, "driver_version");
	charges_done(&c);
}

#define S(s) ((int64_t)((s)*1e6))
#define AT(s) \
	{ \
		true, S(s), 5000 \
	}
#define NO_MOST "the nodes' clocks differ, and no more than half of them agree"

static const struct clock_row {
	const char *says;
	struct compared_clock clocks[NODES];
	enum health health;
	const char *texts[NODES];
} clocks[] = {
	{ "all agree", { AT(0), AT(0.9), AT(-0.09), AT(0), AT(0) }, HEALTH_GOOD, { NULL } },
	{ "nothing is known", { { false, 0, 0 } }, HEALTH_GOOD, { NULL } },
	{ "one clock is none", { AT(7) }, HEALTH_GOOD, { NULL } },
	{ "one is ahead", { AT(0), AT(0), AT(90), AT(0), AT(0) }, HEALTH_BAD,
		{ NULL, NULL, "its clock is 90.000 s ahead of the other nodes'" } },
	{ "node rank 0 is behind", { AT(0), AT(2.5), AT(2.5) }, HEALTH_BAD,
		{ "its clock is 2.500 s behind the other nodes'" } },
	{ "it may be the measurement", { AT(0), AT(0), { true, S(3), 2000001 } }, HEALTH_GOOD,
		{ NULL } },
	{ "two that differ", { AT(0), AT(5) }, HEALTH_UNKNOWN, { NO_MOST, NO_MOST } },
	{ "all differ", { AT(0), AT(5), AT(10) }, HEALTH_UNKNOWN, { NO_MOST, NO_MOST, NO_MOST } },
};

static void test_clocks(void **state)
{
	const struct clock_row *row = *state;
	struct charges c = { 0 };

	compare_clocks(row->clocks, NODES, 1000000, &c);
	assert_said(&c, row->texts, row->health);
	charges_done(&c);
}

TESTS(compare)
{
	static struct suite s;

	SUITE_ROWS(&s, test_values, values);
	SUITE_ROWS(&s, test_clocks, clocks);
	return suite_run(&s);
}
