/* test_hang_look.c - see hang_look.h: a child that is stuck, and what takes its place. The look at
 * a worker is caught: there is a child of this test's in its place. */
#include "daemon/run/hang_look.h"

#include <string.h>
#include <unistd.h>

#include "common/text.h"
#include "daemon/os/procfs.h"
#include "daemon/witness/talks.h"
#include "daemon/workers/worker.h"
#include "tests/unit/unit.h"

enum { WORKERS = 3, FIRST_RANK = 7, TURN_MS = 20, TURNS = 1000, AT_MS = 5000 };

/* What happens at the look at the n-th worker; the child has its own copy. */
enum look_fault { FAULT_NONE, FAULT_STUCK, FAULT_DIES };

static struct looking {
	uv_loop_t loop;
	uv_timer_t turn;
	struct worker workers[WORKERS];
	struct hang_look look;
	enum look_fault fault[WORKERS];
	enum proc proc;
	unsigned turn_ms;
} l;

void __wrap_look_at_worker(
	struct looked *w, uint64_t now_ms, enum memory_look memory, struct worker_sample *ret);
int __wrap_talks_add(
	struct talks *t, struct looked *workers, struct worker_sample *samples, unsigned count);
enum proc __wrap_proc_look(void);

void __wrap_look_at_worker(
	struct looked *w, uint64_t now_ms, enum memory_look memory, struct worker_sample *ret)
{
	(void)memory;
	if (w->wary_looks == 0 && l.fault[w->rank - FIRST_RANK] == FAULT_STUCK)
		(void)pause();
	if (l.fault[w->rank - FIRST_RANK] == FAULT_DIES)
		_exit(3);
	*ret = (struct worker_sample){
		.rank = w->rank, .at_ms = now_ms, .state = w->wary_looks > 0 ? 'D' : 'S'
	};
}

int __wrap_talks_add(
	struct talks *t, struct looked *workers, struct worker_sample *samples, unsigned count)
{
	(void)t, (void)workers, (void)samples, (void)count;
	return 0;
}

enum proc __wrap_proc_look(void)
{
	return l.proc;
}

static void on_turn(uv_timer_t *t)
{
	(void)t;
}

static void begin(void)
{
	memset(&l, 0, sizeof l);
	l.turn_ms = TURN_MS;
	(void)uv_loop_init(&l.loop);
	(void)uv_timer_init(&l.loop, &l.turn);
	for (unsigned i = 0; i < WORKERS; i++) {
		l.workers[i].state = WORKER_RUNNING;
		l.workers[i].outcome.pid = getpid();
		l.workers[i].outcome.rank = FIRST_RANK + i;
	}
}

static void end(void)
{
	hang_look_stop(&l.look);
	uv_close((uv_handle_t *)&l.turn, NULL);
	(void)uv_run(&l.loop, UV_RUN_DEFAULT);
	assert_int_equal(l.look.helper.state, HELPER_NONE);
	assert_int_equal(uv_loop_close(&l.loop), 0);
}

/* One tick, for which a second stands; what it has told. */
static void tick(bool quiet, struct text *out)
{
	text_done(out);
	hang_look_start(&l.look, &l.loop, l.workers, WORKERS, 0, 0, NULL);
	hang_look_quiet(&l.look, quiet);
	hang_look_take(&l.look, AT_MS, out);
	uv_update_time(&l.loop); /* or the timer is due before it waits for anything */
	(void)uv_timer_start(&l.turn, on_turn, l.turn_ms, 0);
	(void)uv_run(&l.loop, UV_RUN_ONCE);
}

/* Ticks until something is told. */
static bool is_told(struct text *out)
{
	tick(true, out);
	for (int i = 0; i < TURNS && out->len == 0; i++)
		tick(true, out);
	return out->len > 0;
}

static unsigned count_of(const struct text *t, const char *what)
{
	unsigned count = 0;

	for (const char *at = text_string(t); (at = strstr(at, what)); at++)
		count++;
	return count;
}

static void test_stuck_at_one(void **state)
{
	struct text out = { 0 };

	(void)state;
	begin();
	l.fault[1] = FAULT_STUCK;
	assert_true(is_told(&out));
	assert_int_equal(count_of(&out, "state=?"), WORKERS);
	assert_contains(text_string(&out), "rank=9 at=5000 state=?");
	assert_true(is_told(&out)); /* by the next child */
	assert_int_equal(count_of(&out, "state=S"), WORKERS - 1);
	assert_int_equal(count_of(&out, "state=D"), 1);
	assert_contains(text_string(&out), "rank=8 ");
	assert_false(hang_look_is_blind(&l.look));
	text_done(&out);
	end();
}

/* Each of them dies: it is as if there were none. */
static void test_none_finishes(void **state)
{
	struct text out = { 0 };
	unsigned unknown = 0, ticks = 0, seen = 0;

	(void)state;
	begin();
	l.fault[2] = FAULT_DIES;
	for (; ticks < TURNS && !hang_look_is_blind(&l.look); ticks++) {
		tick(true, &out);
		unknown += count_of(&out, "rank=8 at=5000 state=?");
		assert_int_equal(count_of(&out, "state=S"), 0);
	}
	assert_int_equal(ticks, 4 + 8 + 16);
	assert_int_equal(unknown, 3);
	l.fault[2] = FAULT_NONE;
	l.turn_ms = 500; /* it looks once a second */
	for (ticks = 0; (hang_look_is_blind(&l.look) || seen < WORKERS) && ticks < 40; ticks++) {
		(void)is_told(&out);
		seen += count_of(&out, "state=S"); /* not all of a look in one piece */
	}
	assert_true(seen >= WORKERS);
	assert_false(hang_look_is_blind(&l.look));
	text_done(&out);
	end();
}

static void test_moving(void **state)
{
	struct text out = { 0 };

	(void)state;
	begin();
	l.fault[0] = FAULT_STUCK;
	for (int i = 0; i < 20; i++) {
		tick(false, &out);
		assert_int_equal(out.len, 0);
	}
	text_done(&out);
	end();
}

/* Its pids are of others. */
static void test_foreign_proc(void **state)
{
	struct text out = { 0 };

	(void)state;
	begin();
	l.proc = PROC_FOREIGN;
	for (int i = 0; i < 20; i++) {
		tick(true, &out);
		assert_int_equal(out.len, 0);
		assert_int_equal(l.look.helper.state, HELPER_NONE);
	}
	end();
}

TESTS(hang_look)
{
	static struct suite s;

	suite_add(&s, "it is stuck at one worker", test_stuck_at_one, NULL, NULL);
	suite_add(&s, "none finishes a look", test_none_finishes, NULL, NULL);
	suite_add(&s, "the job moves", test_moving, NULL, NULL);
	suite_add(&s, "/proc of another namespace", test_foreign_proc, NULL, NULL);
	return suite_run(&s);
}
