/* test_others.c - what the report says of many workers: all of it, in few lines. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <stdlib.h>

#include "daemon/report/ending.h"
#include "tests/unit/reporting.h"

enum { MANY = 512 };

/* 512 workers, all stopped by SIGTERM 10 ms after rank 3 failed; `change` changes some. */
static void assert_many(void (*change)(struct outcome *), const char *expected)
{
	static struct outcome o[MANY];
	const struct result r = {
		.outcomes = o, .count = MANY, .culprit = &o[3], .cause = { .kind = CAUSE_FAILURE }
	};
	char *report;

	for (unsigned i = 0; i < MANY; i++)
		o[i] = (struct outcome){ .rank = i,
			.local_rank = i,
			.pid = (pid_t)(100 + i),
			.end = { ENDED_SIGNAL, SIGTERM, false },
			STOPPED(SIGTERM, 2),
			RAN(1, 2.01) };
	o[3] = (struct outcome){ .rank = 3, .local_rank = 3, .pid = 103, BY_EXIT(1), RAN(1, 2) };
	change(o);
	report = report_of(&r, NULL, arguments, 0, MANY);
	assert_string_equal(report, expected);
	free(report);
}

#define MANY_HEAD HEAD("3 (local rank 3, pid 103)", "exit code 1 after 1.00 s") COMMAND

static void change_some(struct outcome *o)
{
	o[5].ended_ns = S(2.04);
	o[7] = (struct outcome){ .rank = 7, .local_rank = 7, .pid = 107, RAN(1, 1.5), BY_EXIT(0) };
	o[100].end.value = SIGSEGV;
	for (int i = 200; i < 300; i++) {
		o[i].asked = ASKED_KILLED;
		o[i].end.value = SIGKILL;
		o[i].ended_ns = S(32);
	}
	for (int i = 400; i < 403; i++) {
		o[i].asked = ASKED_NOTHING;
		o[i].asked_signal = 0;
		o[i].end = (struct ending){ ENDED_EXIT, 1, false };
		o[i].ended_ns = S(2) + 1000;
	}
}

static void test_many(void **state)
{
	(void)state;
	assert_many(change_some,
		MANY_HEAD
		"launchd: error: ranks 400-402: failed at the same time: exit code 1; any of them "
		"may be the cause\n"
		"launchd: note: rank 7 (local rank 7, pid 107): exit code 0 after 0.50 s\n"
		"launchd: note: ranks 0-2, 4-6, 8-99, 101-199, 300-399, 403-511: killed by "
		"SIGTERM, 0.01 s to 0.04 s after launchd's SIGTERM\n"
		"launchd: note: rank 100 (local rank 100, pid 200): killed by SIGSEGV, 0.01 s "
		"after launchd's SIGTERM\n"
		"launchd: note: ranks 200-299: still there 30.0 s after launchd's SIGTERM: killed "
		"by SIGKILL\n");
}

static void change_one(struct outcome *o)
{
	o[37].ended_ns = S(31.8);
}

static void test_straggler(void **state)
{
	(void)state;
	assert_many(change_one,
		MANY_HEAD
		"launchd: note: ranks 0-2, 4-511: killed by SIGTERM, 0.01 s to 29.8 s (rank 37) "
		"after launchd's SIGTERM\n");
}

static void change_odd(struct outcome *o)
{
	for (int i = 0; i < MANY; i += 2)
		o[i].end.value = SIGABRT;
}

static void test_many_ranges(void **state)
{
	(void)state;
	assert_many(change_odd,
		MANY_HEAD
		"launchd: note: ranks 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, "
		"... (256 in all): killed by SIGABRT, 0.01 s after launchd's SIGTERM\n"
		"launchd: note: ranks 1, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, "
		"... (255 in all): killed by SIGTERM, 0.01 s after launchd's SIGTERM\n");
}

/* Never 511 lines, even if all stories differ. */
static void test_many_stories(void **state)
{
	static struct outcome o[MANY];
	const struct result r = {
		.outcomes = o, .count = MANY, .cause = { .kind = CAUSE_SIGNAL, .signal = SIGTERM }
	};
	size_t lines = 0;
	char *report;

	(void)state;
	for (unsigned i = 0; i < MANY; i++)
		o[i] = (struct outcome){ .rank = i, .local_rank = i, .pid = 1, BY_EXIT((int)i) };
	report = report_of(&r, NULL, arguments, 0, MANY);
	for (const char *p = report; *p; p++)
		lines += *p == '\n';
	assert_int_equal(lines, 1 + 32 + 1);
	assert_contains(report, "launchd: note: 480 more workers, whose ends --report FILE has\n");
	free(report);
}

int main(void)
{
	static struct suite s;

	suite_add(&s, "equal stories share a line", test_many, NULL, NULL);
	suite_add(&s, "the one that all waited for", test_straggler, NULL, NULL);
	suite_add(&s, "a long list of ranks is cut", test_many_ranges, NULL, NULL);
	suite_add(&s, "512 stories are not 512 lines", test_many_stories, NULL, NULL);
	return suite_run(&s);
}
