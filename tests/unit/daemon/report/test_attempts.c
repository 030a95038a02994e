/* test_attempts.c - what is said between two attempts, and of attempts at the end. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/job/ending.h"
#include "daemon/report/error_file.h"
#include "tests/unit/daemon/report/report_fixture.h"

static const struct node nodes[] = { { .name = "gpu06" },
	{ .name = "gpu07", .clock_error_ns = 400000 } };

/* clang-format off */
static const struct attempt_row {
	const char *says;
	struct outcome o[3];
	size_t count;
	struct result r;
	struct error_record record;
	unsigned attempt, max_restarts;
	const char *why_not;
	uint64_t delay_ms;
	const char *restart; /* the lines between the attempts */
	const char *part;    /* stands in the report */
	struct last_words words;
	const char *bundle;
} rows[] = {
	{ "who failed, and what follows",
	  { WORKER(0, BY_EXIT(1), RAN(1, 13.5)) }, 1, { FAILURE, .started_ns = S(1) },
	  { 0 }, 0, 3, NULL, 2000,
	  "launchd: warning: root cause: rank 4 (local rank 0, pid 10) on host (node 0): "
	  "exit code 1 after 12.5 s; restart 1 of at most 3 starts in 2.00 s\n",
	  "launchd: error: restarts: 0 of at most 3\n", { 0 }, NULL },
	{ "on another node, with its exception, and one that failed with it",
	  { WORKER(0, BY_EXIT(1), .node = 0, RAN(1, 2.0003)),
	    WORKER(1, BY_SIGNAL(SIGSEGV), .node = 1, RAN(1, 2)) }, 2,
	  { FAILURE, .nodes = nodes, .node_count = 2, .unsure = true, .started_ns = S(1) },
	  { .message = "ValueError: \x1b empty\nsecond line" }, 2, 3, NULL, 0,
	  "launchd: warning: root cause: possibly rank 5 (local rank 1, pid 11) on gpu07 "
	  "(node 1): killed by SIGSEGV after 1.00 s; restart 3 of at most 3 starts now\n"
	  "launchd: warning: exception: ValueError: \\x1b empty\n"
	  "launchd: warning: log: /l/\\x1b\n"
	  "launchd: warning: 1 other worker failed at the same time\n",
	  "launchd: error: root cause: possibly rank 5 (local rank 1, pid 11) on gpu07 "
	  "(node 1)", { "not shown\n", "/l/\x1b" }, NULL },
	{ "several failed together",
	  { WORKER(0, BY_EXIT(1), RAN(1, 2)), WORKER(1, BY_EXIT(1), RAN(1, 2)),
	    WORKER(2, BY_EXIT(1), RAN(1, 2)) }, 3, { FAILURE }, { 0 }, 0, 1, "", 60000,
	  "launchd: warning: root cause: rank 6 (local rank 2, pid 12) on host (node 0): "
	  "exit code 1 after 1.00 s; restart 1 of at most 1 starts in 60.0 s\n"
	  "launchd: warning: 2 other workers failed at the same time\n",
	  "launchd: error: restarts: 0 of at most 1\n", { 0 }, NULL },
	{ "no worker failed", { { 0 } }, 0, { .cause = { .kind = CAUSE_GUARD } }, { 0 }, 0, 1,
	  NULL, 0, "launchd: warning: restart 1 of at most 1 starts now\n",
	  "launchd: error: restarts: 0 of at most 1\n", { NULL, "/l" }, NULL },
	{ "a hang, of which something was kept",
	  { { 0 } }, 0, { .cause = { .kind = CAUSE_HANG, .detail = "rank 1 sleeps" } }, { 0 }, 0, 1,
	  NULL, 0,
	  "launchd: warning: the job hung; restart 1 of at most 1 starts now\n"
	  "launchd: warning: evidence: launchd --explain '/box/a b'\n",
	  "launchd: error: evidence: launchd --explain '/box/a b'\n", { 0 }, "/box/a b" },
	{ "why no other follows",
	  { WORKER(0, BY_EXIT(2), RAN(1, 2)) }, 1, { FAILURE }, { 0 }, 1, 3,
	  "exit code 2 is not in --restart-on", 0, NULL,
	  "launchd: error: restarts: 1 of at most 3; no restart: exit code 2 is not in "
	  "--restart-on\n", { 0 }, NULL },
};
/* clang-format on */

static const struct attempt_row *row_at_hand;

static void make_restart(const struct report_input *in, struct text *out)
{
	report_restart_text(in, row_at_hand->delay_ms, out);
}

static void test_attempt(void **state)
{
	const struct attempt_row *row = *state;
	struct result r = row->r;
	struct report_input in = { .result = &r,
		.record = &row->record,
		.words = row->words,
		.bundle = row->bundle,
		.attempt = row->attempt,
		.max_restarts = row->max_restarts,
		.why_not = row->why_not };
	char *text;

	row_at_hand = row;
	r.outcomes = row->o;
	r.count = row->count;
	if (row->count && r.cause.kind == CAUSE_FAILURE)
		r.cause = cause_of_failure(&row->o[row->count - 1]);
	if (row->restart) {
		text = report_made(in, make_restart);
		assert_string_equal(text, row->restart);
		free(text);
	}
	text = report_made(in, report_text);
	assert_contains(text, row->part);
	free(text);
}

static void test_none_wanted(void **state)
{
	const struct outcome o = WORKER(0, BY_EXIT(1), RAN(1, 2));
	const struct result r = { .outcomes = &o, .count = 1, .cause = cause_of_failure(&o) };
	char *text = report_made((struct report_input){ .result = &r }, report_text);

	(void)state;
	assert_null(strstr(text, "restart"));
	free(text);
}

static void test_long_exception(void **state)
{
	static const struct attempt_row once = { .delay_ms = 0 };
	const struct outcome o = WORKER(0, BY_EXIT(1), RAN(1, 2));
	const struct result r = { .outcomes = &o, .count = 1, .cause = cause_of_failure(&o) };
	char message[100001] = "";
	const struct error_record record = { .message = message };
	char *text;

	(void)state;
	memset(message, 'm', sizeof message - 1);
	row_at_hand = &once;
	text = report_made((struct report_input){ .result = &r, .record = &record }, make_restart);
	assert_contains(text, "mmm ...\n");
	assert_true(strlen(text) < 800);
	free(text);
}

TESTS(attempts)
{
	static struct suite s;

	set_time_zone();
	SUITE_ROWS(&s, test_attempt, rows);
	suite_add(&s, "no word of restarts where none are wanted", test_none_wanted, NULL, NULL);
	suite_add(&s, "a long exception is cut", test_long_exception, NULL, NULL);
	return suite_run(&s);
}
