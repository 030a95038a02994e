/* pool.c - see pool.h */
#include "daemon/workers/pool.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "daemon/plan/plan.h"
#include "daemon/workers/child.h"
#include "daemon/workers/spawn.h"
#include "daemon/workers/worker.h"

#define TO(s) (1u << (s))

static const unsigned next_states[POOL_STATES] = {
	[POOL_STARTING] = TO(POOL_RUNNING) | TO(POOL_STOPPING) | TO(POOL_ENDED),
	[POOL_RUNNING] = TO(POOL_STOPPING) | TO(POOL_ENDED),
	[POOL_STOPPING] = TO(POOL_KILLING) | TO(POOL_ENDED),
	[POOL_KILLING] = TO(POOL_ENDED),
	[POOL_ENDED] = 0,
};

bool pool_may_go(enum pool_state from, enum pool_state to)
{
	return (next_states[from] & TO(to)) != 0;
}

/* The only writer of the state; stops what the new one does not own. */
static void pool_goto(struct pool *p, enum pool_state next)
{
	assert(pool_may_go(p->state, next));
	p->state = next;
	if (next != POOL_STOPPING)
		(void)uv_timer_stop(&p->grace);
}

static void each(struct pool *p, void (*act)(struct worker *, int), int signal)
{
	for (unsigned i = 0; i < p->plan->nproc; i++)
		act(&p->workers[i], signal);
}

static void kill_all(struct pool *p)
{
	pool_goto(p, POOL_KILLING);
	for (unsigned i = 0; i < p->plan->nproc; i++)
		worker_kill(&p->workers[i]);
}

static void on_grace_over(uv_timer_t *t)
{
	kill_all(t->data);
}

static void stop_all(struct pool *p, int signal)
{
	pool_goto(p, POOL_STOPPING);
	each(p, worker_stop, signal);
	uv_update_time(p->loop); /* starting many workers takes a while, the grace begins now */
	(void)uv_timer_start(&p->grace, on_grace_over, p->plan->grace_ms, 0); /* has a callback */
}

static void on_handle_closed(uv_handle_t *h)
{
	struct pool *p = h->data;

	if (--p->handles > 0)
		return;
	(void)close(p->deaths);
	p->deaths = -1;
	p->on_ended(p); /* nothing of the pool is in the loop any more */
}

/* No worker is left. */
static void end(struct pool *p)
{
	pool_goto(p, POOL_ENDED);
	uv_close((uv_handle_t *)&p->grace, on_handle_closed);
	uv_close((uv_handle_t *)&p->watch, on_handle_closed);
}

static void on_worker_ended(struct pool *p, struct worker *w)
{
	p->alive--;
	if (!p->first_failure && w->outcome.asked == ASKED_NOTHING &&
		!ending_is_success(&w->outcome.end))
		p->first_failure = w;
}

/* Takes note of all that have died by now, before anything is done about it: who died by itself
 * must not look as if we had ended it. The kernel hands pidfds over in the order in which they
 * became readable, which is the order of death. (Asking for any child gives the order of the
 * process table.) */
static void note_deaths(struct pool *p)
{
	struct epoll_event dead[64];
	int n;

	do {
		n = epoll_wait(p->deaths, dead, (int)(sizeof dead / sizeof *dead), 0);
		for (int i = 0; i < n; i++)
			if (worker_reap(dead[i].data.ptr))
				on_worker_ended(p, dead[i].data.ptr);
	} while (n > 0);
}

/* Looks who has died, and does what follows from it. */
static void settle(struct pool *p)
{
	if (p->state == POOL_ENDED)
		return;
	note_deaths(p);
	if (p->alive == 0)
		end(p);
	else if (p->first_failure && p->state == POOL_RUNNING)
		stop_all(p, SIGTERM);
}

static void on_deaths(uv_poll_t *h, int status, int events)
{
	(void)status, (void)events;
	settle(h->data);
}

/* The timer and the watch; on failure nothing is left open. */
static int open_handles(struct pool *p, struct failure *why)
{
	int rc;

	p->deaths = epoll_create1(EPOLL_CLOEXEC);
	if (p->deaths < 0)
		return failure_set(why, -errno, "epoll_create1: %s", strerror(errno));
	rc = uv_poll_init(p->loop, &p->watch, p->deaths);
	if (rc < 0) {
		(void)close(p->deaths);
		return failure_set(why, rc, "can't watch workers: %s", uv_strerror(rc));
	}
	(void)uv_timer_init(p->loop, &p->grace); /* can't fail, nor can the start of a watch */
	(void)uv_poll_start(&p->watch, UV_READABLE, on_deaths);
	p->grace.data = p;
	p->watch.data = p;
	p->handles = 2;
	return 0;
}

int pool_init(struct pool *p, uv_loop_t *loop, const struct plan *plan,
	const struct attempt *attempt, struct failure *why)
{
	*p = (struct pool){ .plan = plan, .loop = loop, .deaths = -1 };
	p->workers = calloc(plan->nproc, sizeof *p->workers);
	if (!p->workers)
		return failure_oom(why);
	for (unsigned i = 0; i < plan->nproc; i++) {
		struct worker *w = &p->workers[i];

		worker_init(w);
		w->outcome.rank = plan_rank(plan, i).rank;
		w->outcome.local_rank = i;
		w->outcome.attempt = attempt->number;
	}
	return 0;
}

/* Starts worker i with what was rendered into `scratch`, which is given back. */
static int start_worker(struct pool *p, unsigned i, const struct attempt *attempt,
	const struct heritage *heritage, struct vec *base, struct arena *scratch,
	struct failure *why)
{
	struct arena_mark mark = arena_mark(scratch);
	struct env_edits edits = { 0 };
	struct vec argv = { 0 }, env = { 0 };
	struct spawn how = {
		.program = plan_program(p->plan, i), .stdio = p->plan->stdio, .heritage = heritage
	};
	int rc;

	plan_command(p->plan, i, scratch, &argv);
	plan_environment(p->plan, i, attempt, scratch, &edits);
	vec_add_all(scratch, &env, base->at);
	for (size_t k = 0; k < edits.count; k++)
		if (edits.at[k].value)
			vec_add(scratch, &env,
				arena_printf(
					scratch, "%s=%s", edits.at[k].name, edits.at[k].value));
	how.argv = vec_argv(&argv);
	how.env = vec_argv(&env);
	if (arena_failed(scratch)) {
		p->workers[i].outcome.end = (struct ending){ ENDED_UNSTARTED, ENOMEM, false };
		rc = failure_oom(why);
	} else {
		rc = worker_start(&p->workers[i], p->deaths, &how, why);
	}
	arena_rewind(scratch, mark);
	return rc;
}

/* What every worker inherits unchanged: the same names are touched for all of them. */
static void render_base(
	struct pool *p, const struct attempt *attempt, struct arena *scratch, struct vec *ret)
{
	struct env_edits edits = { 0 };

	plan_environment(p->plan, 0, attempt, scratch, &edits);
	plan_untouched(p->plan, &edits, scratch, ret);
}

int pool_start(struct pool *p, const struct attempt *attempt, const struct heritage *heritage,
	struct failure *why)
{
	struct arena scratch = { 0 };
	struct vec base = { 0 };
	int rc = open_handles(p, why);

	if (rc < 0)
		return rc;
	render_base(p, attempt, &scratch, &base);
	for (unsigned i = 0; i < p->plan->nproc && !p->first_failure; i++) {
		rc = start_worker(p, i, attempt, heritage, &base, &scratch, why);
		if (rc == 0)
			p->alive++;
		else
			p->first_failure = &p->workers[i];
		note_deaths(
			p); /* of those before: their time, and no more starts after a failure */
	}
	arena_done(&scratch);
	if (p->alive == 0)
		end(p);
	else if (p->first_failure)
		stop_all(p, SIGTERM);
	else
		pool_goto(p, POOL_RUNNING);
	return 0;
}

void pool_end(struct pool *p, int signal)
{
	p->signals++;
	settle(p);
	if (p->state == POOL_RUNNING) {
		p->ended_by = signal;
		stop_all(p, signal);
	} else if (p->state == POOL_STOPPING && p->signals < 3) {
		each(p, worker_stop, signal);
	} else if (p->state == POOL_STOPPING) {
		kill_all(p);
	}
}

void pool_forward(struct pool *p, int signal)
{
	each(p, worker_signal, signal);
}

void pool_done(struct pool *p)
{
	free(p->workers);
	p->workers = NULL;
}
