/* test_pool.c - the pool's states; what it does in them is shown with real processes, in
 * tests/process. */
#include "tests/unit/unit.h"

#include "daemon/workers/pool.h"

static void test_edges(void **state)
{
	(void)state;
	assert_life(&pool_life,
		(const char *const[]){ "starting: running stopping lingering ended",
			"running: stopping killing lingering ended",
			"stopping: killing lingering ended", "killing: ended", "lingering: ended",
			"ended:", NULL });
}

int main(void)
{
	static struct suite s;

	suite_add(&s, "its states follow one another as the table has it", test_edges, NULL, NULL);
	return suite_run(&s);
}
