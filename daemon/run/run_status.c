/* run_status.c - the status line of an attempt, from its start until anything else is written to
 * the terminal; see run_parts.h */
#include "daemon/run/run_parts.h"

#include "common/arena.h"
#include "common/text.h"
#include "daemon/workers/worker.h"

enum {
	TICK_MS = 1000,  /* a job that is quicker than that needs no line */
	LONGEST_S = 120, /* one that nobody has joined by then has no store */
};

/* "8/8 started, 6/8 joined, 12 s"; false: they have started. */
static bool describe(const struct run *r, struct text *out)
{
	uint64_t seconds = (uv_hrtime() - r->end->own.started_ns) / 1000000000;
	unsigned count = r->plan->start_count, started = 0, in = 0;
	struct arena scratch = { 0 };
	const bool *joined = run_joined(r, &scratch);

	for (unsigned i = 0; i < count; i++) {
		started += r->pool.workers[i].outcome.pid > 0 ? 1 : 0;
		in += joined && joined[i] ? 1 : 0;
	}
	text_printf(out, "%u/%u started", started, count);
	if (joined)
		text_printf(out, ", %u/%u joined", in, count);
	text_printf(out, ", %llu s", (unsigned long long)seconds);
	arena_done(&scratch);
	return in < count && (in > 0 || seconds < LONGEST_S);
}

static void on_tick(uv_timer_t *t)
{
	struct run *r = t->data;
	struct text line = { 0 };

	if (r->state == RUN_WORKING && r->pool.state == POOL_RUNNING && !r->pool.suspended &&
		describe(r, &line))
		output_status(r->in->output, text_string(&line));
	else
		run_status_stop(r);
	text_done(&line);
}

void run_status_watch(struct run *r)
{
	if (r->in->status && !r->status_over)
		output_status(r->in->output, "");
}

void run_status_start(struct run *r)
{
	if (r->in->status && !r->status_over && r->pool.state == POOL_RUNNING)
		(void)uv_timer_start(&r->status, on_tick, TICK_MS, TICK_MS);
}

void run_status_stop(struct run *r)
{
	(void)uv_timer_stop(&r->status);
	if (r->in->status && !r->status_over)
		output_status(r->in->output, NULL);
	r->status_over = true;
}
