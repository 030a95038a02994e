/* run.c - see run.h */
#include "daemon/workers/run.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "daemon/plan/plan.h"
#include "daemon/workers/child.h"
#include "daemon/workers/guard.h"
#include "daemon/workers/lifeline.h"
#include "daemon/workers/place.h"
#include "daemon/workers/pool.h"
#include "daemon/workers/procfs.h"
#include "daemon/workers/signals.h"
#include "daemon/workers/spawn.h"
#include "daemon/workers/tree.h"
#include "daemon/workers/worker.h"

struct run {
	const struct run_input *in;
	const struct plan *plan;
	uv_loop_t loop;
	struct signals signals;
	struct lifeline lifeline;
	struct pool pool;
	struct attempt attempt;
	uv_timer_t max_runtime, unfinished;
	unsigned asked_to_end[WAYS]; /* how often, by each way */
	struct outcome *outcomes;    /* made before the first worker; copied from the pool's */
	int port_fd;                 /* keeps the attempt's port; -1: the port was given */
	uint64_t started_ns;
	int64_t started_wall_ns;
};

/* A request that comes by both ways is one: a batch system signals every process of a job. */
static unsigned count_request(struct run *r, enum signal_way way)
{
	enum signal_way other = way == WAY_GUARD ? WAY_DIRECT : WAY_GUARD;

	return ++r->asked_to_end[way] > r->asked_to_end[other] ? r->asked_to_end[way] : 0;
}

static struct cause cause_of_signal(const struct relayed *got)
{
	struct cause c = { .kind = CAUSE_SIGNAL, .signal = got->signal, .at_ns = uv_hrtime() };

	c.sender.kernel = got->code > 0; /* SI_KERNEL: the terminal; see sigaction(2) */
	c.sender.pid = c.sender.kernel ? 0 : got->pid;
	c.sender.uid = got->uid;
	process_command(c.sender.pid, c.sender.command);
	return c;
}

static void on_request(struct run *r, const struct relayed *got, enum signal_way way)
{
	const struct reaction *reaction = &r->plan->reactions.of[got->signal];
	const struct cause cause = cause_of_signal(got);
	unsigned request = count_request(r, way);

	if (request >= 3) {
		pool_kill(&r->pool, &cause);
	} else if (request > 0) {
		pool_stop(&r->pool, &cause, reaction->kind == REACTION_STOP ? SIGTERM : got->signal,
			reaction->grace_ms);
		if (request == 2)
			pool_hurry(&r->pool, reaction->grace_ms);
	}
}

static void on_signal(struct signals *s, const struct relayed *got, enum signal_way way)
{
	struct run *r = s->owner;

	lifeline_signalled(&r->lifeline, got->signal);
	switch (r->plan->reactions.of[got->signal].kind) {
	case REACTION_NONE:
	case REACTION_IGNORE:
		return;
	case REACTION_FORWARD:
		pool_forward(&r->pool, got->signal);
		return;
	case REACTION_SUSPEND:
		pool_suspend(&r->pool);
		return;
	case REACTION_RESUME:
		pool_resume(&r->pool);
		return;
	case REACTION_END:
	case REACTION_STOP:
		on_request(r, got, way);
		return;
	}
}

static void on_child(struct signals *s)
{
	struct run *r = s->owner;

	pool_on_child(&r->pool);
}

static void kill_for(struct run *r, enum cause_kind kind)
{
	pool_kill(&r->pool, &(struct cause){ .kind = kind, .at_ns = uv_hrtime() });
}

static void on_guard_gone(struct signals *s)
{
	struct run *r = s->owner;

	r->in->guard->gone = true;
	kill_for(r, CAUSE_GUARD);
}

/* A guard that is stopped would never learn that its work is done. */
static void on_lifeline_lost(struct lifeline *l, enum cause_kind kind)
{
	struct run *r = l->owner;

	if (getppid() == r->in->guard->guard)
		(void)kill(r->in->guard->guard, SIGCONT);
	kill_for(r, kind);
}

static void on_max_runtime(uv_timer_t *t)
{
	struct run *r = t->data;

	pool_stop(&r->pool, &(struct cause){ .kind = CAUSE_MAX_RUNTIME, .at_ns = uv_hrtime() },
		SIGTERM, r->plan->grace_ms);
}

/* What the workers have come to, for those who outlive the pool. */
static void copy_outcomes(struct run *r)
{
	for (unsigned i = 0; i < r->plan->start_count; i++) {
		const struct worker *w = &r->pool.workers[i];

		r->outcomes[i] = w->outcome;
		r->outcomes[i].left = w->left.count;
		r->outcomes[i].left_killed = w->left.forced;
	}
}

static void on_unfinished(uv_timer_t *t)
{
	struct run *r = t->data;

	if (r->pool.state != POOL_RUNNING)
		return;
	copy_outcomes(r);
	r->in->on_unfinished(r->in->owner, r->outcomes, r->plan->start_count);
}

static void on_worker_ended(struct pool *p, const struct worker *w)
{
	struct run *r = p->owner;

	if (r->in->on_unfinished && r->plan->unfinished_note_ms > 0 && p->alive > 0 &&
		ending_is_success(&w->outcome.end) &&
		(p->state == POOL_STARTING || p->state == POOL_RUNNING) &&
		!uv_is_active((uv_handle_t *)&r->unfinished))
		(void)uv_timer_start(&r->unfinished, on_unfinished, r->plan->unfinished_note_ms, 0);
}

static void close_all(struct run *r)
{
	signals_stop(&r->signals);
	lifeline_stop(&r->lifeline);
	uv_close((uv_handle_t *)&r->max_runtime, NULL);
	uv_close((uv_handle_t *)&r->unfinished, NULL);
}

static void on_pool_ended(struct pool *p)
{
	close_all(p->owner);
}

/* The attempt's number and port. */
static int attempt_make(struct run *r, struct failure *why)
{
	unsigned port = r->plan->master_port;

	if (port == 0 && port_reserve(&r->port_fd, &port, why) < 0)
		return why->code;
	r->attempt.run_dir = r->in->run_dir;
	r->attempt.master_port = arena_printf(r->in->arena, "%u", port);
	return arena_failed(r->in->arena) ? failure_oom(why) : 0;
}

/* One descriptor a worker, and a few of our own: said before the first start, not at the last. */
static int check_descriptors(const struct plan *plan, struct failure *why)
{
	enum { OUR_OWN = 32 };
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= plan->start_count + OUR_OWN)
		return 0;
	return failure_set(why, -EMFILE,
		"%u workers need %u open files, but the limit is %llu (ulimit -Hn)",
		plan->start_count, plan->start_count + OUR_OWN, (unsigned long long)limit.rlim_cur);
}

/* All that the first worker needs. */
static int prepare(struct run *r, struct failure *why)
{
	int rc = check_descriptors(r->plan, why);

	r->outcomes = arena_alloc(r->in->arena, r->plan->start_count * sizeof *r->outcomes);
	if (rc == 0 && !r->outcomes)
		rc = failure_oom(why);
	if (rc == 0)
		rc = attempt_make(r, why);
	if (rc == 0)
		rc = pool_init(&r->pool, &r->loop, r->plan, &r->attempt, why);
	if (rc < 0)
		return rc;
	rc = spawn_seal_descriptors();
	if (rc < 0)
		return failure_set(why, rc, "can't close inherited files: %s", strerror(-rc));
	r->pool.owner = r;
	r->pool.leaf = &r->in->guard->leaf;
	r->pool.oom = &r->in->guard->oom;
	r->pool.on_ended = on_pool_ended;
	r->pool.on_worker_ended = on_worker_ended;
	return 0;
}

/* What the run listens to beside its workers. On failure the handles are closing. */
static int listen_to(struct run *r, struct failure *why)
{
	int rc;

	(void)uv_timer_init(&r->loop, &r->max_runtime); /* can't fail */
	(void)uv_timer_init(&r->loop, &r->unfinished);
	r->max_runtime.data = r->unfinished.data = r;
	r->signals.owner = r->lifeline.owner = r;
	r->signals.on_signal = on_signal;
	r->signals.on_child = on_child;
	r->signals.on_guard_gone = on_guard_gone;
	r->lifeline.on_lost = on_lifeline_lost;
	rc = signals_start(&r->signals, &r->loop, &r->plan->reactions, &r->in->heritage->ignored,
		fd_take(&r->in->guard->relay), why);
	if (rc == 0 && r->plan->lifeline_mark)
		rc = lifeline_start(&r->lifeline, &r->loop, r->in->guard->parent,
			r->plan->lifeline_mark, r->plan->env, why);
	if (rc == 0)
		rc = prepare(r, why);
	if (rc < 0)
		close_all(r);
	return rc;
}

static void note_start(struct run *r)
{
	struct timespec wall;

	(void)clock_gettime(CLOCK_REALTIME, &wall); /* can't fail */
	r->started_wall_ns = (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec;
	r->started_ns = uv_hrtime();
	uv_update_time(&r->loop);
	if (r->plan->max_runtime_ms > 0)
		(void)uv_timer_start(&r->max_runtime, on_max_runtime, r->plan->max_runtime_ms, 0);
}

/* Starts everything in the loop and runs it empty. */
static int drive(struct run *r, struct failure *why)
{
	int rc = listen_to(r, why);

	if (rc == 0) {
		note_start(r);
		rc = pool_start(&r->pool, &r->attempt, r->in->heritage, why);
		if (rc < 0)
			close_all(r);
	}
	if (rc == 0 && r->in->on_started && !r->pool.culprit) {
		copy_outcomes(r);
		r->in->on_started(r->in->owner, r->outcomes, r->plan->start_count);
	}
	(void)uv_run(&r->loop, UV_RUN_DEFAULT); /* returns when no handle is left */
	return rc;
}

static void make_result(struct run *r, struct result *ret)
{
	const struct worker *culprit = r->pool.culprit;

	copy_outcomes(r);
	*ret = (struct result){
		.outcomes = r->outcomes,
		.count = r->plan->start_count,
		.culprit = culprit ? &r->outcomes[culprit - r->pool.workers] : NULL,
		.cause = r->pool.cause,
		.started_ns = r->started_ns,
		.ended_ns = uv_hrtime(),
		.started_wall_ns = r->started_wall_ns,
		.left = r->pool.left.nobodys.count,
		.left_killed = r->pool.left.nobodys.forced,
	};
}

int run_plan(const struct run_input *in, struct result *ret, struct failure *why)
{
	struct run r = { .in = in, .plan = in->plan, .port_fd = -1 };
	int rc = uv_loop_init(&r.loop);

	if (rc < 0)
		return failure_set(why, rc, "uv_loop_init: %s", uv_strerror(rc));
	rc = drive(&r, why);
	if (rc == 0) {
		make_result(&r, ret);
		(void)tree_end_all(NULL, ret->survivors, &ret->survivor_count);
	}
	pool_done(&r.pool);
	fd_closep(&r.port_fd);
	if (uv_loop_close(&r.loop) < 0 && rc == 0)
		rc = failure_set(why, -EBUSY, "the event loop is not empty: please report this");
	return rc;
}
