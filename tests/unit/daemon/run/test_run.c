/* test_run.c - the run's states; what it does in them is shown with real processes, in
 * tests/process. */
#include "tests/unit/unit.h"

#include "daemon/run/state.h"

static void test_edges(void **state)
{
	(void)state;
	assert_life(&run_life,
		(const char *const[]){ "meeting: opening over", "opening: checking working waiting",
			"checking: working waiting", "working: draining waiting",
			"draining: waiting", "waiting: opening over", "over:", NULL });
}

TESTS(run)
{
	static struct suite s;

	suite_add(&s, "its states follow one another as the table has it", test_edges, NULL, NULL);
	return suite_run(&s);
}
