/* test_pool.c - the pool's states, and its life around one worker's; all else that it does is shown
 * in tests/process. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "common/failure.h"
#include "daemon/os/process.h"
#include "daemon/plan/plan.h"
#include "daemon/workers/cgroup.h"
#include "daemon/workers/oom.h"
#include "daemon/workers/pool.h"
#include "daemon/workers/worker.h"

static void test_edges(void **state)
{
	(void)state;
	assert_life(&pool_life,
		(const char *const[]){ "starting: running holding stopping lingering ended",
			"running: holding stopping killing lingering ended",
			"holding: stopping killing lingering ended",
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

/* Workers of one attempt, and what is told of them. */
static struct played {
	uv_loop_t loop;
	struct pool pool;
	unsigned started, ended, failed, pools_ended;
} played;

static void on_worker_started(struct pool *p, const struct worker *w)
{
	assert_ptr_equal(w, &p->workers[played.started]);
	played.started++;
}

static void on_worker_ended(struct pool *p, const struct worker *w)
{
	(void)p, (void)w;
	played.ended++;
}

static void on_failed(struct pool *p)
{
	assert_non_null(p->culprit);
	assert_int_equal(p->cause.kind, CAUSE_FAILURE);
	played.failed++;
}

/* The last that happens: who frees the pool now has nothing of it in the loop. */
static void on_ended(struct pool *p)
{
	assert_int_equal(p->state, POOL_ENDED);
	assert_int_equal(p->handles, 0);
	assert_false(uv_loop_alive(&played.loop));
	played.pools_ended++;
}

static const struct life_row {
	const char *says, *program; /* NULL: the probe, which exits */
	const char *code;
	unsigned nnodes, workers, started, ended;
	struct ending end; /* of the first */
	enum cause_kind cause;
} lives[] = {
	{ "workers that end with 0 are no failure", NULL, "0", 1, 2, 2, 2, { .how = ENDED_EXIT },
		CAUSE_NONE },
	{ "one that ends with anything else is the failure", NULL, "3", 1, 1, 1, 1,
		{ .how = ENDED_EXIT, .value = 3 }, CAUSE_FAILURE },
	{ "one that can't be started is the failure, and no more are tried", "/nowhere/launchd",
		"0", 1, 2, 1, 0, { .how = ENDED_UNSTARTED, .value = ENOENT }, CAUSE_FAILURE },
	{ "of several nodes, deaths have their times", "/nowhere/launchd", "0", 2, 2, 1, 0,
		{ .how = ENDED_UNSTARTED, .value = ENOENT }, CAUSE_FAILURE },
};

static void test_life(void **state)
{
	const struct life_row *row = *state;
	static const char *const env[] = { "A=b", NULL };
	const char *words[] = { "exit", row->code };
	const struct vec args = { .at = words, .count = 2 };
	const struct plan plan = {
		.nproc = row->workers,
		.nnodes = row->nnodes,
		.world_size = row->workers * row->nnodes,
		.start_count = row->workers,
		.program = row->program ? row->program : getenv("LAUNCHD_PROBE"),
		.script = "probe",
		.args = &args,
		.use_env = true,
		.run_id = "run",
		.role = "trainer",
		.master_addr = "h",
		.env = env,
	};
	const struct attempt attempt = { .master_port = "1", .run_dir = "/nowhere/run" };
	struct inherited inherited = { .nofile_raised = false };
	struct cgroup_leaf leaf = CGROUP_LEAF_NONE;
	struct oom_watch oom = OOM_NONE;
	struct failure why = { 0 };
	struct pool *p = &played.pool;

	played = (struct played){ .started = 0 };
	sigemptyset(&inherited.ignored);
	assert_int_equal(uv_loop_init(&played.loop), 0);
	assert_int_equal(pool_init(p, &played.loop, &plan, &attempt, &why), 0);
	p->leaf = &leaf;
	p->oom = &oom;
	p->on_worker_started = on_worker_started;
	p->on_worker_ended = on_worker_ended;
	p->on_failed = on_failed;
	p->on_ended = on_ended;
	assert_int_equal(pool_start(p, &attempt, &inherited, &why), 0);
	(void)uv_run(&played.loop, UV_RUN_DEFAULT);
	assert_int_equal(played.pools_ended, 1);
	assert_int_equal(played.failed, row->ended > 0 && row->cause == CAUSE_FAILURE);
	assert_int_equal(played.started, row->started);
	assert_int_equal(played.ended, row->ended);
	assert_int_equal(p->workers[0].outcome.end.how, row->end.how);
	assert_int_equal(p->workers[0].outcome.end.value, row->end.value);
	assert_int_equal(p->cause.kind, row->cause);
	assert_ptr_equal(p->culprit, row->cause == CAUSE_FAILURE ? &p->workers[0] : NULL);
	pool_done(p);
	assert_int_equal(uv_loop_close(&played.loop), 0);
}

/* Neither may leave anything in the loop: the next attempt has the same pool. */
static const struct outright_row {
	const char *says;
	bool no_cgroup, no_descriptors;
	int rc;
} outrights[] = {
	{ "the attempt's cgroup can't be made", true, false, -EBADF },
	{ "no descriptor is left to see deaths with", false, true, -EMFILE },
};

static void test_outright(void **state)
{
	const struct outright_row *row = *state;
	const struct plan plan = { .nproc = 1,
		.nnodes = 2, /* deaths have their times */
		.world_size = 2,
		.start_count = 1,
		.limits = { .pids = row->no_cgroup ? 8 : 0 } };
	const struct attempt attempt = { .run_dir = "/nowhere/run" };
	const struct inherited inherited = { .nofile_raised = false };
	struct cgroup_leaf leaf = CGROUP_LEAF_NONE;
	struct rlimit before, none;
	struct pool *p = &played.pool;

	if (row->no_cgroup)
		leaf.path = "/nowhere";
	assert_int_equal(uv_loop_init(&played.loop), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	for (int i = 0; i < 2; i++) {
		struct failure why = { 0 };
		int rc;

		assert_int_equal(pool_init(p, &played.loop, &plan, &attempt, &why), 0);
		p->leaf = &leaf;
		if (row->no_descriptors)
			assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
		rc = pool_start(p, &attempt, &inherited, &why);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		assert_int_equal(rc, row->rc);
		pool_done(p);
	}
	assert_int_equal(uv_loop_close(&played.loop), 0);
}

TESTS(pool)
{
	static struct suite s;

	suite_add(&s, "its workers are numbered before any is started", test_who, NULL, NULL);
	suite_add(&s, "its states follow one another as the table has it", test_edges, NULL, NULL);
	SUITE_ROWS(&s, test_life, lives);
	SUITE_ROWS(&s, test_outright, outrights);
	return suite_run(&s);
}
