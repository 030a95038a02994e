/* reporting.c - see reporting.h */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/text.h"
#include "daemon/plan/plan.h"
#include "daemon/report/report.h"
#include "tests/unit/reporting.h"

const char *const arguments[] = { "a b", "--lr=1", NULL };

char *report_of(const struct result *r, const struct error_record *record, const char *const *args,
	unsigned start_first, unsigned start_count)
{
	struct arena arena = { 0 };
	struct text t = { 0 };
	struct vec argv = { 0 };
	struct plan plan = { .script = "./train",
		.use_env = true,
		.args = &argv,
		.node_rank = 2,
		.start_first = start_first,
		.start_count = start_count,
		.max_runtime_ms = 7200000 };
	const struct report_input in = { r, &plan, "host", record, 500, &arena };
	char *report;

	vec_add_all(&arena, &argv, args);
	report_text(&in, &t);
	assert_false(t.failed);
	report = strdup(text_string(&t));
	assert_non_null(report);
	text_done(&t);
	arena_done(&arena);
	return report;
}

void set_time_zone(void)
{
	assert_int_equal(setenv("TZ", "TST-1:30", 1), 0);
	tzset();
}
