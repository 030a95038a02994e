/* test_status.c - one line at the foot of a terminal, gone when anything else is written there. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/text.h"
#include "daemon/output/console/status.h"

/* A row is made free below, and the line is drawn there. */
#define FIRST "\033D\0337\033[1;23r\0338\033[1A\0337\033[24;1H\033[2K"
#define LAST  "\0338"

enum { LIMIT_MS = 30000 };

struct fixture {
	uv_loop_t loop;
	uv_timer_t guard;
	struct status status;
	int screen, fd; /* the terminal's other side, and the terminal */
	unsigned over;
	char got[1024];
};

static void on_guard(uv_timer_t *t)
{
	(void)t;
	abort(); /* it hangs */
}

static void on_over(struct status *s)
{
	((struct fixture *)s->owner)->over++;
}

static void set_size(struct fixture *b, unsigned short rows, unsigned short columns)
{
	const struct winsize size = { .ws_row = rows, .ws_col = columns };

	assert_int_equal(ioctl(b->screen, TIOCSWINSZ, &size), 0);
}

static void make(struct fixture *b, const char *term)
{
	*b = (struct fixture){ 0 };
	assert_int_equal(openpty(&b->screen, &b->fd, NULL, NULL, NULL), 0);
	assert_int_equal(fcntl(b->screen, F_SETFL, O_NONBLOCK), 0);
	set_size(b, 24, 20);
	assert_int_equal(setenv("TERM", term, 1), 0);
	assert_int_equal(uv_loop_init(&b->loop), 0);
	assert_int_equal(uv_timer_init(&b->loop, &b->guard), 0);
	assert_int_equal(uv_timer_start(&b->guard, on_guard, LIMIT_MS, 0), 0);
	status_open(&b->status, &b->loop, b->fd, on_over, b);
}

static void done(struct fixture *b)
{
	status_close(&b->status);
	uv_close((uv_handle_t *)&b->guard, NULL);
	(void)uv_run(&b->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&b->loop), 0);
	fd_closep(&b->screen);
	fd_closep(&b->fd);
}

/* What came on the screen since; the kernel brings it there a little later. */
static void assert_screen(struct fixture *b, const char *expected)
{
	struct pollfd p = { .fd = b->screen, .events = POLLIN };
	size_t len = 0;

	while (len < strlen(expected)) {
		ssize_t n;

		assert_int_equal(poll(&p, 1, LIMIT_MS), 1);
		n = read(b->screen, b->got + len, sizeof b->got - 1 - len);
		assert_true(n > 0);
		len += (size_t)n;
	}
	b->got[len] = '\0';
	assert_string_equal(b->got, expected);
	assert_int_equal(read(b->screen, b->got, sizeof b->got), -1);
}

static void turn(struct fixture *b)
{
	for (int i = 0; i < 5; i++)
		(void)uv_run(&b->loop, UV_RUN_NOWAIT);
}

static void test_line(void **state)
{
	struct fixture b;

	(void)state;
	make(&b, "xterm");
	assert_int_equal(b.status.state, STATUS_HIDDEN);
	status_show(&b.status, "one");
	assert_screen(&b, FIRST "one" LAST);
	turn(&b);
	status_show(&b.status, "two, which is longer than a row");
	assert_screen(&b, "\0337\033[24;1H\033[2Ktwo, which is longe\0338");
	turn(&b);
	assert_int_equal(b.over, 0); /* its own writes count for nothing */
	status_end(&b.status);
	assert_screen(&b, "\0337\033[1;24r\033[24;1H\033[2K\0338");
	status_show(&b.status, "three");
	assert_screen(&b, "");
	assert_int_equal(b.over, 1);
	done(&b);
}

static void test_written(void **state)
{
	struct fixture b;

	(void)state;
	make(&b, "xterm");
	status_show(&b.status, "one");
	assert_screen(&b, FIRST "one" LAST);
	assert_int_equal(write(b.fd, "worker", 6), 6);
	while (b.over == 0)
		(void)uv_run(&b.loop, UV_RUN_ONCE);
	assert_screen(&b, "worker\0337\033[1;24r\033[24;1H\033[2K\0338");
	done(&b);
}

static void test_resized(void **state)
{
	struct fixture b;

	(void)state;
	make(&b, "xterm");
	status_show(&b.status, "one");
	assert_screen(&b, FIRST "one" LAST);
	set_size(&b, 30, 80);
	status_show(&b.status, "two");
	assert_int_equal(b.over, 1);
	assert_screen(&b, "\0337\033[1;24r\033[24;1H\033[2K\0338");
	done(&b);
}

static const struct none_row {
	const char *says, *term;
	unsigned short rows;
	bool file;
} nones[] = {
	{ "a dumb terminal has none", "dumb", 24, false },
	{ "a small terminal has none", "xterm", 3, false },
	{ "a terminal of no size has none", "xterm", 0, false },
	{ "no terminal", "xterm", 24, true },
};

static void test_none(void **state)
{
	const struct none_row *row = *state;
	struct fixture b;

	make(&b, row->term);
	set_size(&b, row->rows, 20);
	if (row->file) {
		status_close(&b.status);
		turn(&b);
		fd_closep(&b.fd);
		b.fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		status_open(&b.status, &b.loop, b.fd, on_over, &b);
	}
	status_show(&b.status, "one");
	assert_int_equal(b.status.state, STATUS_OVER);
	assert_screen(&b, "");
	done(&b);
}

static void test_life(void **state)
{
	(void)state;
	assert_life(&status_life,
		(const char *const[]){
			"none: hidden over", "hidden: shown over", "shown: over", "over:", NULL });
}

TESTS(status)
{
	static struct suite s;

	suite_add(&s, "a status line's life", test_life, NULL, NULL);
	SUITE_ROWS(&s, test_none, nones);
	suite_add(&s, "a line in the last row", test_line, NULL, NULL);
	suite_add(&s, "somebody else writes", test_written, NULL, NULL);
	suite_add(&s, "the window has changed", test_resized, NULL, NULL);
	return suite_run(&s);
}
