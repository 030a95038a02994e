/* stream_fixture.c - see stream_fixture.h */
#include "tests/unit/daemon/output/stream_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/fd.h"
#include "tests/unit/daemon/output/loop_end.h"
#include "tests/unit/daemon/output/scratch_dir.h"
#include "tests/unit/unit.h"

enum { LIMIT_MS = 60000, AGAIN_ROOM = 2 * STREAM_READ, STAMP_LEN = 25 };

static void say(void *owner, bool warning, const char *text)
{
	struct fixture *g = owner;

	(void)warning;
	text_printf(&g->said, "%s\n", text);
}

static void on_again(uv_idle_t *i)
{
	(void)i;
}

static void stir(void *owner)
{
	struct fixture *g = owner;

	(void)uv_idle_start(&g->again, on_again);
}

static void on_bars(uv_timer_t *t)
{
	struct fixture *g = t->data;

	for (unsigned i = 0; i < g->count; i++)
		stream_show_bar(&g->writers[i].stream);
}

static void await_bars(void *owner)
{
	struct fixture *g = owner;

	g->bars_awaited++;
	if (!uv_is_active((uv_handle_t *)&g->bars))
		(void)uv_timer_start(&g->bars, on_bars, 20, 0);
}

/* As the output thread does it. */
static void on_turn(uv_check_t *c)
{
	struct fixture *g = c->data;
	bool more = streams_read(&g->host);

	if (console_flush(&g->console) || more)
		(void)uv_idle_start(&g->again, on_again);
	else
		(void)uv_idle_stop(&g->again);
}

static void write_more(struct writer *p)
{
	while (p->end >= 0 && p->sent < p->len) {
		ssize_t n = write(p->end, p->text + p->sent, p->len - p->sent);

		if (n < 0) {
			p->got_epipe = p->got_epipe || errno == EPIPE;
			if (errno != EAGAIN)
				fd_closep(&p->end);
			return;
		}
		p->sent += (size_t)n;
	}
	if (!p->stays)
		fd_closep(&p->end);
}

static void read_console(struct fixture *g)
{
	static char buf[65536];
	size_t left = g->reads_at_most ? g->reads_at_most : SIZE_MAX;
	ssize_t n = 1;

	while (g->reads && left > 0 && n > 0) {
		n = read(g->console_end[0], buf, left < sizeof buf ? left : sizeof buf);
		if (n > 0) {
			text_add_bytes(&g->got, buf, (size_t)n);
			left -= (size_t)n;
		}
	}
}

static void on_tick(uv_timer_t *t)
{
	struct fixture *g = t->data;

	for (unsigned i = 0; i < g->count; i++) {
		struct writer *p = &g->writers[i];
		size_t kept = p->stream.backlog.len - p->stream.backlog_done;

		write_more(p);
		if (kept > g->most_kept)
			g->most_kept = kept;
		if (p->stream.has_file && !filer_has(&g->filer, &p->stream.file) &&
			p->stream.file.old_count > g->max_open)
			g->max_open = (unsigned)p->stream.file.old_count;
	}
	read_console(g);
	if (g->on_tick)
		g->on_tick(g);
}

static void on_guard(uv_timer_t *t)
{
	(void)t;
	abort(); /* it hangs */
}

void stream_fixture_make(struct fixture *g)
{
	*g = (struct fixture){ .reads = true };
	assert_int_equal(uv_loop_init(&g->loop), 0);
	(void)uv_check_init(&g->loop, &g->turn);
	(void)uv_idle_init(&g->loop, &g->again);
	(void)uv_timer_init(&g->loop, &g->tick);
	(void)uv_timer_init(&g->loop, &g->guard);
	(void)uv_timer_init(&g->loop, &g->bars);
	g->turn.data = g->again.data = g->tick.data = g->guard.data = g->bars.data = g;
	(void)uv_check_start(&g->turn, on_turn);
	(void)uv_timer_start(&g->tick, on_tick, 0, 1);
	(void)uv_timer_start(&g->guard, on_guard, LIMIT_MS, 0);
	assert_int_equal(pipe2(g->console_end, O_CLOEXEC), 0);
	assert_int_equal(fcntl(g->console_end[0], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(console_open(&g->console, &g->loop, g->console_end[1]), 0);
	g->host = (struct stream_host){ .loop = &g->loop,
		.filer = &g->filer,
		.busy = &g->busy,
		.tally = &g->tally,
		.again = { .at = malloc(AGAIN_ROOM), .room = AGAIN_ROOM },
		.say = say,
		.stir = stir,
		.await_bars = await_bars,
		.owner = g };
	assert_non_null(g->host.again.at);
	assert_int_equal(filer_init(&g->filer), 0);
}

static void on_ended(struct stream *s)
{
	struct writer *p = s->owner;

	assert_int_equal(p->finished, 0);
	p->ended++;
}

static void on_finished(struct stream *s)
{
	struct writer *p = s->owner;

	assert_int_equal(p->ended, 1);
	p->finished++;
}

struct writer *fixture_add(
	struct fixture *g, const char *text, size_t len, const struct logfile_style *style)
{
	struct writer *p = &g->writers[g->count];
	struct failure why = { 0 };
	char path[32];

	*p = (struct writer){ .fixture = g, .end = -1, .text = text, .len = len };
	p->stream = (struct stream){ .host = &g->host,
		.rank = g->count,
		.local_rank = g->count,
		.fd = 1,
		.console = &g->console,
		.tail = &p->tail,
		.on_ended = on_ended,
		.on_finished = on_finished,
		.owner = p };
	if (style) {
		(void)snprintf(path, sizeof path, "log%u", g->count);
		assert_int_equal(logfile_open(&p->stream.file, path, style, &why), 0);
		p->stream.has_file = p->stream.file.reads_back = true;
	}
	g->count++;
	return p;
}

void writer_prefix(struct writer *p, const char *prefix)
{
	text_add(&p->stream.prefix, prefix);
}

void stream_fixture_begin(struct fixture *g)
{
	for (unsigned i = 0; i < g->count; i++) {
		struct writer *p = &g->writers[i];
		int ends[2];

		assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
		p->end = ends[1];
		assert_int_equal(stream_start(&p->stream, ends[0]), 0);
	}
}

void fixture_run(struct fixture *g, bool (*until)(const struct fixture *g))
{
	while (!until(g))
		(void)uv_run(&g->loop, UV_RUN_ONCE);
}

bool fixture_all_ended(const struct fixture *g)
{
	for (unsigned i = 0; i < g->count; i++)
		if (g->writers[i].ended == 0)
			return false;
	return true;
}

bool fixture_all_finished(const struct fixture *g)
{
	int left = 0;

	for (unsigned i = 0; i < g->count; i++)
		if (g->writers[i].finished == 0)
			return false;
	if (g->reads && ioctl(g->console_end[0], FIONREAD, &left) < 0)
		return false;
	return console_is_idle(&g->console) && left == 0;
}

bool fixture_stands(const struct fixture *g)
{
	for (unsigned i = 0; i < g->count; i++) {
		const struct writer *p = &g->writers[i];
		int left = 0;

		if (p->stream.state >= STREAM_CLOSING)
			continue;
		if (ioctl(p->stream.pipe, FIONREAD, &left) < 0 ||
			(left > 0 && p->stream.state != STREAM_PAUSED) ||
			(p->sent < p->len && left < STREAM_READ / 2))
			return false;
	}
	return console_is_waiting(&g->console);
}

void fixture_ticks(struct fixture *g, unsigned n)
{
	uint64_t from = uv_now(&g->loop);

	while (uv_now(&g->loop) < from + n)
		(void)uv_run(&g->loop, UV_RUN_ONCE);
}

void stream_fixture_done(struct fixture *g)
{
	for (unsigned i = 0; i < g->count; i++)
		stream_end(&g->writers[i].stream);
	loop_end(&g->loop);
	for (unsigned i = 0; i < g->count; i++) {
		assert_int_equal(g->writers[i].stream.pipe, -1);
		stream_done(&g->writers[i].stream);
		tail_done(&g->writers[i].tail);
		fd_closep(&g->writers[i].end);
	}
	if (g->filter.open)
		logfile_close(&g->filter.file);
	console_done(&g->console);
	fd_closep(&g->console_end[0]);
	fd_closep(&g->console_end[1]);
	filer_done(&g->filer);
	free(g->host.again.at);
	text_done(&g->got);
	text_done(&g->said);
}

void fixture_set_reader(struct fixture *g, enum reader reader)
{
	g->reads = reader != READER_LATE;
	g->reads_at_most = reader == READER_SLOW ? 10000 : 0;
}

bool fixture_ended_or_stands(const struct fixture *g)
{
	return fixture_all_ended(g) || fixture_stands(g);
}

bool fixture_half_sent(const struct fixture *g)
{
	return g->writers[0].sent >= g->writers[0].len / 2;
}

/* Adds letters that depend on the seed alone, in pieces: one by one is slow under sanitizers. */
static void stream_add_letters(struct text *to, uint64_t *seed, size_t count)
{
	enum { PIECE = 4096 };
	static char letters[2 * PIECE];
	uint64_t own = 1;

	if (!letters[0])
		for (size_t i = 0; i < sizeof letters; i++)
			letters[i] = (char)('a' + draw(&own, 26));
	while (count > 0) {
		size_t len = count < PIECE ? count : PIECE;

		text_add_bytes(to, letters + draw(seed, PIECE), len);
		count -= len;
	}
}

struct text lines_of(unsigned stream, size_t size, size_t line, bool unended)
{
	uint64_t seed = 20261121 + stream;
	struct text t = { 0 };

	while (t.len < size) {
		size_t len = draw(&seed, line);
		char first = (char)('A' + stream);

		text_add_bytes(&t, &first, 1);
		stream_add_letters(&t, &seed, len > 1 ? len - 1 : 0);
		if (t.len < size || !unended)
			text_add_bytes(&t, "\n", 1);
	}
	assert_false(t.failed);
	return t;
}

void assert_shown(const struct fixture *g, const char *prefix)
{
	const char *at = text_string(&g->got), *end = at + g->got.len;
	size_t shown[FIXTURE_STREAMS] = { 0 }, len = strlen(prefix);

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at)), *line, *rest;
		size_t is = (size_t)((newline ? newline : end) - at), expected;
		unsigned i = is > len ? (unsigned)(at[len] - 'A') : FIXTURE_STREAMS;

		if (is <= len || memcmp(at, prefix, len) != 0 || i >= g->count)
			fail_msg("no line of anybody: \"%.*s\"", (int)(is < 60 ? is : 60), at);
		line = g->writers[i].text + shown[i];
		rest = memchr(line, '\n', g->writers[i].len - shown[i]);
		expected = rest ? (size_t)(rest - line) : g->writers[i].len - shown[i];
		assert_bytes(at + len, is - len, line, expected);
		shown[i] += expected + (rest != NULL);
		at = newline ? newline + 1 : end;
	}
	for (unsigned i = 0; i < g->count; i++)
		assert_int_equal(shown[i], g->writers[i].len);
}

/* The file and those before it, without stamps. */
static struct text read_files(const char *name, bool stamps)
{
	struct text ret = { 0 };
	unsigned oldest = 0;
	char path[64];
	bool begins = true;

	for (;; oldest++) {
		(void)snprintf(path, sizeof path, "%s.%u", name, oldest + 1);
		if (access(path, F_OK) < 0)
			break;
	}
	for (unsigned i = oldest + 1; i-- > 0;) {
		struct text one;

		(void)snprintf(path, sizeof path, i > 0 ? "%s.%u" : "%s", name, i);
		one = scratch_read(path);
		for (size_t at = 0; at < one.len;) {
			const char *newline = memchr(one.at + at, '\n', one.len - at);
			size_t skip = stamps && begins ? STAMP_LEN : 0;
			size_t len = newline ? (size_t)(newline + 1 - one.at) - at : one.len - at;

			assert_true(len >= skip && (!skip || one.at[at + skip - 1] == ' '));
			text_add_bytes(&ret, one.at + at + skip, len - skip);
			begins = newline != NULL;
			at += len;
		}
		text_done(&one);
	}
	return ret;
}

void assert_files(const struct writer *p, const char *name, bool stamps)
{
	struct text is = read_files(name, stamps);

	assert_bytes(text_string(&is), is.len, p->text, p->len);
	text_done(&is);
}

void fixture_set_filter(struct fixture *g, const char **texts, size_t count)
{
	struct failure why = { 0 };

	g->filter.texts = (struct vec){ .at = texts, .count = count };
	assert_int_equal(
		logfile_open(&g->filter.file, "filtered", &(struct logfile_style){ 0 }, &why), 0);
	g->filter.open = true;
}
