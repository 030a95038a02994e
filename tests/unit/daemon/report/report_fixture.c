/* report_fixture.c - see report_fixture.h */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/text.h"
#include "daemon/plan/plan.h"
#include "daemon/report/report.h"
#include "tests/unit/daemon/report/report_fixture.h"

const char *const arguments[] = { "a b", "--lr=1", NULL };

char *report_made(struct report_input in, void (*make)(const struct report_input *, struct text *))
{
	struct arena arena = { 0 };
	struct text t = { 0 };
	struct vec argv = { 0 };
	struct plan plan = { 0 };
	char *report;

	if (!in.plan) {
		plan = (struct plan){ .script = "./train",
			.use_env = true,
			.start_count = 1024,
			.output.tail_lines = 20 };
		plan.args = &argv;
		in.plan = &plan;
	}
	in.hostname = "host";
	in.uid = 500;
	in.arena = &arena;
	vec_add_all(&arena, &argv, arguments);
	make(&in, &t);
	assert_false(t.failed);
	report = strdup(text_string(&t));
	assert_non_null(report);
	text_done(&t);
	arena_done(&arena);
	return report;
}

char *report_of(const struct result *r, const struct error_record *record, const char *const *args,
	unsigned start_first, unsigned start_count)
{
	struct arena arena = { 0 };
	struct vec argv = { 0 };
	struct plan plan = { .script = "./train",
		.use_env = true,
		.args = &argv,
		.node_rank = 2,
		.start_first = start_first,
		.start_count = start_count,
		.max_runtime_ms = 7200000,
		.output.tail_lines = 20 };
	char *report;

	vec_add_all(&arena, &argv, args);
	report = report_made(
		(struct report_input){ .result = r, .plan = &plan, .record = record }, report_text);
	arena_done(&arena);
	return report;
}

void set_time_zone(void)
{
	assert_int_equal(setenv("TZ", "TST-1:30", 1), 0);
	tzset();
}
