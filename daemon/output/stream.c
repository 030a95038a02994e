/* stream.c - see stream.h */
#include "daemon/output/stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/sm.h"
#include "common/utc.h"
#include "daemon/output/followed.h"
#include "daemon/output/step_lines.h"
#include "daemon/output/tail.h"

#define MOMENT_NS  1000000ull
#define SILENCE_NS 4000000ull
#define SECOND_NS  1000000000ull

enum {
	DROPPED_EVERY_S = 10,
	JOURNAL_BAR_EVERY_S = 10,
	FOLLOWED_LINE_MAX = 64 * 1024, /* a longer one comes in pieces */
};

static void on_readable(uv_poll_t *p, int status, int events);

static void on_closed(uv_handle_t *h);

static const struct sm_state states[STREAM_STATES] = {
	/* finished: it can't be watched */
	[STREAM_NEW] = { "new", SM_TO(STREAM_POLLED) | SM_TO(STREAM_FINISHED) },
	[STREAM_POLLED] = { "polled",
		SM_TO(STREAM_BUSY) | SM_TO(STREAM_PAUSED) | SM_TO(STREAM_CLOSING) },
	[STREAM_BUSY] = { "busy",
		SM_TO(STREAM_POLLED) | SM_TO(STREAM_PAUSED) | SM_TO(STREAM_CLOSING) },
	[STREAM_PAUSED] = { "paused", SM_TO(STREAM_POLLED) | SM_TO(STREAM_CLOSING) },
	[STREAM_CLOSING] = { "closing", SM_TO(STREAM_ENDED) },
	[STREAM_ENDED] = { "ended", SM_TO(STREAM_FINISHED) },
	[STREAM_FINISHED] = { "finished", 0 },
};

const struct sm stream_life = { "stream", states, STREAM_STATES };

/* Takes it off the list of those that are read in every turn. */
static void leave_busy(struct stream *s)
{
	struct stream **at = &s->host->busy->first;

	while (*at && *at != s)
		at = &(*at)->next_busy;
	if (*at)
		*at = s->next_busy;
}

static void enter_busy(struct stream *s)
{
	s->next_busy = s->host->busy->first;
	s->host->busy->first = s;
	s->host->stir(s->host->owner);
}

static void stream_goto(struct stream *s, enum stream_state next)
{
	enum stream_state before = s->state;

	if (next == before)
		return;
	s->state = sm_go(&stream_life, before, next);
	if (before == STREAM_BUSY)
		leave_busy(s);
	if (before == STREAM_POLLED)
		(void)uv_poll_stop(&s->poll);
	if (next == STREAM_BUSY)
		enter_busy(s);
	if (next == STREAM_POLLED)
		(void)uv_poll_start(&s->poll, UV_READABLE, on_readable); /* can't fail */
	if (next == STREAM_CLOSING)
		uv_close((uv_handle_t *)&s->poll, on_closed);
}

/* Its worker may still write. */
static bool is_going(const struct stream *s)
{
	return s->state == STREAM_POLLED || s->state == STREAM_BUSY || s->state == STREAM_PAUSED;
}

/* The pipe is to be read again, if it was not. */
static void go_on(struct stream *s)
{
	if (is_going(s))
		stream_goto(s, STREAM_POLLED);
}

/* Once, until all goes well again. */
static void say_error(const struct stream *s, struct logfile *f)
{
	char text[512];

	if (f->missing > 0 && !f->told) {
		(void)snprintf(text, sizeof text,
			"can't write to %s: %s; the worker and its console output continue",
			f->path, strerror(f->error));
		s->host->say(s->host->owner, true, text);
	}
	f->told = f->missing > 0;
}

/* All of it is where it goes to. */
static void finish(struct stream *s)
{
	stream_goto(s, STREAM_FINISHED);
	if (s->has_file) {
		filer_wait(s->host->filer, &s->file);
		say_error(s, &s->file);
		logfile_close(&s->file);
	}
	s->on_finished(s);
}

static struct lines_style style_of(const struct stream *s)
{
	return (struct lines_style){ .prefix = text_string(&s->prefix),
		.prefix_len = s->prefix.len };
}

/* One that contains a text of the filter's. */
static bool matches(const char *line, size_t len, void *data)
{
	const struct filter *f = data;

	for (size_t i = 0; i < f->texts.count; i++)
		if (memmem(line, len, f->texts.at[i], strlen(f->texts.at[i])))
			return true;
	return false;
}

static void write_filtered(const struct stream *s, struct outbuf *out)
{
	struct filter *f = s->filter;

	(void)logfile_write(&f->file, out->at, out->len, utc_now_ns());
	out->len = 0;
	say_error(s, &f->file);
}

static void to_filter(struct stream *s, const char *at, size_t len)
{
	struct lines_style style = style_of(s);
	struct outbuf out = s->host->again;

	style.keep = matches;
	style.data = s->filter;
	while (len > 0) {
		size_t n = lines_take(&s->filter_lines, at, len, &style, &out);

		write_filtered(s, &out);
		at += n;
		len -= n;
	}
}

/* Where there is no memory no step is seen. */
static void to_steps(struct stream *s, const char *at, size_t len)
{
	if (!s->step_line)
		s->step_line = calloc(1, sizeof *s->step_line);
	if (s->step_line)
		step_lines_take(s->host->steps, s->step_line, at, len);
}

static const struct lines_style followed_style = { .held_max = FOLLOWED_LINE_MAX };

static void tell_followers(struct stream *s, struct outbuf *out)
{
	const struct followed_lines f = { s->rank, s->fd, s->followed_lost, out->at, out->len };

	if (f.len == 0 && f.lost == 0)
		return;
	if (s->host->follow(s->host->owner, &f))
		s->followed_lost = 0;
	else
		s->followed_lost += lines_count(out->at, out->len);
	out->len = 0;
}

static void to_followers(struct stream *s, const char *at, size_t len)
{
	struct outbuf out = s->host->again;

	while (len > 0) {
		size_t n = lines_take(&s->followed_lines, at, len, &followed_style, &out);

		tell_followers(s, &out);
		at += n;
		len -= n;
	}
}

/* A last line without an end, and what found no room, as no more lines come that would tell it. */
static void end_followed(struct stream *s)
{
	struct outbuf out = s->host->again;

	while (lines_end(&s->followed_lines, &followed_style, &out) < 0)
		tell_followers(s, &out);
	tell_followers(s, &out);
	tell_followers(s, &out);
}

void stream_unfollow(struct stream *s)
{
	lines_done(&s->followed_lines);
	s->followed_lost = 0;
}

/* A large piece is written by the other thread, while this one looks at its lines; a console that
 * is behind wants to know at once where it is. Nor is a busy stream's handed over: its worker
 * writes lines, which takes it all of a CPU, and the thread would take turns with it. */
static void to_file(struct stream *s, const char *at, size_t len, int64_t now)
{
	if (!filer_has(s->host->filer, &s->file)) {
		say_error(s, &s->file);
		if (!s->behind)
			logfile_forget(&s->file, s->file.now.begin);
	}
	if (len >= FILER_LARGE && !s->behind && s->state != STREAM_BUSY &&
		filer_write(s->host->filer, &s->file, len, now, &s->logged))
		return;
	filer_wait(s->host->filer, &s->file);
	s->logged = logfile_write(&s->file, at, len, now);
	say_error(s, &s->file);
}

static bool is_pending(const struct stream *s)
{
	return s->behind || s->late_first != '\0' || s->backlog.len > s->backlog_done;
}

/* Says what could not be shown; not more often than is good. */
static void say_dropped(struct stream *s, bool last)
{
	uint64_t now = uv_hrtime();
	char text[160];

	if (s->dropped == 0 ||
		(!last && s->dropped_said_ns &&
			now - s->dropped_said_ns < DROPPED_EVERY_S * SECOND_NS))
		return;
	(void)snprintf(text, sizeof text, "rank %u: dropped %llu lines of %s: %s is too slow",
		s->rank, (unsigned long long)s->dropped, s->fd == 1 ? "stdout" : "stderr",
		s->console->kind == CONSOLE_REMOTE          ? "node rank 0's console" :
			s->console->kind == CONSOLE_JOURNAL ? "the journal" :
							      "the console");
	s->dropped = 0;
	s->dropped_said_ns = now;
	s->host->say(s->host->owner, true, text);
}

static void say_gone(struct stream *s)
{
	char text[160];

	(void)snprintf(text, sizeof text,
		"rank %u: %llu bytes of %s can't be shown: the log file that held them is gone",
		s->rank, (unsigned long long)s->gone, s->fd == 1 ? "stdout" : "stderr");
	s->gone = 0;
	s->host->say(s->host->owner, true, text);
}

static void count_dropped(struct stream *s, uint64_t lines)
{
	s->dropped += lines;
	tally_add(&s->host->tally->dropped_lines[s->fd - 1], lines);
}

/* Puts lines into the console's buffer: how many bytes were taken. */
static size_t put(struct stream *s, struct outbuf *out, const char *at, size_t len)
{
	const struct lines_style style = style_of(s);

	return lines_take(&s->lines, at, len, &style, out);
}

/* Shows what it can at once. */
static size_t show_now(struct stream *s, const char *at, size_t len)
{
	size_t taken = 0;

	if (is_pending(s) || s->source.queued)
		return 0;
	while (taken < len) {
		struct outbuf *out = console_room(s->console, &s->source);
		size_t before = out ? out->len : 0, n;

		if (!out)
			break;
		n = put(s, out, at + taken, len - taken);
		console_put(s->console, &s->source);
		if (n == 0 && out->len == before && !console_wait(s->console))
			break; /* it is full */
		taken += n;
		if (taken < len)
			(void)console_flush(s->console);
	}
	return taken;
}

static char kind_of(char byte)
{
	return byte == '\n' ? '\n' : ' ';
}

/* The console has yet to read what is in the file before these. */
static void drop_behind(struct stream *s, const char *at, size_t len)
{
	if (!s->late_first) {
		s->late_first = kind_of(*at++);
		len--;
	}
	if (len == 0)
		return;
	count_dropped(s, (s->late_last == '\n') + lines_count(at, len - 1));
	s->late_last = kind_of(at[len - 1]);
}

/* It has: what of a line was there ends. False: there is no room. */
static bool end_behind(struct stream *s, struct outbuf *out)
{
	ssize_t n = s->late_first ? lines_drop(&s->lines, &s->late_first, 1, out) : 0;

	if (n < 0)
		return false;
	if (s->late_last)
		n += lines_drop(&s->lines, &s->late_last, 1, out); /* which breaks no line */
	count_dropped(s, (uint64_t)n);
	s->late_first = s->late_last = '\0';
	return true;
}

static void drop(struct stream *s, const char *at, size_t len)
{
	ssize_t n;

	if (s->behind || s->late_first) {
		drop_behind(s, at, len);
		return;
	}
	n = lines_drop(&s->lines, at, len, &s->console->out);
	count_dropped(s, n > 0 ? (uint64_t)n : 0); /* there is room: see lines_break() */
	console_put(s->console, &s->source);
	say_dropped(s, false);
}

/* The console's reader takes nothing: the worker is not to wait for it. */
static void overflow(struct source *source)
{
	struct stream *s = (struct stream *)source;

	if (s->backlog.len == s->backlog_done)
		return;
	drop(s, s->backlog.at + s->backlog_done, s->backlog.len - s->backlog_done);
	text_done(&s->backlog);
	s->backlog_done = 0;
	go_on(s);
}

/* What the console has not taken, and no file has: it waits here, and with it the worker. */
static void hold(struct stream *s, const char *at, size_t len)
{
	if (len == 0)
		return;
	if (s->console->state == CONSOLE_STUCK) {
		drop(s, at, len);
		return;
	}
	text_add_bytes(&s->backlog, at, len);
	if (!s->draining)
		stream_goto(s, STREAM_PAUSED);
}

/* A bar shows what was not shown yet. */
static bool is_new_bar(const struct lines *l)
{
	return l->bar && !l->said && !l->open && l->len > 0;
}

/* Asks for a moment's delay: the last state that comes within it wins. */
static void await_bar(const struct stream *s)
{
	bool waits = s->console && s->console->state != CONSOLE_BROKEN && is_new_bar(&s->lines);

	waits = waits || (s->host->is_followed && is_new_bar(&s->followed_lines));
	waits = waits || (s->step_line && step_line_waits(s->step_line));
	if (waits)
		s->host->await_bars(s->host->owner);
}

/* An entry of a journal costs more than a line. */
static bool is_soon(struct stream *s)
{
	uint64_t now = uv_hrtime();

	if (s->console->kind != CONSOLE_JOURNAL)
		return false;
	if (s->bar_ns == 0)
		s->bar_ns = now;
	if (now - s->bar_ns < JOURNAL_BAR_EVERY_S * SECOND_NS)
		return true;
	s->bar_ns = now;
	return false;
}

static void show_bar(struct stream *s)
{
	const struct lines_style style = style_of(s);
	struct outbuf *out;
	int rc = -ENOBUFS;

	if (!is_new_bar(&s->lines) || is_pending(s) || s->source.queued || is_soon(s))
		return;
	out = console_room(s->console, &s->source);
	if (out) {
		rc = lines_show_bar(&s->lines, &style, out);
		console_put(s->console, &s->source);
	}
	if (rc < 0)
		console_queue(s->console, &s->source); /* it waits again from its turn on */
	s->host->stir(s->host->owner);
}

static void show_followed_bar(struct stream *s)
{
	struct outbuf out = s->host->again;

	if (is_new_bar(&s->followed_lines) &&
		lines_show_bar(&s->followed_lines, &followed_style, &out) > 0)
		tell_followers(s, &out);
}

void stream_show_bar(struct stream *s)
{
	if (!is_going(s))
		return;
	if (s->step_line && step_line_waits(s->step_line))
		step_lines_rest(s->host->steps, s->step_line);
	if (s->host->is_followed)
		show_followed_bar(s);
	if (s->console && s->console->state != CONSOLE_BROKEN)
		show_bar(s);
}

/* What of the last bytes is in the file, which is this thread's again. */
static struct logged settle(struct stream *s)
{
	if (!s->has_file)
		return (struct logged){ 0 };
	filer_wait(s->host->filer, &s->file);
	return s->logged;
}

static void show(struct stream *s, const char *at, size_t len)
{
	size_t taken = show_now(s, at, len);

	if (taken < len) {
		const struct logged w = settle(s);
		size_t in_file = w.len > taken ? w.len : taken;

		if (s->late_first && w.len > 0) { /* of these the file tells itself */
			count_dropped(s, 1);
			s->torn = s->torn || !s->behind;
			s->late_first = s->late_last = '\0';
		}
		if (taken < w.len && !s->behind) {
			s->behind = true;
			s->place = logfile_place(&s->file, &w, at, taken);
		}
		hold(s, at + in_file, len - in_file);
	}
	if (is_pending(s))
		console_queue(s->console, &s->source);
}

/* What is gone was the rest of a line that has started on the console, and ends there now: false,
 * there is no room. */
static bool end_torn(struct stream *s, struct outbuf *out)
{
	const struct lines_style style = style_of(s);

	if (s->torn)
		s->torn = lines_end(&s->lines, &style, out) < 0;
	return !s->torn;
}

/* Reads the file again: false, the console has no more room. */
static bool catch_up(struct stream *s, struct outbuf *out)
{
	char *buf = s->host->again.at;
	bool was_behind = s->behind; /* then the file is this thread's until more is read */

	if (was_behind)
		(void)settle(s);
	s->behind =
		was_behind && s->console->state != CONSOLE_BROKEN; /* nobody reads it any more */
	while (end_torn(s, out) && s->behind) {
		struct logged from = { .place = s->place };
		uint64_t gone;
		ssize_t n = logfile_read(&s->file, &s->place, buf, STREAM_READ, &gone);
		size_t taken = n > 0 ? put(s, out, buf, (size_t)n) : 0;

		s->gone += gone;
		s->torn = gone > 0;
		if (n > 0 && taken < (size_t)n) {
			from.len = (size_t)n;
			s->place = logfile_place(&s->file, &from, buf, taken);
			return false;
		}
		s->behind = s->place.position < s->file.now.end;
	}
	if (s->torn || !end_behind(s, out))
		return false;
	if (was_behind)
		logfile_forget(&s->file, s->file.now.begin);
	if (s->gone)
		say_gone(s);
	return true;
}

/* The last line is over, and so is the stream: false, there is no room. */
static bool end_shown(struct stream *s, struct outbuf *out)
{
	const struct lines_style style = style_of(s);
	size_t before = out->len;
	bool is_out = lines_end(&s->lines, &style, out) == 0; /* else it goes out in pieces */

	if (!is_out)
		return false;
	console_put_last(s->console, before);
	say_dropped(s, true);
	finish(s);
	return true;
}

static bool pull(struct source *source, struct outbuf *out)
{
	struct stream *s = (struct stream *)source;

	if (!catch_up(s, out))
		return true;
	if (s->backlog.len > s->backlog_done)
		s->backlog_done += put(
			s, out, s->backlog.at + s->backlog_done, s->backlog.len - s->backlog_done);
	if (s->backlog.len > s->backlog_done)
		return true;
	text_done(&s->backlog);
	s->backlog_done = 0;
	go_on(s);
	if (is_going(s))
		await_bar(s);
	return s->state == STREAM_ENDED && !end_shown(s, out);
}

/* The console has waited long enough for the end of this stream's line. */
static void cut(struct source *source, struct outbuf *out)
{
	struct stream *s = (struct stream *)source;

	(void)lines_break(&s->lines, out); /* there is room: only this line was put since */
}

/* Takes what was read to where it goes. A worker that still writes though nobody reads the console
 * gets EPIPE, as if it had the console itself. */
static void take(struct stream *s, const char *at, size_t len)
{
	int64_t now = s->render || s->file.style.stamped ? utc_now_ns() : 0;

	tally_add(&s->host->tally->read_bytes[s->fd - 1], len);
	tail_add(s->tail, s->fd, at, len);
	if (s->has_file)
		to_file(s, at, len, now);
	if (s->render)
		s->render(s, now);
	if (s->filter)
		to_filter(s, at, len);
	if (s->host->steps)
		to_steps(s, at, len);
	if (s->host->is_followed)
		to_followers(s, at, len);
	if (s->console && s->console->state == CONSOLE_BROKEN && !s->has_file)
		stream_goto(s, STREAM_CLOSING);
	else if (s->console)
		show(s, at, len);
	await_bar(s);
}

/* What is there, up to a buffer; 0: the pipe has ended, negative errno. */
static ssize_t read_some(struct stream *s)
{
	const struct stream_host *h = s->host;
	char *buf = filer_buffer(h->filer);
	ssize_t n;

	if (!buf)
		return -ENOMEM;
	do
		n = read(s->pipe, buf, STREAM_READ);
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		if ((size_t)n > h->busy->most)
			h->busy->most = (size_t)n;
		s->read_ns = uv_hrtime();
		take(s, buf, (size_t)n);
	}
	return n < 0 ? -errno : n;
}

/* A last line without an end. */
static void end_filtered(struct stream *s)
{
	struct lines_style style = style_of(s);
	struct outbuf out = s->host->again;
	bool left;

	style.keep = matches;
	style.data = s->filter;
	do {
		left = lines_end(&s->filter_lines, &style, &out) < 0; /* a long line, in pieces */
		write_filtered(s, &out);
	} while (left);
}

static void on_closed(uv_handle_t *h)
{
	struct stream *s = h->data;

	stream_goto(s, STREAM_ENDED);
	fd_closep(&s->pipe);
	if (s->filter)
		end_filtered(s);
	if (s->step_line)
		step_lines_rest(s->host->steps, s->step_line);
	if (s->host->is_followed)
		end_followed(s);
	s->on_ended(s);
	if (s->console)
		console_queue(s->console, &s->source); /* which ends the last line, in its turn */
	else
		finish(s);
	s->host->stir(s->host->owner);
}

/* Reads what the pipe holds now, and no more: a helper that the worker left behind may go on
 * writing. */
static void read_rest(struct stream *s)
{
	int left = 0;

	if (ioctl(s->pipe, FIONREAD, &left) < 0)
		return;
	while (left > 0 && is_going(s)) {
		ssize_t n = read_some(s);

		if (n <= 0)
			return;
		left -= (int)n;
	}
}

void stream_end(struct stream *s)
{
	if (s->draining && is_going(s))
		read_rest(s);
	if (is_going(s))
		stream_goto(s, STREAM_CLOSING);
}

/* A worker that writes line by line wakes whoever polls its pipe with each of them, which costs it
 * as much as the write. So the pipe of one that has just written is not polled, but read in every
 * turn, until it has been silent for a moment. */
static void on_readable(uv_poll_t *p, int status, int events)
{
	struct stream *s = p->data;
	uint64_t before = s->read_ns;
	ssize_t n = read_some(s);

	(void)status, (void)events;
	if (n == 0 || (n < 0 && n != -EAGAIN))
		stream_end(s);
	else if (n > 0 && n < FILER_LARGE && s->state == STREAM_POLLED &&
		s->read_ns - before < MOMENT_NS)
		stream_goto(s, STREAM_BUSY);
}

bool streams_read(const struct stream_host *h)
{
	for (struct stream *s = h->busy->first, *next; s; s = next) {
		ssize_t n = read_some(s);

		next = s->next_busy;
		if (n == 0 || (n < 0 && n != -EAGAIN))
			stream_end(s);
		else if (n < 0 && uv_hrtime() - s->read_ns > SILENCE_NS)
			stream_goto(s, STREAM_POLLED);
	}
	return h->busy->first != NULL;
}

void stream_drain(struct stream *s)
{
	s->draining = true;
	go_on(s);
}

int stream_start(struct stream *s, int pipe)
{
	int rc = uv_poll_init(s->host->loop, &s->poll, pipe);

	s->pipe = pipe;
	s->source.open = &s->lines.open;
	s->source.pull = pull;
	s->source.cut = cut;
	s->source.overflow = overflow;
	s->poll.data = s;
	if (rc < 0)
		fd_closep(&s->pipe);
	stream_goto(s, rc < 0 ? STREAM_FINISHED : STREAM_POLLED);
	return rc;
}

void stream_done(struct stream *s)
{
	if (s->has_file)
		logfile_close(&s->file);
	lines_done(&s->lines);
	lines_done(&s->filter_lines);
	lines_done(&s->followed_lines);
	free(s->step_line);
	text_done(&s->prefix);
	text_done(&s->backlog);
}
