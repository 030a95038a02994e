/* test_events.c - where the lines of --events go. */
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
#include "daemon/events.h"
#include "daemon/plan/output.h"

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
	assert_contains(s->why.text, ": can't be written: ");
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
	assert_contains(s->why.text, "there are no more of them");
	put(s, "c\n"); /* and no word about it */
	(void)close(p[1]);
}

int main(void)
{
	static struct suite s;

	(void)signal(SIGPIPE, SIG_IGN);
	suite_add(&s, "lines are kept until they have a place", test_kept, make, unmake);
	suite_add(&s, "a file that is there goes on", test_appended, make, unmake);
	suite_add(&s, "without a place they are dropped", test_nowhere, make, unmake);
	suite_add(&s, "a place that can't be opened is one failure", test_not_to_be_opened, make,
		unmake);
	suite_add(&s, "a descriptor, until nobody reads it", test_descriptor, make, unmake);
	return suite_run(&s);
}
