/* stream_show.c - what the console gets of a stream, and what it gets later; see stream_parts.h */
#include "daemon/output/stream_parts.h"

#include <stdio.h>
#include <string.h>

#define SECOND_NS 1000000000ull

enum { DROPPED_EVERY_S = 10, BAR_EVERY_S = 10 };

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
	(void)snprintf(text, sizeof text,
		"rank %u: %llu lines of its %s were dropped, as %s was too slow", s->rank,
		(unsigned long long)s->dropped, s->fd == 1 ? "stdout" : "stderr",
		s->console->kind == CONSOLE_REMOTE ? "node rank 0's console" : "the console");
	s->dropped = 0;
	s->dropped_said_ns = now;
	s->host->say(s->host->owner, true, text);
}

static void say_gone(struct stream *s)
{
	char text[160];

	(void)snprintf(text, sizeof text,
		"rank %u: %llu bytes of its %s are not shown: their log file is gone already",
		s->rank, (unsigned long long)s->gone, s->fd == 1 ? "stdout" : "stderr");
	s->gone = 0;
	s->host->say(s->host->owner, true, text);
}

struct lines_style stream_style(const struct stream *s)
{
	return (struct lines_style){ .prefix = text_string(&s->prefix),
		.prefix_len = s->prefix.len };
}

/* Puts lines into the console's buffer: how many bytes were taken. */
static size_t put(struct stream *s, struct outbuf *out, const char *at, size_t len)
{
	const struct lines_style style = stream_style(s);
	size_t taken = lines_take(&s->lines, at, len, &style, out);

	s->source.open = s->lines.open;
	return taken;
}

/* Shows what it can at once. */
static size_t show(struct stream *s, const char *at, size_t len)
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
		if (n == 0 && out->len == before && s->console->waiting &&
			!console_wait(s->console))
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
	s->dropped += (s->late_last == '\n') + lines_count(at, len - 1);
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
	s->dropped += (uint64_t)n;
	s->late_first = s->late_last = '\0';
	s->source.open = s->lines.open;
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
	s->dropped += n > 0 ? (uint64_t)n : 0; /* there is room: see lines_break() */
	s->source.open = s->lines.open;
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
	if (!s->ended)
		stream_watch(s, true);
}

/* What the console has not taken, and no file has: it waits here, and with it the worker. */
static void hold(struct stream *s, const char *at, size_t len)
{
	if (len == 0)
		return;
	if (s->console->stuck) {
		drop(s, at, len);
		return;
	}
	text_add_bytes(&s->backlog, at, len);
	if (!s->draining)
		stream_watch(s, false);
}

/* A bar that goes on for long without an end of line is shown as it is. */
static void show_bar(struct stream *s)
{
	const struct lines_style style = stream_style(s);
	struct outbuf *out;
	uint64_t now;

	if (!s->lines.bar || s->lines.open)
		return;
	now = uv_hrtime();
	if (s->bar_ns == 0)
		s->bar_ns = now;
	if (now - s->bar_ns < BAR_EVERY_S * SECOND_NS)
		return;
	s->bar_ns = now;
	out = is_pending(s) ? NULL : console_room(s->console, &s->source);
	if (!out)
		return;
	(void)lines_show_bar(&s->lines, &style, out); /* no room: the next time */
	console_put(s->console, &s->source);
}

/* What of the last bytes is in the file, which is this thread's again. */
static struct logged settle(struct stream *s)
{
	if (!s->has_file)
		return (struct logged){ 0 };
	filer_wait(s->host->filer, &s->file);
	return s->logged;
}

void stream_show(struct stream *s, const char *at, size_t len)
{
	size_t taken = show(s, at, len);

	if (taken < len) {
		const struct logged w = settle(s);
		size_t in_file = w.len > taken ? w.len : taken;

		if (s->late_first && w.len > 0) { /* of these the file tells itself */
			s->dropped++;
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
	else
		show_bar(s);
}

/* What is gone was the rest of a line whose begin stands alone then: false, there is no room. */
static bool end_torn(struct stream *s, struct outbuf *out)
{
	const struct lines_style style = stream_style(s);

	if (s->torn)
		s->torn = lines_end(&s->lines, &style, out) < 0;
	s->source.open = s->lines.open;
	return !s->torn;
}

/* Reads the file again: false, the console has no more room. */
static bool catch_up(struct stream *s, struct outbuf *out)
{
	char *buf = s->host->again.at;
	bool was_behind = s->behind; /* then the file is this thread's until more is read */

	if (was_behind)
		(void)settle(s);
	s->behind = was_behind && !s->console->broken; /* nobody reads it any more */
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
	if (!s->ended) {
		stream_watch(s, true);
		return false;
	}
	if (!s->polled) {
		const struct lines_style style = stream_style(s);
		size_t before = out->len;

		if (lines_end(&s->lines, &style, out) < 0) {
			s->source.open = s->lines.open; /* it goes out in pieces */
			return true;
		}
		console_put_last(s->console, before);
		s->source.open = false;
		say_dropped(s, true);
		stream_finish(s);
	}
	return false;
}

/* The console has waited long enough for the end of this stream's line. */
static void cut(struct source *source, struct outbuf *out)
{
	struct stream *s = (struct stream *)source;

	(void)lines_break(&s->lines, out); /* there is room: only this line was put since */
	s->source.open = s->lines.open;
}

void stream_be_source(struct stream *s)
{
	s->source.pull = pull;
	s->source.cut = cut;
	s->source.overflow = overflow;
}
