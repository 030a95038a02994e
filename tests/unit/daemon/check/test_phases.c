/* test_phases.c - which phases a check has. */
#include "tests/unit/unit.h"

#include "common/text.h"
#include "daemon/check/phase.h"
#include "daemon/check/phases.h"

static const struct row {
	const char *says;
	enum preflight_mode mode;
	bool restart, gate;
	const char *names;
} rows[] = {
	{ "none", PREFLIGHT_NONE, false, false, "" },
	{ "none before a restart", PREFLIGHT_NONE, true, false, "" },
	{ "the gate alone before a restart", PREFLIGHT_NONE, true, true, "gate" },
	{ "quick", PREFLIGHT_QUICK, false, false, "quick" },
	{ "quick before a restart", PREFLIGHT_QUICK, true, false, "quick" },
	{ "the gate after quick", PREFLIGHT_QUICK, true, true, "quick, gate" },
	{ "links", PREFLIGHT_LINKS, false, false, "quick, links" },
	{ "quick of links before a restart", PREFLIGHT_LINKS, true, false, "quick" },
	{ "gpu", PREFLIGHT_GPU, false, false, "quick, gpu" },
	{ "quick of gpu before a restart", PREFLIGHT_GPU, true, false, "quick" },
	{ "full", PREFLIGHT_FULL, false, false, "quick, links, gpu" },
	{ "quick of full before a restart", PREFLIGHT_FULL, true, false, "quick" },
};

static void test_wanted(void **state)
{
	const struct row *row = *state;
	struct text t = { 0 };

	phases_add(&t, row->restart ? phases_again(row->mode, row->gate) : phases_first(row->mode));
	assert_string_equal(text_string(&t), row->names);
	text_done(&t);
}

static void test_table(void **state)
{
	(void)state;
	for (unsigned i = 0; i < PHASE_IDS; i++) {
		assert_non_null(phases[i]->measure);
		assert_non_null(phases[i]->judge);
		assert_true(phases[i]->limit_ms > 0 || phases[i]->strict);
	}
}

TESTS(phases)
{
	static struct suite s;

	SUITE_ROWS(&s, test_wanted, rows);
	suite_add(&s, "every phase is whole", test_table, NULL, NULL);
	return suite_run(&s);
}
