/* test_preempt_watch.c - a command of --preempt-watch that prints a time, and exits or stays. */
#include "tests/unit/unit.h"

#include <string.h>

#include "common/text.h"
#include "daemon/observe/bus.h"
#include "daemon/run/preempt_watch.h"

enum { STAY_MS = 20, LONG_MS = 20 * STAY_MS, LIMIT_MS = 20000 };

static struct watching {
	uv_loop_t loop;
	uv_timer_t limit, calm;
	struct bus bus;
	struct preempt_watch watch;
	struct text notes;
	unsigned announced;
	uint64_t left_ms;
} x;

static void stop_watching(uv_timer_t *t)
{
	preempt_watch_stop(&x.watch);
	uv_close((uv_handle_t *)&x.limit, NULL);
	uv_close((uv_handle_t *)&x.calm, NULL);
	(void)t;
}

/* What else comes would come soon. */
static void stop_later(void)
{
	(void)uv_timer_start(&x.calm, stop_watching, LONG_MS, 0);
}

static void on_note(void *owner, const struct event *e)
{
	(void)owner;
	text_printf(&x.notes, "%s\n", e->note.text);
	stop_later();
}

static void on_announced(void *owner, uint64_t left_ms)
{
	(void)owner;
	x.announced++;
	x.left_ms = left_ms;
	stop_later();
}

static const struct observer observer = { .on = { [EVENT_NOTE] = on_note } };

static const struct watch_row {
	const char *says, *script;
	uint64_t stay_ms, limit_ms;
	const char *note; /* NULL: none */
	unsigned announced;
} watch_rows[] = {
	{ "a time, and it stays", "echo 30; exec sleep 100", STAY_MS, LIMIT_MS,
		"--preempt-watch /bin/sh has printed \"30\" and still runs after 0.02 s, which "
		"announces nothing: it should print the seconds that are left when this node is "
		"about to be preempted, and then exit with 0\n",
		0 },
	{ "without the line's end, and later", "sleep 0.1; printf ' 90s'; exec sleep 100", STAY_MS,
		LIMIT_MS,
		"--preempt-watch /bin/sh has printed \"90s\" and still runs after 0.02 s, which "
		"announces nothing: it should print the seconds that are left when this node is "
		"about to be preempted, and then exit with 0\n",
		0 },
	{ "words, and it stays", "echo waiting; exec sleep 100", STAY_MS, LONG_MS, NULL, 0 },
	{ "nothing, and it stays", "exec sleep 100", STAY_MS, LONG_MS, NULL, 0 },
	{ "a time on stderr, and it stays", "echo 30 >&2; exec sleep 100", STAY_MS, LONG_MS, NULL,
		0 },
	{ "a time, and it exits in time", "echo 30; sleep 0.1", LIMIT_MS, LIMIT_MS, NULL, 1 },
};

static void test_watch(void **state)
{
	const struct watch_row *row = *state;
	const char *const command[] = { "/bin/sh", "-c", row->script, NULL };

	memset(&x, 0, sizeof x);
	assert_int_equal(uv_loop_init(&x.loop), 0);
	assert_int_equal(uv_timer_init(&x.loop, &x.limit), 0);
	assert_int_equal(uv_timer_init(&x.loop, &x.calm), 0);
	assert_int_equal(uv_timer_start(&x.limit, stop_watching, row->limit_ms, 0), 0);
	bus_add(&x.bus, &observer, NULL);
	x.watch = (struct preempt_watch){
		.command = command,
		.bus = &x.bus,
		.preset_ms = 1,
		.stay_ms = row->stay_ms,
		.announce = on_announced,
	};
	preempt_watch_start(&x.watch, &x.loop);
	assert_int_equal(uv_run(&x.loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(uv_loop_close(&x.loop), 0);
	assert_string_equal(text_string(&x.notes), row->note ? row->note : "");
	assert_int_equal(x.announced, row->announced);
	assert_int_equal(x.left_ms, row->announced ? 30000 : 0);
	text_done(&x.notes);
}

TESTS(preempt_watch)
{
	static struct suite s;

	SUITE_ROWS(&s, test_watch, watch_rows);
	return suite_run(&s);
}
