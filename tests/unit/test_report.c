/* test_report.c - the report of each story, word by word. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>

#include "common/text.h"
#include "daemon/plan/plan.h"
#include "daemon/report/ending.h"
#include "daemon/report/report.h"

#define S(seconds) ((uint64_t)((seconds)*1e9))

static const struct report_row {
	const char *says;
	struct outcome o[2];
	int first, ended_by;
	const char *text;
} rows[] = {
	{ "all well is no report", { { .pid = 10 }, { .rank = 1, .local_rank = 1, .pid = 11 } }, -1,
		0, "" },
	{ "one failed, the other was stopped",
		{ { .rank = 4,
			  .pid = 10,
			  .end = { ENDED_SIGNAL, SIGSEGV, true },
			  .started_ns = S(1),
			  .ended_ns = S(1.25) },
			{ .rank = 5,
				.local_rank = 1,
				.pid = 11,
				.asked = ASKED_TO_STOP,
				.asked_signal = SIGTERM,
				.end = { ENDED_SIGNAL, SIGTERM, false },
				.started_ns = S(1),
				.asked_ns = S(1.25),
				.ended_ns = S(1.5) } },
		0, 0,
		"launchd: error: first to fail: rank 4 (local rank 0, pid 10) on host (node 2): "
		"killed by SIGSEGV (core dumped) after 0.25 s\n"
		"launchd: error: its script: train.py 'a b' --lr=1\n"
		"launchd: note: rank 5 (local rank 1, pid 11): killed by SIGTERM, 0.25 s after "
		"launchd's SIGTERM\n" },
	{ "the other ignored the signal",
		{ { .rank = 4,
			  .pid = 10,
			  .end = { ENDED_EXIT, 7, false },
			  .started_ns = S(1),
			  .ended_ns = S(13.5) },
			{ .rank = 5,
				.local_rank = 1,
				.pid = 11,
				.asked = ASKED_KILLED,
				.asked_signal = SIGTERM,
				.end = { ENDED_SIGNAL, SIGKILL, false },
				.started_ns = S(1),
				.asked_ns = S(13.5),
				.ended_ns = S(18.5) } },
		0, 0,
		"launchd: error: first to fail: rank 4 (local rank 0, pid 10) on host (node 2): "
		"exit code 7 after 12.5 s\n"
		"launchd: error: its script: train.py 'a b' --lr=1\n"
		"launchd: note: rank 5 (local rank 1, pid 11): still there 5.00 s after launchd's "
		"SIGTERM: killed by SIGKILL\n" },
	{ "the other had ended well before",
		{ { .rank = 4,
			  .pid = 10,
			  .end = { ENDED_EXIT, 1, false },
			  .started_ns = S(1),
			  .ended_ns = S(1000) },
			{ .rank = 5,
				.local_rank = 1,
				.pid = 11,
				.started_ns = S(1),
				.ended_ns = S(40000) } },
		0, 0,
		"launchd: error: first to fail: rank 4 (local rank 0, pid 10) on host (node 2): "
		"exit code 1 after 16 min 39 s\n"
		"launchd: error: its script: train.py 'a b' --lr=1\n"
		"launchd: note: rank 5 (local rank 1, pid 11): exit code 0 after 11 h 06 min\n" },
	{ "one could not be started, the next was not tried",
		{ { .rank = 4, .end = { ENDED_UNSTARTED, ENOENT, false } },
			{ .rank = 5, .local_rank = 1 } },
		0, 0,
		"launchd: error: first to fail: rank 4 (local rank 0) on host (node 2): could not "
		"be started\n"
		"launchd: error: its script: train.py 'a b' --lr=1\n"
		"launchd: note: rank 5 (local rank 1): not started\n" },
	{ "ended by a signal",
		{ { .rank = 4,
			  .pid = 10,
			  .asked = ASKED_TO_STOP,
			  .asked_signal = SIGINT,
			  .end = { ENDED_EXIT, 1, false },
			  .started_ns = S(1),
			  .asked_ns = S(2),
			  .ended_ns = S(3) },
			{ .rank = 5,
				.local_rank = 1,
				.pid = 11,
				.started_ns = S(1),
				.ended_ns = S(2) } },
		-1, SIGINT,
		"launchd: error: the job was ended by SIGINT on host (node 2)\n"
		"launchd: note: rank 4 (local rank 0, pid 10): exit code 1, 1.00 s after launchd's "
		"SIGINT\n"
		"launchd: note: rank 5 (local rank 1, pid 11): exit code 0 after 1.00 s\n" },
	{ "a clock that went nowhere",
		{ { .rank = 4,
			  .pid = 10,
			  .end = { ENDED_EXIT, 1, false },
			  .started_ns = S(2),
			  .ended_ns = S(1) },
			{ .rank = 5, .local_rank = 1, .pid = 11 } },
		0, 0,
		"launchd: error: first to fail: rank 4 (local rank 0, pid 10) on host (node 2): "
		"exit code 1 after 0.00 s\n"
		"launchd: error: its script: train.py 'a b' --lr=1\n"
		"launchd: note: rank 5 (local rank 1, pid 11): exit code 0 after 0.00 s\n" },
};

static void assert_report(
	const struct result *r, const char *const *args, size_t count, const char *expected)
{
	const char *at[12] = { NULL };
	const struct vec argv = { at, count, 12 };
	const struct plan plan = { .script = "train.py", .args = &argv, .node_rank = 2 };
	struct text t = { 0 };

	for (size_t i = 0; i < count; i++)
		at[i] = args[i];
	report_failure(r, &plan, "host", &t);
	assert_string_equal(text_string(&t), expected);
	text_done(&t);
}

static void test_report(void **state)
{
	static const char *const args[] = { "a b", "--lr=1" };
	const struct report_row *row = *state;
	const struct result r = { .outcomes = row->o,
		.count = 2,
		.culprit = row->first < 0 ? NULL : &row->o[row->first],
		.cause = { .kind = row->first >= 0 ? CAUSE_FAILURE :
				row->ended_by      ? CAUSE_SIGNAL :
						     CAUSE_NONE,
			.signal = row->ended_by } };

	assert_report(&r, args, 2, row->text);
}

static void test_long_command(void **state)
{
	static const char *const args[] = { "1", "2", "3", "4", "5", "6", "7", "8", "9" };
	const struct outcome o = { .pid = 10, .end = { ENDED_EXIT, 1, false } };
	const struct result r = {
		.outcomes = &o, .count = 1, .culprit = &o, .cause = { .kind = CAUSE_FAILURE }
	};

	(void)state;
	assert_report(&r, args, 9,
		"launchd: error: first to fail: rank 0 (local rank 0, pid 10) on host (node 2): "
		"exit code 1 after 0.00 s\n"
		"launchd: error: its script: train.py 1 2 3 4 5 6 7 8 ...\n");
}

int main(void)
{
	static struct suite s;

	SUITE_ROWS(&s, test_report, rows);
	suite_add(&s, "a long command is cut", test_long_command, NULL, NULL);
	return suite_run(&s);
}
