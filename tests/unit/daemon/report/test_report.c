/* test_report.c - the report of each story, word by word. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "daemon/job/ending.h"
#include "daemon/report/error_file.h"
#include "tests/unit/daemon/report/report_fixture.h"

/* clang-format off */
static const struct report_row {
	const char *says;
	struct outcome o[4];
	size_t count;
	int first; /* -1: none */
	struct result r;
	const char *text;
} rows[] = {
	{ "all well is no report",
	  { WORKER(0, RAN(1, 2)), WORKER(1, RAN(1, 2)) }, 2, -1, { 0 }, "" },
	{ "one failed, the other was stopped",
	  { WORKER(0, .end = { ENDED_SIGNAL, SIGSEGV, true }, RAN(1, 1.25)),
	    WORKER(1, STOPPED(SIGTERM, 1.25), BY_SIGNAL(SIGTERM), RAN(1, 1.5)) }, 2, 0,
	  { FAILURE },
	  HEAD("4 (local rank 0, pid 10)", "killed by SIGSEGV (core dumped) after 0.25 s") COMMAND
	  "launchd: note: rank 5 (local rank 1, pid 11): ended by launchd's SIGTERM within 0.25 "
	  "s\n" },
	{ "when: local time, and since the job's start, not the worker's",
	  { WORKER(0, BY_EXIT(1), RAN(5, 13.5)) }, 1, 0,
	  { FAILURE, .started_ns = S(1), .started_wall_ns = 1763705999345678901 },
	  HEAD("4 (local rank 0, pid 10)", "exit code 1 after 12.5 s")
	  "launchd: error: time: 2025-11-21 07:50:11.845 +0130\n" COMMAND },
	{ "the other ignored the signal",
	  { WORKER(0, BY_EXIT(7), RAN(1, 13.5)),
	    WORKER(1, KILLED(SIGTERM, 13.5), BY_SIGNAL(SIGKILL), RAN(1, 18.5)) }, 2, 0,
	  { FAILURE },
	  HEAD("4 (local rank 0, pid 10)", "exit code 7 after 12.5 s") COMMAND
	  "launchd: note: rank 5 (local rank 1, pid 11): still running 5.00 s after launchd's "
	  "SIGTERM: killed by SIGKILL\n" },
	{ "the other was killed without a question",
	  { WORKER(0, BY_EXIT(7), RAN(1, 13.5)),
	    WORKER(1, KILLED(0, 13.5), BY_SIGNAL(SIGKILL), RAN(1, 13.51)),
	    WORKER(2, KILLED(0, 13.5), BY_EXIT(0), RAN(1, 13.5)) }, 3, 0,
	  { FAILURE },
	  HEAD("4 (local rank 0, pid 10)", "exit code 7 after 12.5 s") COMMAND
	  "launchd: note: rank 6 (local rank 2, pid 12): exit code 0 after 12.5 s\n"
	  "launchd: note: rank 5 (local rank 1, pid 11): killed by launchd after 12.5 s\n" },
	{ "the other had ended well before",
	  { WORKER(0, BY_EXIT(1), RAN(1, 1000)), WORKER(1, RAN(1, 40000), BY_EXIT(0)) }, 2, 0,
	  { FAILURE },
	  HEAD("4 (local rank 0, pid 10)", "exit code 1 after 16 min 39 s") COMMAND
	  "launchd: note: rank 5 (local rank 1, pid 11): exit code 0 after 11 h 06 min\n" },
	{ "one could not be started, the next was not tried",
	  { UNSTARTABLE(0, ENOENT), UNSTARTED(1) },
	  2, 0, { FAILURE },
	  HEAD("4 (local rank 0)", "could not be started") COMMAND
	  "launchd: note: rank 5 (local rank 1): not started\n" },
	{ "together with the culprit, after it, and by launchd: in this order",
	  { WORKER(0, STOPPED(SIGTERM, 2), BY_EXIT(0), RAN(1, 5.5)),
	    WORKER(1, BY_EXIT(3), RAN(1, 2.3)),
	    WORKER(2, BY_SIGNAL(SIGABRT), RAN(1, 2.0001)),
	    WORKER(3, BY_EXIT(1), RAN(1, 2)) }, 4, 3, { FAILURE },
	  HEAD("7 (local rank 3, pid 13)", "exit code 1 after 1.00 s") COMMAND
	  "launchd: error: rank 6 (local rank 2, pid 12): failed at the same time: killed by "
	  "SIGABRT; either may be the root cause\n"
	  "launchd: note: rank 5 (local rank 1, pid 11): failed 0.30 s later: exit code 3\n"
	  "launchd: note: rank 4 (local rank 0, pid 10): exit code 0 within 3.50 s of launchd's "
	  "SIGTERM\n" },
	{ "OOM-killed, surely and likely",
	  { WORKER(0, .oom = OOM_YES, BY_SIGNAL(SIGKILL), RAN(1, 2)),
	    WORKER(1, .oom = OOM_LIKELY, BY_SIGNAL(SIGKILL), RAN(1, 3)) }, 2, 0, { FAILURE },
	  HEAD("4 (local rank 0, pid 10)", "killed by the kernel's OOM killer (SIGKILL) after 1.00 s") COMMAND
	  "launchd: note: rank 5 (local rank 1, pid 11): failed 1.00 s later: killed by SIGKILL (likely by the kernel's OOM killer)\n" },
	{ "ended by a signal of nobody known",
	  { WORKER(0, STOPPED(SIGINT, 2), BY_EXIT(1), RAN(1, 3)),
	    WORKER(1, BY_EXIT(0), RAN(1, 2)) }, 2, -1,
	  { .cause = { .kind = CAUSE_SIGNAL, .signal = SIGINT } },
	  "launchd: error: root cause: launchd received SIGINT on host (node 2)\nlaunchd: note: rank 5 (local rank 1, pid 11): exit code 0 after 1.00 s\nlaunchd: note: rank 4 (local rank 0, pid 10): exit code 1 within 1.00 s of launchd's SIGINT\n" },
	{ "ended by somebody's signal; a worker that failed later is no culprit",
	  { WORKER(0, BY_EXIT(1), RAN(1, 3)) }, 1, 0,
	  { .cause = { .kind = CAUSE_SIGNAL, .signal = SIGTERM,
	      .sender = { 812, 1000, false, "ba\x1bsh" },
	      .at_ns = S(2.5) },
	    .started_ns = S(1), .started_wall_ns = 1763705999345678901 },
	  "launchd: error: root cause: launchd received SIGTERM on host (node 2) from pid 812 (ba\\x1bsh, uid 1000) after 1.50 s\nlaunchd: error: time: 2025-11-21 07:50:00.845 +0130\nlaunchd: note: rank 4 (local rank 0, pid 10): exit code 1 after 2.00 s\n" },
	{ "the sender has ended",
	  { { 0 } }, 0, -1,
	  { .cause = { .kind = CAUSE_SIGNAL, .signal = SIGTERM,
	      .sender = { 812, 0, false, "" } } },
	  "launchd: error: root cause: launchd received SIGTERM on host (node 2) from pid 812 (already gone, uid 0)\n" },
	{ "the terminal's signal",
	  { { 0 } }, 0, -1,
	  { .cause = { .kind = CAUSE_SIGNAL, .signal = SIGQUIT, .sender = { .kernel = true } } },
	  "launchd: error: root cause: launchd received SIGQUIT on host (node 2) from the terminal\n" },
	{ "the kernel's signal",
	  { { 0 } }, 0, -1,
	  { .cause = { .kind = CAUSE_SIGNAL, .signal = SIGXCPU, .sender = { .kernel = true } } },
	  "launchd: error: root cause: launchd received SIGXCPU on host (node 2) from the kernel\n" },
	{ "the time is over",
	  { { 0 } }, 0, -1,
	  { .cause = { .kind = CAUSE_MAX_RUNTIME, .at_ns = S(7201) }, .started_ns = S(1) },
	  "launchd: error: root cause: --max-runtime (120 min 00 s) expired on host (node 2) "
	  "after 120 min 00 s\n" },
	{ "a hang: how long the job had run is not how long nothing moved",
	  { { 0 } }, 0, -1,
	  { .cause = { .kind = CAUSE_HANG, .at_ns = S(17), .detail = "rank 1 sleeps for 13 s\x1b" },
	    .started_ns = S(1) },
	  "launchd: error: root cause: the job hung after 16.0 s: rank 1 sleeps for 13 s\\x1b\n" },
	{ "nodes are bad",
	  { { 0 } }, 0, -1,
	  { .cause = { .kind = CAUSE_BAD_NODE, .node = 1, .host = "gpu06",
	      .detail = "gpu_driver: it does not answer", .exclude = "gpu06,gpu08" } },
	  "launchd: error: root cause: node 1 (gpu06) is bad: gpu_driver: it does not answer; "
	  "2 nodes are bad; exclude: gpu06,gpu08\n" },
	{ "launchd was killed",
	  { { 0 } }, 0, -1,
	  { .cause = { .kind = CAUSE_GUARD, .at_ns = S(2) }, .started_ns = S(1) },
	  "launchd: error: root cause: launchd itself was killed on host (node 2) after 1.00 s\n" },
	{ "its launcher has ended",
	  { { 0 } }, 0, -1, { .cause = { .kind = CAUSE_LAUNCHER } },
	  "launchd: error: root cause: launchd's parent process (mpirun, srun) ended on host "
	  "(node 2)\n" },
	{ "its launcher hung up",
	  { { 0 } }, 0, -1, { .cause = { .kind = CAUSE_HANGUP } },
	  "launchd: error: root cause: mpirun or srun has ended (nobody reads launchd's output "
	  "any more) on host (node 2)\n" },
	{ "one could not even be killed",
	  { WORKER(0, BY_EXIT(1), RAN(1, 2)), WORKER(1, KILLED(SIGTERM, 2), .started_ns = S(1)) },
	  2, 0, { FAILURE },
	  HEAD("4 (local rank 0, pid 10)", "exit code 1 after 1.00 s") COMMAND
	  "launchd: note: rank 5 (local rank 1, pid 11): still alive when launchd exited\n" },
	{ "a clock that went nowhere",
	  { WORKER(0, BY_EXIT(1), RAN(2, 1)), WORKER(1, BY_EXIT(0)) }, 2, 0, { FAILURE },
	  HEAD("4 (local rank 0, pid 10)", "exit code 1 after 0.00 s") COMMAND
	  "launchd: note: rank 5 (local rank 1, pid 11): exit code 0 after 0.00 s\n" },
	{ "left behind, and ended in time: a note, and none in a job that went well",
	  { WORKER(0, .left = 1, BY_EXIT(0), RAN(1, 2)) }, 1, -1, { .left = 3 }, "" },
	{ "left behind in a job that went well, and killed: a warning",
	  { WORKER(0, .left = 2, .left_killed = 1, RAN(1, 2)), WORKER(1, .left = 7),
	    WORKER(2, .left = 1, .left_killed = 1) }, 3, -1, { .left = 3, .left_killed = 3 },
	  "launchd: warning: rank 4 left 2 processes behind; launchd killed 1 of them\n"
	  "launchd: warning: rank 6 left 1 process behind; launchd killed it\n"
	  "launchd: warning: workers left 3 processes behind; launchd killed them\n" },
	{ "left behind in a job that failed: notes, equal ones in one line",
	  { WORKER(0, BY_EXIT(1), .left = 2, RAN(1, 2)), WORKER(1, BY_EXIT(0), .left = 1, RAN(1, 2)),
	    WORKER(2, BY_EXIT(0), .left = 2, RAN(1, 2)) }, 3, 0, { FAILURE, .left = 1 },
	  HEAD("4 (local rank 0, pid 10)", "exit code 1 after 1.00 s") COMMAND
	  "launchd: note: rank 5 (local rank 1, pid 11): exit code 0 after 1.00 s\n"
	  "launchd: note: rank 6 (local rank 2, pid 12): exit code 0 after 1.00 s\n"
	  "launchd: note: ranks 4, 6 left 2 processes behind each; they ended after launchd's SIGTERM\n"
	  "launchd: note: rank 5 left 1 process behind; it ended after launchd's SIGTERM\n"
	  "launchd: note: workers left 1 process behind; it ended after launchd's SIGTERM\n" },
	{ "survivors",
	  { { 0 } }, 0, -1,
	  { .survivors = { { 71, 500, 'D', "python3", 0 }, { 72, 0, 'S', "su\ndo", 0 },
			   { 73, 500, '?', "x", 0 } }, .survivor_count = 3 },
	  "launchd: warning: still alive: pid 71 (python3, uid 500): stuck in the kernel (state "
	  "D); "
	  "it ends when its system call returns\n"
	  "launchd: warning: still alive: pid 72 (su\\x0ado, uid 0): belongs to another user, so "
	  "launchd may not end it\n"
	  "launchd: warning: still alive: pid 73 (x, uid 500): could not be killed (state ?)\n" },
};
/* clang-format on */

static void assert_report(const struct result *r, const struct error_record *record,
	const char *const *args, const char *expected)
{
	char *report = report_of(r, record, args, 0, 1024);

	assert_string_equal(report, expected);
	free(report);
}

static void test_report(void **state)
{
	const struct report_row *row = *state;
	struct result r = row->r;

	r.outcomes = row->o;
	r.count = row->count;
	if (row->first >= 0 && r.cause.kind == CAUSE_FAILURE)
		r.cause = cause_of_failure(&row->o[row->first]);
	assert_report(&r, NULL, arguments, row->text);
}

static const struct outcome failed = { .pid = 10, .end = { ENDED_EXIT, 1, false } };
static const struct result failure = { .outcomes = &failed,
	.count = 1,
	.cause = { .kind = CAUSE_FAILURE,
		.culprit = { .pid = 10, .end = { ENDED_EXIT, 1, false } } } };
#define FAILED \
	"launchd: error: root cause: rank 0 (local rank 0, pid 10) on host (node 2): " \
	"exit code 1 after 0.00 s\n"

static void test_long_command(void **state)
{
	char word[501] = "";
	const char *const args[] = { word, "short", word, "never shown", NULL };
	char *report;

	(void)state;
	memset(word, 'w', sizeof word - 1);
	report = report_of(&failure, NULL, args, 0, 1);
	assert_contains(report, "www short ...\n");
	assert_null(strstr(report, "never shown"));
	free(report);
}

static void test_only_rank(void **state)
{
	const struct outcome o[3] = { UNSTARTED(0), WORKER(1, BY_EXIT(1), RAN(1, 2)),
		UNSTARTED(2) };
	const struct result r = { .outcomes = o, .count = 3, .cause = cause_of_failure(&o[1]) };
	char *report = report_of(&r, NULL, arguments, 1, 1);

	(void)state;
	assert_string_equal(
		report, HEAD("5 (local rank 1, pid 11)", "exit code 1 after 1.00 s") COMMAND);
	free(report);
}

#define E "launchd: error: "
#define I "    "

static const struct record_row {
	const char *says;
	struct error_record record;
	const char *text;
} record_rows[] = {
	{ "an exception, said once",
		{ "ValueError: empty", "Traceback:\n  File \"t.py\"\nValueError: empty\n", 1, NULL,
			NULL },
		E "exception: ValueError: empty\n" I "Traceback:\n" I "  File \"t.py\"\n" },
	{ "a traceback that ends otherwise",
		{ "ValueError: empty", "Traceback:\n  not empty", 0, NULL, NULL },
		E "exception: ValueError: empty\n" I "Traceback:\n" I "  not empty\n" },
	{ "a traceback that is the message",
		{ "ValueError: empty", "ValueError: empty", 0, NULL, NULL },
		E "exception: ValueError: empty\n" I "ValueError: empty\n" },
	{ "no traceback", { .message = "why" }, E "exception: why\n" },
	{ "no message", { .traceback = "why\r\nnot\r\n" }, I "why\n" I "not\n" },
	{ "an empty message", { .message = "" }, E "exception: \n" },
	{ "a message of many lines", { .message = "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n\n" },
		E "exception: 0\n" I "1\n" I "2\n" I "3\n" I "4\n" I "5\n" I "6\n" I "7\n" I "8\n" I
		  "9\n" I "[2 more lines]\n" },
	{ "nothing that a terminal obeys",
		{ .message = "\x1b[2J\xc2\x9b 2J\tgr\xc3\xbc\xc3\x9f\xff\x7f" },
		E "exception: \\x1b[2J\\x9b 2J    gr\xc3\xbc\xc3\x9f\\xff\\x7f\n" },
	{ "what is no JSON is shown as it is",
		{ .raw = "{\"mess\nage", .raw_why = "truncated, or not JSON" },
		E "error file: truncated, or not JSON:\n" I "{\"mess\n" I "age\n" },
	{ "an empty file", { .raw = "", .raw_why = "empty" }, E "error file: empty\n" },
};

static void test_record(void **state)
{
	const struct record_row *row = *state;
	struct text expected = { 0 };

	text_printf(&expected, FAILED "%s%s", COMMAND, row->text);
	assert_report(&failure, &row->record, arguments, text_string(&expected));
	text_done(&expected);
}

static void test_long_traceback(void **state)
{
	struct text traceback = { 0 };
	struct error_record record = { 0 };
	char *report;

	(void)state;
	for (int i = 0; i < 100; i++)
		text_printf(&traceback, "line %d %0400d\n", i, 0);
	record.traceback = text_string(&traceback);
	report = report_of(&failure, &record, arguments, 0, 1);
	assert_contains(report, COMMAND I "line 0 000");
	assert_contains(report, "000 ...\n" I "[70 lines between]\n" I "line 85 000");
	assert_contains(report, "000 ...\n" I "line 99 000");
	assert_true(strlen(report) < 30 * 430 + 500);
	free(report);
	text_done(&traceback);
}

static void test_many_survivors(void **state)
{
	struct result r = { .survivor_count = SURVIVORS_MAX + 5 };
	char *report;

	(void)state;
	report = report_of(&r, NULL, arguments, 0, 1);
	assert_contains(report, "launchd: warning: still alive: 5 more processes\n");
	free(report);
}

/* Workers that left differently many processes behind have a line each, 16 at most. */
static void test_many_left(void **state)
{
	enum { LINES = 16, MORE = 2 };
	struct outcome o[LINES + MORE];
	struct result r = { .outcomes = o, .count = LINES };
	char *text;

	(void)state;
	for (unsigned i = 0; i < LINES + MORE; i++)
		o[i] = (struct outcome){ .rank = 4 + i,
			.local_rank = i,
			.pid = 10,
			.left = 1 + i,
			.left_killed = 1,
			BY_EXIT(1),
			RAN(1, 2) };
	r.cause = cause_of_failure(&o[0]);
	text = report_of(&r, NULL, arguments, 0, LINES);
	assert_contains(text, "launchd: note: rank 19 left 16 processes behind");
	assert_null(strstr(text, "more workers left"));
	free(text);
	r.count += MORE;
	text = report_of(&r, NULL, arguments, 0, LINES + MORE);
	assert_contains(text, "rank 19 ");
	assert_null(strstr(text, "rank 20 left"));
	assert_contains(
		text, "launchd: note: 2 more workers left processes behind: see --report FILE\n");
	free(text);
}

TESTS(report)
{
	static struct suite s;

	set_time_zone();
	SUITE_ROWS(&s, test_report, rows);
	SUITE_ROWS(&s, test_record, record_rows);
	suite_add(&s, "a long command is cut", test_long_command, NULL, NULL);
	suite_add(&s, "--only-rank: the others are not missed", test_only_rank, NULL, NULL);
	suite_add(&s, "the start and the end of a long traceback", test_long_traceback, NULL, NULL);
	suite_add(&s, "more workers that left something than lines", test_many_left, NULL, NULL);
	suite_add(&s, "more survivors than names", test_many_survivors, NULL, NULL);
	return suite_run(&s);
}
