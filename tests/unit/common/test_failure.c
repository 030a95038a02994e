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
	assert_non_null(strstr(why.text, "x...x"));
}

/* The limits are named where they may be meant. */
static void test_not_started(void **state)
{
	struct failure crowded = { 0 }, starved = { 0 };

	(void)state;
	assert_int_equal(failure_not_started(&crowded, -EAGAIN, "a thread"), -EAGAIN);
	assert_string_equal(crowded.text,
		"can't start a thread: Resource temporarily unavailable: no more processes and threads are allowed here (ulimit -u, or pids.max of the control group)");
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

/* errno doesn't decide the exit code: what the failure is about does. */
static const struct code_row {
	const char *says;
	int code;
	enum failure_class class;
	int exit_code;
} codes[] = {
	{ "nothing failed", 0, FAILURE_OTHER, 0 },
	{ "what the user wrote", -EINVAL, FAILURE_USAGE, 2 },
	{ "a value that a system call refused", -EINVAL, FAILURE_OTHER, 1 },
	{ "a program that isn't there", -ENOENT, FAILURE_NOT_FOUND, 127 },
	{ "a program that may not be executed", -EACCES, FAILURE_NOT_EXECUTABLE, 126 },
	{ "a file that is no program", -ENOEXEC, FAILURE_NOT_EXECUTABLE, 126 },
	{ "a port that only root may have", -EACCES, FAILURE_OTHER, 1 },
	{ "out of memory", -ENOMEM, FAILURE_OTHER, 1 },
};

static void test_code(void **state)
{
	const struct code_row *row = *state;
	struct failure why = { 0 }, copy = { 0 };
	int rc = row->code;

	if (row->class == FAILURE_USAGE)
		rc = failure_usage(&why, "%s", row->says);
	else if (row->class != FAILURE_OTHER)
		rc = failure_program(&why, row->code, "%s", row->says);
	else if (row->code < 0)
		rc = failure_set(&why, row->code, "%s", row->says);
	assert_int_equal(rc, row->code);
	assert_int_equal(why.class, row->class);
	assert_int_equal(failure_exit_code(&why), row->exit_code);
	assert_int_equal(failure_copy(&copy, &why), row->code);
	assert_int_equal(failure_exit_code(&copy), row->exit_code);
}

static void test_copy(void **state)
{
	struct failure first = { 0 }, second = { 0 };

	(void)state;
	(void)failure_usage(&first, "first");
	(void)failure_set(&second, -EIO, "second");
	assert_int_equal(failure_copy(&first, &second), -EIO);
	assert_int_equal(first.code, -EINVAL);
	assert_string_equal(first.text, "first");
}

/* --- all failures, and not only the first --- */

static void test_only_first(void **state)
{
	struct failure why = { 0 };

	(void)state;
	assert_true(failure_go_on(0, &why));
	assert_false(failure_go_on(failure_usage(&why, "first"), &why));
	assert_false(failure_go_on(failure_usage(&why, "second"), &why));
	assert_string_equal(why.text, "first");
}

static void test_all(void **state)
{
	struct arena arena = { 0 };
	struct failures all = { .arena = &arena };
	struct failure why = { .all = &all }, elsewhere = { 0 };
	int rc;

	(void)state;
	assert_true(failure_go_on(0, &why));
	rc = failure_usage(&why, "first");
	assert_true(failure_go_on(rc, &why));
	assert_int_equal(why.code, 0);
	assert_string_equal(why.text, "");
	assert_true(failure_go_on(rc, &why)); /* the same once more */
	assert_true(failure_go_on(failure_program(&why, -ENOENT, "second"), &why));
	assert_true(failure_go_on(failure_usage(&why, "first"), &why));
	(void)failure_program(&elsewhere, -EACCES, "third");
	assert_true(failure_go_on(failure_copy(&why, &elsewhere), &why));
	assert_int_equal(all.texts.count, 3);
	assert_string_equal(all.texts.at[0], "first");
	assert_string_equal(all.texts.at[1], "second");
	assert_string_equal(all.texts.at[2], "third");
	assert_false(failure_go_on(failure_set(&why, -EIO, "no fault of the user's"), &why));
	assert_false(failure_go_on(failure_usage(&why, "fourth"), &why));
	assert_string_equal(why.text, "no fault of the user's");
	assert_int_equal(all.texts.count, 3);
	arena_done(&arena);
}

/* Of what is no configuration each line may be wrong. */
static void test_too_many(void **state)
{
	struct arena arena = { 0 };
	struct failures all = { .arena = &arena };
	struct failure why = { .all = &all };

	(void)state;
	for (int i = 0; i < FAILURES_MAX; i++)
		assert_true(failure_go_on(failure_usage(&why, "line %d", i), &why));
	assert_false(failure_go_on(failure_usage(&why, "one more"), &why));
	assert_string_equal(why.text, "one more");
	assert_int_equal(all.texts.count, FAILURES_MAX);
	arena_done(&arena);
}

TESTS(failure)
{
	static struct suite s;

	suite_add(&s, "the first cause wins", test_first, NULL, NULL);
	suite_add(&s, "a sentence that is too long is cut", test_long, NULL, NULL);
	suite_add(&s, "a process that can't be started", test_not_started, NULL, NULL);
	suite_add(&s, "control characters stay out of the sentence", test_one_line, NULL, NULL);
	suite_add(&s, "a copy replaces no first cause", test_copy, NULL, NULL);
	suite_add(
		&s, "the first is the last where not all are wanted", test_only_first, NULL, NULL);
	suite_add(&s, "all in order, each once, up to one that isn't the user's", test_all, NULL,
		NULL);
	suite_add(&s, "so many that the rest is not looked at", test_too_many, NULL, NULL);
	SUITE_ROWS(&s, test_code, codes);
	return suite_run(&s);
}
