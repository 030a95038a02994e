/* test_sm.c - a machine of three states: this is also how one is made. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/sm.h"

enum { SHUT, OPEN, BROKEN, STATES };

static const struct sm_state states[STATES] = {
	[SHUT] = { "shut", SM_TO(OPEN) | SM_TO(BROKEN) },
	[OPEN] = { "open", SM_TO(SHUT) },
	[BROKEN] = { "broken", 0 },
};

static const struct sm door = { "door", states, STATES };

static void test_edges(void **state)
{
	(void)state;
	assert_life(
		&door, (const char *const[]){ "shut: open broken", "open: shut", "broken:", NULL });
}

static void test_go(void **state)
{
	(void)state;
	assert_int_equal(sm_go(&door, SHUT, OPEN), OPEN);
	assert_int_equal(sm_go(&door, OPEN, SHUT), SHUT);
}

static void test_out_of_range(void **state)
{
	(void)state;
	assert_false(sm_may_go(&door, STATES, SHUT));
	assert_false(sm_may_go(&door, SHUT, STATES));
}

static void test_no_edge(void **state)
{
	const struct rlimit no_core = { 0, 0 };
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		/* cmocka's own handler would take the signal, and a core file nobody wants */
		if (signal(SIGABRT, SIG_DFL) == SIG_ERR || setrlimit(RLIMIT_CORE, &no_core) < 0 ||
			!freopen("/dev/null", "w", stderr))
			_exit(1);
		(void)sm_go(&door, BROKEN, OPEN);
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

TESTS(sm)
{
	static struct suite s;

	suite_add(&s, "the table's edges, and no other", test_edges, NULL, NULL);
	suite_add(&s, "an edge gives the new state", test_go, NULL, NULL);
	suite_add(&s, "what is no state has no edge", test_out_of_range, NULL, NULL);
	suite_add(&s, "what is no edge ends the process", test_no_edge, NULL, NULL);
	return suite_run(&s);
}
