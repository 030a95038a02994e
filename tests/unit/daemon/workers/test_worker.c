/* test_worker.c - a worker's life: every edge, and the ones that must not be. */
#include "tests/unit/unit.h"

#include "daemon/workers/worker.h"

static void test_edges(void **state)
{
	(void)state;
	assert_life(&worker_life,
		(const char *const[]){ "planned: running ended", "running: stopping killing ended",
			"stopping: killing ended", "killing: ended", "ended:", NULL });
}

static void test_alive(void **state)
{
	static const bool alive[WORKER_STATES] = {
		[WORKER_RUNNING] = true, [WORKER_STOPPING] = true, [WORKER_KILLING] = true
	};

	(void)state;
	for (int at = 0; at < WORKER_STATES; at++) {
		struct worker w = { .state = (enum worker_state)at };

		assert_int_equal(worker_is_alive(&w), alive[at]);
	}
}

/* Signals to a worker that does not run would go to pid 0: our own group. */
static void test_no_signal(void **state)
{
	struct worker w;

	(void)state;
	worker_init(&w);
	assert_int_equal(w.state, WORKER_PLANNED);
	assert_int_equal(w.pidfd, -1);
	worker_stop(&w, 15, SCOPE_WORKER);
	worker_signal(&w, 15, SCOPE_WORKER);
	worker_kill(&w);
	assert_int_equal(w.state, WORKER_PLANNED);
	assert_int_equal(w.outcome.asked, ASKED_NOTHING);
	w.state = WORKER_ENDED;
	worker_kill(&w);
	assert_int_equal(w.state, WORKER_ENDED);
}

TESTS(worker)
{
	static struct suite s;

	suite_add(&s, "its states follow one another as the table has it", test_edges, NULL, NULL);
	suite_add(&s, "alive is what runs, is asked or is killed", test_alive, NULL, NULL);
	suite_add(&s, "nothing is sent to a worker that does not run", test_no_signal, NULL, NULL);
	return suite_run(&s);
}
