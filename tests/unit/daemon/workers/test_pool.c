/* test_pool.c - the pool's states; what it does in them is shown with real processes, in
 * tests/process. */
#include "tests/unit/unit.h"

#include "common/failure.h"
#include "daemon/plan/plan.h"
#include "daemon/workers/pool.h"
#include "daemon/workers/worker.h"

static void test_edges(void **state)
{
	(void)state;
	assert_life(&pool_life,
		(const char *const[]){ "starting: running stopping lingering ended",
			"running: stopping killing lingering ended",
			"stopping: killing lingering ended", "killing: ended", "lingering: ended",
			"ended:", NULL });
}

/* What is reported of a worker that is never started, too. */
static void test_who(void **state)
{
	const struct plan plan = { .nnodes = 2,
		.node_rank = 1,
		.nproc = 4,
		.first_rank = 8,
		.world_size = 12,
		.start_first = 1,
		.start_count = 2 };
	const struct attempt attempt = { .number = 3 };
	struct failure why = { 0 };
	struct pool p;

	(void)state;
	assert_int_equal(pool_init(&p, NULL, &plan, &attempt, &why), 0);
	for (unsigned i = 0; i < 2; i++) {
		const struct outcome *o = &p.workers[i].outcome;

		assert_int_equal(o->rank, 9 + i);
		assert_int_equal(o->local_rank, 1 + i);
		assert_int_equal(o->node, 1);
		assert_int_equal(o->attempt, 3);
		assert_int_equal(o->pid, 0);
	}
	pool_done(&p);
}

int main(void)
{
	static struct suite s;

	suite_add(&s, "its workers are numbered before any is started", test_who, NULL, NULL);
	suite_add(&s, "its states follow one another as the table has it", test_edges, NULL, NULL);
	return suite_run(&s);
}
