/* test_failure.c - the first cause wins, and decides the exit code. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

static void test_first(void **state)
{
	struct failure why = { 0 };

	(void)state;
	assert_int_equal(failure_set(&why, -EINVAL, "%s: %d", "first", 1), -EINVAL);
	assert_int_equal(failure_set(&why, -ENOENT, "second"), -ENOENT);
	assert_int_equal(why.code, -EINVAL);
	assert_string_equal(why.text, "first: 1");
	assert_int_equal(failure_oom(&why), -ENOMEM);
	assert_int_equal(why.code, -EINVAL);
}

static void test_long(void **state)
{
	struct failure why = { 0 };
	char text[2000];

	(void)state;
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	(void)failure_set(&why, -EINVAL, "%s", text);
	assert_int_equal(strlen(why.text), sizeof why.text - 1);
}

/* The limits are named where they may be meant. */
static void test_not_started(void **state)
{
	struct failure crowded = { 0 }, starved = { 0 };

	(void)state;
	assert_int_equal(failure_not_started(&crowded, -EAGAIN, "a thread"), -EAGAIN);
	assert_string_equal(crowded.text,
		"can't start a thread: Resource temporarily unavailable: no more processes and "
		"threads are allowed here (ulimit -u, or pids.max of a control group)");
	assert_int_equal(failure_not_started(&starved, -ENOMEM, "a process"), -ENOMEM);
	assert_string_equal(starved.text, "can't start a process: Cannot allocate memory");
}

/* What users wrote is quoted in sentences; it must not make two lines of one, nor move a cursor. */
static void test_one_line(void **state)
{
	struct failure why = { 0 };

	(void)state;
	(void)failure_set(&why, -EINVAL, "--x: \"%s\"", "a\nlaunchd: note: all is well\x1b[2J\x7f");
	for (const char *p = why.text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			fail_msg("a control character in: %s", why.text);
	assert_contains(why.text, "launchd: note: all is well");
}

static const struct code_row {
	const char *says;
	int code, exit_code;
} codes[] = {
	{ "nothing failed", 0, 0 },
	{ "what the user wrote", -EINVAL, 2 },
	{ "a program that is not there", -ENOENT, 127 },
	{ "a program that may not be executed", -EACCES, 126 },
	{ "a file that is no program", -ENOEXEC, 126 },
	{ "out of memory", -ENOMEM, 1 },
	{ "anything else", -EIO, 1 },
};

static void test_code(void **state)
{
	const struct code_row *row = *state;
	const struct failure why = { .code = row->code };

	assert_int_equal(failure_exit_code(&why), row->exit_code);
}

int main(void)
{
	static struct suite s;

	suite_add(&s, "the first cause wins", test_first, NULL, NULL);
	suite_add(&s, "a sentence that is too long is cut", test_long, NULL, NULL);
	suite_add(&s, "a process that can't be started", test_not_started, NULL, NULL);
	suite_add(&s, "control characters stay out of the sentence", test_one_line, NULL, NULL);
	SUITE_ROWS(&s, test_code, codes);
	return suite_run(&s);
}
