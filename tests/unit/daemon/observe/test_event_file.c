/* test_event_file.c - where the lines of --events go. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/observe/event_file.h"
#include "daemon/plan/output_plan.h"

struct scene {
	char directory[32], path[64];
	struct output_plan to;
	struct events ev;
	struct failure why;
};

static int make(void **state)
{
	struct scene *s = calloc(1, sizeof *s);

	assert_non_null(s);
	(void)snprintf(s->directory, sizeof s->directory, "/tmp/launchd-events-XXXXXX");
	assert_non_null(mkdtemp(s->directory));
	(void)snprintf(s->path, sizeof s->path, "%s/log", s->directory);
	s->to = (struct output_plan){ .events_path = s->path, .events_fd = -1 };
	events_init(&s->ev);
	*state = s;
	return 0;
}

static int unmake(void **state)
{
	struct scene *s = *state;

	events_done(&s->ev);
	(void)unlink(s->path);
	assert_int_equal(rmdir(s->directory), 0);
	free(s);
	return 0;
}

static void put(struct scene *s, const char *line)
{
	assert_int_equal(events_write(&s->ev, line, strlen(line), &s->why), 0);
}

static void assert_file(const struct scene *s, const char *text)
{
	char got[256];

	assert_true(fd_read_file(s->path, got, sizeof got) >= 0);
	assert_string_equal(got, text);
}

static void test_kept(void **state)
{
	struct scene *s = *state;

	assert_true(events_wanted(&s->to));
	put(s, "a\n");
	put(s, "b\n");
	assert_int_equal(access(s->path, F_OK), -1);
	assert_int_equal(events_open(&s->ev, &s->to, &s->why), 0);
	put(s, "c\n");
	assert_file(s, "a\nb\nc\n");
	assert_int_equal(s->why.code, 0);
}

static void test_appended(void **state)
{
	struct scene *s = *state;

	for (int run = 0; run < 2; run++) {
		events_init(&s->ev);
		assert_int_equal(events_open(&s->ev, &s->to, &s->why), 0);
		put(s, "a\n");
		events_done(&s->ev);
	}
	assert_file(s, "a\na\n");
}

/* Another node writes the file. */
static void test_nowhere(void **state)
{
	const struct output_plan nowhere = { .events_fd = -1 };
	struct scene *s = *state;

	assert_false(events_wanted(&nowhere));
	put(s, "a\n");
	assert_int_equal(events_open(&s->ev, &nowhere, &s->why), 0);
	put(s, "b\n");
	assert_int_equal(access(s->path, F_OK), -1);
}

static void test_not_to_be_opened(void **state)
{
	struct scene *s = *state;

	put(s, "a\n");
	assert_int_equal(mkfifo(s->path, 0600), 0); /* which nobody reads */
	assert_int_equal(events_open(&s->ev, &s->to, &s->why), -ENXIO);
	assert_contains(s->why.text, ": write failed: ");
	put(s, "b\n");
}

static void test_descriptor(void **state)
{
	struct scene *s = *state;
	char got[8] = "";
	int p[2];

	assert_int_equal(pipe(p), 0);
	s->to = (struct output_plan){ .events_fd = p[1] };
	assert_true(events_wanted(&s->to));
	assert_int_equal(events_open(&s->ev, &s->to, &s->why), 0);
	assert_int_equal(fcntl(s->ev.fd, F_GETFD), FD_CLOEXEC);
	put(s, "a\n");
	assert_int_equal(read(p[0], got, sizeof got), 2);
	assert_string_equal(got, "a\n");
	(void)close(p[0]);
	assert_int_equal(events_write(&s->ev, "b\n", 2, &s->why), -EPIPE);
	assert_contains(s->why.text, "no more events are written");
	put(s, "c\n"); /* and no word about it */
	(void)close(p[1]);
}

/* Writes 100,000 lines, more than a pipe takes. */
static void put_many(struct scene *s)
{
	char line[16];

	for (int i = 0; i < 100000; i++) {
		(void)snprintf(line, sizeof line, "%09d\n", i);
		put(s, line);
	}
}

static void open_pipe(struct scene *s, int p[2])
{
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	s->to = (struct output_plan){ .events_fd = p[1] };
	assert_int_equal(events_open(&s->ev, &s->to, &s->why), 0);
	assert_int_equal(close(p[1]), 0);
}

/* Nobody waits for a reader, which has all when it comes. */
static void test_slow_reader(void **state)
{
	static char got[1100000];
	struct scene *s = *state;
	size_t len = 0;
	ssize_t n;
	int p[2];

	open_pipe(s, p);
	put_many(s);
	assert_true(s->ev.kept.len > 0);
	assert_int_equal(fcntl(p[0], F_SETFL, O_NONBLOCK), 0);
	while (len < 500000) {
		while ((n = read(p[0], got + len, sizeof got - len)) > 0)
			len += (size_t)n;
		put(s, "");
	}
	assert_int_equal(fcntl(p[0], F_SETPIPE_SZ, 1 << 20), 1 << 20);
	assert_int_equal(events_end(&s->ev, &s->why), 0);
	while ((n = read(p[0], got + len, sizeof got - len)) > 0)
		len += (size_t)n;
	assert_int_equal(len, 1000000);
	for (int i = 0; i < 100000; i++)
		assert_int_equal(atoi(got + (size_t)i * 10), i);
	(void)close(p[0]);
}

static void test_no_reader(void **state)
{
	struct scene *s = *state;
	int p[2], rc = 0;

	open_pipe(s, p);
	put_many(s);
	for (int i = 0; i < 20000 && rc == 0; i++)
		rc = events_write(&s->ev, "012345678\n", 10, &s->why);
	assert_int_equal(rc, -EAGAIN);
	assert_contains(s->why.text, "write failed: the reader has stalled; no more events");
	put(s, "a\n"); /* and no word about it */
	assert_int_equal(events_end(&s->ev, &s->why), 0);
	(void)close(p[0]);
}

static void test_no_reader_at_the_end(void **state)
{
	struct scene *s = *state;
	int p[2];

	open_pipe(s, p);
	put_many(s);
	assert_int_equal(events_end(&s->ev, &s->why), -EAGAIN); /* after a second */
	assert_int_equal(s->ev.fd, -1);
	(void)close(p[0]);
}

TESTS(event_file)
{
	static struct suite s;

	(void)signal(SIGPIPE, SIG_IGN);
	suite_add(&s, "lines are kept until they have a place", test_kept, make, unmake);
	suite_add(&s, "a file that is there goes on", test_appended, make, unmake);
	suite_add(&s, "without a place they are dropped", test_nowhere, make, unmake);
	suite_add(&s, "a place that can't be opened is one failure", test_not_to_be_opened, make,
		unmake);
	suite_add(&s, "a descriptor, until nobody reads it", test_descriptor, make, unmake);
	suite_add(&s, "nobody waits for its reader", test_slow_reader, make, unmake);
	suite_add(&s, "a reader that never takes anything", test_no_reader, make, unmake);
	suite_add(&s, "nor at the end", test_no_reader_at_the_end, make, unmake);
	return suite_run(&s);
}
