/* test_traceback.c - see traceback.h. The output and its answers are caught, and the time is told.
 */
#include "daemon/run/watch/traceback.h"

#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "daemon/observe/bus.h"
#include "daemon/output/front.h"
#include "daemon/output/tail.h"
#include "daemon/workers/pool.h"
#include "daemon/workers/worker.h"
#include "tests/unit/unit.h"

#define HEADER "Traceback (most recent call last):\n"
#define FRAME  "  File \"train.py\", line 9, in main\n    raise ValueError(x)\n"

static const struct row {
	const char *says, *text, *last; /* NULL: it does not end with one */
} rows[] = {
	{ "nothing was written", "", NULL },
	{ "a traceback", "step 4\n" HEADER FRAME "ValueError: loss is NaN",
		"ValueError: loss is NaN" },
	{ "an exception without a message", HEADER FRAME "KeyboardInterrupt", "KeyboardInterrupt" },
	{ "one of a module", HEADER FRAME "torch.distributed.DistBackendError: NCCL error",
		"torch.distributed.DistBackendError: NCCL error" },
	{ "torch's mark before each line",
		"[rank3]: " HEADER "[rank3]:   File \"x.py\", line 1\n[rank3]: RuntimeError: no",
		"RuntimeError: no" },
	{ "of two the second",
		HEADER FRAME "KeyError: 'x'\n\nDuring handling of the above exception, another "
			     "exception occurred:\n\n" HEADER FRAME "ValueError: y",
		"ValueError: y" },
	{ "what torch and CUDA add",
		HEADER FRAME
		"RuntimeError: CUDA error: an illegal memory access was encountered\n"
		"CUDA kernel errors might be asynchronously reported at some other API "
		"call\n"
		"Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n\n",
		"RuntimeError: CUDA error: an illegal memory access was encountered" },
	{ "one of a thread", "Exception in thread Thread-1:\n" HEADER FRAME "OSError: gone",
		"OSError: gone" },
	{ "something came after it", HEADER FRAME "ValueError: x\nstep 5", NULL },
	{ "a line that names one came after it", HEADER FRAME "ValueError: x\nretry: 3", NULL },
	{ "what a destructor raises",
		"Exception ignored in: <function f>\n" HEADER FRAME "ValueError: x", NULL },
	{ "its start is not kept any more", "    f(x)\n" FRAME "ValueError: x", "ValueError: x" },
	{ "a stack that somebody prints", "step 4\n" FRAME "done", NULL },
	{ "nor is that of what a destructor raises, which goes on", FRAME "ValueError: x\nstep 5",
		NULL },
	{ "colours, as Python 3.13 has them",
		HEADER
		"  File \033[35m\"t.py\"\033[0m, line \033[35m1\033[0m, in \033[35mf\033[0m\n"
		"\033[1;35mValueError\033[0m: \033[35mloss is NaN\033[0m",
		"\033[1;35mValueError\033[0m: \033[35mloss is NaN\033[0m" },
	{ "one that has not ended", HEADER "  File \"train.py\", line 9, in main", NULL },
	{ "an exception's name alone", "ValueError: x", NULL },
	{ "a log of one", "ERROR:root:failed\n" HEADER FRAME "ValueError: x\nWARNING: trying again",
		NULL },
};

static void test_ends(void **state)
{
	const struct row *row = *state;
	const char *at = NULL;
	size_t len = 0;

	assert_int_equal(traceback_ends(row->text, &at, &len), row->last != NULL);
	if (row->last) {
		assert_int_equal(len, strlen(row->last));
		assert_memory_equal(at, row->last, len);
	}
}

/* --- who lives on --- */

enum { WORKERS = 2, FIRST_RANK = 4 };

static struct living {
	struct worker workers[WORKERS];
	struct pool pool;
	struct bus bus;
	struct traceback_watch watch;
	struct output_counts counts;
	const char *texts[WORKERS];
	uint64_t bytes[WORKERS];
	unsigned asked; /* so many lines */
	uint64_t now_ms;
	unsigned notes, asks;
	char note[400];
} l;

struct output_counts __wrap_output_counts(const struct output *o);
bool __wrap_output_ask_tails(struct output *o, unsigned lines);

struct output_counts __wrap_output_counts(const struct output *o)
{
	(void)o;
	return l.counts;
}

bool __wrap_output_ask_tails(struct output *o, unsigned lines)
{
	(void)o;
	l.asked = lines;
	l.asks++;
	return true;
}

static void on_note(void *owner, const struct event *e)
{
	(void)owner;
	l.notes++;
	(void)snprintf(l.note, sizeof l.note, "%s", e->note.text);
}

static void begin(void)
{
	static const struct observer observer = { .on = { [EVENT_NOTE] = on_note } };

	memset(&l, 0, sizeof l);
	l.now_ms = 1000;
	l.pool.workers = l.workers;
	bus_add(&l.bus, &observer, NULL);
	for (unsigned i = 0; i < WORKERS; i++) {
		l.workers[i].state = WORKER_RUNNING;
		l.workers[i].outcome.rank = FIRST_RANK + i;
		l.texts[i] = "";
	}
	l.watch = (struct traceback_watch){ .bus = &l.bus, .pool = &l.pool };
	traceback_begin(&l.watch, l.now_ms);
}

static void write_line(unsigned i, const char *text)
{
	l.texts[i] = text;
	l.bytes[i] += strlen(text);
	l.counts.read_bytes[1] += strlen(text);
}

static void answer(const char **of, unsigned lines)
{
	struct tails tails = { .count = WORKERS, .max = lines, .of = of, .bytes = l.bytes };

	traceback_hear(&l.watch, &tails, l.now_ms);
}

static void wait_seconds(unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		l.now_ms += 1000;
		traceback_look(&l.watch, l.now_ms);
		if (l.asked > 0)
			answer(l.texts, l.asked);
		l.asked = 0;
	}
}

static const char failed[] = HEADER FRAME "ValueError: loss is NaN";

/* Once, however long it lives. */
static void test_lives(void **state)
{
	(void)state;
	begin();
	write_line(1, failed);
	wait_seconds(60);
	assert_int_equal(l.notes, 0);
	wait_seconds(20);
	assert_string_equal(l.note,
		"rank 5 printed a traceback more than 60 s ago and is still running: ValueError: "
		"loss is NaN");
	wait_seconds(300);
	assert_int_equal(l.notes, 1);
	traceback_begin(&l.watch, l.now_ms); /* the next attempt */
	wait_seconds(100);
	assert_int_equal(l.notes, 2);
	traceback_done(&l.watch);
}

/* The others write all the time. */
static void test_beside_others(void **state)
{
	(void)state;
	begin();
	write_line(1, failed);
	for (unsigned i = 0; i < 80; i++) {
		write_line(0, i % 2 ? "step\nstep" : "step");
		wait_seconds(1);
	}
	assert_int_equal(l.notes, 1);
	traceback_done(&l.watch);
}

static void test_without_colours(void **state)
{
	(void)state;
	begin();
	write_line(1, HEADER FRAME "\033[1;35mValueError\033[0m: \033[35mloss is NaN\033[0m");
	wait_seconds(80);
	assert_string_equal(l.note,
		"rank 5 printed a traceback more than 60 s ago and is still running: ValueError: "
		"loss is NaN");
	traceback_done(&l.watch);
}

static void test_goes_on(void **state)
{
	(void)state;
	begin();
	write_line(1, failed);
	wait_seconds(55);
	write_line(1, HEADER FRAME "ValueError: loss is NaN\nstep 5");
	wait_seconds(300);
	assert_int_equal(l.notes, 0);
	traceback_done(&l.watch);
}

/* Of the same exception again and again the last lines are the same, once no more are kept. */
static void test_again(void **state)
{
	(void)state;
	begin();
	for (unsigned i = 0; i < 20; i++) {
		write_line(1, failed);
		wait_seconds(10);
	}
	assert_int_equal(l.notes, 0);
	wait_seconds(70);
	assert_int_equal(l.notes, 1);
	traceback_done(&l.watch);
}

/* Somebody else has asked for fewer lines. */
static void test_other_asks(void **state)
{
	static const char *fewer[WORKERS] = { "", "ValueError: loss is NaN" };

	(void)state;
	begin();
	write_line(1, failed);
	wait_seconds(20);
	answer(fewer, 1);
	wait_seconds(60);
	assert_int_equal(l.notes, 1);
	traceback_done(&l.watch);
}

static void test_ended(void **state)
{
	(void)state;
	begin();
	write_line(1, failed);
	wait_seconds(30);
	l.workers[1].state = WORKER_ENDED;
	wait_seconds(300);
	assert_int_equal(l.notes, 0);
	traceback_done(&l.watch);
}

/* Nobody has written anything: nobody is asked. */
static void test_silent(void **state)
{
	(void)state;
	begin();
	wait_seconds(300);
	assert_int_equal(l.asks, 0);
	write_line(0, "step 1");
	wait_seconds(300);
	assert_int_equal(l.asks, 1);
	traceback_done(&l.watch);
}

TESTS(traceback)
{
	static struct suite s;

	SUITE_ROWS(&s, test_ends, rows);
	suite_add(&s, "it lives on", test_lives, NULL, NULL);
	suite_add(&s, "others write", test_beside_others, NULL, NULL);
	suite_add(&s, "without colours", test_without_colours, NULL, NULL);
	suite_add(&s, "it goes on", test_goes_on, NULL, NULL);
	suite_add(&s, "it does the same again", test_again, NULL, NULL);
	suite_add(&s, "others ask, too", test_other_asks, NULL, NULL);
	suite_add(&s, "it has ended", test_ended, NULL, NULL);
	suite_add(&s, "nobody writes", test_silent, NULL, NULL);
	return suite_run(&s);
}
