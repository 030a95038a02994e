/* pool.c - see pool.h */
#include "daemon/workers/pool.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "common/sm.h"
#include "common/vec.h"
#include "daemon/output/front.h"
#include "daemon/place/placing.h"
#include "daemon/plan/plan.h"
#include "daemon/workers/cgroup.h"
#include "daemon/workers/controllers.h"
#include "daemon/workers/oom.h"
#include "daemon/workers/spawn.h"
#include "daemon/workers/tree.h"
#include "daemon/workers/worker.h"

enum {
	LOOK_SOON_MS = 20, /* after a death: several often come together */
	HURRY_MAX_MS = 5000,
};

static const struct sm_state states[POOL_STATES] = {
	[POOL_STARTING] = { "starting",
		SM_TO(POOL_RUNNING) | SM_TO(POOL_HOLDING) | SM_TO(POOL_STOPPING) |
			SM_TO(POOL_LINGERING) | SM_TO(POOL_ENDED) },
	[POOL_RUNNING] = { "running",
		SM_TO(POOL_HOLDING) | SM_TO(POOL_STOPPING) | SM_TO(POOL_KILLING) |
			SM_TO(POOL_LINGERING) | SM_TO(POOL_ENDED) },
	[POOL_HOLDING] = { "holding",
		SM_TO(POOL_STOPPING) | SM_TO(POOL_KILLING) | SM_TO(POOL_LINGERING) |
			SM_TO(POOL_ENDED) },
	[POOL_STOPPING] = { "stopping",
		SM_TO(POOL_KILLING) | SM_TO(POOL_LINGERING) | SM_TO(POOL_ENDED) },
	[POOL_KILLING] = { "killing", SM_TO(POOL_ENDED) },
	[POOL_LINGERING] = { "lingering", SM_TO(POOL_ENDED) },
	[POOL_ENDED] = { "ended", 0 },
};

const struct sm pool_life = { "pool", states, POOL_STATES };

/* Also stops what the new state does not own. */
static void pool_goto(struct pool *p, enum pool_state next)
{
	bool held = p->state == POOL_HOLDING;

	p->state = sm_go(&pool_life, p->state, next);
	if (held || next == POOL_RUNNING || next == POOL_ENDED)
		(void)uv_timer_stop(&p->grace);
	if (next == POOL_KILLING || next == POOL_ENDED)
		(void)uv_timer_stop(&p->look);
}

static void blame(struct pool *p, const struct cause *cause)
{
	if (p->cause.kind == CAUSE_NONE)
		p->cause = *cause;
}

/* One that could not be started has no end of its own: it failed now. */
static void blame_worker(struct pool *p, const struct worker *w)
{
	const struct outcome o = worker_outcome(w);
	struct cause cause = cause_of_failure(&o);

	if (cause.at_ns == 0)
		cause.at_ns = uv_hrtime();
	blame(p, &cause);
}

static void on_handle_closed(uv_handle_t *h)
{
	struct pool *p = h->data;

	if (--p->handles > 0)
		return;
	deaths_done(&p->deaths);
	p->on_ended(p); /* nothing of the pool is in the loop any more */
}

/* Nothing is left, or nothing that is worth waiting for. */
static void end(struct pool *p)
{
	pool_goto(p, POOL_ENDED);
	uv_close((uv_handle_t *)&p->grace, on_handle_closed);
	uv_close((uv_handle_t *)&p->look, on_handle_closed);
	p->handles = 2 + deaths_close(&p->deaths, on_handle_closed);
}

/* What is left behind has no grace any more. */
static void end_leftovers(struct pool *p)
{
	leftovers_kill(&p->left);
	cells_kill(&p->cells);
	end(p);
}

static void on_grace_over(uv_timer_t *t);

/* Starts the grace, or cuts it. */
static void set_grace(struct pool *p, uint64_t ms)
{
	uv_update_time(p->loop); /* starting many workers takes a while, the grace begins now */
	if (!uv_is_active((uv_handle_t *)&p->grace) || uv_timer_get_due_in(&p->grace) > ms)
		(void)uv_timer_start(&p->grace, on_grace_over, ms, 0); /* has a callback */
}

static void signal_all(struct pool *p, int signal, enum signal_scope scope)
{
	for (unsigned i = 0; i < p->plan->start_count; i++)
		worker_signal(&p->workers[i], signal, scope);
}

/* How long they are to be left alone. */
static uint64_t see(struct pool *p)
{
	if (p->seen || !p->before_stop)
		return 0;
	p->seen = true;
	return p->before_stop(p);
}

static void kill_all(struct pool *p)
{
	(void)see(p);
	pool_goto(p, POOL_KILLING);
	for (unsigned i = 0; i < p->plan->start_count; i++)
		worker_kill(&p->workers[i]);
	leftovers_kill(&p->left);
	cells_kill(&p->cells); /* all at once; what has left its cgroup is ended one by one */
	/* one that hangs in the kernel keeps its children from becoming ours */
	signal_all(p, SIGKILL, SCOPE_TREE);
	(void)uv_timer_stop(&p->grace);
	set_grace(p, POOL_UNKILLED_MS);
}

static void stop_all(struct pool *p, int signal, uint64_t grace_ms)
{
	pool_goto(p, POOL_STOPPING);
	cgroup_leaf_thaw(p->leaf);
	for (unsigned i = 0; i < p->plan->start_count; i++)
		worker_stop(&p->workers[i], signal, p->plan->signal_scope);
	if (p->suspended)
		pool_resume(p);
	set_grace(p, grace_ms);
}

void pool_release(struct pool *p)
{
	if (p->state != POOL_HOLDING)
		return;
	stop_all(p, p->held.signal, p->held.grace_ms);
	p->on_stopping(p);
}

/* False: they are held, and the end follows. */
static bool begin_stop(struct pool *p, int signal, uint64_t grace_ms)
{
	uint64_t hold_ms = see(p);

	if (hold_ms == 0 || p->state > POOL_RUNNING) {
		stop_all(p, signal, grace_ms);
		return true;
	}
	pool_goto(p, POOL_HOLDING);
	p->held.signal = signal;
	p->held.grace_ms = grace_ms;
	set_grace(p, hold_ms);
	return false;
}

static void on_grace_over(uv_timer_t *t)
{
	struct pool *p = t->data;

	if (p->state == POOL_HOLDING) {
		pool_release(p);
	} else if (p->state == POOL_STOPPING) {
		kill_all(p);
		p->on_stopping(p);
	} else {
		end_leftovers(p);
	}
}

static void stop_for_failure(struct pool *p)
{
	if (begin_stop(p, SIGTERM, p->plan->grace_ms))
		p->on_stopping(p);
}

/* Whether anything below this process lives; reaps orphans that have ended, up to the first worker:
 * its turn is told otherwise (deaths.h). */
static bool reap_orphans(struct pool *p)
{
	const struct reap_hook hook = { leftovers_reaped, &p->left };

	return tree_reap(&hook);
}

static void on_look(uv_timer_t *t);

static void look_within(struct pool *p, uint64_t ms)
{
	if (!uv_is_active((uv_handle_t *)&p->look) || uv_timer_get_due_in(&p->look) > ms)
		(void)uv_timer_start(&p->look, on_look, ms, 0);
}

/* Looks after orphans, now and when their time has come. */
static void look(struct pool *p)
{
	uint64_t next = leftovers_look(&p->left, p->alive == 0);

	if (next)
		look_within(p, next);
}

static void on_look(uv_timer_t *t)
{
	struct pool *p = t->data;

	(void)reap_orphans(p);
	look(p);
}

/* The last worker has ended: is anything of theirs left? */
static void linger(struct pool *p)
{
	if (p->culprit)
		(void)see(p);
	if (!reap_orphans(p)) {
		end(p);
		return;
	}
	if (p->state == POOL_KILLING) {
		end_leftovers(p);
		return;
	}
	if (p->state != POOL_LINGERING) {
		pool_goto(p, POOL_LINGERING);
		cgroup_leaf_thaw(p->leaf);
		set_grace(p, p->plan->leftover_grace_ms);
		look(p);
	}
}

/* Asked at once: what the dead had there, and had unlinked, is free already, but others may still
 * hold theirs. A rest is left where the one that died needed more than a page. */
static bool shm_is_full(void)
{
	enum { REST = 64 }; /* one part in so many */
	struct statvfs fs;

	return statvfs("/dev/shm", &fs) == 0 && fs.f_blocks > 0 &&
		fs.f_bavail < (fs.f_blocks + REST - 1) / REST;
}

static void on_worker_ended(void *owner, struct worker *w)
{
	struct pool *p = owner;
	bool first;

	p->alive--;
	if (!ending_is_success(&w->outcome.end) && w->outcome.asked != ASKED_KILLED)
		oom_judge(p->oom, &p->cells, &w->outcome);
	first = !p->culprit && w->outcome.asked == ASKED_NOTHING &&
		!ending_is_success(&w->outcome.end);
	w->outcome.shm_full = !ending_is_success(&w->outcome.end) && shm_is_full();
	if (first) {
		p->culprit = w;
		blame_worker(p, w);
	}
	p->on_worker_ended(p, w);
	if (first)
		p->on_failed(p);
}

/* Before anything is done about it: who died by itself must not look as if we had ended it. */
static bool note_deaths(struct pool *p, pid_t first)
{
	return deaths_note(&p->deaths, first, on_worker_ended);
}

/* Looks who has died, and does what follows from it. first: as deaths_note() has it. */
static void settle(struct pool *p, pid_t first)
{
	bool died;

	if (p->state == POOL_ENDED)
		return;
	died = note_deaths(p, first);
	if (p->alive == 0) {
		linger(p);
		return;
	}
	if (p->culprit && p->state == POOL_RUNNING)
		stop_for_failure(p);
	if (died && p->state != POOL_KILLING)
		look_within(p, LOOK_SOON_MS);
}

static void on_deaths(void *owner)
{
	settle(owner, 0);
}

void pool_on_child(struct pool *p, pid_t first)
{
	settle(p, first);
	if (p->state != POOL_ENDED && p->alive > 0)
		(void)reap_orphans(p);
}

int pool_init(struct pool *p, uv_loop_t *loop, const struct plan *plan,
	const struct attempt *attempt, struct failure *why)
{
	*p = (struct pool){ .plan = plan, .loop = loop, .cells = CELLS_NONE };
	p->workers = calloc(plan->start_count, sizeof *p->workers);
	deaths_init(&p->deaths, p->workers, plan->start_count);
	if (!p->workers)
		return failure_oom(why);
	for (unsigned i = 0; i < plan->start_count; i++) {
		struct worker *w = &p->workers[i];
		unsigned local_rank = plan->start_first + i;

		worker_init(w);
		w->outcome.rank = plan_rank(plan, local_rank).rank;
		w->outcome.local_rank = local_rank;
		w->outcome.node = plan->node_rank;
		w->outcome.attempt = attempt->number;
	}
	p->left = (struct leftovers){
		.workers = p->workers,
		.count = plan->start_count,
		.run_dir = attempt->run_dir,
		.log_dir = attempt->log_dir,
		.grace_ns = plan->leftover_grace_ms * 1000000,
	};
	return 0;
}

/* Renders a worker's command and environment, and starts it. What one worker needs is given back
 * before the next, so that many workers take no more memory than one. */
struct starter {
	const struct plan *plan;
	const struct attempt *attempt;
	const struct inherited *inherited;
	const struct cells *cells;
	struct output *output; /* NULL: workers inherit stdout and stderr */
	struct arena scratch;
	struct vec unchanged; /* what every worker has of the launcher's environment */
};

/* Out of memory shows at the first start. */
static void starter_init(struct starter *s)
{
	const struct plan *plan = s->plan;
	struct env_edits edits = { 0 };

	/* the same names are touched for all workers */
	plan_environment(plan, plan->start_first, s->attempt, &s->scratch, &edits);
	plan_untouched(plan, &edits, &s->scratch, &s->unchanged);
}

static void render_environment(struct starter *s, unsigned local_rank, struct vec *ret)
{
	struct env_edits edits = { 0 };

	plan_environment(s->plan, local_rank, s->attempt, &s->scratch, &edits);
	vec_add_all(&s->scratch, ret, s->unchanged.at);
	for (size_t i = 0; i < edits.count; i++)
		if (edits.at[i].value)
			vec_add(&s->scratch, ret,
				arena_printf(
					&s->scratch, "%s=%s", edits.at[i].name, edits.at[i].value));
}

/* See worker_start(). -ENOMEM. */
static int starter_start(struct starter *s, struct worker *w, int epoll_fd, struct failure *why)
{
	struct arena_mark mark = arena_mark(&s->scratch);
	unsigned local_rank = w->outcome.local_rank;
	struct vec argv = { 0 }, env = { 0 };
	unsigned index = local_rank - s->plan->start_first;
	struct stdio stdio[3] = { s->plan->input };
	autoclose cgroup = cells_add(s->cells, w->outcome.rank);
	struct spawn how = { .program = plan_program(s->plan, local_rank),
		.stdio = stdio,
		.inherited = s->inherited,
		.attributes = &s->plan->attributes,
		.epoll = epoll_fd,
		.event = { .events = EPOLLIN | EPOLLET, .data.ptr = w },
		.kept_fd = s->plan->kept_fd,
		.cgroup = cgroup < 0 ? -1 : cgroup,
		.must_go = limits_need(&s->plan->limits) != 0,
		.readable = s->plan->blackbox_dir != NULL,
		.place = s->plan->placement ? &s->plan->placement->of[local_rank] : NULL };
	int rc;

	for (int fd = 1; fd < 3 && s->output; fd++)
		stdio[fd] = output_stdio(s->output, index, fd);
	plan_command(s->plan, local_rank, s->attempt, &s->scratch, &argv);
	render_environment(s, local_rank, &env);
	how.argv = vec_argv(&argv);
	how.env = vec_argv(&env);
	if (how.must_go && cgroup < 0) {
		worker_not_started(w, ENDED_UNMADE, -cgroup);
		rc = failure_set(why, cgroup, "can't make a cgroup for rank %u: %s",
			w->outcome.rank, strerror(-cgroup));
	} else if (arena_failed(&s->scratch)) {
		worker_not_started(w, ENDED_UNMADE, ENOMEM);
		rc = failure_oom(why);
	} else {
		rc = worker_start(w, &how, why);
	}
	for (int fd = 1; fd < 3 && rc == 0; fd++)
		if (w->pipe[fd] >= 0)
			output_take(s->output, index, fd, fd_take(&w->pipe[fd]), w->outcome.pid);
	arena_rewind(&s->scratch, mark);
	return rc;
}

/* Without limits they are a help: workers are born where we are if there are none. */
static int open_cells(struct pool *p, const struct attempt *attempt, struct failure *why)
{
	int rc = cells_open(&p->cells, p->leaf, attempt->number, p->workers[0].outcome.rank,
		p->plan->start_count, &p->plan->limits);

	if (rc < 0 && limits_need(&p->plan->limits))
		return failure_set(why, rc, "can't make a cgroup for attempt %u: %s",
			attempt->number, strerror(-rc));
	return 0;
}

int pool_start(struct pool *p, const struct attempt *attempt, const struct inherited *inherited,
	struct failure *why)
{
	struct starter starter = {
		.plan = p->plan,
		.attempt = attempt,
		.inherited = inherited,
		.cells = &p->cells,
		.output = p->output,
	};
	bool died = false;
	int rc = open_cells(p, attempt, why);

	/* the last step that can fail is the first one that adds to the loop */
	if (rc == 0)
		rc = deaths_open(&p->deaths, p->loop, p->plan->nnodes > 1, on_deaths, p, why);
	if (rc < 0)
		return rc;
	(void)uv_timer_init(p->loop, &p->grace); /* can't fail */
	(void)uv_timer_init(p->loop, &p->look);
	p->grace.data = p->look.data = p;
	starter_init(&starter);
	for (unsigned i = 0; i < p->plan->start_count && !p->culprit; i++) {
		if (starter_start(&starter, &p->workers[i], p->deaths.epoll, why) == 0) {
			p->alive++;
			p->deaths.by_signal |= p->workers[i].pidfd < 0;
		} else {
			p->culprit = &p->workers[i];
			blame_worker(p, p->culprit);
		}
		p->on_worker_started(p, &p->workers[i]);
		/* of those before: their time, and no more starts after a failure */
		died |= note_deaths(p, 0);
	}
	arena_done(&starter.scratch);
	if (p->alive == 0)
		linger(p);
	else if (p->culprit)
		stop_for_failure(p);
	else
		pool_goto(p, POOL_RUNNING);
	if (died && p->alive > 0)
		look_within(p, LOOK_SOON_MS);
	return 0;
}

bool pool_stop(struct pool *p, const struct cause *cause, int signal, uint64_t grace_ms)
{
	settle(p, 0);
	if (p->state == POOL_RUNNING) {
		blame(p, cause);
		return begin_stop(p, signal, grace_ms);
	} else if (p->state == POOL_HOLDING &&
		(cause->kind == CAUSE_SIGNAL || cause->kind == CAUSE_PREEMPTED)) {
		stop_all(p, signal, grace_ms); /* somebody has no time for that */
	} else if (p->state == POOL_STOPPING && cause->kind == CAUSE_SIGNAL) {
		for (unsigned i = 0; i < p->plan->start_count; i++)
			worker_stop(&p->workers[i], signal, p->plan->signal_scope);
		set_grace(p, grace_ms);
	} else if (p->state == POOL_LINGERING) {
		blame(p, cause);
		set_grace(p, grace_ms);
	} else {
		pool_cut(p, grace_ms);
		return false;
	}
	return true;
}

/* Its own death comes after the signal, and those of others that are seen now may have come before.
 */
void pool_fail(struct pool *p, struct worker *w, int signal)
{
	int before = w->sent;

	if (p->culprit || p->cause.kind != CAUSE_NONE || p->state == POOL_ENDED)
		return;
	worker_sent(w, signal);
	settle(p, 0);
	if (p->culprit || p->state == POOL_ENDED) {
		if (worker_is_alive(w))
			w->sent = before;
		return;
	}
	p->culprit = w;
	blame_worker(p, w);
	p->on_failed(p);
	if (p->state == POOL_RUNNING)
		stop_for_failure(p);
	else
		set_grace(p, p->plan->grace_ms);
}

void pool_cut(struct pool *p, uint64_t grace_ms)
{
	if (p->state == POOL_HOLDING && p->held.grace_ms > grace_ms)
		p->held.grace_ms = grace_ms;
	if (p->state == POOL_STOPPING || p->state == POOL_LINGERING)
		set_grace(p, grace_ms);
}

bool pool_hurry(struct pool *p, uint64_t grace_ms)
{
	if (p->state != POOL_STOPPING && p->state != POOL_LINGERING)
		return false;
	set_grace(p, grace_ms / 4 < HURRY_MAX_MS ? grace_ms / 4 : HURRY_MAX_MS);
	return true;
}

uint64_t pool_grace_left_ms(const struct pool *p)
{
	bool runs = p->state == POOL_STOPPING || p->state == POOL_LINGERING;

	return runs ? uv_timer_get_due_in(&p->grace) : 0;
}

bool pool_kill(struct pool *p, const struct cause *cause)
{
	settle(p, 0);
	if (p->state == POOL_ENDED || p->state == POOL_KILLING)
		return false;
	blame(p, cause);
	if (p->state == POOL_LINGERING)
		end_leftovers(p);
	else
		kill_all(p);
	return true;
}

void pool_outcomes(const struct pool *p, struct outcome *ret)
{
	for (unsigned i = 0; i < p->plan->start_count; i++) {
		const struct worker *w = &p->workers[i];

		ret[i] = worker_outcome(w);
		ret[i].left = w->left.count;
		ret[i].left_killed = w->left.forced;
	}
}

void pool_forward(struct pool *p, int signal)
{
	signal_all(p, signal, p->plan->signal_scope);
}

void pool_suspend(struct pool *p)
{
	if (p->state != POOL_RUNNING)
		return;
	p->suspended = true;
	/* TSTP means nothing to a process whose session has no terminal */
	signal_all(p, SIGSTOP, SCOPE_GROUP);
}

void pool_resume(struct pool *p)
{
	p->suspended = false;
	signal_all(p, SIGCONT, SCOPE_GROUP);
}

void pool_done(struct pool *p)
{
	cells_close(&p->cells);
	leftovers_done(&p->left);
	free(p->workers);
	p->workers = NULL;
}
