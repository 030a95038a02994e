/* attempt.c - see attempt.h */
#include "daemon/run/attempt.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "common/failure.h"
#include "common/utc.h"
#include "common/vec.h"
#include "config/settings.h"
#include "daemon/job/job_end.h"
#include "daemon/observe/bus.h"
#include "daemon/os/procfs.h"
#include "daemon/os/rehearsal.h"
#include "daemon/os/replace.h"
#include "daemon/output/front.h"
#include "daemon/run/state.h"
#include "daemon/workers/evidence_reader.h"
#include "daemon/workers/guard.h"
#include "daemon/workers/tree.h"
#include "daemon/workers/worker.h"

/* This is why the attempt ends; the first one counts, but of failures the one that all nodes are
 * told. */
static void know(struct run *r, const struct cause *c)
{
	bool better = r->known.kind == CAUSE_FAILURE && c->kind == CAUSE_FAILURE && *c->host;

	if (r->known.kind != CAUSE_NONE && r->known.kind != CAUSE_RESTART && !better)
		return;
	r->known = *c;
	if (r->shared)
		guard_set_code_if_killed(r->in->guard, cause_exit_code(c), false);
}

/* Once it is carried out here. */
static void tell_stop(const struct run *r, const struct stop *s)
{
	static const char *const words[] = {
		[URGENCY_STOP] = EVENT_STOP_STOP,
		[URGENCY_HURRY] = EVENT_STOP_HURRY,
		[URGENCY_KILL] = EVENT_STOP_KILL,
	};
	int signal = s->urgency == URGENCY_KILL ? SIGKILL : r->pool.alive == 0 ? 0 : s->signal;

	bus_emit(r->in->bus,
		&(struct event){
			.kind = EVENT_STOP,
			.stop = { &s->cause, words[s->urgency], signal,
				pool_grace_left_ms(&r->pool) },
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
	progress_ended(&r->progress, &w->outcome);
}

static void on_pool_failed(struct pool *p)
{
	struct run *r = p->owner;
	const struct outcome culprit = worker_outcome(p->culprit);

	know(r, &p->cause);
	member_failed(&r->member, &culprit);
}

/* What the workers wrote last; NULL: there is no memory. */
static const struct left_words *read_words(struct run *r)
{
	unsigned count = r->plan->start_count;
	struct left_words *words = arena_alloc(&r->end->memory, count * sizeof *words);

	for (unsigned i = 0; words && i < count; i++)
		words[i] = *output_words(r->in->output, i);
	return words;
}

static void on_worker_started(struct pool *p, const struct worker *w)
{
	tell_worker(p->owner, &w->outcome);
}

/* A worker's failure, or the end of the grace; requests come by attempt_stop(). */
static void on_stopping(struct pool *p)
{
	const struct run *r = p->owner;
	struct stop s = {
		.urgency = p->state == POOL_KILLING ? URGENCY_KILL : URGENCY_STOP,
		.signal = SIGTERM,
		.cause = p->cause,
	};

	tell_stop(r, &s);
}

void attempt_tell_killed(const struct run *r)
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

/* What the failed workers say of themselves. words: what each wrote last; NULL: not known. */
static void collect(struct run *r, const struct left_words *words)
{
	struct failure unread = { 0 };

	r->collected = true;
	r->said_count = evidence_collect(r->plan, &r->attempt, r->outcomes, words,
		r->plan->start_count, &r->end->memory, r->said, &unread);
	know_culprit(r, r->said, r->said_count);
	if (unread.code != 0)
		bus_note(r->in->bus, NOTE_WARNING, unread.text);
}

/* Tells the job how this node's part of the attempt has ended. */
static void tell_end(struct run *r)
{
	struct result *own = &r->end->own;
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

	end.cause = own->cause;
	memcpy(end.survivors, own->survivors, sizeof end.survivors);
	steps_stop(&r->steps);
	run_goto(r, RUN_WAITING);
	member_ended(&r->member, &end, r->said, r->said_count);
	attempt_tell_killed(r);
}

static void end_attempt(struct run *r, const struct left_words *words)
{
	(void)uv_timer_stop(&r->draining);
	collect(r, words);
	black_box_finish(&r->box, &(struct box_end){ r->outcomes, words, r->said, r->said_count });
}

static void on_post_over(void *run)
{
	tell_end(run);
}

void attempt_kept(void *run)
{
	enum { NS_PER_MS = 1000000 };
	struct run *r = run;
	uint64_t now_ns = uv_hrtime();
	const struct attempt_over what = {
		.attempt = r->attempt.number,
		.cause = r->known.kind != CAUSE_NONE ? &r->known : &r->end->own.cause,
		.bundle = black_box_path(&r->box),
		.left_ms = r->preempted_ns == 0  ? 0 :
			r->preempted_ns > now_ns ? (r->preempted_ns - now_ns) / NS_PER_MS + 1 :
						   1,
	};

	if (r->urgency > URGENCY_STOP || !post_attempt_start(&r->post, &r->loop, &what))
		tell_end(r);
}

/* A disk that hangs keeps the output thread from telling what they wrote last. */
static void on_draining_over(uv_timer_t *t)
{
	end_attempt(t->data, NULL);
}

static void drain(struct run *r)
{
	enum { PATIENCE_MS = 3000 }; /* more than the thread takes, where nothing hangs */

	static_assert(
		POOL_UNKILLED_MS + TREE_PATIENCE_MS + PATIENCE_MS + PATH_SOON_MS < STOP_REST_MS,
		"the other nodes wait that long");
	uv_update_time(&r->loop);
	(void)uv_timer_start(&r->draining, on_draining_over, PATIENCE_MS, 0);
	output_drain(r->in->output);
}

void attempt_drained(void *run)
{
	struct run *r = run;

	if (r->state == RUN_DRAINING && !r->collected) /* else it is too late */
		end_attempt(r, read_words(r));
}

static void on_pool_ended(struct pool *p)
{
	const struct reap_hook hook = { leftovers_reaped, &p->left };
	struct run *r = p->owner;
	struct result *own = &r->end->own;

	run_goto(r, RUN_DRAINING);
	own->ended_ns = uv_hrtime();
	(void)tree_end_all(NULL, &hook, own->survivors, &own->survivor_count);
	preflight_left(r, own->survivors, own->survivor_count);
	pool_outcomes(&r->pool, r->outcomes);
	for (unsigned i = 0; r->unjoined && i < r->plan->start_count; i++)
		r->outcomes[i].unjoined = r->unjoined[i];
	own->cause = p->cause;
	own->left = p->left.nobodys.count;
	own->left_killed = p->left.nobodys.forced;
	own->left_unknown = proc_look() != PROC_OURS;
	pool_done(p);
	for (unsigned i = 0; i < own->survivor_count && i < SURVIVORS_MAX; i++)
		own->survivors[i].node = r->plan->node_rank;
	drain(r);
}

static void begin_result(struct run *r)
{
	r->end->own = (struct result){
		.outcomes = r->outcomes,
		.count = r->plan->start_count,
		.started_ns = uv_hrtime(),
		.started_wall_ns = utc_now_ns(),
	};
}

/* What stands of each worker when none was started. */
static void set_unstarted(struct run *r, struct ending end)
{
	for (unsigned i = 0; i < r->plan->start_count; i++) {
		struct worker_rank where = plan_rank(r->plan, r->plan->start_first + i);

		r->outcomes[i] = (struct outcome){
			.rank = where.rank,
			.local_rank = where.local_rank,
			.node = r->plan->node_rank,
			.attempt = r->attempt.number,
			.end = end,
			.ended_ns = ending_is_unstarted(&end) ? uv_hrtime() : 0,
		};
		if (end.how != ENDED_NONE)
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
	collect(r, NULL);
	tell_end(r);
}

static void end_unstarted(struct run *r, const struct cause *cause)
{
	set_unstarted(r, (struct ending){ .how = ENDED_NONE });
	r->end->own.cause = *cause;
	r->end->own.cause.exclude = NULL; /* node rank 0 has the list, and it may be long */
	collect(r, NULL);
	tell_end(r);
}

/* Once, for who can still save something. */
static void tell_preemption(struct run *r, const struct stop *s)
{
	enum { NS_PER_MS = 1000000 };

	if (s->cause.kind != CAUSE_PREEMPTED || r->preempted_ns)
		return;
	r->preempted_ns = uv_hrtime() + s->grace_ms * NS_PER_MS;
	bus_emit(r->in->bus,
		&(struct event){ .kind = EVENT_PREEMPTION,
			.preemption = { &s->cause, s->grace_ms,
				r->state == RUN_WORKING ? s->signal : 0 } });
}

void attempt_stop(struct run *r, const struct stop *s)
{
	bool acted;

	tell_preemption(r, s);
	know(r, &s->cause);
	if (s->urgency <= r->urgency) {
		if (r->state == RUN_WORKING)
			pool_cut(&r->pool, s->grace_ms);
		return;
	}
	r->urgency = s->urgency;
	if (r->urgency > URGENCY_STOP && r->state == RUN_DRAINING)
		post_attempt_end(&r->post);
	if (r->state == RUN_OPENING || (r->state == RUN_CHECKING && !preflight_end(r)))
		end_unstarted(r, &s->cause);
	if (r->state != RUN_WORKING)
		return;
	if (s->urgency == URGENCY_KILL)
		acted = pool_kill(&r->pool, &s->cause);
	else
		acted = pool_stop(&r->pool, &s->cause, s->signal, s->grace_ms);
	if (s->urgency == URGENCY_HURRY)
		acted |= pool_hurry(&r->pool, s->grace_ms);
	if (acted)
		tell_stop(r, s);
}

static uint64_t before_stop(struct pool *p)
{
	struct run *r = p->owner;

	if (r->unjoined && r->plan->world_size > 1)
		progress_note_unjoined(&r->progress, r->unjoined);

	return black_box_first_sign(&r->box);
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
	r->pool.on_failed = on_pool_failed;
	r->pool.on_stopping = on_stopping;
	r->pool.before_stop = before_stop;
	if (rc == 0)
		rc = pool_start(&r->pool, &r->attempt, r->in->inherited, r->why);
	if (rc < 0)
		pool_done(&r->pool);
	output_started(r->in->output);
	return rc;
}

/* Once in a job, beside the workers, where they have GPUs whose failures --blackbox is to know. */
static void watch_gpus(struct run *r)
{
	if (r->plan->blackbox_dir && gpu_watch_may_see(r->plan))
		gpu_watch_start(&r->gpu_watch, &r->loop,
			plan_check_devices(r->plan, &r->end->memory), r->in->member->argv);
}

static void start_workers(struct run *r)
{
	run_goto(r, RUN_WORKING);
	int rc = start_pool(r);

	if (rc < 0) {
		fail_unstarted(r, -rc);
		return;
	}
	progress_start(&r->progress, r->attempt.number, r->master_port);
	steps_start(&r->steps, r->attempt.number);
	hang_watch_start(&r->hang, r->attempt.number, r->master_port);
	watch_gpus(r);
	(void)proc_look(); /* now, beside the workers, and not when all wait for its answer */
	/* one that could not be started has not ended in the loop */
	if (r->pool.culprit && ending_is_unstarted(&r->pool.culprit->outcome.end))
		member_failed(&r->member, &r->pool.culprit->outcome);
}

/* What workers take is not to count as in use before the first attempt: they wait for the watch to
 * have read that, but not for a driver that hangs. */
static void on_levels(uv_timer_t *t)
{
	struct run *r = t->data;

	if (gpu_watch_is_reading(&r->gpu_watch) && uv_now(&r->loop) < r->levels_until_ms)
		return;
	(void)uv_timer_stop(t);
	start_workers(r);
}

static void start_with_levels(struct run *r)
{
	enum {
		LOOK_MS = 5,
		LIMIT_MS = 30000
	}; /* GPUs that nothing keeps awake start up meanwhile */

	progress_expect(&r->progress);
	preflight_watch(r);
	if (!gpu_watch_is_reading(&r->gpu_watch)) {
		start_workers(r);
		return;
	}
	uv_update_time(&r->loop);
	r->levels_until_ms = uv_now(&r->loop) + LIMIT_MS;
	(void)uv_timer_start(&r->starting, on_levels, LOOK_MS, LOOK_MS);
}

void attempt_prepared(void *run, const struct failure *why)
{
	struct run *r = run;

	if (r->state != RUN_OPENING)
		return; /* it was ended meanwhile */
	(void)uv_timer_stop(&r->starting);
	if (why->code < 0) {
		fail_unstarted(r, -failure_copy(r->why, why));
		return;
	}
	r->attempt.log_dir = output_log_dir(r->in->output);
	if (preflight_is_due(r)) {
		run_goto(r, RUN_CHECKING);
		preflight_start(r);
	} else {
		start_with_levels(r);
	}
}

/* The output thread hangs. */
static void on_not_opened(uv_timer_t *t)
{
	struct run *r = t->data;
	const struct output_plan *o = &r->plan->output;
	const char *tmp = env_get(r->plan->env, "TMPDIR");
	struct failure why = { 0 };

	output_give_up(r->in->output);
	if (!o->tree)
		(void)failure_set(&why, -EIO, "launchd can't write its own output: %s",
			file_error(-ETIMEDOUT));
	else
		(void)failure_set(&why, -EIO, "%s: %s: %s",
			o->log_dir ? settings_where(r->in->settings, SET_LOG_DIR) : "TMPDIR",
			o->log_dir          ? o->log_dir :
				tmp && *tmp ? tmp :
					      "/tmp",
			file_error(-ETIMEDOUT));
	attempt_prepared(r, &why);
}

void attempt_checked(struct run *r)
{
	if (r->urgency != URGENCY_NONE) {
		end_unstarted(r, &r->known);
		return;
	}
	start_with_levels(r);
}

void attempt_init(struct run *r)
{
	r->progress = (struct progress){
		.pool = &r->pool,
		.bus = r->in->bus,
		.output = r->in->output,
		.member = &r->member,
		.status = r->in->status,
	};
	progress_init(&r->progress, &r->loop);
	r->post = (struct post_attempt){ .plan = r->plan,
		.bus = r->in->bus,
		.argv = r->in->member->argv,
		.on_over = on_post_over,
		.owner = r };
	(void)uv_timer_init(&r->loop, &r->draining); /* can't fail */
	(void)uv_timer_init(&r->loop, &r->starting); /* neither can it */
	r->draining.data = r->starting.data = r;
}

void attempt_close(struct run *r)
{
	progress_close(&r->progress);
	uv_close((uv_handle_t *)&r->draining, NULL);
	uv_close((uv_handle_t *)&r->starting, NULL);
}

void attempt_start(struct run *r, unsigned number, unsigned master_port)
{
	arena_done(&r->end->memory);
	r->attempt = (struct attempt){ .number = number, .run_dir = r->run_dir };
	r->attempt.master_port = arena_printf(&r->end->memory, "%u", master_port);
	r->master_port = master_port;
	r->progress.plan = r->hang.plan = r->steps.plan = r->plan;
	r->urgency = URGENCY_NONE;
	r->unjoined = arena_alloc(&r->end->memory, r->plan->start_count * sizeof *r->unjoined);
	r->collected = false;
	r->said_count = 0;
	r->box.plan = r->post.plan = r->plan;
	black_box_start(&r->box);
	r->known = (struct cause){ .kind = CAUSE_NONE };
	if (r->shared)
		guard_set_code_if_killed(r->in->guard, EXIT_NODE_LOST, true);
	run_goto(r, RUN_OPENING);
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
	if (number == 0)
		preflight_begin(r);
	uv_update_time(&r->loop);
	(void)uv_timer_start(&r->starting, on_not_opened, output_patience_ms(r->in->output), 0);
	output_prepare(r->in->output, r->plan, number);
}
