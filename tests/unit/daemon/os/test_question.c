/* test_question.c - a child that is asked has what it needs, and nothing else of its parent's. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <string.h>
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

TESTS(question)
{
	static struct suite s;

	SUITE_ROWS(&s, test_descriptors, descriptors);
	return suite_run(&s);
}
