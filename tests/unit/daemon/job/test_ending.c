/* test_ending.c - how a worker ended, in words and numbers. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "common/signame.h"
#include "common/text.h"
#include "daemon/job/ending.h"

static const struct ending_row {
	const char *says;
	struct ending end;
	bool success;
	int code;
	const char *words;
} endings[] = {
	{ "success", { ENDED_EXIT, 0, false }, true, 0, "exit code 0" },
	{ "a code of its own", { ENDED_EXIT, 42, false }, false, 42, "exit code 42" },
	{ "the largest code", { ENDED_EXIT, 255, false }, false, 255, "exit code 255" },
	{ "a signal", { ENDED_SIGNAL, SIGTERM, false }, false, 143, "killed by SIGTERM" },
	{ "a signal with a core", { ENDED_SIGNAL, SIGSEGV, true }, false, 139,
		"killed by SIGSEGV (core dumped)" },
	{ "the last signal", { ENDED_SIGNAL, 64, false }, false, 192, "killed by SIGRTMIN+30" },
	{ "a program that is not there", { ENDED_UNSTARTED, ENOENT, false }, false, 127,
		"could not be started" },
	{ "a program that may not run", { ENDED_UNSTARTED, EACCES, false }, false, 126,
		"could not be started" },
	{ "a file that is no program", { ENDED_UNSTARTED, ENOEXEC, false }, false, 126,
		"could not be started" },
	{ "a program below a file", { ENDED_UNSTARTED, ENOTDIR, false }, false, 127,
		"could not be started" },
	{ "a program that is being written", { ENDED_UNSTARTED, ETXTBSY, false }, false, 126,
		"could not be started" },
	{ "interpreters in a circle", { ENDED_UNSTARTED, ELOOP, false }, false, 126,
		"could not be started" },
	{ "a program that there is no memory for", { ENDED_UNSTARTED, ENOMEM, false }, false, 126,
		"could not be started" },
	{ "no memory to start it", { ENDED_UNMADE, ENOMEM, false }, false, 1,
		"could not be started" },
	{ "a signal that it sent launchd", { ENDED_SENT, SIGQUIT, false }, false, 131,
		"sent SIGQUIT to launchd" },
	{ "no log file for it", { ENDED_UNMADE, EACCES, false }, false, 1, "could not be started" },
};

static void test_ending(void **state)
{
	const struct ending_row *row = *state;
	struct text t = { 0 };

	assert_int_equal(ending_is_success(&row->end), row->success);
	assert_int_equal(ending_exit_code(&row->end), row->code);
	ending_describe(&row->end, &t);
	assert_string_equal(text_string(&t), row->words);
	text_done(&t);
}

static const struct name_row {
	const char *says; /* the name */
	int signal;
} names[] = {
	{ "SIGHUP", SIGHUP },
	{ "SIGKILL", SIGKILL },
	{ "SIGUSR1", SIGUSR1 },
	{ "SIGRTMIN+0", 34 },
	{ "SIGRTMIN+3", 37 },
	{ "signal 99", 99 },
	{ "signal 33", 33 },
};

static void test_name(void **state)
{
	const struct name_row *row = *state;

	assert_string_equal(signal_name(row->signal), row->says);
}

/* Three workers and who failed first; -1: none. */
static const struct result_row {
	const char *says;
	struct ending end[3];
	int first, ended_by, code;
} results[] = {
	{ "all ended well", { { 0 } }, -1, 0, 0 },
	{ "the first failure's own code",
		{ { ENDED_EXIT, 3, false }, { ENDED_EXIT, 9, false }, { ENDED_SIGNAL, 15, false } },
		1, 0, 9 },
	{ "the first failure's signal",
		{ { ENDED_SIGNAL, 15, false }, { ENDED_SIGNAL, 15, false },
			{ ENDED_SIGNAL, 11, true } },
		2, 0, 139 },
	{ "a failure goes above a signal that came later",
		{ { ENDED_EXIT, 3, false }, { ENDED_SIGNAL, 15, false } }, 0, SIGTERM, 3 },
	{ "ended by a signal",
		{ { ENDED_SIGNAL, 15, false }, { ENDED_SIGNAL, 15, false },
			{ ENDED_SIGNAL, 9, false } },
		-1, SIGTERM, 143 },
	{ "ended by INT", { { ENDED_EXIT, 1, false } }, -1, SIGINT, 130 },
	{ "a worker that could not be started",
		{ { ENDED_SIGNAL, 15, false }, { ENDED_UNSTARTED, ENOENT, false } }, 1, 0, 127 },
};

static void test_result(void **state)
{
	const struct result_row *row = *state;
	struct outcome o[3] = { { 0 } };
	struct result r = { .outcomes = o,
		.count = 3,
		.cause = { .kind = row->ended_by ? CAUSE_SIGNAL : CAUSE_NONE,
			.signal = row->ended_by } };

	for (size_t i = 0; i < 3; i++)
		o[i].end = row->end[i];
	if (row->first >= 0)
		r.cause = cause_of_failure(&o[row->first]);
	assert_int_equal(result_exit_code(&r), row->code);
}

TESTS(ending)
{
	static struct suite s;

	SUITE_ROWS(&s, test_ending, endings);
	SUITE_ROWS(&s, test_name, names);
	SUITE_ROWS(&s, test_result, results);
	return suite_run(&s);
}
