/* streaming.c - see streaming.h */
#include "tests/unit/streaming.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/fd.h"
#include "tests/unit/unit.h"

enum { LIMIT_MS = 60000, AGAIN_ROOM = 2 * STREAM_READ };

static void say(void *owner, bool warning, const char *text)
{
	struct stage *g = owner;

	(void)warning;
	text_printf(&g->said, "%s\n", text);
}

static void on_again(uv_idle_t *i)
{
	(void)i;
}

static void stir(void *owner)
{
	struct stage *g = owner;

	(void)uv_idle_start(&g->again, on_again);
}

/* As the output thread does it. */
static void on_turn(uv_check_t *c)
{
	struct stage *g = c->data;
	bool more = streams_read(&g->host);

	if (console_flush(&g->console) || more)
		(void)uv_idle_start(&g->again, on_again);
	else
		(void)uv_idle_stop(&g->again);
}

static void play(struct player *p)
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

static void read_console(struct stage *g)
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
	struct stage *g = t->data;

	for (unsigned i = 0; i < g->count; i++) {
		struct player *p = &g->players[i];
		size_t kept = p->stream.backlog.len - p->stream.backlog_done;

		play(p);
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

void stage_make(struct stage *g)
{
	*g = (struct stage){ .reads = true };
	assert_int_equal(uv_loop_init(&g->loop), 0);
	(void)uv_check_init(&g->loop, &g->turn);
	(void)uv_idle_init(&g->loop, &g->again);
	(void)uv_timer_init(&g->loop, &g->tick);
	(void)uv_timer_init(&g->loop, &g->guard);
	g->turn.data = g->again.data = g->tick.data = g->guard.data = g;
	(void)uv_check_start(&g->turn, on_turn);
	(void)uv_timer_start(&g->tick, on_tick, 0, 1);
	(void)uv_timer_start(&g->guard, on_guard, LIMIT_MS, 0);
	assert_int_equal(pipe2(g->console_end, O_CLOEXEC), 0);
	assert_int_equal(fcntl(g->console_end[0], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(console_open(&g->console, &g->loop, g->console_end[1]), 0);
	g->host = (struct stream_host){ .loop = &g->loop,
		.filer = &g->filer,
		.busy = &g->busy,
		.again = { .at = malloc(AGAIN_ROOM), .room = AGAIN_ROOM },
		.say = say,
		.stir = stir,
		.owner = g };
	assert_non_null(g->host.again.at);
	assert_int_equal(filer_init(&g->filer), 0);
}

static void on_ended(struct stream *s)
{
	struct player *p = s->owner;

	assert_int_equal(p->finished, 0);
	p->ended++;
}

static void on_finished(struct stream *s)
{
	struct player *p = s->owner;

	assert_int_equal(p->ended, 1);
	p->finished++;
}

struct player *stage_add(
	struct stage *g, const char *text, size_t len, const struct logfile_style *style)
{
	struct player *p = &g->players[g->count];
	struct failure why = { 0 };
	char path[32];

	*p = (struct player){ .stage = g, .end = -1, .text = text, .len = len };
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

void player_prefix(struct player *p, const char *prefix)
{
	text_add(&p->stream.prefix, prefix);
}

void stage_begin(struct stage *g)
{
	for (unsigned i = 0; i < g->count; i++) {
		struct player *p = &g->players[i];
		int ends[2];

		assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
		p->end = ends[1];
		assert_int_equal(stream_start(&p->stream, ends[0]), 0);
	}
}

void stage_run(struct stage *g, bool (*until)(const struct stage *g))
{
	while (!until(g))
		(void)uv_run(&g->loop, UV_RUN_ONCE);
}

bool stage_all_ended(const struct stage *g)
{
	for (unsigned i = 0; i < g->count; i++)
		if (g->players[i].ended == 0)
			return false;
	return true;
}

bool stage_all_finished(const struct stage *g)
{
	int left = 0;

	for (unsigned i = 0; i < g->count; i++)
		if (g->players[i].finished == 0)
			return false;
	if (g->reads && ioctl(g->console_end[0], FIONREAD, &left) < 0)
		return false;
	return console_is_idle(&g->console) && left == 0;
}

bool stage_stands(const struct stage *g)
{
	for (unsigned i = 0; i < g->count; i++) {
		const struct player *p = &g->players[i];
		int left = 0;

		if (p->stream.ended)
			continue;
		if (ioctl(p->stream.pipe, FIONREAD, &left) < 0 ||
			(left > 0 && (p->stream.reading || p->stream.is_busy)) ||
			(p->sent < p->len && left < STREAM_READ / 2))
			return false;
	}
	return g->console.waiting;
}

void stage_ticks(struct stage *g, unsigned n)
{
	uint64_t from = uv_now(&g->loop);

	while (uv_now(&g->loop) < from + n)
		(void)uv_run(&g->loop, UV_RUN_ONCE);
}

void stage_done(struct stage *g)
{
	for (unsigned i = 0; i < g->count; i++)
		stream_end(&g->players[i].stream);
	console_close(&g->console);
	uv_close((uv_handle_t *)&g->turn, NULL);
	uv_close((uv_handle_t *)&g->again, NULL);
	uv_close((uv_handle_t *)&g->tick, NULL);
	uv_close((uv_handle_t *)&g->guard, NULL);
	(void)uv_run(&g->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&g->loop), 0);
	for (unsigned i = 0; i < g->count; i++) {
		assert_int_equal(g->players[i].stream.pipe, -1);
		stream_done(&g->players[i].stream);
		tail_done(&g->players[i].tail);
		fd_closep(&g->players[i].end);
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
