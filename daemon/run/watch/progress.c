/* progress.c - see progress.h */
#include "daemon/run/watch/progress.h"

#include "common/arena.h"
#include "common/text.h"
#include "daemon/cluster/member.h"
#include "daemon/observe/bus.h"
#include "daemon/os/procfs.h"
#include "daemon/output/front.h"
#include "daemon/plan/plan.h"
#include "daemon/run/watch/joined.h"
#include "daemon/workers/pool.h"
#include "daemon/workers/worker.h"

enum {
	TICK_MS = 1000,           /* a job that is quicker than that needs no status line */
	STATUS_S = 120,           /* one that nobody has joined by then has no store */
	JOINING_FIRST_MS = 30000, /* doubled with each look */
};

/* Which workers have joined the store: one flag each, the arena's. NULL: it can't be seen. */
static const bool *look_who_joined(const struct progress *p, struct arena *arena)
{
	unsigned count = p->plan->start_count;
	pid_t *pids = arena_alloc(arena, count * sizeof *pids);
	bool *joined = arena_alloc(arena, count * sizeof *joined);

	if (!pids || !joined || p->pool->state != POOL_RUNNING)
		return NULL;
	for (unsigned i = 0; i < count; i++)
		pids[i] = p->pool->workers[i].outcome.pid;
	if (joined_look(pids, count, p->plan->master_addr, p->store_port, joined) < 0)
		return NULL;
	return joined;
}

void progress_note_unjoined(const struct progress *p, bool *ret_unjoined)
{
	struct arena scratch = { 0 };
	const bool *joined = look_who_joined(p, &scratch);

	for (unsigned i = 0; joined && i < p->plan->start_count; i++)
		ret_unjoined[i] = !joined[i] && worker_is_alive(&p->pool->workers[i]);
	arena_done(&scratch);
}

/* An exiting worker's connection is closed before it is reaped. */
static bool is_exiting(const struct worker *w)
{
	struct process about;

	return process_read(w->outcome.pid, &about) == 0 && about.exiting;
}

/* "8/8 started, 6/8 joined, 12 s"; false: they have started. */
static bool describe(const struct progress *p, struct text *out)
{
	uint64_t seconds = (uv_hrtime() - p->started_ns) / 1000000000;
	unsigned count = p->plan->start_count, started = 0, in = 0;
	struct arena scratch = { 0 };
	const bool *joined = look_who_joined(p, &scratch);

	for (unsigned i = 0; i < count; i++) {
		started += p->pool->workers[i].outcome.pid > 0 ? 1 : 0;
		in += joined && joined[i] ? 1 : 0;
	}
	text_printf(out, "%u/%u started", started, count);
	if (joined)
		text_printf(out, ", %u/%u joined", in, count);
	text_printf(out, ", %llu s", (unsigned long long)seconds);
	arena_done(&scratch);
	return in < count && (in > 0 || seconds < STATUS_S);
}

static void on_tick(uv_timer_t *t)
{
	struct progress *p = t->data;
	struct text line = { 0 };

	if (p->pool->state == POOL_RUNNING && !p->pool->suspended && describe(p, &line))
		output_status(p->output, text_string(&line));
	else
		progress_hide(p);
	text_done(&line);
}

/* Tells the job who has not joined. Also once more when all have, so that the last word isn't that
 * some had not. */
static void on_joining(uv_timer_t *t)
{
	struct progress *p = t->data;
	unsigned count = p->plan->start_count, *missing, missing_count = 0, unjoined = 0;
	struct arena scratch = { 0 };
	const bool *joined = look_who_joined(p, &scratch);

	missing = arena_alloc(&scratch, count * sizeof *missing);
	for (unsigned i = 0; joined && missing && i < count; i++) {
		const struct worker *w = &p->pool->workers[i];

		if (joined[i] || !worker_is_alive(w))
			continue;
		unjoined++;
		if (!is_exiting(w))
			missing[missing_count++] = w->outcome.rank;
	}
	if (joined && missing &&
		(missing_count > 0 || (unjoined == 0 && p->joining_ms > JOINING_FIRST_MS)))
		member_waiting(p->member, p->attempt, missing, missing_count);
	if (unjoined > 0)
		(void)uv_timer_start(t, on_joining, p->joining_ms *= 2, 0);
	arena_done(&scratch);
}

static void tell_joined(struct progress *p)
{
	p->told_joined = true;
	(void)uv_timer_stop(&p->ready);
	bus_emit(p->bus, &(struct event){ .kind = EVENT_WORKERS_JOINED });
}

/* One that has ended well will not join any more. */
static void on_ready(uv_timer_t *t)
{
	struct progress *p = t->data;
	struct arena scratch = { 0 };
	const bool *joined = look_who_joined(p, &scratch);
	unsigned missing = 0;

	for (unsigned i = 0; joined && i < p->plan->start_count; i++)
		missing += !joined[i] && worker_is_alive(&p->pool->workers[i]);
	arena_done(&scratch);
	if (p->pool->state != POOL_RUNNING || p->pool->suspended || missing > 0)
		return;
	if (!joined)
		bus_note(p->bus, NOTE_WARNING,
			"--ready-when=joined: it can't be seen who has joined the store: systemd is "
			"told that this node is ready");
	tell_joined(p);
}

static void on_unfinished(uv_timer_t *t)
{
	const struct progress *p = t->data;
	size_t count = p->plan->start_count;
	struct arena scratch = { 0 };
	struct outcome *outcomes = arena_alloc(&scratch, count * sizeof *outcomes);

	if (outcomes && p->pool->state == POOL_RUNNING) {
		pool_outcomes(p->pool, outcomes);
		bus_emit(p->bus,
			&(struct event){
				.kind = EVENT_UNFINISHED,
				.unfinished = { outcomes, count },
			});
	}
	arena_done(&scratch);
}

void progress_init(struct progress *p, uv_loop_t *loop)
{
	(void)uv_timer_init(loop, &p->tick); /* can't fail */
	(void)uv_timer_init(loop, &p->joining);
	(void)uv_timer_init(loop, &p->ready);
	(void)uv_timer_init(loop, &p->unfinished);
	p->tick.data = p->joining.data = p->ready.data = p->unfinished.data = p;
}

void progress_close(struct progress *p)
{
	uv_close((uv_handle_t *)&p->tick, NULL);
	uv_close((uv_handle_t *)&p->joining, NULL);
	uv_close((uv_handle_t *)&p->ready, NULL);
	uv_close((uv_handle_t *)&p->unfinished, NULL);
}

void progress_expect(struct progress *p)
{
	if (p->status)
		output_status(p->output, "");
}

void progress_start(struct progress *p, unsigned attempt, unsigned store_port)
{
	p->attempt = attempt;
	p->store_port = store_port;
	p->started_ns = uv_hrtime();
	p->joining_ms = JOINING_FIRST_MS;
	if (p->plan->store == STORE_AGENT) /* only who hosts the store knows who is missing */
		(void)uv_timer_start(&p->joining, on_joining, p->joining_ms, 0);
	if (p->plan->service && p->plan->ready_joined && !p->told_joined)
		(void)uv_timer_start(&p->ready, on_ready, TICK_MS, TICK_MS);
	if (p->status && p->pool->state == POOL_RUNNING)
		(void)uv_timer_start(&p->tick, on_tick, TICK_MS, TICK_MS);
}

void progress_ended(struct progress *p, const struct outcome *o)
{
	enum pool_state state = p->pool->state;

	if (p->plan->unfinished_note_ms > 0 && p->pool->alive > 0 && ending_is_success(&o->end) &&
		(state == POOL_STARTING || state == POOL_RUNNING) &&
		!uv_is_active((uv_handle_t *)&p->unfinished))
		(void)uv_timer_start(&p->unfinished, on_unfinished, p->plan->unfinished_note_ms, 0);
}

void progress_hide(struct progress *p)
{
	(void)uv_timer_stop(&p->tick);
	if (p->status)
		output_status(p->output, NULL);
	p->status = false;
}

void progress_stop(struct progress *p)
{
	(void)uv_timer_stop(&p->joining);
	(void)uv_timer_stop(&p->ready);
	(void)uv_timer_stop(&p->unfinished);
	progress_hide(p);
}
