/* preempt_watch.c - see preempt_watch.h */
#include "daemon/run/preempt_watch.h"

#include <stdio.h>
#include <string.h>

#include "common/monotonic.h"
#include "common/num.h"
#include "common/text.h"
#include "config/table.h"
#include "daemon/observe/bus.h"
#include "daemon/os/user_command.h"

enum {
	PAUSE_FIRST_MS = 1000,
	PAUSE_MAX_MS = 60000, /* a command that ran for so long is tried again soon */
};

/* Shared with the child. */
struct watch_said {
	struct helper_answer helper;
	struct command_said command;
};

/* --- in the child --- */

static void work(struct helper *h)
{
	const struct preempt_watch *w = h->owner;
	const char *what;
	int rc = command_run(w->command, &((struct watch_said *)h->answer)->command, &what);

	if (rc < 0)
		helper_fail(h, "%s: %s", what, strerror(-rc));
}

/* --- in the supervisor --- */

static struct command_said copy_of(const struct helper *h)
{
	return command_copy(&((const struct watch_said *)h->answer)->command);
}

/* The first word of what it has printed. */
static size_t first_word(const char *said, const char **ret)
{
	*ret = said + strspn(said, " \t\r\n");
	return strcspn(*ret, " \t\r\n");
}

/* Whether the first word is a time; *ret_ms is untouched where it is not. */
static bool read_time(const char *said, uint64_t *ret_ms)
{
	uint64_t max_s = setting_rows[SET_SHUTDOWN_TIMEOUT].max;
	char number[COMMAND_SAID_BYTES];
	const char *word;
	size_t len = first_word(said, &word);

	(void)snprintf(number, sizeof number, "%.*s", (int)len, word);
	return len > 0 && num_parse_seconds(number, max_s, ret_ms) == 0;
}

static uint64_t time_left(const struct preempt_watch *w, const char *said)
{
	uint64_t ms = w->preset_ms;
	struct text line = { 0 };
	const char *word;
	size_t len = first_word(said, &word);

	if (len == 0 || read_time(said, &ms))
		return ms;
	text_add(&line,
		"--preempt-watch exited with 0, but what it printed is no time, such as 30: \"");
	text_add_shown(&line, word, len);
	text_printf(&line, "\"; --shutdown-timeout counts, %s s", num_seconds(ms).text);
	bus_note(w->bus, NOTE_WARNING, text_string(&line));
	text_done(&line);
	return ms;
}

static void explain(const struct preempt_watch *w, bool succeeded, struct text *out)
{
	const struct command_said seen = copy_of(&w->helper);

	if (!succeeded)
		helper_explain(&w->helper, "the watch", out);
	else
		command_end_add(&seen, out);
	command_words_add(&seen, out);
}

/* Once: there may be one that fails each time, and the job runs for days. */
static void warn(struct preempt_watch *w, bool succeeded)
{
	struct text line = { 0 };

	if (w->warned)
		return;
	w->warned = true;
	text_printf(&line, "--preempt-watch %s failed: ", w->command[0]);
	explain(w, succeeded, &line);
	text_add(&line,
		"; until it is preempted it should run on; it is run again after 1 s, and later each time");
	bus_note(w->bus, NOTE_WARNING, text_string(&line));
	text_done(&line);
}

static void warn_of_stay(struct preempt_watch *w, const char *said)
{
	struct text line = { 0 };
	const char *word;
	size_t len = first_word(said, &word);

	w->stay_warned = true;
	text_printf(&line, "--preempt-watch %s has printed \"", w->command[0]);
	text_add_shown(&line, word, len);
	text_printf(&line,
		"\" and still runs after %s s, which announces nothing: it should print the "
		"seconds that are left when this node is about to be preempted, and then exit "
		"with 0",
		num_seconds(w->stay_ms).text);
	bus_note(w->bus, NOTE_WARNING, text_string(&line));
	text_done(&line);
}

/* Once, at the earliest stay_ms after it has printed something. */
static void on_stays(uv_timer_t *t)
{
	struct preempt_watch *w = t->data;
	const struct command_said seen = copy_of(&w->helper);
	uint64_t ms;
	int left_ms = seen.said_ms ? monotonic_left_ms(seen.said_ms + (int64_t)w->stay_ms) : 0;

	if (left_ms == 0 && read_time(seen.said[0], &ms))
		warn_of_stay(w, seen.said[0]);
	else
		(void)uv_timer_start(t, on_stays, left_ms > 0 ? (uint64_t)left_ms : w->stay_ms, 0);
}

static void on_again(uv_timer_t *t);

static void pause_before_next(struct preempt_watch *w)
{
	bool lasted = uv_now(w->again.loop) - w->began_ms >= PAUSE_MAX_MS;

	if (w->pause_ms == 0 || lasted)
		w->pause_ms = PAUSE_FIRST_MS;
	else
		w->pause_ms = w->pause_ms * 2 < PAUSE_MAX_MS ? w->pause_ms * 2 : PAUSE_MAX_MS;
	(void)uv_timer_start(&w->again, on_again, w->pause_ms, 0);
}

static void on_end(struct helper *h, bool succeeded)
{
	struct preempt_watch *w = h->owner;
	const struct command_said seen = copy_of(h);
	bool announced = succeeded && command_succeeded(&seen);

	(void)uv_timer_stop(&w->stays);
	if (!announced) {
		warn(w, succeeded);
		uv_update_time(w->again.loop);
		pause_before_next(w);
	}
	helper_close(h);
	if (announced)
		w->announce(w->owner, time_left(w, seen.said[0]));
}

static void run_command(struct preempt_watch *w)
{
	struct text line = { 0 };
	int rc;

	w->helper = (struct helper){
		.work = work,
		.on_end = on_end,
		.owner = w,
		.name = "preempt-watch",
		.argv = w->argv,
		.group = true,
		.lasting = true,
	};
	uv_update_time(w->again.loop);
	w->began_ms = uv_now(w->again.loop);
	rc = helper_start(&w->helper, w->again.loop, sizeof(struct watch_said), 0);
	if (rc == 0) {
		if (!w->stay_warned)
			(void)uv_timer_start(&w->stays, on_stays, w->stay_ms, 0);
		return;
	}
	text_printf(&line, "--preempt-watch can't be started: %s", strerror(-rc));
	if (!w->warned)
		bus_note(w->bus, NOTE_WARNING, text_string(&line));
	w->warned = true;
	text_done(&line);
	pause_before_next(w);
}

static void on_again(uv_timer_t *t)
{
	struct preempt_watch *w = t->data;

	if (w->helper.state == HELPER_NONE) /* else its handles take longer to close than that */
		run_command(w);
	else
		pause_before_next(w);
}

void preempt_watch_start(struct preempt_watch *w, uv_loop_t *loop)
{
	(void)uv_timer_init(loop, &w->again); /* can't fail */
	(void)uv_timer_init(loop, &w->stays); /* neither can it */
	w->again.data = w->stays.data = w;
	w->open = true;
	run_command(w);
}

void preempt_watch_stop(struct preempt_watch *w)
{
	if (!w->open)
		return;
	w->open = false;
	uv_close((uv_handle_t *)&w->again, NULL);
	uv_close((uv_handle_t *)&w->stays, NULL);
	helper_close(&w->helper);
}
