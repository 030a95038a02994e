/* test_failure_record.c - the error file that launchd leaves to whoever started it. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <string.h>

#include "common/arena.h"
#include "common/text.h"
#include "daemon/job/ending.h"
#include "daemon/report/failure_record.h"
#include "daemon/plan/plan.h"
#include "daemon/report/report_input.h"
#include "tests/unit/json.h"

#define STARTED .started_ns = 1000000000, .started_wall_ns = 1763705999345678901
#define FAILED  STARTED, .cause = { .kind = CAUSE_FAILURE }
#define VERDICT "root cause: \"x\""
#define QUOTED  "root cause: \\\"x\\\""

static const struct error_record whole = { "E: x", "T\n", 1700000000, NULL, NULL };
static const struct error_record unstamped = { "E: x", NULL, 0, NULL, NULL };
static const struct error_record unread = { .raw = "{", .raw_why = "truncated" };

/* clang-format off */
static const struct record_row {
	const char *says;
	struct result r;
	struct ending end; /* of the culprit */
	const struct error_record *record;
	const char *lines;
	const char *json;
} rows[] = {
	{ "the culprit's error file, with its exit code", { FAILED }, { ENDED_EXIT, 7, false }, &whole,
		"lines",
		"{\"message\":{\"message\":\"E: x\",\"extraInfo\":{\"py_callstack\":\"T\\u000a\","
		"\"timestamp\":\"1700000000\"},\"errorCode\":7}}\n" },
	{ "a signal is negative, as with torchrun", { FAILED }, { ENDED_SIGNAL, SIGSEGV, true },
		&whole, NULL,
		"{\"message\":{\"message\":\"E: x\",\"extraInfo\":{\"py_callstack\":\"T\\u000a\","
		"\"timestamp\":\"1700000000\"},\"errorCode\":-11}}\n" },
	{ "an error file without a call stack and a time", { FAILED }, { ENDED_EXIT, 1, false },
		&unstamped, "lines",
		"{\"message\":{\"message\":\"E: x\",\"extraInfo\":{\"py_callstack\":\"E: x\","
		"\"timestamp\":\"1763706001\"},\"errorCode\":1}}\n" },
	{ "no error file: the verdict and the last lines", { FAILED }, { ENDED_EXIT, 3, false }, NULL,
		"a\nb",
		"{\"message\":{\"message\":\"" QUOTED "\",\"extraInfo\":{\"py_callstack\":\"" QUOTED
		"\\u000aa\\u000ab\",\"timestamp\":\"1763706001\"},\"errorCode\":3}}\n" },
	{ "an error file that can't be understood is none", { FAILED }, { ENDED_EXIT, 3, false },
		&unread, "",
		"{\"message\":{\"message\":\"" QUOTED "\",\"extraInfo\":{\"py_callstack\":\"" QUOTED
		"\",\"timestamp\":\"1763706001\"},\"errorCode\":3}}\n" },
	{ "a worker that could not be started has the job's code", { FAILED },
		{ ENDED_UNSTARTED, 2, false }, NULL, NULL,
		"{\"message\":{\"message\":\"" QUOTED "\",\"extraInfo\":{\"py_callstack\":\"" QUOTED
		"\",\"timestamp\":\"1763706001\"},\"errorCode\":143}}\n" },
	{ "a signal to launchd is nobody's failure",
		{ STARTED, .cause = { .kind = CAUSE_SIGNAL, .signal = SIGTERM, .at_ns = 2000000000 } },
		{ 0 }, &whole, "lines",
		"{\"message\":{\"message\":\"" QUOTED "\",\"extraInfo\":{\"py_callstack\":\"" QUOTED
		"\",\"timestamp\":\"1763706000\"},\"errorCode\":143}}\n" },
	{ "a time that is not known is now", { .cause = { .kind = CAUSE_SIGNAL } }, { 0 }, NULL, NULL,
		"{\"message\":{\"message\":\"" QUOTED "\",\"extraInfo\":{\"py_callstack\":\"" QUOTED
		"\",\"timestamp\":\"99\"},\"errorCode\":143}}\n" },
};
/* clang-format on */

static void test_row(void **state)
{
	const struct record_row *row = *state;
	struct arena arena = { 0 };
	struct result r = row->r;
	const struct plan plan = { .output.tail_lines = 20 };
	const struct report_input in = {
		.result = &r,
		.record = row->record,
		.words = { .lines = row->lines },
		.plan = &plan,
		.arena = &arena,
	};
	struct text out = { 0 };

	r.cause.culprit = (struct outcome){ .end = row->end, .ended_ns = 3000000000 };
	failure_record(&in, VERDICT, 143, 99, &out);
	assert_false(out.failed);
	assert_string_equal(text_string(&out), row->json);
	assert_true(json_is_valid(text_string(&out), out.len));
	text_done(&out);
	arena_done(&arena);
}

static void test_own(void **state)
{
	struct text out = { 0 };

	(void)state;
	failure_record_own("no script", 2, 5, &out);
	assert_string_equal(text_string(&out),
		"{\"message\":{\"message\":\"no script\",\"extraInfo\":{\"py_callstack\":\"no script\","
		"\"timestamp\":\"5\"},\"errorCode\":2}}\n");
	text_done(&out);
}

TESTS(failure_record)
{
	static struct suite s;

	SUITE_ROWS(&s, test_row, rows);
	suite_add(&s, "launchd's own failure", test_own, NULL, NULL);
	return suite_run(&s);
}
