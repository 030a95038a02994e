/* test_question.c - a child that is asked has what it needs and nothing else of its parent's, and
 * is never left to others. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/os/question.h"

/* In the child: which descriptors it has, of those that a test opens. */
static void tell_descriptors(const void *how, void *answer)
{
	char *at = answer;

	(void)how;
	for (int fd = 0; fd < 32; fd++)
		at[fd] = fcntl(fd, F_GETFD) < 0 ? '.' : '*';
}

static const struct descriptors_row {
	const char *says;
	bool keeps;
	const char *expected; /* from 0 on */
} descriptors[] = {
	{ "a child without a descriptor of its own has the answer's, only", false,
		"****............................" },
	{ "the one that it needs is the next", true, "*****..........................." },
};

static void test_descriptors(void **state)
{
	const struct descriptors_row *row = *state;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), unwanted = dup(fd); /* NOLINT */
	struct question q = {
		.work = tell_descriptors,
		.kept = row->keeps ? fd : 0,
		.whom = "the child",
		.hint = "",
		.limit_ms = 60000,
	};
	struct failure why = { 0 };
	char told[33] = "";

	assert_true(fd > 0 && unwanted > 0);
	assert_outcome(question_ask(&q, told, 32, &why), 0, &why, NULL);
	assert_string_equal(told, row->expected);
	assert_int_equal(close(fd), 0);
	assert_int_equal(close(unwanted), 0);
}

/* In the child: says that it is there, and waits. */
static void never_answer(const void *how, void *answer)
{
	(void)how, (void)answer;
	(void)write(QUESTION_KEPT, "", 1);
	for (;;)
		(void)pause();
}

static void test_signal(void **state)
{
	int ready[2], status;
	pid_t asking;
	char byte;

	(void)state;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	asking = fork();
	if (asking == 0) {
		struct question q = {
			.work = never_answer,
			.kept = ready[1],
			.whom = "the child",
			.hint = "",
			.limit_ms = 600000,
		};
		struct failure why = { 0 };

		_exit(question_ask(&q, &byte, 1, &why) == 0);
	}
	assert_int_equal(close(ready[1]), 0);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(kill(asking, SIGTERM), 0);
	assert_int_equal(waitpid(asking, &status, 0), asking);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_int_equal(waitpid(-1, &status, 0), -1); /* its child did not come to us */
	assert_int_equal(close(ready[0]), 0);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

TESTS(question)
{
	static struct suite s;

	SUITE_ROWS(&s, test_descriptors, descriptors);
	suite_add(&s, "a signal ends the asking process, after its child", test_signal, NULL, NULL);
	return suite_run(&s);
}
