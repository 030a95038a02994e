/* test_journal_ids.c - which verdict a job's end is. */
#include "tests/unit/unit.h"

#include <string.h>

#include "daemon/job/job_end.h"
#include "daemon/service/journal_ids.h"

static const struct end_row {
	const char *says;
	enum cause_kind kind;
	bool well;
	struct ending end;
	enum oom oom;
	enum journal_id id;
} ends[] = {
	{ "all is well", CAUSE_NONE, true, { 0 }, OOM_NO, JOURNAL_ID_ENDED_WELL },
	{ "nothing has failed, but not all is well", CAUSE_NONE, false, { 0 }, OOM_NO,
		JOURNAL_ID_NOT_RUN },
	{ "an exit code", CAUSE_FAILURE, false, { ENDED_EXIT, 1, false }, OOM_NO,
		JOURNAL_ID_BY_EXIT },
	{ "a signal", CAUSE_FAILURE, false, { ENDED_SIGNAL, 11, true }, OOM_NO,
		JOURNAL_ID_BY_SIGNAL },
	{ "the kernel's OOM killer", CAUSE_FAILURE, false, { ENDED_SIGNAL, 9, false }, OOM_YES,
		JOURNAL_ID_BY_OOM },
	{ "most likely so", CAUSE_FAILURE, false, { ENDED_SIGNAL, 9, false }, OOM_LIKELY,
		JOURNAL_ID_BY_OOM },
	{ "no such program", CAUSE_FAILURE, false, { ENDED_UNSTARTED, 2, false }, OOM_NO,
		JOURNAL_ID_BY_START },
	{ "no more processes", CAUSE_FAILURE, false, { ENDED_UNMADE, 11, false }, OOM_NO,
		JOURNAL_ID_BY_START },
	{ "systemctl stop", CAUSE_SIGNAL, false, { 0 }, OOM_NO, JOURNAL_ID_BY_REQUEST },
	{ "the time is over", CAUSE_MAX_RUNTIME, false, { 0 }, OOM_NO, JOURNAL_ID_BY_MAX_RUNTIME },
	{ "launchd was killed", CAUSE_GUARD, false, { 0 }, OOM_NO, JOURNAL_ID_BY_GUARD },
	{ "mpirun has ended", CAUSE_LAUNCHER, false, { 0 }, OOM_NO, JOURNAL_ID_BY_LAUNCHER },
	{ "its pipes are closed", CAUSE_HANGUP, false, { 0 }, OOM_NO, JOURNAL_ID_BY_LAUNCHER },
	{ "a hang", CAUSE_HANG, false, { 0 }, OOM_NO, JOURNAL_ID_BY_HANG },
	{ "a preemption", CAUSE_PREEMPTED, false, { 0 }, OOM_NO, JOURNAL_ID_BY_PREEMPTION },
	{ "a node is bad", CAUSE_BAD_NODE, false, { 0 }, OOM_NO, JOURNAL_ID_BY_BAD_NODE },
	{ "a node is lost", CAUSE_NODE_LOST, false, { 0 }, OOM_NO, JOURNAL_ID_BY_NODE_LOST },
};

static void test_end(void **state)
{
	const struct end_row *row = *state;
	struct run_end end = { .job.verdict = { .well = row->well } };
	const struct outcome culprit = { .end = row->end, .oom = row->oom };

	end.job.verdict.cause = (struct cause){ .kind = row->kind, .culprit = culprit };
	assert_int_equal(journal_id_of_end(&end), row->id);
}

static void test_not_run(void **state)
{
	(void)state;
	assert_int_equal(journal_id_of_end(NULL), JOURNAL_ID_NOT_RUN);
}

static void test_table(void **state)
{
	(void)state;
	for (unsigned i = 0; i < JOURNAL_ID_COUNT; i++) {
		assert_int_equal(strspn(journal_id_number(i), "0123456789abcdef"), 32);
		assert_int_equal(strlen(journal_id_number(i)), 32);
		for (unsigned k = 0; k < i; k++) {
			assert_string_not_equal(journal_id_number(i), journal_id_number(k));
			assert_string_not_equal(journal_id_word(i), journal_id_word(k));
		}
	}
}

TESTS(journal_ids)
{
	struct suite s = { .count = 0 };

	SUITE_ROWS(&s, test_end, ends);
	suite_add(&s, "no job was run", test_not_run, NULL, NULL);
	suite_add(&s, "each id is its own", test_table, NULL, NULL);
	return suite_run(&s);
}
