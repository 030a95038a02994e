/* test_progress.c - what shows of an attempt's workers from outside, and when. Its calls into other
 * rooms are caught, and the clock jumps (skip_idle). */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "daemon/cluster/member.h"
#include "daemon/observe/bus.h"
#include "daemon/os/procfs.h"
#include "daemon/output/front.h"
#include "daemon/plan/plan.h"
#include "daemon/run/watch/joined.h"
#include "daemon/run/watch/progress.h"
#include "daemon/workers/pool.h"
#include "daemon/workers/worker.h"

enum { WORKERS = 3, FIRST_RANK = 4, PORT = 29400, FIRST_PID = 100, UNFINISHED_MS = 60000 };

/* A running pool, its progress, and all that was told of it. */
static struct watched {
	uv_loop_t loop;
	uv_timer_t until;
	struct plan plan;
	struct worker workers[WORKERS];
	struct pool pool;
	struct bus bus;
	struct progress progress;
	bool joined[WORKERS], blind; /* what a look at the store sees */
	bool exiting[WORKERS];
	unsigned looks;
	struct text status;  /* each status line but for its seconds; "gone" where it ends */
	struct text missing; /* each list of ranks that the job is told */
	unsigned unfinished, told_joined, notes;
} w;

void __wrap_output_status(struct output *o, const char *text);
int __wrap_joined_look(
	const pid_t *pids, size_t count, const char *addr, unsigned port, bool *ret_joined);
void __wrap_member_waiting(struct member *m, unsigned attempt, const unsigned *ranks, size_t count);
int __wrap_process_read(pid_t pid, struct process *ret);

void __wrap_output_status(struct output *o, const char *text)
{
	(void)o;
	const char *seconds = text ? strrchr(text, ',') : NULL;

	text_printf(&w.status, "%.*s\n", (int)(seconds ? seconds - text : 4), text ? text : "gone");
}

int __wrap_joined_look(
	const pid_t *pids, size_t count, const char *addr, unsigned port, bool *ret_joined)
{
	w.looks++;
	assert_int_equal(count, WORKERS);
	assert_int_equal(pids[1], w.workers[1].outcome.pid);
	assert_string_equal(addr, "127.0.0.1");
	assert_int_equal(port, PORT);
	if (w.blind)
		return -ENOENT;
	memcpy(ret_joined, w.joined, sizeof w.joined);
	return 0;
}

void __wrap_member_waiting(struct member *m, unsigned attempt, const unsigned *ranks, size_t count)
{
	(void)m;
	assert_int_equal(attempt, 2);
	for (size_t i = 0; i < count; i++)
		text_printf(&w.missing, "%u ", ranks[i]);
	text_add(&w.missing, "\n");
}

int __wrap_process_read(pid_t pid, struct process *ret)
{
	*ret = (struct process){ .exiting = w.exiting[pid - FIRST_PID] };
	return 0;
}

static void on_unfinished(void *owner, const struct event *e)
{
	(void)owner;
	assert_int_equal(e->unfinished.count, WORKERS);
	assert_int_equal(e->unfinished.outcomes[2].rank, FIRST_RANK + 2);
	w.unfinished++;
}

static void on_joined(void *owner, const struct event *e)
{
	(void)owner, (void)e;
	w.told_joined++;
}

static void on_note(void *owner, const struct event *e)
{
	(void)owner;
	assert_contains(e->note.text, "can't be seen who has joined");
	w.notes++;
}

static const struct observer observer = { .on = {
						  [EVENT_UNFINISHED] = on_unfinished,
						  [EVENT_WORKERS_JOINED] = on_joined,
						  [EVENT_NOTE] = on_note,
					  } };

static int watch(void **state)
{
	(void)state;
	w = (struct watched){
		.plan = { .start_count = WORKERS,
			.master_addr = "127.0.0.1",
			.store = STORE_AGENT,
			.unfinished_note_ms = UNFINISHED_MS },
		.pool = { .state = POOL_RUNNING, .alive = WORKERS },
	};
	w.pool.plan = &w.plan;
	w.pool.workers = w.workers;
	for (unsigned i = 0; i < WORKERS; i++)
		w.workers[i] = (struct worker){ .state = WORKER_RUNNING,
			.outcome = { .rank = FIRST_RANK + i, .pid = (pid_t)(FIRST_PID + i) } };
	w.progress = (struct progress){
		.plan = &w.plan, .pool = &w.pool, .bus = &w.bus, .status = true
	};
	bus_add(&w.bus, &observer, NULL);
	assert_int_equal(uv_loop_init(&w.loop), 0);
	(void)uv_timer_init(&w.loop, &w.until);
	progress_init(&w.progress, &w.loop);
	return 0;
}

static int stop_watching(void **state)
{
	(void)state;
	progress_stop(&w.progress);
	progress_close(&w.progress);
	uv_close((uv_handle_t *)&w.until, NULL);
	(void)uv_run(&w.loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&w.loop), 0);
	text_done(&w.status);
	text_done(&w.missing);
	return 0;
}

static void on_over(uv_timer_t *t)
{
	uv_stop(t->loop);
}

static void run_ms(uint64_t ms)
{
	uv_update_time(&w.loop);
	(void)uv_timer_start(&w.until, on_over, ms, 0);
	(void)uv_run(&w.loop, UV_RUN_DEFAULT);
}

static void start(void)
{
	uv_update_time(&w.loop);
	progress_start(&w.progress, 2, PORT);
}

/* What was shown or told since the last time is that. */
static void assert_told(struct text *t, const char *expected)
{
	assert_string_equal(text_string(t), expected);
	text_done(t);
}

static void test_status(void **state)
{
	(void)state;
	progress_expect(&w.progress);
	assert_told(&w.status, "\n");
	start();
	run_ms(900);
	assert_int_equal(w.status.len, 0);
	run_ms(200);
	assert_told(&w.status, "3/3 started, 0/3 joined\n");
	w.joined[0] = w.joined[2] = true;
	run_ms(1000);
	assert_told(&w.status, "3/3 started, 2/3 joined\n");
	w.joined[1] = true;
	run_ms(1000);
	assert_told(&w.status, "gone\n");
	run_ms(3000);
	assert_told(&w.status, "");
}

/* A worker that could not be started has no pid. */
static void test_status_unstarted(void **state)
{
	(void)state;
	w.workers[2].outcome.pid = 0;
	start();
	run_ms(1100);
	assert_told(&w.status, "2/3 started, 0/3 joined\n");
}

/* Where nobody can be seen to join, the line goes after two minutes. */
static void test_status_unseen(void **state)
{
	(void)state;
	w.blind = *state != NULL;
	start();
	run_ms(118500);
	assert_contains(
		text_string(&w.status), w.blind ? "3/3 started\n" : "3/3 started, 0/3 joined\n");
	assert_null(strstr(text_string(&w.status), "gone"));
	run_ms(3000);
	assert_contains(text_string(&w.status), "\ngone\n");
}

/* One that has joined shows that there is a store: the line waits for the others. */
static void test_status_waits(void **state)
{
	(void)state;
	w.joined[0] = true;
	start();
	run_ms(150000);
	assert_contains(text_string(&w.status), "1/3 joined\n");
	assert_null(strstr(text_string(&w.status), "gone"));
}

static const struct quiet_row {
	const char *says;
	bool none, stopping, suspended;
	const char *status;
} quiet[] = {
	{ "there is no status line", true, false, false, "" },
	{ "none while workers are ended", false, true, false, "gone\n" },
	{ "none while they are suspended", false, false, true, "gone\n" },
};

static void test_quiet(void **state)
{
	const struct quiet_row *row = *state;

	(void)watch(NULL);
	w.progress.status = !row->none;
	start();
	if (row->stopping)
		w.pool.state = POOL_STOPPING;
	w.pool.suspended = row->suspended;
	progress_expect(&w.progress);
	w.status.len = 0;
	run_ms(2500);
	assert_told(&w.status, row->status);
	if (row->none) {
		progress_expect(&w.progress);
		assert_told(&w.status, "");
	}
	(void)stop_watching(NULL);
}

static void test_hidden(void **state)
{
	(void)state;
	start();
	progress_hide(&w.progress);
	assert_told(&w.status, "gone\n");
	progress_hide(&w.progress);
	start(); /* of the next attempt */
	run_ms(5000);
	assert_told(&w.status, "");
}

/* After 30 s, 90 s, 210 s ..., and once when there is nobody to wait for any more. */
static void test_joining(void **state)
{
	(void)state;
	w.progress.status = false;
	w.joined[1] = true;
	start();
	run_ms(29900);
	assert_int_equal(w.looks, 0);
	run_ms(200);
	assert_told(&w.missing, "4 6 \n");
	w.workers[0].state = WORKER_ENDED;
	run_ms(59000);
	assert_told(&w.missing, "");
	run_ms(1000);
	assert_told(&w.missing, "6 \n");
	w.joined[2] = true;
	run_ms(119000);
	assert_told(&w.missing, "");
	run_ms(1000);
	assert_told(&w.missing, "\n");
	run_ms(1000000);
	assert_told(&w.missing, "");
	assert_int_equal(w.looks, 3);
}

/* An exiting worker is not named, but looked at again: it may hang there. */
static void test_joining_exiting(void **state)
{
	(void)state;
	w.progress.status = false;
	w.joined[1] = w.joined[2] = w.exiting[0] = true;
	start();
	run_ms(31000);
	assert_told(&w.missing, "");
	w.joined[2] = false;
	run_ms(60000);
	assert_told(&w.missing, "6 \n");
	w.joined[2] = true;
	run_ms(120000);
	assert_told(&w.missing, "");
	assert_int_equal(w.looks, 3);
	w.workers[0].state = WORKER_ENDED;
	run_ms(240000);
	assert_told(&w.missing, "\n");
}

static const struct silent_row {
	const char *says;
	bool joined, blind, foreign, stopped, exiting;
} silent[] = {
	{ "all have joined in time", .joined = true },
	{ "nobody can be seen", .blind = true },
	{ "the store is not launchd's", .foreign = true },
	{ "the workers have ended", .stopped = true },
	{ "the workers are exiting", .exiting = true },
};

static void test_joining_silent(void **state)
{
	const struct silent_row *row = *state;

	(void)watch(NULL);
	w.joined[0] = w.joined[1] = w.joined[2] = row->joined;
	w.exiting[0] = w.exiting[1] = w.exiting[2] = row->exiting;
	w.blind = row->blind;
	if (row->foreign)
		w.plan.store = STORE_RANK0;
	w.progress.status = false;
	start();
	if (row->stopped)
		progress_stop(&w.progress);
	run_ms(100000);
	assert_told(&w.missing, "");
	(void)stop_watching(NULL);
}

static void end(unsigned i, int code);

static void start_for_systemd(void)
{
	w.progress.status = false;
	w.plan.store = STORE_RANK0;
	w.plan.service = w.plan.ready_joined = true;
	start();
}

/* It is told once, and nothing looks any more, in the next attempt neither. */
static void test_ready(void **state)
{
	(void)state;
	start_for_systemd();
	w.joined[0] = true;
	run_ms(2500);
	assert_int_equal(w.told_joined, 0);
	w.pool.suspended = true;
	w.joined[1] = w.joined[2] = true;
	run_ms(1000);
	assert_int_equal(w.told_joined, 0);
	w.pool.suspended = false;
	run_ms(1000);
	assert_int_equal(w.told_joined, 1);
	w.looks = 0;
	progress_stop(&w.progress);
	start();
	run_ms(5000);
	assert_int_equal(w.told_joined, 1);
	assert_int_equal(w.looks, 0);
	assert_int_equal(w.notes, 0);
}

static void test_ready_ended(void **state)
{
	(void)state;
	start_for_systemd();
	w.joined[0] = w.joined[1] = true;
	run_ms(1500);
	assert_int_equal(w.told_joined, 0);
	end(2, 0);
	run_ms(1000);
	assert_int_equal(w.told_joined, 1);
}

/* Until it is reaped, an exiting worker may have failed. */
static void test_not_ready_exiting(void **state)
{
	(void)state;
	start_for_systemd();
	w.joined[0] = w.joined[1] = w.exiting[2] = true;
	run_ms(2500);
	assert_int_equal(w.told_joined, 0);
}

static void test_ready_unseen(void **state)
{
	(void)state;
	w.blind = true;
	start_for_systemd();
	run_ms(1500);
	assert_int_equal(w.told_joined, 1);
	assert_int_equal(w.notes, 1);
}

/* While workers are ended, nobody is ready; and where systemd does not wait, nothing looks. */
static void test_not_ready(void **state)
{
	(void)state;
	w.joined[0] = w.joined[1] = w.joined[2] = true;
	start_for_systemd();
	w.pool.state = POOL_STOPPING;
	run_ms(2500);
	assert_int_equal(w.told_joined, 0);
	progress_stop(&w.progress);
	w.pool.state = POOL_RUNNING;
	w.plan.service = false;
	w.looks = 0;
	start();
	run_ms(2500);
	assert_int_equal(w.told_joined, 0);
	assert_int_equal(w.looks, 0);
}

static void end(unsigned i, int code)
{
	struct outcome *o = &w.workers[i].outcome;

	o->end = (struct ending){ .how = ENDED_EXIT, .value = code };
	w.workers[i].state = WORKER_ENDED;
	w.pool.alive--;
	progress_ended(&w.progress, o);
}

/* Once, so long after the first success. */
static void test_unfinished(void **state)
{
	(void)state;
	start();
	end(0, 0);
	run_ms(UNFINISHED_MS / 2);
	end(1, 0);
	assert_int_equal(w.unfinished, 0);
	run_ms(UNFINISHED_MS / 2 + 100);
	assert_int_equal(w.unfinished, 1);
	run_ms(UNFINISHED_MS * 2);
	assert_int_equal(w.unfinished, 1);
}

static const struct finished_row {
	const char *says;
	int code;
	unsigned ended;
	bool unwanted, stopping, stopped_later;
} finished[] = {
	{ "a failure is no success", 1, 1, false, false, false },
	{ "all have ended", 0, WORKERS, false, false, false },
	{ "nobody wants to know", 0, 1, true, false, false },
	{ "the others are being ended", 0, 1, false, true, false },
	{ "the others are ended meanwhile", 0, 1, false, false, true },
};

static void test_finished(void **state)
{
	const struct finished_row *row = *state;

	(void)watch(NULL);
	if (row->unwanted)
		w.plan.unfinished_note_ms = 0;
	if (row->stopping)
		w.pool.state = POOL_STOPPING;
	start();
	w.pool.alive -= row->ended - 1;
	end(0, row->code);
	if (row->stopped_later)
		w.pool.state = POOL_STOPPING;
	run_ms(2 * UNFINISHED_MS);
	assert_int_equal(w.unfinished, 0);
	(void)stop_watching(NULL);
}

TESTS(progress)
{
	static struct suite s;
	static bool yes = true;

	suite_add(&s, "a status line until all have joined", test_status, watch, stop_watching);
	suite_add(&s, "a status line and a worker that did not start", test_status_unstarted, watch,
		stop_watching);
	suite_add(&s, "a status line, and nobody joins", test_status_unseen, watch, stop_watching);
	suite_add(&s, "a status line, and joining can't be seen", test_status_unseen, watch,
		stop_watching);
	s.at[s.count - 1].initial_state = &yes;
	suite_add(&s, "a status line waits for the last ones", test_status_waits, watch,
		stop_watching);
	SUITE_ROWS(&s, test_quiet, quiet);
	suite_add(&s, "a status line that is over stays so", test_hidden, watch, stop_watching);
	suite_add(&s, "who has not joined is told, later and later", test_joining, watch,
		stop_watching);
	suite_add(&s, "who is exiting is looked at again", test_joining_exiting, watch,
		stop_watching);
	SUITE_ROWS(&s, test_joining_silent, silent);
	suite_add(&s, "ready when all have joined", test_ready, watch, stop_watching);
	suite_add(&s, "ready when the others have ended", test_ready_ended, watch, stop_watching);
	suite_add(
		&s, "not ready while one is exiting", test_not_ready_exiting, watch, stop_watching);
	suite_add(&s, "ready where it can't be seen", test_ready_unseen, watch, stop_watching);
	suite_add(&s, "not ready while workers are ended", test_not_ready, watch, stop_watching);
	suite_add(&s, "some have ended, others still run", test_unfinished, watch, stop_watching);
	SUITE_ROWS(&s, test_finished, finished);
	return suite_run(&s);
}
