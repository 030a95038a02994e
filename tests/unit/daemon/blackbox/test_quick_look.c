/* test_quick_look.c - what /proc tells of processes at once. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/blackbox/quick_look.h"

static const uint64_t long_ns = 10000000000;

static const struct call_row {
	const char *says;
	long number;
	const char *behind, *name;
} calls[] = {
	{ "one that has a name", SYS_futex, " 0x1 0x2", "futex" },
	{ "one that has none", 9999, " 0x1", "system call 9999" },
	{ "none at all", -1, " 0x7ff 0x55", "" },
};

static void test_call(void **state)
{
	const struct call_row *row = *state;
	char text[64], name[24];

	(void)snprintf(text, sizeof text, "%ld%s\n", row->number, row->behind);
	quick_look_call(text, name, sizeof name);
	assert_string_equal(name, row->name);
	quick_look_call("running\n", name, sizeof name);
	assert_string_equal(name, "");
	quick_look_call("", name, sizeof name);
	assert_string_equal(name, "");
}

static pid_t start_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)raise(SIGSTOP);
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
	return pid;
}

static void test_look(void **state)
{
	pid_t child = start_child(), gone = start_child();
	struct quick_look all[] = { { .pid = child }, { .pid = 0 }, { .pid = getpid() },
		{ .pid = gone } };

	(void)state;
	assert_int_equal(kill(gone, SIGKILL), 0);
	assert_int_equal(waitpid(gone, NULL, 0), gone);
	assert_int_equal(quick_look(all, 4, long_ns), 2);
	assert_true(all[0].known);
	assert_int_equal(all[0].state, 'T');
	assert_int_equal(all[0].threads, 1);
	assert_true(all[0].at_ns > 0);
	assert_false(all[1].known);
	assert_true(all[2].known);
	assert_int_equal(all[2].state, 'R');
	assert_false(all[3].known);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* Its time is over: nobody is looked at. */
static void test_no_time(void **state)
{
	struct quick_look me = { .pid = getpid() };

	(void)state;
	assert_int_equal(quick_look(&me, 1, 0), 0);
	assert_false(me.known);
}

TESTS(quick_look)
{
	static struct suite s;

	SUITE_ROWS(&s, test_call, calls);
	suite_add(&s, "one that is stopped, and one that runs", test_look, NULL, NULL);
	suite_add(&s, "none when its time is over", test_no_time, NULL, NULL);
	return suite_run(&s);
}
