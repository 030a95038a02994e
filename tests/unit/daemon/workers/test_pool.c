/* test_pool.c - the states of all workers together: every edge, and the ones that must not be. */
#include "tests/unit/unit.h"

#include "daemon/workers/pool.h"

#define TO(s) (1u << POOL_##s)

static const struct edge_row {
	const char *says;
	enum pool_state from;
	unsigned to;
} rows[] = {
	{ "starting: all run, one can't be started, or none could", POOL_STARTING,
		TO(RUNNING) | TO(STOPPING) | TO(LINGERING) | TO(ENDED) },
	{ "running: the others are asked or killed, or all ended, with or without leftovers",
		POOL_RUNNING, TO(STOPPING) | TO(KILLING) | TO(LINGERING) | TO(ENDED) },
	{ "stopping: the grace is over, or all ended, with or without leftovers", POOL_STOPPING,
		TO(KILLING) | TO(LINGERING) | TO(ENDED) },
	{ "killing: all ended, and no leftover has a grace", POOL_KILLING, TO(ENDED) },
	{ "lingering: the last leftover has ended", POOL_LINGERING, TO(ENDED) },
	{ "ended: for good", POOL_ENDED, 0 },
};

static void test_edges(void **state)
{
	const struct edge_row *row = *state;

	for (int to = 0; to < POOL_STATES; to++)
		assert_int_equal(pool_may_go(row->from, (enum pool_state)to), (row->to >> to) & 1);
}

int main(void)
{
	static struct suite s;

	SUITE_ROWS(&s, test_edges, rows);
	return suite_run(&s);
}
