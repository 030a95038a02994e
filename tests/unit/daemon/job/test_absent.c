/* test_absent.c - whom others waited for until they timed out: as they name it, as the store knows
 * it, as --on-hang saw it; and nobody, where that is all that is known. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <string.h>

#include "daemon/job/verdict.h"

enum { WORKERS_MAX = 5 };

#define BY_US { ENDED_SIGNAL, SIGTERM, false }, .asked = ASKED_TO_STOP, .asked_signal = SIGTERM
#define STOPPED \
	{ \
		.end = BY_US \
	}
#define OUTSIDE \
	{ \
		.end = BY_US, .unjoined = true \
	}
#define FAILED(code, ...) \
	{ \
		.end = { ENDED_EXIT, (code), false }, __VA_ARGS__ \
	}
#define WAITED(...) FAILED(1, .blames = BLAMES_A_WAIT, .waited = { __VA_ARGS__ })
#define FOR(n)      .count = 1, .ranks = { (n) }

static const struct row {
	const char *says;
	struct outcome workers[WORKERS_MAX]; /* in order of death, as of rank; how NONE: the end */
	unsigned suspect;                    /* --on-hang's; 0: none */
	enum cause_kind kind;
	int culprit; /* -1: none */
	const char *detail;
	int exit_code;
} rows[] = {
	{ "the one that a victim names", { WAITED(FOR(1)), STOPPED, STOPPED }, 0, CAUSE_TIMEOUT, 1,
		"rank 0 timed out waiting for it", 1 },
	{ "several", { WAITED(.count = 2, .ranks = { 1, 3 }), STOPPED, STOPPED, STOPPED }, 0,
		CAUSE_TIMEOUT, 1, "rank 0 timed out waiting for ranks 1, 3", 1 },
	{ "more than there is room for",
		{ WAITED(.count = 1, .ranks = { 1 }, .more = true), STOPPED }, 0, CAUSE_TIMEOUT, 1,
		"rank 0 timed out waiting for it and others", 1 },
	{ "nobody, where no victim names one", { WAITED(0), STOPPED, WAITED(0) }, 0, CAUSE_TIMEOUT,
		-1, "timed out waiting for another rank (ranks 0, 2 waited)", 1 },
	{ "nobody, where the one that is named has waited, too",
		{ WAITED(FOR(1)), WAITED(0), STOPPED }, 0, CAUSE_TIMEOUT, -1,
		"timed out waiting for another rank (ranks 0, 1 waited)", 1 },
	{ "nobody, where it isn't there", { WAITED(FOR(9)), STOPPED }, 0, CAUSE_TIMEOUT, -1,
		"timed out waiting for another rank (rank 0 waited)", 1 },
	{ "one that ended well without coming", { WAITED(FOR(1)), FAILED(0, .rank = 0) }, 0,
		CAUSE_TIMEOUT, 1,
		"it had ended with exit code 0, and rank 0 timed out waiting for it", 1 },
	{ "one that ended well, where all others have waited",
		{ FAILED(0, .rank = 0), WAITED(0), FAILED(1, .blames = BLAMES_A_PEER) }, 0,
		CAUSE_TIMEOUT, 0,
		"it had ended with exit code 0, and rank 1 timed out waiting for it", 1 },
	{ "several of these", { FAILED(0, .rank = 0), WAITED(0), FAILED(0, .rank = 0) }, 0,
		CAUSE_TIMEOUT, 0,
		"it had ended with exit code 0, and rank 1 timed out waiting for ranks 0, 2", 1 },
	{ "not where it may be one that lived on", { FAILED(0, .rank = 0), WAITED(0), STOPPED }, 0,
		CAUSE_TIMEOUT, -1, "timed out waiting for another rank (rank 1 waited)", 1 },
	{ "nor one that ended so at our signal",
		{ WAITED(0), { .end = { ENDED_EXIT, 0, false }, .asked = ASKED_TO_STOP } }, 0,
		CAUSE_TIMEOUT, -1, "timed out waiting for another rank (rank 0 waited)", 1 },
	{ "who isn't in the store, where others waited there",
		{ WAITED(.in_store = true), STOPPED, OUTSIDE }, 0, CAUSE_TIMEOUT, 2,
		"rank 0 timed out waiting for it", 1 },
	{ "not where they waited elsewhere", { WAITED(0), STOPPED, OUTSIDE }, 0, CAUSE_TIMEOUT, -1,
		"timed out waiting for another rank (rank 0 waited)", 1 },
	{ "rank 0, where its store doesn't answer",
		{ OUTSIDE, WAITED(.in_store = true, .dials = true, FOR(0)), OUTSIDE }, 0,
		CAUSE_TIMEOUT, 0, "rank 1 timed out waiting for it", 1 },
	{ "not where it is there: the network",
		{ STOPPED, WAITED(.in_store = true, .dials = true, FOR(0)), OUTSIDE }, 0,
		CAUSE_TIMEOUT, -1, "timed out waiting for another rank (rank 1 waited)", 1 },
	{ "whom --on-hang saw elsewhere", { WAITED(0), STOPPED, STOPPED }, 2, CAUSE_TIMEOUT, 2,
		"rank 0 timed out waiting for it", 1 },
	{ "what they name counts more", { WAITED(FOR(1)), STOPPED, STOPPED }, 2, CAUSE_TIMEOUT, 1,
		"rank 0 timed out waiting for it", 1 },
	{ "a victim was not elsewhere", { WAITED(0), STOPPED, WAITED(0) }, 2, CAUSE_TIMEOUT, -1,
		"timed out waiting for another rank (ranks 0, 2 waited)", 1 },
	{ "who lost the one that timed out",
		{ FAILED(3, .blames = BLAMES_A_PEER), WAITED(FOR(2)), STOPPED }, 0, CAUSE_TIMEOUT,
		2, "rank 1 timed out waiting for it", 3 },
	{ "a time-out that our signal cut short tells, too",
		{ FAILED(1, .blames = BLAMES_A_PEER),
			{ .end = BY_US, .blames = BLAMES_A_WAIT, .waited = { FOR(2) } }, STOPPED },
		0, CAUSE_TIMEOUT, 2, "rank 1 timed out waiting for it", 1 },
	{ "an exception of its own is the cause",
		{ WAITED(FOR(1)), FAILED(4, .blames = BLAMES_ITSELF), STOPPED }, 2, CAUSE_FAILURE,
		1, "", 4 },
	{ "and a crash", { WAITED(FOR(2)), { .end = { ENDED_SIGNAL, SIGSEGV, true } }, STOPPED }, 0,
		CAUSE_FAILURE, 1, "", 139 },
	{ "and an exit without words", { WAITED(FOR(2)), FAILED(4, .rank = 0), STOPPED }, 0,
		CAUSE_FAILURE, 1, "", 4 },
	{ "of lost peers alone the first, as before",
		{ FAILED(1, .blames = BLAMES_A_PEER), FAILED(1, .blames = BLAMES_A_PEER) }, 1,
		CAUSE_FAILURE, 0, "", 1 },
};

static void test_absent(void **state)
{
	const struct row *row = *state;
	struct outcome o[WORKERS_MAX];
	struct result r = { .outcomes = o };
	struct verdict v;

	for (; r.count < WORKERS_MAX && row->workers[r.count].end.how != ENDED_NONE; r.count++) {
		o[r.count] = row->workers[r.count];
		o[r.count].rank = (unsigned)r.count;
		o[r.count].pid = 100;
		o[r.count].ended_ns = 1000000000 + r.count * 1000000;
	}
	r.suspects = &row->suspect;
	r.suspect_count = row->suspect ? 1 : 0;
	verdict_find(&r, NULL, NULL);
	assert_int_equal(r.cause.kind, row->kind);
	assert_int_equal(result_culprit(&r) ? (int)result_culprit(&r)->rank : -1, row->culprit);
	assert_string_equal(r.cause.detail, row->detail);
	assert_int_equal(result_exit_code(&r), row->exit_code);
	assert_non_null(cause_failed(&r.cause));
	verdict_make(&r, &v);
	assert_int_equal(v.exit_code, row->exit_code);
	assert_int_equal(strstr(v.text, "root cause: rank ") != NULL, row->culprit >= 0);
	assert_non_null(strstr(v.text, row->detail));
}

/* Of many with long numbers the text shows that it is cut. */
static void test_absent_many(void **state)
{
	struct outcome o[32] = { 0 };
	struct result r = { .outcomes = o, .count = 32 };

	(void)state;
	for (unsigned i = 0; i < 32; i++) {
		bool waits = i % 2 == 0;

		o[i] = (struct outcome){ .rank = 1000 + i,
			.pid = 100,
			.ended_ns = 1000000000 + i,
			.blames = waits ? BLAMES_A_WAIT : BLAMES_NOBODY,
			.asked = waits ? ASKED_NOTHING : ASKED_TO_STOP,
			.asked_signal = waits ? 0 : SIGTERM,
			.waited = { .count = waits, .ranks = { 1001 + i } },
			.end = { waits ? ENDED_EXIT : ENDED_SIGNAL, waits ? 1 : SIGTERM, false } };
	}
	verdict_find(&r, NULL, NULL);
	assert_int_equal(r.cause.kind, CAUSE_TIMEOUT);
	assert_int_equal(result_culprit(&r)->rank, 1001);
	assert_int_equal(strlen(r.cause.detail), CAUSE_DETAIL_SIZE - 1);
	assert_non_null(strstr(r.cause.detail, "..."));
}

TESTS(absent)
{
	static struct suite s;

	SUITE_ROWS(&s, test_absent, rows);
	suite_add(&s, "more than its text has room for", test_absent_many, NULL, NULL);
	return suite_run(&s);
}
