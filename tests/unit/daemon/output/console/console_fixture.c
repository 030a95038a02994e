/* console_fixture.c - see console_fixture.h */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "common/fd.h"
#include "tests/unit/daemon/output/console/console_fixture.h"
#include "tests/unit/daemon/output/loop_end.h"
#include "tests/unit/daemon/output/scratch_dir.h"

enum { LIMIT_MS = 30000 };

static void on_guard(uv_timer_t *t)
{
	(void)t;
	abort(); /* it hangs */
}

void fixture_loop(struct fixture *b)
{
	assert_int_equal(uv_loop_init(&b->loop), 0);
	assert_int_equal(uv_timer_init(&b->loop, &b->guard), 0);
	assert_int_equal(uv_timer_start(&b->guard, on_guard, LIMIT_MS, 0), 0);
}

void console_fixture_open(struct fixture *b, int fd)
{
	fixture_loop(b);
	assert_int_equal(console_open(&b->c, &b->loop, fd), 0);
}

void console_fixture_make(struct fixture *b, enum fixture_kind kind)
{
	int ends[2] = { -1, -1 };
	struct termios raw;

	*b = (struct fixture){ 0 };
	switch (kind) {
	case KIND_PIPE:
		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		break;
	case KIND_SOCKET:
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
		break;
	case KIND_PTY:
		assert_int_equal(openpty(&ends[0], &ends[1], NULL, NULL, NULL), 0);
		assert_int_equal(tcgetattr(ends[1], &raw), 0);
		cfmakeraw(&raw);
		assert_int_equal(tcsetattr(ends[1], TCSANOW, &raw), 0);
		break;
	case KIND_FILE:
		scratch_clear();
		ends[1] = open("console", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		ends[0] = open("console", O_RDONLY | O_CLOEXEC);
		break;
	}
	assert_true(ends[0] >= 0 && ends[1] >= 0);
	b->read_end = ends[0];
	b->write_end = ends[1];
	console_fixture_open(b, b->write_end);
}

void console_fixture_done(struct fixture *b)
{
	loop_end(&b->loop);
	console_done(&b->c);
	fd_closep(&b->write_end);
	fd_closep(&b->read_end);
	text_done(&b->got);
}

void fixture_read(struct fixture *b)
{
	char buf[65536];
	ssize_t n;

	assert_int_equal(fcntl(b->read_end, F_SETFL, O_NONBLOCK), 0);
	while ((n = read(b->read_end, buf, sizeof buf)) > 0)
		text_add_bytes(&b->got, buf, (size_t)n);
	assert_true(n == 0 || errno == EAGAIN || errno == EIO);
}

void fixture_assert_got(struct fixture *b, const char *expected)
{
	fixture_read(b);
	assert_bytes(text_string(&b->got), b->got.len, expected, strlen(expected));
}

void outbuf_add(struct outbuf *out, const char *text)
{
	memcpy(out->at + out->len, text, strlen(text));
	out->len += strlen(text);
}

static bool pull(struct source *s, struct outbuf *out)
{
	struct feed *f = (struct feed *)s;

	f->pulls++;
	for (; f->done < f->lines && out->room - out->len >= FEED_LINE; f->done++) {
		char line[FEED_LINE + 1];

		(void)snprintf(line, sizeof line, "%c%-*u\n", f->name, FEED_LINE - 2, f->done);
		outbuf_add(out, line);
	}
	return f->done < f->lines;
}

static void cut(struct source *s, struct outbuf *out)
{
	struct feed *f = (struct feed *)s;

	f->cuts++;
	f->begun = false;
	outbuf_add(out, "\n");
}

struct feed feed_of(char name, unsigned lines)
{
	static const bool never; /* a line is open: see feed_put() */

	return (struct feed){
		.source = { .open = &never, .pull = pull, .cut = cut }, .name = name, .lines = lines
	};
}

bool feed_put(struct fixture *b, struct feed *f, const char *text, bool open)
{
	struct outbuf *out = console_room(&b->c, &f->source);

	if (!out)
		return false;
	outbuf_add(out, text);
	f->begun = open;
	f->source.open = &f->begun;
	console_put(&b->c, &f->source);
	return true;
}

void fixture_flush(struct fixture *b)
{
	while (console_flush(&b->c))
		;
}

void fixture_read_all(struct fixture *b)
{
	while (!console_is_idle(&b->c)) {
		(void)uv_run(&b->loop, UV_RUN_NOWAIT);
		fixture_flush(b);
		fixture_read(b);
	}
}

size_t fixture_fill(struct fixture *b, struct feed *f)
{
	f->lines = 1000;
	console_queue(&b->c, &f->source);
	fixture_flush(b);
	assert_true(console_is_waiting(&b->c));
	return b->c.written;
}
