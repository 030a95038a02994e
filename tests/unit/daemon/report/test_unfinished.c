/* test_unfinished.c - the note about workers that are done while others run on. */
#include "tests/unit/unit.h"

#include <string.h>

#include "common/text.h"
#include "daemon/job/ending.h"
#include "daemon/report/report.h"
#include "tests/unit/daemon/report/report_fixture.h"

static const struct unfinished_row {
	const char *says;
	const char *states; /* of ranks 0, 1, ...: d done, r runs, f failed, n not started */
	const char *text;
} unfinished_rows[] = {
	{ "none is done", "rr", "" },
	{ "all are done", "dd", "" },
	{ "one is done, one runs", "dr",
		"rank 0 ended with exit code 0, 60.0 s ago; rank 1 (pid 11) is still running" },
	{ "some are done, some run", "drddr",
		"ranks 0, 2, 3 ended with exit code 0, the first 60.0 s ago; rank 1 (pid 11), rank "
		"4 (pid 14) are still running" },
	{ "many run", "rrrrrddd",
		"ranks 5-7 ended with exit code 0, the first 55.0 s ago; ranks 0-4 are still running" },
	{ "failed and not started ones are neither", "dfnr",
		"rank 0 ended with exit code 0, 60.0 s ago; rank 3 (pid 13) is still running" },
};

static void test_unfinished(void **state)
{
	const struct unfinished_row *row = *state;
	struct arena arena = { 0 };
	struct outcome o[8] = { 0 };
	struct text t = { 0 };
	size_t n = strlen(row->states);

	for (unsigned i = 0; i < n; i++) {
		char c = row->states[i];

		o[i] = (struct outcome){ .rank = i,
			.pid = c == 'n' ? 0 : (pid_t)(10 + i),
			.end = { c == 'd' || c == 'f' ? ENDED_EXIT : ENDED_NONE, c == 'f', false },
			.ended_ns = c == 'd' ? S(10 + i) : 0 };
	}
	report_unfinished(o, n, S(70), &arena, &t);
	assert_string_equal(text_string(&t), row->text);
	assert_false(t.failed);
	text_done(&t);
	arena_done(&arena);
}

TESTS(unfinished)
{
	static struct suite s;

	SUITE_ROWS(&s, test_unfinished, unfinished_rows);
	return suite_run(&s);
}
