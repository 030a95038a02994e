/* run.c - see run.h */
#include "daemon/workers/run.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <uv.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "daemon/plan/plan.h"
#include "daemon/workers/child.h"
#include "daemon/workers/place.h"
#include "daemon/workers/pool.h"
#include "daemon/workers/signals.h"
#include "daemon/workers/spawn.h"
#include "daemon/workers/worker.h"

struct run {
	const struct plan *plan;
	uv_loop_t loop;
	struct signals signals;
	struct pool pool;
	struct attempt attempt;
	struct outcome *outcomes; /* made before the first worker; copied from the pool's */
	int port_fd;              /* keeps the attempt's port; -1: the port was given */
};

static void on_signal(struct signals *s, int signal, enum signal_action action, pid_t sender)
{
	struct run *r = s->owner;

	(void)sender;
	if (action == SIGNAL_END)
		pool_end(&r->pool, signal);
	else
		pool_forward(&r->pool, signal);
}

static void on_pool_ended(struct pool *p)
{
	struct run *r = p->owner;

	signals_stop(&r->signals);
}

/* The attempt's number, port and files. */
static int attempt_make(struct run *r, struct arena *arena, struct failure *why)
{
	unsigned port = r->plan->master_port;
	int rc = 0;

	if (port == 0)
		rc = port_reserve(&r->port_fd, &port, why);
	if (rc == 0)
		rc = run_dir_make(r->plan->env, arena, &r->attempt.run_dir, why);
	if (rc < 0)
		return rc;
	r->attempt.master_port = arena_printf(arena, "%u", port);
	return arena_failed(arena) ? failure_oom(why) : 0;
}

static void attempt_done(struct run *r, struct failure *why)
{
	int rc = r->attempt.run_dir ? run_dir_remove(r->attempt.run_dir) : 0;

	if (rc < 0)
		(void)failure_set(
			why, -EIO, "%s: can't be removed: %s", r->attempt.run_dir, strerror(-rc));
	fd_closep(&r->port_fd);
}

/* What the workers have come to, for those who outlive the pool. */
static void copy_outcomes(struct run *r)
{
	for (unsigned i = 0; i < r->plan->nproc; i++)
		r->outcomes[i] = r->pool.workers[i].outcome;
}

static struct result result_of(const struct run *r)
{
	const struct worker *first = r->pool.first_failure;

	return (struct result){
		.outcomes = r->outcomes,
		.count = r->plan->nproc,
		.culprit = first ? &r->outcomes[first->outcome.local_rank] : NULL,
		.cause = { .kind = first         ? CAUSE_FAILURE :
				r->pool.ended_by ? CAUSE_SIGNAL :
						   CAUSE_NONE,
			.signal = r->pool.ended_by },
	};
}

/* One descriptor a worker, and a few of our own: said before the first start, not at the last. */
static int check_descriptors(const struct plan *plan, struct failure *why)
{
	enum { OUR_OWN = 32 };
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= plan->nproc + OUR_OWN)
		return 0;
	return failure_set(why, -EMFILE,
		"%u workers need %u open files, but the limit is %llu (ulimit -Hn)", plan->nproc,
		plan->nproc + OUR_OWN, (unsigned long long)limit.rlim_cur);
}

/* All that the first worker needs. */
static int prepare(struct run *r, struct arena *arena, struct failure *why)
{
	int rc = check_descriptors(r->plan, why);

	r->outcomes = arena_alloc(arena, r->plan->nproc * sizeof *r->outcomes);
	if (rc == 0 && !r->outcomes)
		rc = failure_oom(why);
	if (rc == 0)
		rc = attempt_make(r, arena, why);
	if (rc == 0)
		rc = pool_init(&r->pool, &r->loop, r->plan, &r->attempt, why);
	if (rc < 0)
		return rc;
	rc = spawn_seal_descriptors();
	if (rc < 0)
		return failure_set(why, rc, "can't close inherited files: %s", strerror(-rc));
	r->pool.owner = r;
	r->pool.on_ended = on_pool_ended;
	return 0;
}

/* Starts everything in the loop and runs it empty. */
static int drive(struct run *r, const struct heritage *heritage, struct arena *arena,
	void (*started)(const struct outcome *, size_t), struct failure *why)
{
	int rc;

	/* first of all: a signal that comes from here on must not leave files or workers behind */
	r->signals.owner = r;
	r->signals.on_signal = on_signal;
	rc = signals_start(&r->signals, &r->loop, &heritage->ignored, why);
	if (rc < 0)
		return rc;
	rc = prepare(r, arena, why);
	if (rc == 0)
		rc = pool_start(&r->pool, &r->attempt, heritage, why);
	if (rc < 0) {
		signals_stop(&r->signals);
	} else if (started && !r->pool.first_failure) {
		copy_outcomes(r);
		started(r->outcomes, r->plan->nproc);
	}
	(void)uv_run(&r->loop, UV_RUN_DEFAULT); /* returns when no handle is left */
	if (rc == 0)
		copy_outcomes(r);
	return rc;
}

int run_plan(const struct plan *plan, const struct heritage *heritage, struct arena *arena,
	void (*started)(const struct outcome *outcomes, size_t count), struct result *ret,
	struct failure *why)
{
	struct run r = { .plan = plan, .port_fd = -1 };
	int rc = uv_loop_init(&r.loop);

	if (rc < 0)
		return failure_set(why, rc, "uv_loop_init: %s", uv_strerror(rc));
	rc = drive(&r, heritage, arena, started, why);
	if (rc == 0)
		*ret = result_of(&r);
	pool_done(&r.pool);
	attempt_done(&r, why);
	signals_release();
	if (uv_loop_close(&r.loop) < 0 && rc == 0)
		rc = failure_set(why, -EBUSY, "the event loop is not empty: please report this");
	return rc;
}
