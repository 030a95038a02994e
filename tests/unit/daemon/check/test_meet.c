/* test_meet.c - a line to all others, and all lines back. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/monotonic.h"
#include "daemon/check/meet.h"

struct fixture {
	struct meet_room *room;
	int fds[2];
	struct meet meet;
};

static void make(struct fixture *f)
{
	f->room = mmap(
		NULL, sizeof *f->room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(f->room != MAP_FAILED);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, f->fds), 0);
	f->meet = (struct meet){ f->room, f->fds[1] };
}

static void done(struct fixture *f)
{
	(void)close(f->fds[0]);
	(void)close(f->fds[1]);
	(void)munmap(f->room, sizeof *f->room);
}

static void test_lines(void **state)
{
	static const char all[] = "8 41234\n\n0\n";
	char line[MEET_LINE_MAX], byte;
	struct fixture f;

	(void)state;
	make(&f);
	assert_true(meet_answer(f.room, f.fds[0], all, sizeof all - 1));
	assert_int_equal(meet_others(&f.meet, "8 41234", monotonic_ms() + 60000), 0);
	assert_true(f.room->said);
	assert_string_equal(f.room->line, "8 41234");
	assert_int_equal(read(f.fds[0], &byte, 1), 1); /* the launcher is woken */
	meet_line(&f.meet, 0, line);
	assert_string_equal(line, "8 41234");
	meet_line(&f.meet, 1, line);
	assert_string_equal(line, "");
	meet_line(&f.meet, 2, line);
	assert_string_equal(line, "0");
	meet_line(&f.meet, 3, line);
	assert_string_equal(line, "");
	done(&f);
}

/* A byte of another phase is no answer. */
static void test_late(void **state)
{
	struct fixture f;

	(void)state;
	make(&f);
	meet_ring(f.fds[0]);
	assert_int_equal(meet_others(&f.meet, "8", monotonic_ms() + 20), -ETIMEDOUT);
	assert_false(meet_answer(f.room, f.fds[0], "", MEET_ALL_MAX + 1));
	(void)close(f.fds[0]);
	assert_int_equal(meet_others(&f.meet, "8", monotonic_ms() + 600000), -ETIMEDOUT);
	done(&f);
}

TESTS(meet)
{
	static struct suite s;

	suite_add(&s, "a line is said, and all lines come", test_lines, NULL, NULL);
	suite_add(&s, "they come too late, or the launcher has gone", test_late, NULL, NULL);
	return suite_run(&s);
}
