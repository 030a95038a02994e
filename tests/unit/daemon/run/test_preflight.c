/* test_preflight.c - the states of the check before an attempt; what it does in them is shown with
 * real processes, in tests/process. */
#include "tests/unit/unit.h"

#include "daemon/run/preflight.h"

static void test_edges(void **state)
{
	(void)state;
	assert_life(&preflight_life,
		(const char *const[]){ "idle: asking", "asking: waiting judging ending",
			"waiting: asking judging ending", "judging: asking ending", "ending: idle",
			NULL });
}

TESTS(preflight)
{
	static struct suite s;

	suite_add(&s, "its states follow one another as the table has it", test_edges, NULL, NULL);
	return suite_run(&s);
}
