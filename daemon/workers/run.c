/* run.c - see run.h */
#include "daemon/workers/run.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "common/failure.h"
#include "common/fd.h"
#include "daemon/plan/plan.h"
#include "daemon/workers/cgroup.h"
#include "daemon/workers/child.h"
#include "daemon/workers/guard.h"
#include "daemon/workers/lifeline.h"
#include "daemon/workers/pool.h"
#include "daemon/workers/procfs.h"
#include "daemon/workers/signals.h"
#include "daemon/workers/spawn.h"
#include "daemon/workers/testimony.h"
#include "daemon/workers/tree.h"
#include "daemon/workers/worker.h"

enum run_state {
	RUN_MEETING,
	RUN_WORKING, /* an attempt's workers are there, or what they left behind */
	RUN_WAITING, /* ours have ended: for the others, for the next attempt */
	RUN_OVER,
};

struct run {
	const struct run_input *in;
	const struct plan *plan;
	struct run_end *end;
	struct failure *why;
	int rc; /* negative: there was no job */
	enum run_state state;
	uv_loop_t loop;
	struct signals signals;
	struct lifeline lifeline;
	struct member member;
	struct pool pool;
	struct attempt attempt;
	uv_timer_t max_runtime, unfinished;
	bool timed; /* --max-runtime counts from the first attempt */
	unsigned asked_to_end[WAYS]; /* how often, by each way */
	enum urgency urgency;        /* of the stop that workers have had */
	struct outcome *outcomes;    /* made before the first worker; copied from the pool's */
};

/* Carries a stop out here; one that is not more urgent than the one before changes nothing. */
static void stop_here(struct run *r, const struct stop *s)
{
	if (s->urgency <= r->urgency)
		return;
	r->urgency = s->urgency;
	if (r->state != RUN_WORKING)
		return;
	if (s->urgency == URGENCY_KILL) {
		pool_kill(&r->pool, &s->cause);
		return;
	}
	pool_stop(&r->pool, &s->cause, s->signal, s->grace_ms);
	if (s->urgency == URGENCY_HURRY)
		pool_hurry(&r->pool, s->grace_ms);
}

/* The same, and the other nodes hear of it. */
static void stop_everywhere(struct run *r, const struct stop *s)
{
	stop_here(r, s);
	if (r->state != RUN_OVER)
		member_asked(&r->member, s);
}

/* A request that comes by both ways is one: a batch system signals every process of a job. */
static unsigned count_request(struct run *r, enum signal_way way)
{
	enum signal_way other = way == WAY_GUARD ? WAY_DIRECT : WAY_GUARD;

	return ++r->asked_to_end[way] > r->asked_to_end[other] ? r->asked_to_end[way] : 0;
}

static struct cause cause_here(const struct run *r, enum cause_kind kind)
{
	return (struct cause){ .kind = kind, .at_ns = uv_hrtime(), .node = r->plan->node_rank };
}

static struct cause cause_of_signal(const struct run *r, const struct relayed *got)
{
	struct cause c = cause_here(r, CAUSE_SIGNAL);

	c.signal = got->signal;
	c.sender.kernel = got->code > 0; /* SI_KERNEL: the terminal; see sigaction(2) */
	c.sender.pid = c.sender.kernel ? 0 : got->pid;
	c.sender.uid = got->uid;
	process_command(c.sender.pid, c.sender.command);
	return c;
}

static void on_request(struct run *r, const struct relayed *got, enum signal_way way)
{
	const struct reaction *reaction = &r->plan->reactions.of[got->signal];
	unsigned request = count_request(r, way);

	if (request == 0)
		return;
	stop_everywhere(r,
		&(struct stop){
			.attempt = r->attempt.number,
			.urgency = request < URGENCY_KILL ? (enum urgency)request : URGENCY_KILL,
			.signal = reaction->kind == REACTION_STOP ? SIGTERM : got->signal,
			.grace_ms = reaction->grace_ms,
			.cause = cause_of_signal(r, got),
		});
}

static void forward(struct run *r, int signal)
{
	if (r->state == RUN_WORKING)
		pool_forward(&r->pool, signal);
	/* mpirun and srun hand a signal to all nodes by themselves */
	if (!r->plan->lifeline_mark && r->state != RUN_OVER)
		member_forward(&r->member, signal);
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
		forward(r, got->signal);
		return;
	case REACTION_SUSPEND:
		if (r->state == RUN_WORKING)
			pool_suspend(&r->pool);
		return;
	case REACTION_RESUME:
		if (r->state == RUN_WORKING)
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

	if (r->state == RUN_WORKING)
		pool_on_child(&r->pool);
}

/* This node's workers end at once, those of the others in good order. */
static void kill_for(struct run *r, enum cause_kind kind)
{
	struct stop s = {
		.attempt = r->attempt.number,
		.urgency = URGENCY_KILL,
		.signal = SIGTERM,
		.grace_ms = r->plan->grace_ms,
		.cause = cause_here(r, kind),
	};

	stop_here(r, &s);
	s.urgency = URGENCY_STOP;
	if (r->state != RUN_OVER)
		member_asked(&r->member, &s);
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

	stop_everywhere(r,
		&(struct stop){
			.attempt = r->attempt.number,
			.urgency = URGENCY_STOP,
			.signal = SIGTERM,
			.grace_ms = r->plan->grace_ms,
			.cause = cause_here(r, CAUSE_MAX_RUNTIME),
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

	if (p->culprit == w)
		member_failed(&r->member, &w->outcome);
	if (r->in->on->on_unfinished && r->plan->unfinished_note_ms > 0 && p->alive > 0 &&
		ending_is_success(&w->outcome.end) &&
		(p->state == POOL_STARTING || p->state == POOL_RUNNING) &&
		!uv_is_active((uv_handle_t *)&r->unfinished))
		(void)uv_timer_start(&r->unfinished, on_unfinished, r->plan->unfinished_note_ms, 0);
}

static void close_all(struct run *r)
{
	r->state = RUN_OVER;
	signals_stop(&r->signals);
	lifeline_stop(&r->lifeline);
	uv_close((uv_handle_t *)&r->max_runtime, NULL);
	uv_close((uv_handle_t *)&r->unfinished, NULL);
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
	size_t count = testimony_collect(r->plan, &r->attempt, r->outcomes, end.count,
		&r->end->memory, said, &unread);

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
	}
	r->end->own.culprit = &r->outcomes[0];
	r->end->own.cause = cause_here(r, CAUSE_FAILURE);
	r->end->own.ended_ns = uv_hrtime();
	pool_done(&r->pool);
	tell_end(r);
}

static void start_attempt(struct run *r, unsigned number, unsigned master_port)
{
	arena_done(&r->end->memory);
	r->attempt.number = number;
	r->attempt.run_dir = r->in->run_dir;
	r->attempt.master_port = arena_printf(&r->end->memory, "%u", master_port);
	r->urgency = URGENCY_NONE;
	r->state = RUN_WORKING;
	begin_result(r);
	(void)cgroup_leaf_enter(&r->in->guard->leaf); /* killing the attempt before needed it empty */
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
	if (pool_start(&r->pool, &r->attempt, r->in->heritage, r->why) < 0) {
		end_unstarted(r);
		return;
	}
	/* one that could not be started has not ended in the loop */
	if (r->pool.culprit && r->pool.culprit->outcome.end.how == ENDED_UNSTARTED)
		member_failed(&r->member, &r->pool.culprit->outcome);
	if (r->in->on->on_started && !r->pool.culprit) {
		copy_outcomes(r);
		r->in->on->on_started(r->in->owner, r->outcomes, r->plan->start_count);
	}
}

/* One descriptor a worker, and a few of our own: said before the first start, not at the last. */
static int check_descriptors(const struct plan *plan, struct failure *why)
{
	enum { OUR_OWN = 32 };
	const unsigned need = plan->start_count + OUR_OWN + plan->nnodes;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= need)
		return 0;
	return failure_set(why, -EMFILE,
		"%u workers on %u nodes need %u open files, but the limit is %llu (ulimit -Hn)",
		plan->start_count, plan->nnodes, need, (unsigned long long)limit.rlim_cur);
}

static int on_met(void *owner, const struct meeting *m, struct failure *why)
{
	struct run *r = owner;
	const struct plan *plan = r->in->on->on_met(r->in->owner, m, why);

	if (!plan || check_descriptors(plan, why) < 0)
		return why->code;
	r->outcomes = arena_alloc(r->in->arena, plan->start_count * sizeof *r->outcomes);
	if (!r->outcomes)
		return failure_oom(why);
	r->plan = r->end->plan = plan;
	start_attempt(r, 0, m->master_port);
	return 0;
}

static void on_stop(void *owner, const struct stop *s)
{
	stop_here(owner, s);
}

static void on_forward(void *owner, int signal)
{
	struct run *r = owner;

	if (r->state == RUN_WORKING)
		pool_forward(&r->pool, signal);
}

static void on_pause(void *owner, const struct job_end *end, uint64_t delay_ms)
{
	struct run *r = owner;

	r->in->on->on_pause(r->in->owner, end, delay_ms);
}

static void on_start(void *owner, unsigned attempt, unsigned master_port)
{
	start_attempt(owner, attempt, master_port);
}

static void on_over(void *owner, const struct job_end *end)
{
	struct run *r = owner;

	r->end->job = *end;
	if (end->result) {
		r->end->whole = *end->result;
		r->end->job.result = &r->end->whole;
	}
	close_all(r);
	member_close(&r->member);
}

static void on_failed(void *owner, int code, const char *text)
{
	struct run *r = owner;

	r->rc = failure_set(r->why, code, "%s", text);
	close_all(r);
	member_close(&r->member);
}

static void on_closed(void *owner)
{
	(void)owner; /* the loop is empty now, and ends */
}

static void on_say(void *owner, bool warning, const char *text)
{
	struct run *r = owner;

	r->in->on->say(r->in->owner, warning, text);
}

/* What the run listens to beside its workers. On failure the handles are closing. */
static int listen_to(struct run *r)
{
	static const struct member_events events = { on_met, on_stop, on_forward, on_pause,
		on_start, on_over, on_failed, on_closed, on_say };
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
		fd_take(&r->in->guard->relay), r->why);
	if (rc == 0 && r->plan->lifeline_mark)
		rc = lifeline_start(&r->lifeline, &r->loop, r->in->guard->parent,
			r->plan->lifeline_mark, r->plan->env, r->why);
	if (rc == 0)
		rc = spawn_seal_descriptors();
	if (rc < 0)
		(void)failure_set(
			r->why, rc, "can't close inherited files: %s", strerror(-rc));
	else
		rc = member_start(&r->member, &r->loop, r->in->member, &events, r, r->why);
	if (rc < 0)
		close_all(r);
	return rc;
}

int run_job(const struct run_input *in, struct run_end *ret, struct failure *why)
{
	struct run r = { .in = in, .plan = in->plan, .end = ret, .why = why };
	int rc = uv_loop_init(&r.loop);

	*ret = (struct run_end){ .plan = in->plan };
	if (rc < 0)
		return failure_set(why, rc, "uv_loop_init: %s", uv_strerror(rc));
	rc = listen_to(&r);
	(void)uv_run(&r.loop, UV_RUN_DEFAULT); /* returns when no handle is left */
	rc = rc < 0 ? rc : r.rc;
	if (uv_loop_close(&r.loop) < 0 && rc == 0)
		rc = failure_set(why, -EBUSY, "the event loop is not empty: please report this");
	return rc;
}

void run_end_done(struct run_end *end)
{
	arena_done(&end->memory);
}
