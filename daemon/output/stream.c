/* stream.c - see stream.h */
#include "daemon/output/stream_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "daemon/output/tail.h"

#define MOMENT_NS  1000000ull
#define SILENCE_NS 4000000ull

static void on_readable(uv_poll_t *p, int status, int events);

/* Takes it off the list of those that are read in every turn. */
static void leave_busy(struct stream *s)
{
	struct stream **at = &s->host->busy->first;

	while (*at && *at != s)
		at = &(*at)->next_busy;
	if (*at)
		*at = s->next_busy;
	s->is_busy = false;
}

/* Watches the pipe or leaves it alone. */
void stream_watch(struct stream *s, bool on)
{
	if (s->is_busy)
		leave_busy(s);
	if (s->reading == on || !s->polled)
		return;
	s->reading = on && uv_poll_start(&s->poll, UV_READABLE, on_readable) == 0;
	if (!on)
		(void)uv_poll_stop(&s->poll);
}

/* A worker that writes line by line wakes whoever polls its pipe with each of them, which costs it
 * as much as the write. So the pipe of one that has just written is not polled, but read in every
 * turn, until it has been silent for a moment. */
static void read_in_turns(struct stream *s)
{
	stream_watch(s, false);
	s->is_busy = true;
	s->next_busy = s->host->busy->first;
	s->host->busy->first = s;
	s->host->stir(s->host->owner);
}

static int64_t wall_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now); /* can't fail */
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Once, until all goes well again. */
static void say_error(const struct stream *s, struct logfile *f)
{
	char text[512];

	if (f->missing > 0 && !f->told) {
		(void)snprintf(text, sizeof text,
			"%s: can't be written to: %s; the worker goes on, and so does the console",
			f->path, strerror(f->error));
		s->host->say(s->host->owner, true, text);
	}
	f->told = f->missing > 0;
}

/* All of it is where it goes to. */
void stream_finish(struct stream *s)
{
	if (s->finished)
		return;
	s->finished = true;
	if (s->has_file) {
		filer_wait(s->host->filer, &s->file);
		say_error(s, &s->file);
		logfile_close(&s->file);
	}
	s->on_finished(s);
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

	(void)logfile_write(&f->file, out->at, out->len, wall_ns());
	out->len = 0;
	say_error(s, &f->file);
}

static void to_filter(struct stream *s, const char *at, size_t len)
{
	struct lines_style style = stream_style(s);
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

static void on_closed(uv_handle_t *h);

/* Nothing more is read: a worker that still writes gets EPIPE, as if it had the console itself. */
static void hang_up(struct stream *s)
{
	if (s->ended)
		return;
	s->ended = true;
	stream_watch(s, false);
	uv_close((uv_handle_t *)&s->poll, on_closed);
}

/* A large piece is written by the other thread, while this one looks at its lines; a console that
 * is behind wants to know at once where it is. */
static void to_file(struct stream *s, const char *at, size_t len, int64_t now)
{
	if (!filer_has(s->host->filer, &s->file)) {
		say_error(s, &s->file);
		if (!s->behind)
			logfile_forget(&s->file, s->file.now.begin);
	}
	if (len >= FILER_LARGE && !s->behind &&
		filer_write(s->host->filer, &s->file, at, len, now, &s->logged))
		return;
	filer_wait(s->host->filer, &s->file);
	s->logged = logfile_write(&s->file, at, len, now);
	say_error(s, &s->file);
}

static void take(struct stream *s, const char *at, size_t len)
{
	int64_t now = s->render || s->file.style.stamped ? wall_ns() : 0;

	tail_add(s->tail, s->fd, at, len);
	if (s->has_file)
		to_file(s, at, len, now);
	if (s->render)
		s->render(s, now);
	if (s->filter)
		to_filter(s, at, len);
	if (s->console && s->console->broken && !s->has_file)
		hang_up(s);
	else if (s->console)
		stream_show(s, at, len);
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
	struct lines_style style = stream_style(s);
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

	s->polled = false;
	fd_closep(&s->pipe);
	if (s->filter)
		end_filtered(s);
	s->on_ended(s);
	if (s->console)
		console_queue(s->console, &s->source); /* which ends the last line, in its turn */
	else
		stream_finish(s);
	s->host->stir(s->host->owner);
}

/* What its worker wrote is in the pipe, whoever may still add to it. */
static void read_rest(struct stream *s)
{
	int left = 0;

	if (ioctl(s->pipe, FIONREAD, &left) < 0)
		return;
	while (left > 0 && !s->ended) {
		ssize_t n = read_some(s);

		if (n <= 0)
			return;
		left -= (int)n;
	}
}

void stream_end(struct stream *s)
{
	if (s->ended)
		return;
	if (s->draining)
		read_rest(s);
	if (!s->ended)
		hang_up(s);
}

static void on_readable(uv_poll_t *p, int status, int events)
{
	struct stream *s = p->data;
	uint64_t before = s->read_ns;
	ssize_t n = read_some(s);

	(void)status, (void)events;
	if (n == 0 || (n < 0 && n != -EAGAIN))
		stream_end(s);
	else if (n > 0 && n < FILER_LARGE && s->reading && s->read_ns - before < MOMENT_NS)
		read_in_turns(s);
}

bool streams_read(const struct stream_host *h)
{
	for (struct stream *s = h->busy->first, *next; s; s = next) {
		ssize_t n = read_some(s);

		next = s->next_busy;
		if (n == 0 || (n < 0 && n != -EAGAIN))
			stream_end(s);
		else if (n < 0 && uv_hrtime() - s->read_ns > SILENCE_NS)
			stream_watch(s, true);
	}
	return h->busy->first != NULL;
}

void stream_drain(struct stream *s)
{
	s->draining = true;
	if (!s->ended)
		stream_watch(s, true);
}

int stream_start(struct stream *s, int pipe)
{
	int rc = uv_poll_init(s->host->loop, &s->poll, pipe);

	s->pipe = pipe;
	stream_be_source(s);
	if (rc < 0) {
		fd_closep(&s->pipe);
		s->ended = s->finished = true;
		return rc;
	}
	s->poll.data = s;
	s->polled = true;
	stream_watch(s, true);
	return 0;
}

void stream_done(struct stream *s)
{
	if (s->has_file)
		logfile_close(&s->file);
	lines_done(&s->lines);
	lines_done(&s->filter_lines);
	text_done(&s->prefix);
	text_done(&s->backlog);
}
