/* run_attempt.c - one attempt on this node, from its first worker to what the job hears of its end;
 * see run_parts.h */
#include "daemon/workers/run_parts.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "common/failure.h"
#include "daemon/store/joined.h"
#include "daemon/workers/cgroup.h"
#include "daemon/workers/guard.h"
#include "daemon/workers/testimony.h"
#include "daemon/workers/tree.h"
#include "daemon/workers/worker.h"

static void on_max_runtime(uv_timer_t *t)
{
	struct run *r = t->data;

	run_stop_everywhere(r,
		&(struct stop){
			.attempt = r->attempt.number,
			.urgency = URGENCY_STOP,
			.signal = SIGTERM,
			.grace_ms = r->plan->grace_ms,
			.cause = run_cause(r, CAUSE_MAX_RUNTIME),
		});
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

	if (r->state != RUN_WORKING || r->pool.state != POOL_RUNNING)
		return;
	copy_outcomes(r);
	r->in->on->on_unfinished(r->in->owner, r->outcomes, r->plan->start_count);
}

static void on_worker_ended(struct pool *p, const struct worker *w)
{
	struct run *r = p->owner;

	run_tell_worker(r, &w->outcome);
	if (p->culprit == w)
		member_failed(&r->member, &w->outcome);
	if (r->in->on->on_unfinished && r->plan->unfinished_note_ms > 0 && p->alive > 0 &&
		ending_is_success(&w->outcome.end) &&
		(p->state == POOL_STARTING || p->state == POOL_RUNNING) &&
		!uv_is_active((uv_handle_t *)&r->unfinished))
		(void)uv_timer_start(&r->unfinished, on_unfinished, r->plan->unfinished_note_ms, 0);
}

static void on_worker_started(struct pool *p, const struct worker *w)
{
	run_tell_worker(p->owner, &w->outcome);
}

/* A worker's failure, or the end of the grace; requests come by run_stop_here(). */
static void on_stopping(struct pool *p)
{
	const struct run *r = p->owner;
	struct stop s = {
		.urgency = p->state == POOL_KILLING ? URGENCY_KILL : URGENCY_STOP,
		.signal = SIGTERM,
		.cause = p->cause,
	};

	if (p->culprit && s.cause.kind == CAUSE_FAILURE)
		s.cause.node = r->plan->node_rank;
	run_tell_stop(r, &s);
}

/* Tells the job how this node's part of the attempt has ended. */
static void tell_end(struct run *r)
{
	struct testimony said[TESTIMONIES_MAX];
	struct result *own = &r->end->own;
	struct failure unread = { 0 };
	struct node_end end = {
		.attempt = r->attempt.number,
		.cause = own->cause,
		.outcomes = r->outcomes,
		.count = r->plan->start_count,
		.left = own->left,
		.left_killed = own->left_killed,
		.survivor_count = own->survivor_count,
		.started_ns = own->started_ns,
		.ended_ns = own->ended_ns,
	};
	size_t count = testimony_collect(
		r->plan, &r->attempt, r->outcomes, end.count, &r->end->memory, said, &unread);

	r->end->own_culprit = (struct testimony){ .record = NULL };
	for (size_t i = 0; i < count; i++)
		if (own->culprit && said[i].rank == own->culprit->rank)
			r->end->own_culprit = said[i];
	if (unread.code != 0)
		r->in->on->say(r->in->owner, true, unread.text);
	memcpy(end.survivors, own->survivors, sizeof end.survivors);
	r->state = RUN_WAITING;
	member_ended(&r->member, &end, said, count);
}

static void on_pool_ended(struct pool *p)
{
	struct run *r = p->owner;
	struct result *own = &r->end->own;

	(void)uv_timer_stop(&r->unfinished);
	(void)uv_timer_stop(&r->joining);
	copy_outcomes(r);
	own->culprit = p->culprit ? &r->outcomes[p->culprit - p->workers] : NULL;
	own->cause = p->cause;
	own->ended_ns = uv_hrtime();
	own->left = p->left.nobodys.count;
	own->left_killed = p->left.nobodys.forced;
	pool_done(p);
	(void)tree_end_all(NULL, own->survivors, &own->survivor_count);
	for (unsigned i = 0; i < own->survivor_count && i < SURVIVORS_MAX; i++)
		own->survivors[i].node = r->plan->node_rank;
	tell_end(r);
}

/* Looks which workers have joined the store; later ones are looked for less often. */
static void on_joining(uv_timer_t *t)
{
	struct run *r = t->data;
	unsigned count = r->plan->start_count, *missing, missing_count = 0;
	struct arena scratch = { 0 };
	pid_t *pids = arena_alloc(&scratch, count * sizeof *pids);
	bool *joined = arena_alloc(&scratch, count * sizeof *joined);

	missing = arena_alloc(&scratch, count * sizeof *missing);
	for (unsigned i = 0; pids && i < count; i++)
		pids[i] = r->pool.workers[i].outcome.pid;
	if (!arena_failed(&scratch) && r->state == RUN_WORKING && r->pool.state == POOL_RUNNING &&
		joined_look(pids, count, r->plan->master_addr, r->store_port, joined) == 0) {
		for (unsigned i = 0; i < count; i++)
			if (!joined[i] && worker_is_alive(&r->pool.workers[i]))
				missing[missing_count++] = r->pool.workers[i].outcome.rank;
		if (missing_count > 0 || r->said_missing)
			member_waiting(&r->member, r->attempt.number, missing, missing_count);
		r->said_missing = missing_count > 0;
		if (missing_count > 0)
			(void)uv_timer_start(t, on_joining, r->joining_ms *= 2, 0);
	}
	arena_done(&scratch);
}

/* Where this launcher's job hosts the store, it knows who is missing. */
static void watch_joining(struct run *r, unsigned port)
{
	enum { FIRST_MS = 30000 };

	r->said_missing = false;
	r->store_port = port;
	r->joining_ms = FIRST_MS;
	if (r->plan->store == STORE_AGENT)
		(void)uv_timer_start(&r->joining, on_joining, r->joining_ms, 0);
}

static void begin_result(struct run *r)
{
	struct timespec wall;

	(void)clock_gettime(CLOCK_REALTIME, &wall); /* can't fail */
	r->end->own = (struct result){
		.outcomes = r->outcomes,
		.count = r->plan->start_count,
		.started_ns = uv_hrtime(),
		.started_wall_ns = (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec,
	};
	uv_update_time(&r->loop);
	if (r->plan->max_runtime_ms > 0 && !r->timed)
		(void)uv_timer_start(&r->max_runtime, on_max_runtime, r->plan->max_runtime_ms, 0);
	r->timed = true;
}

/* There is no memory for the attempt: none of its workers was started. */
static void end_unstarted(struct run *r)
{
	for (unsigned i = 0; i < r->plan->start_count; i++) {
		struct worker_rank where = plan_rank(r->plan, r->plan->start_first + i);

		r->outcomes[i] = (struct outcome){
			.rank = where.rank,
			.local_rank = where.local_rank,
			.node = where.node_rank,
			.attempt = r->attempt.number,
			.end = { .how = ENDED_UNSTARTED, .value = ENOMEM },
			.ended_ns = uv_hrtime(),
		};
		run_tell_worker(r, &r->outcomes[i]);
	}
	r->end->own.culprit = &r->outcomes[0];
	r->end->own.cause = run_cause(r, CAUSE_FAILURE);
	r->end->own.ended_ns = uv_hrtime();
	pool_done(&r->pool);
	tell_end(r);
}

void run_start_attempt(struct run *r, unsigned number, unsigned master_port)
{
	arena_done(&r->end->memory);
	r->attempt.number = number;
	r->attempt.run_dir = r->in->run_dir;
	r->attempt.master_port = arena_printf(&r->end->memory, "%u", master_port);
	r->urgency = URGENCY_NONE;
	r->state = RUN_WORKING;
	begin_result(r);
	run_tell_attempt(r, master_port);
	(void)cgroup_leaf_enter(
		&r->in->guard->leaf); /* killing the attempt before needed it empty */
	if (arena_failed(&r->end->memory) ||
		pool_init(&r->pool, &r->loop, r->plan, &r->attempt, r->why) < 0) {
		end_unstarted(r);
		return;
	}
	r->pool.owner = r;
	r->pool.leaf = &r->in->guard->leaf;
	r->pool.oom = &r->in->guard->oom;
	r->pool.on_ended = on_pool_ended;
	r->pool.on_worker_ended = on_worker_ended;
	if (run_tells(r)) {
		r->pool.on_worker_started = on_worker_started;
		r->pool.on_stopping = on_stopping;
	}
	if (pool_start(&r->pool, &r->attempt, r->in->heritage, r->why) < 0) {
		end_unstarted(r);
		return;
	}
	watch_joining(r, master_port);
	/* one that could not be started has not ended in the loop */
	if (r->pool.culprit && r->pool.culprit->outcome.end.how == ENDED_UNSTARTED)
		member_failed(&r->member, &r->pool.culprit->outcome);
	if (r->in->on->on_started && !r->pool.culprit) {
		copy_outcomes(r);
		r->in->on->on_started(r->in->owner, r->outcomes, r->plan->start_count);
	}
}
