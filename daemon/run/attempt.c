/* attempt.c - one attempt on this node, from its first worker to what the job hears of its end;
 * see run_parts.h */
#include "daemon/run/run_parts.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "common/failure.h"
#include "daemon/os/procfs.h"
#include "daemon/run/watch/joined.h"
#include "daemon/workers/cgroup.h"
#include "daemon/workers/evidence_reader.h"
#include "daemon/workers/guard.h"
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
	bus_emit(r->in->bus,
		&(struct event){
			.kind = EVENT_UNFINISHED,
			.unfinished = { r->outcomes, r->plan->start_count },
		});
}

static void tell_worker(const struct run *r, const struct outcome *o)
{
	bool ended = o->end.how != ENDED_NONE;

	bus_emit(r->in->bus,
		&(struct event){
			.kind = ended ? EVENT_WORKER_ENDED : EVENT_WORKER_STARTED,
			.at_ns = ended ? o->ended_ns : o->started_ns,
			.worker = o,
		});
}

static void on_worker_ended(struct pool *p, const struct worker *w)
{
	struct run *r = p->owner;

	tell_worker(r, &w->outcome);
	if (p->culprit == w) {
		run_know(r, &p->cause);
		member_failed(&r->member, &w->outcome);
	}
	if (r->plan->unfinished_note_ms > 0 && p->alive > 0 && ending_is_success(&w->outcome.end) &&
		(p->state == POOL_STARTING || p->state == POOL_RUNNING) &&
		!uv_is_active((uv_handle_t *)&r->unfinished))
		(void)uv_timer_start(&r->unfinished, on_unfinished, r->plan->unfinished_note_ms, 0);
}

/* What the workers wrote last; NULL: nobody knows. */
static const struct left_words *words_of(struct run *r)
{
	unsigned count = r->plan->start_count;
	struct left_words *words = NULL;

	if (r->has_words)
		words = arena_alloc(&r->end->memory, count * sizeof *words);
	for (unsigned i = 0; words && i < count; i++)
		words[i] = *output_words(r->in->output, i);
	return words;
}

static void on_worker_started(struct pool *p, const struct worker *w)
{
	tell_worker(p->owner, &w->outcome);
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

	run_tell_stop(r, &s);
}

void run_tell_own(const struct run *r)
{
	if (r->state == RUN_WAITING && r->in->guard->gone && r->plan->node_rank == 0)
		bus_emit(r->in->bus, &(struct event){ .kind = EVENT_KILLED, .killed = r->end });
}

/* Where the job ends for a worker of this node: its whole story, and what it says of itself. */
static void know_culprit(struct run *r, const struct evidence *said, size_t count)
{
	struct result *own = &r->end->own;

	r->end->own_culprit = (struct evidence){ .record = NULL };
	for (size_t i = 0; i < own->count; i++)
		if (result_is_culprit(own, &own->outcomes[i]))
			own->cause.culprit = own->outcomes[i];
	for (size_t i = 0; i < count; i++)
		if (result_culprit(own) && said[i].rank == result_culprit(own)->rank)
			r->end->own_culprit = said[i];
}

/* Tells the job how this node's part of the attempt has ended. */
static void tell_end(struct run *r)
{
	struct evidence said[EVIDENCE_MAX];
	struct result *own = &r->end->own;
	struct failure unread = { 0 };
	struct node_end end = {
		.attempt = r->attempt.number,
		.outcomes = r->outcomes,
		.count = r->plan->start_count,
		.left = own->left,
		.left_killed = own->left_killed,
		.left_unknown = own->left_unknown,
		.survivor_count = own->survivor_count,
		.started_ns = own->started_ns,
		.ended_ns = own->ended_ns,
	};
	size_t count = evidence_collect(r->plan, &r->attempt, r->outcomes, words_of(r), end.count,
		&r->end->memory, said, &unread);

	know_culprit(r, said, count);
	end.cause = own->cause;
	if (unread.code != 0)
		bus_note(r->in->bus, NOTE_WARNING, unread.text);
	memcpy(end.survivors, own->survivors, sizeof end.survivors);
	r->state = RUN_WAITING;
	member_ended(&r->member, &end, said, count);
	run_tell_own(r);
}

/* All that they wrote is read, or a disk keeps the thread from telling. */
static void end_drained(struct run *r)
{
	if (r->state != RUN_DRAINING)
		return;
	(void)uv_timer_stop(&r->draining);
	tell_end(r);
}

static void on_draining_over(uv_timer_t *t)
{
	end_drained(t->data);
}

static void drain(struct run *r)
{
	enum { PATIENCE_MS = 3000 }; /* more than the thread takes, where nothing hangs */

	static_assert(POOL_UNKILLED_MS + TREE_PATIENCE_MS + PATIENCE_MS < STOP_REST_MS,
		"the other nodes wait that long");
	r->state = RUN_DRAINING;
	uv_update_time(&r->loop);
	(void)uv_timer_start(&r->draining, on_draining_over, PATIENCE_MS, 0);
	output_drain(r->in->output);
}

static void on_drained(void *owner)
{
	struct run *r = owner;

	r->has_words = r->has_words || r->state == RUN_DRAINING; /* else it is too late */
	end_drained(r);
}

static void on_reaped(void *owner, const siginfo_t *si)
{
	leftovers_reaped(owner, si);
}

static void on_pool_ended(struct pool *p)
{
	const struct mourner mourner = { on_reaped, &p->left };
	struct run *r = p->owner;
	struct result *own = &r->end->own;

	(void)uv_timer_stop(&r->unfinished);
	(void)uv_timer_stop(&r->joining);
	run_status_stop(r);
	own->ended_ns = uv_hrtime();
	(void)tree_end_all(NULL, &mourner, own->survivors, &own->survivor_count);
	copy_outcomes(r);
	own->cause = p->cause;
	own->left = p->left.nobodys.count;
	own->left_killed = p->left.nobodys.forced;
	own->left_unknown = proc_look() != PROC_OURS;
	pool_done(p);
	for (unsigned i = 0; i < own->survivor_count && i < SURVIVORS_MAX; i++)
		own->survivors[i].node = r->plan->node_rank;
	drain(r);
}

const bool *run_joined(const struct run *r, struct arena *arena)
{
	unsigned count = r->plan->start_count;
	pid_t *pids = arena_alloc(arena, count * sizeof *pids);
	bool *joined = arena_alloc(arena, count * sizeof *joined);

	if (!pids || !joined || r->state != RUN_WORKING || r->pool.state != POOL_RUNNING)
		return NULL;
	for (unsigned i = 0; i < count; i++)
		pids[i] = r->pool.workers[i].outcome.pid;
	return joined_look(pids, count, r->plan->master_addr, r->store_port, joined) == 0 ? joined :
											    NULL;
}

/* Looks which workers have joined the store; later ones are looked for less often. */
static void on_joining(uv_timer_t *t)
{
	struct run *r = t->data;
	unsigned count = r->plan->start_count, *missing, missing_count = 0;
	struct arena scratch = { 0 };
	const bool *joined = run_joined(r, &scratch);

	missing = arena_alloc(&scratch, count * sizeof *missing);
	if (joined && missing) {
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
static void watch_joining(struct run *r)
{
	enum { FIRST_MS = 30000 };

	r->said_missing = false;
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

/* What stands of each worker when none was started. */
static void set_unstarted(struct run *r, struct ending end)
{
	for (unsigned i = 0; i < r->plan->start_count; i++) {
		struct worker_rank where = plan_rank(r->plan, r->plan->start_first + i);

		r->outcomes[i] = (struct outcome){
			.rank = where.rank,
			.local_rank = where.local_rank,
			.node = where.node_rank,
			.attempt = r->attempt.number,
			.end = end,
			.ended_ns = ending_is_unstarted(&end) ? uv_hrtime() : 0,
		};
		tell_worker(r, &r->outcomes[i]);
	}
	r->end->own.ended_ns = uv_hrtime();
}

/* The attempt can't be: there is no memory, or no log file. */
static void fail_unstarted(struct run *r, int error)
{
	set_unstarted(r, (struct ending){ .how = ENDED_UNMADE, .value = error });
	r->end->own.cause = cause_of_failure(&r->outcomes[0]);
	member_failed(&r->member, &r->outcomes[0]);
	tell_end(r);
}

void run_end_unstarted(struct run *r, const struct cause *cause)
{
	set_unstarted(r, (struct ending){ .how = ENDED_NONE });
	r->end->own.cause = *cause;
	tell_end(r);
}

static int start_pool(struct run *r)
{
	int rc = pool_init(&r->pool, &r->loop, r->plan, &r->attempt, r->why);

	r->pool.owner = r;
	r->pool.leaf = &r->in->guard->leaf;
	r->pool.oom = &r->in->guard->oom;
	r->pool.output = r->in->output;
	r->pool.on_ended = on_pool_ended;
	r->pool.on_worker_ended = on_worker_ended;
	r->pool.on_worker_started = on_worker_started;
	r->pool.on_stopping = on_stopping;
	if (rc == 0)
		rc = pool_start(&r->pool, &r->attempt, r->in->inherited, r->why);
	if (rc < 0)
		pool_done(&r->pool);
	output_started(r->in->output);
	return rc;
}

static void start_workers(struct run *r)
{
	r->state = RUN_WORKING;
	(void)cgroup_leaf_enter(
		&r->in->guard->leaf); /* killing the attempt before needed it empty */
	if (start_pool(r) < 0) {
		fail_unstarted(r, ENOMEM);
		return;
	}
	watch_joining(r);
	run_status_start(r);
	/* one that could not be started has not ended in the loop */
	if (r->pool.culprit && ending_is_unstarted(&r->pool.culprit->outcome.end))
		member_failed(&r->member, &r->pool.culprit->outcome);
}

static void on_prepared(void *owner, int rc, const char *text)
{
	struct run *r = owner;

	if (r->state != RUN_OPENING)
		return; /* it was ended meanwhile */
	if (rc < 0) {
		(void)failure_set(r->why, rc, "%s", text);
		fail_unstarted(r, -rc);
		return;
	}
	r->attempt.log_dir = output_log_dir(r->in->output);
	run_status_watch(r);
	start_workers(r);
}

static void on_status_over(void *owner)
{
	run_status_stop(owner);
}

static void on_lines(void *owner)
{
	run_merge_lines(owner);
}

const struct output_events run_output_events = { on_prepared, on_drained, on_status_over,
	on_lines };

void run_start_attempt(struct run *r, unsigned number, unsigned master_port)
{
	arena_done(&r->end->memory);
	r->attempt = (struct attempt){ .number = number, .run_dir = r->in->run_dir };
	r->attempt.master_port = arena_printf(&r->end->memory, "%u", master_port);
	r->store_port = master_port;
	r->urgency = URGENCY_NONE;
	r->known = (struct cause){ .kind = CAUSE_NONE };
	if (r->shared)
		guard_foresee(r->in->guard, EXIT_NODE_LOST, true);
	r->has_words = false;
	r->state = RUN_OPENING;
	begin_result(r);
	bus_emit(r->in->bus,
		&(struct event){
			.kind = EVENT_ATTEMPT_STARTED,
			.at_ns = r->end->own.started_ns,
			.attempt_started = { number, r->plan->master_addr, master_port },
		});
	if (arena_failed(&r->end->memory)) {
		fail_unstarted(r, ENOMEM);
		return;
	}
	run_merge_start(r);
	output_prepare(r->in->output, r->plan, number);
}
