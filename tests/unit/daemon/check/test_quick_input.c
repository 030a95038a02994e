/* test_quick_input.c - what settings and environment make of the quick check. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "daemon/check/quick.h"
#include "daemon/check/quick_input.h"

static struct settings_fixture b;

static int set_up(void **state)
{
	(void)state;
	settings_fixture_make(&b, false);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	settings_fixture_done(&b);
	return 0;
}

static void put(enum setting_id id, const char *text)
{
	settings_fixture_put(&b, id, text, "--it");
}

static int make(const char *const *env, bool restart, bool alone, struct quick_input *ret)
{
	return quick_input_make(&b.s, env, restart, alone, &b.arena, ret, &b.why);
}

static void test_without_anything(void **state)
{
	static const char *const env[] = { NULL };
	struct quick_input in;

	(void)state;
	assert_int_equal(make(env, false, true, &in), 0);
	assert_false(in.gpus_given || in.restart);
	assert_null(in.visible);
	assert_null(in.gpu_uuids);
	assert_null(in.command);
	assert_null(in.log_dir);
	assert_string_equal(in.tmp_dir, "/tmp");
	assert_string_equal(in.sys_root, "");
	assert_string_equal(in.kmsg, "/dev/kmsg");
}

static void test_with_all(void **state)
{
	static const char *const env[] = { "TMPDIR=/scratch", "CUDA_VISIBLE_DEVICES=1,2", NULL };
	struct quick_input in;

	(void)state;
	put(SET_CHECK_GPUS, "0");
	put(SET_CHECK_GPU_UUIDS, "GPU-1");
	put(SET_LOG_DIR, "logs");
	put(SET_CHECK_COMMAND, "sh -c 'exit 1'");
	put(SET_CHECK_TIMEOUT, "30");
	assert_int_equal(make(env, false, false, &in), 0);
	assert_true(in.gpus_given);
	assert_int_equal(in.gpus, 0);
	assert_string_equal(in.gpu_uuids, "GPU-1");
	assert_string_equal(in.visible, "1,2");
	assert_string_equal(in.log_dir, "logs");
	assert_string_equal(in.tmp_dir, "/scratch");
	assert_contains(in.command[0], "/sh");
	assert_string_equal(in.command[2], "exit 1");
	assert_null(in.command[3]);
	assert_int_equal(in.command_limit_ms, 30000);
	put(SET_LOG_DIR, "/dev/null");
	assert_int_equal(make(env, false, false, &in), 0);
	assert_null(in.log_dir);
}

static const struct when_row {
	const char *says, *when;
	bool start, restart;
} whens[] = {
	{ "by default before the start alone", NULL, true, false },
	{ "before the start", "start", true, false },
	{ "before restarts", "restart", false, true },
	{ "before both", "start,restart", true, true },
	{ "in any order", "restart,start", true, true },
};

static void test_when(void **state)
{
	static const char *const env[] = { NULL };
	const struct when_row *row = *state;
	struct quick_input in;

	(void)set_up(NULL);
	put(SET_CHECK_COMMAND, "/bin/true");
	if (row->when)
		put(SET_CHECK_WHEN, row->when);
	assert_int_equal(make(env, false, false, &in), 0);
	assert_int_equal(in.command != NULL, row->start);
	assert_int_equal(make(env, true, false, &in), 0);
	assert_int_equal(in.command != NULL, row->restart);
	assert_true(in.restart);
	assert_int_equal(make(env, false, true, &in), 0);
	assert_non_null(in.command);
	(void)tear_down(NULL);
}

static const struct refused_row {
	const char *says, *command, *part;
} refused[] = {
	{ "a command that is not there", "nhc-that-is-nowhere -v",
		"--it (short for --check-command): nhc-that-is-nowhere: No such file" },
	{ "a file that can't be executed", "/etc/passwd",
		"--it (short for --check-command): /etc/passwd: Permission denied" },
	{ "open quotes", "sh -c 'x",
		"--it (short for --check-command): \"sh -c 'x\" is not a command: unmatched" },
	{ "blanks", "  ", "--it (short for --check-command): it contains no command" },
};

static void test_refused(void **state)
{
	static const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	const struct refused_row *row = *state;
	struct quick_input in;

	(void)set_up(NULL);
	put(SET_CHECK_COMMAND, row->command);
	assert_outcome(make(env, false, true, &in), -EINVAL, &b.why, row->part);
	assert_int_equal(failure_exit_code(&b.why), 2);
	(void)tear_down(NULL);
}

TESTS(quick_input)
{
	static struct suite s;

	suite_add(&s, "without any setting", test_without_anything, set_up, tear_down);
	suite_add(&s, "with all that there is", test_with_all, set_up, tear_down);
	SUITE_ROWS(&s, test_when, whens);
	SUITE_ROWS(&s, test_refused, refused);
	return suite_run(&s);
}
