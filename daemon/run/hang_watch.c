/* hang_watch.c - see hang_watch.h */
#include "daemon/run/hang_watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "common/text.h"
#include "daemon/cluster/member.h"
#include "daemon/cluster/message.h"
#include "daemon/observe/bus.h"
#include "daemon/output/front.h"
#include "daemon/plan/plan.h"
#include "daemon/run/watch/steps.h"
#include "daemon/workers/pool.h"
#include "daemon/workers/worker.h"

enum {
	TICK_MS = 1000,
	QUIET_MS = 900,   /* after which a node reports it; less than a tick */
	ASLEEP_MS = 4000, /* a tick this late: this process did not run, so what moved is unknown */
	MODEST_TICK_MS = 10000,
	MODEST_QUIET_MS = 60000, /* or --on-hang-after, if that is less */
};

static bool is_node_0(const struct hang_watch *w)
{
	return w->plan->node_rank == 0;
}

static uint64_t bytes_written(const struct hang_watch *w)
{
	const struct output_counts c = output_counts(w->output);

	return c.read_bytes[0] + c.read_bytes[1];
}

/* Whether anything has moved here, for all that is free to know. A job that its user has suspended
 * is none that hangs, and neither is one whose launcher was stopped with it. */
static bool has_moved(struct hang_watch *w, uint64_t now_ms)
{
	uint64_t bytes = bytes_written(w);
	bool moved = bytes != w->bytes || w->steps->signs != w->signs || w->pool->suspended ||
		now_ms >= w->due_ms + ASLEEP_MS;

	w->bytes = bytes;
	w->signs = w->steps->signs;
	w->now_ms = now_ms;
	w->due_ms = now_ms + w->tick_ms;
	return moved;
}

/* To node rank 0, which may be this node. */
static bool tell(struct hang_watch *w, const struct text *t)
{
	const struct message_look told = { w->attempt, text_string(t), t->len };

	if (t->failed || t->len > MESSAGE_LOOK_MAX)
		return false;
	if (!is_node_0(w))
		return member_look(w->member, &told);
	hang_judge_look(&w->judge, 0, &told);
	return true;
}

static void tell_whether(struct hang_watch *w, bool quiet)
{
	struct text t = { 0 };

	if (w->told && w->told_quiet == quiet)
		return;
	text_add(&t, quiet ? "quiet\n" : "moved\n");
	w->told = tell(w, &t);
	w->told_quiet = quiet;
	text_done(&t);
}

static void tell_whether_quiet(struct hang_watch *w, bool moved)
{
	if (moved)
		w->moved_ms = w->now_ms;
	tell_whether(w, w->now_ms - w->moved_ms >= w->quiet_ms);
}

/* The signal that a worker is stopped by, which only its parent learns. */
static void add_stop(const struct worker *worker, struct text *out)
{
	siginfo_t si = { 0 };

	if (worker_is_alive(worker) &&
		waitid(P_PID, (id_t)worker->outcome.pid, &si, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
		si.si_pid == worker->outcome.pid)
		text_printf(out, "stopped %u %d\n", worker->outcome.rank, si.si_status);
}

/* A worker that has ended is not looked at. */
static void add_ended(const struct worker *worker, uint64_t now_ms, struct text *out)
{
	if (!worker_is_alive(worker) && worker->outcome.pid > 0)
		text_printf(out, "rank=%u at=%" PRIu64 " state=X wait=other mcpu=0\n",
			worker->outcome.rank, now_ms);
}

/* Once in a job. */
static void say_if_looks_fail(struct hang_watch *w)
{
	if (w->said_blind || !hang_look_is_blind(&w->look))
		return;
	w->said_blind = true;
	bus_note(w->bus, NOTE_WARNING,
		"--on-hang: what this node's workers do is unknown: the process that looks at them "
		"(hang-look) was started several times, and got stuck each time");
}

/* What only counts while the job is quiet. */
static void add_of_quiet(struct hang_watch *w, struct text *out)
{
	const struct worker *workers = w->pool->workers;
	unsigned count = w->plan->start_count;

	for (unsigned i = 0; i < count; i++) {
		add_stop(&workers[i], out);
		add_ended(&workers[i], w->now_ms, out);
	}
	if (is_node_0(w) && !w->plan->hang_modest) {
		hang_ras_start(&w->ras, w->tick.loop, workers, count, w->plan->world_size, w->argv);
		hang_ras_take(&w->ras, out);
	}
}

/* While the job moves, the child looks for what is its workers' habit. */
static void look(struct hang_watch *w)
{
	struct text seen = { 0 };

	if (!w->looks && w->plan->hang_modest)
		return;
	if (w->plan->hang_modest)
		hang_gpus_expect(&w->gpus, w->plan);
	hang_look_start(&w->look, w->tick.loop, w->pool->workers, w->plan->start_count,
		w->store_port, w->plan->node_rank, w->argv);
	hang_look_quiet(&w->look, w->looks);
	hang_look_take(&w->look, w->now_ms, &seen);
	say_if_looks_fail(w);
	if (w->looks)
		add_of_quiet(w, &seen);
	if (seen.len > 0)
		(void)tell(w, &seen);
	text_done(&seen);
}

static void rest(struct hang_watch *w)
{
	w->looks = false;
	if (w->plan->hang_modest)
		hang_look_stop(&w->look);
	hang_ras_stop(&w->ras);
}

static void on_tick(uv_timer_t *t)
{
	struct hang_watch *w = t->data;

	if (w->pool->state > POOL_RUNNING) {
		hang_watch_stop(w);
		return;
	}
	tell_whether_quiet(w, has_moved(w, uv_hrtime() / 1000000));
	look(w);
	if (!w->looks)
		hang_gpus_moved(&w->gpus);
	if (is_node_0(w))
		hang_judge_tick(&w->judge);
	traceback_look(&w->traceback, w->now_ms);
}

static void on_order(void *owner, const struct message_hang *m)
{
	struct hang_watch *w = owner;
	const struct hang_finding *f = &w->judge.detector.finding;
	bool cleared = m->order == HANG_ORDER_CLEARED;

	if (m->order == HANG_ORDER_SUSPECT || cleared)
		member_suspects(w->member, m->attempt, f->ranks,
			cleared                          ? 0 :
				f->count < FINDING_RANKS ? f->count :
							   FINDING_RANKS);
	member_hang(w->member, m);
	hang_watch_told(w, m);
}

static void on_end(void *owner, const char *why)
{
	struct hang_watch *w = owner;

	w->end(w->owner, why);
}

void hang_watch_enter(struct hang_watch *w, uv_loop_t *loop)
{
	w->judge = (struct hang_judge){ .bus = w->bus,
		.member = w->member,
		.order = on_order,
		.end = on_end,
		.owner = w,
		.output = w->output };
	w->traceback =
		(struct traceback_watch){ .bus = w->bus, .output = w->output, .pool = w->pool };
	w->open = true;
	(void)uv_timer_init(loop, &w->tick); /* can't fail */
	w->tick.data = w;
}

void hang_watch_leave(struct hang_watch *w)
{
	if (!w->open)
		return;
	hang_watch_stop(w);
	hang_gpus_stop(&w->gpus);
	hang_judge_done(&w->judge);
	traceback_done(&w->traceback);
	uv_close((uv_handle_t *)&w->tick, NULL);
	w->open = false;
}

static void set_pace(struct hang_watch *w)
{
	bool modest = w->plan->hang_modest;
	uint64_t after_ms = w->plan->on_hang_after_ms;

	w->tick_ms = modest ? MODEST_TICK_MS : TICK_MS;
	w->quiet_ms = !modest ? QUIET_MS : after_ms < MODEST_QUIET_MS ? after_ms : MODEST_QUIET_MS;
	w->look.modest = modest;
}

void hang_watch_start(struct hang_watch *w, unsigned attempt, unsigned store_port)
{
	const bool modest = w->plan->hang_modest;

	if (w->plan->on_hang == ON_HANG_OFF)
		return;
	w->works = true;
	w->attempt = attempt;
	w->store_port = store_port;
	w->judge.plan = w->plan;
	set_pace(w);
	w->now_ms = w->moved_ms = uv_hrtime() / 1000000;
	w->due_ms = w->now_ms + (modest ? w->quiet_ms : w->tick_ms);
	w->bytes = bytes_written(w);
	w->told = false;
	*w->suspicion = '\0';
	hang_ras_renew(&w->ras);
	if (is_node_0(w))
		hang_judge_start(&w->judge, attempt, modest ? w->quiet_ms - w->tick_ms : 0);
	if (!modest)
		hang_gpus_start(&w->gpus, w->tick.loop, w->plan, w->argv);
	w->look.gpus = &w->gpus;
	traceback_begin(&w->traceback, w->now_ms);
	uv_update_time(w->tick.loop);
	(void)uv_timer_start(&w->tick, on_tick, w->due_ms - w->now_ms, w->tick_ms);
}

void hang_watch_hear(struct hang_watch *w, const struct tails *tails)
{
	if (w->works)
		traceback_hear(&w->traceback, tails, uv_hrtime() / 1000000);
}

void hang_watch_stop(struct hang_watch *w)
{
	if (!w->works)
		return;
	w->works = false;
	(void)uv_timer_stop(&w->tick);
	rest(w);
	hang_look_stop(&w->look);
	if (is_node_0(w))
		hang_judge_stop(&w->judge);
}

void hang_watch_told(struct hang_watch *w, const struct message_hang *told)
{
	if (!w->works || told->attempt != w->attempt)
		return;
	switch (told->order) {
	case HANG_ORDER_REST:
		rest(w);
		return;
	case HANG_ORDER_LOOK:
		w->looks = true;
		hang_look_quiet(&w->look, true); /* its next look may come before the next tick */
		return;
	case HANG_ORDER_SUSPECT:
	case HANG_ORDER_CLEARED:
	case HANG_ORDER_CERTAIN:
		(void)snprintf(w->suspicion, sizeof w->suspicion, "%s", told->text);
		if (told->order == HANG_ORDER_CERTAIN && w->plan->on_hang == ON_HANG_DUMP)
			w->dump(w->owner, w->suspicion);
		return;
	}
}
