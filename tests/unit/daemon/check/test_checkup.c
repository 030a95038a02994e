/* test_checkup.c - what a node tells of what it has measured, and how node rank 0 judges what all
 * have told. How launchers carry that is shown with real processes, in tests/process. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/failure.h"
#include "common/text.h"
#include "daemon/check/checkup.h"

enum { NODES = 3 };

/* --- judging: a node tells "good", "bad" or "unknown" --- */

static bool judge_fails;

static int judge(const struct phase_input *in, const char *const *told, struct charges *ret,
	struct failure *why)
{
	struct finding f = { .check = "thing", .subject = "GPU 2", .text = "it is broken" };

	if (judge_fails)
		return failure_set(why, -EIO, "no judge");
	for (unsigned i = 0; i < in->nnodes; i++) {
		const char *word = told[i] ? told[i] : "good";

		f.health = strcmp(word, "bad") == 0  ? HEALTH_BAD :
			strcmp(word, "unknown") == 0 ? HEALTH_UNKNOWN :
						       HEALTH_GOOD;
		charges_add(ret, i, &f);
	}
	return 0;
}

static const struct phase first = { .name = "first", .limit_ms = 2000, .judge = judge };
static const struct phase second = { .name = "second", .limit_ms = 2000, .judge = judge };
static const struct phase *const both[] = { &first, &second };

static const struct row {
	const char *says;
	const char *told[2][NODES];
	bool absent[NODES], stop, judge_fails;
	enum health healths[NODES];
	unsigned judged, mute;
	const char *doubts; /* each with how many nodes have it, and the first of them */
} rows[] = {
	{ "all are good", { { "=good", "=good", "=good" }, { "=good", "=good", "=good" } },
		.judged = 2, .doubts = "" },
	{ "one is bad: nothing follows", { { "=good", "=bad", "=good" } }, .stop = true,
		.healths = { HEALTH_GOOD, HEALTH_BAD, HEALTH_GOOD }, .judged = 1, .doubts = "" },
	{ "one is bad, which is only reported",
		{ { "=good", "=bad", "=good" }, { "=good", "=bad", "=bad" } },
		.healths = { HEALTH_GOOD, HEALTH_BAD, HEALTH_BAD }, .judged = 2, .doubts = "" },
	{ "one is bad in the last phase",
		{ { "=good", "=good", "=good" }, { "=bad", "=good", "=good" } }, .stop = true,
		.healths = { HEALTH_BAD }, .judged = 2, .doubts = "" },
	{ "what is not known of two is said once",
		{ { "=unknown", "=good", "=unknown" }, { "=good", "=good", "=good" } },
		.stop = true, .healths = { HEALTH_UNKNOWN, HEALTH_GOOD, HEALTH_UNKNOWN },
		.judged = 2, .doubts = "2 from 0: GPU 2: it is broken\n" },
	{ "one can't measure",
		{ { "=good", "?there is no such device", "=good" }, { "=good", "=good", "=good" } },
		.stop = true, .healths = { HEALTH_GOOD, HEALTH_UNKNOWN, HEALTH_GOOD }, .judged = 2,
		.mute = 1, .doubts = "1 from 1: first: there is no such device\n" },
	{ "who tells nothing hides nobody who is bad", { { "=good", NULL, "=bad" } }, .stop = true,
		.healths = { HEALTH_GOOD, HEALTH_UNKNOWN, HEALTH_BAD }, .judged = 1, .mute = 1,
		.doubts = "1 from 1: first: it did not answer within 2 s\n" },
	{ "one never tells anything", { { "=good", NULL, "=good" }, { "=good", NULL, "=good" } },
		.healths = { HEALTH_GOOD, HEALTH_UNKNOWN, HEALTH_GOOD }, .judged = 2, .mute = 1,
		.doubts = "1 from 1: first: it did not answer within 2 s\n"
			  "1 from 1: second: it did not answer within 2 s\n" },
	{ "one is not waited for", { { "=good", NULL, "=good" }, { "=good", NULL, "=good" } },
		.absent = { false, true }, .healths = { HEALTH_GOOD, HEALTH_UNKNOWN, HEALTH_GOOD },
		.judged = 2, .mute = 1,
		.doubts = "1 from 1: first: its launchd has not joined the job\n"
			  "1 from 1: second: its launchd has not joined the job\n" },
	{ "nobody can judge", { { "=good", "=good", "=good" }, { "=good", "=good", "=good" } },
		.judge_fails = true, .stop = true,
		.healths = { HEALTH_UNKNOWN, HEALTH_UNKNOWN, HEALTH_UNKNOWN }, .judged = 2,
		.doubts = "3 from 0: first: no judge\n3 from 0: second: no judge\n" },
};

static void assert_verdict(const struct row *row, const struct checkup_verdict *v)
{
	struct text doubts = { 0 };

	assert_int_equal(v->judged, row->judged);
	assert_int_equal(v->mute, row->mute);
	for (unsigned i = 0; i < NODES; i++) {
		assert_int_equal(v->node[i].health, row->healths[i]);
		if (row->healths[i] == HEALTH_BAD)
			assert_string_equal(v->node[i].reason.text, "it is broken");
	}
	for (unsigned i = 0; i < v->doubts; i++) {
		text_printf(&doubts, "%u from %u: ", v->doubt[i].nodes, v->doubt[i].first);
		finding_add(&doubts, &v->doubt[i].finding);
		text_add(&doubts, "\n");
	}
	assert_string_equal(text_string(&doubts), row->doubts);
	text_done(&doubts);
}

static void test_judge(void **state)
{
	const struct row *row = *state;
	const struct phase_input in = { .nnodes = NODES };
	struct checkup_verdict *v = calloc(1, checkup_verdict_size(NODES));

	judge_fails = row->judge_fails;
	for (unsigned i = 0; i < 2 && !v->over; i++)
		checkup_judge(&in, both[i], row->told[i], row->absent, row->stop, v);
	checkup_trust(v, NODES);
	assert_verdict(row, v);
	free(v);
}

/* --- measuring --- */

static size_t measures; /* bytes; 0: it fails */

static int measure(const struct phase_input *in, struct text *ret, struct failure *why)
{
	(void)in;
	for (size_t i = 0; i < measures; i++)
		text_add(ret, "x");
	return measures ? 0 : failure_set(why, -ENODEV, "there is no such device");
}

static void test_measure(void **state)
{
	const struct phase phase = { .name = "first", .measure = measure };
	struct checkup_told *told = calloc(1, sizeof *told);

	(void)state;
	measures = 3;
	checkup_measure(&(struct phase_input){ 0 }, &phase, told);
	assert_int_equal(told->len, 4);
	assert_memory_equal(told->text, "=xxx", 4);
	measures = 0;
	checkup_measure(&(struct phase_input){ 0 }, &phase, told);
	assert_memory_equal(told->text, "?there is no such device", told->len);
	measures = TOLD_MAX;
	checkup_measure(&(struct phase_input){ 0 }, &phase, told);
	assert_memory_equal(told->text, "?it has more to tell than there is room", told->len);
	free(told);
}

/* A child that has overwritten all. */
static void test_trust(void **state)
{
	struct checkup_verdict *v = malloc(checkup_verdict_size(NODES));

	(void)state;
	assert_non_null(v);
	memset(v, 0xff, checkup_verdict_size(NODES));
	checkup_trust(v, NODES);
	assert_int_equal(v->doubts, DOUBTS_MAX);
	for (unsigned i = 0; i < DOUBTS_MAX; i++) {
		assert_int_equal(v->doubt[i].first, 0);
		assert_int_equal(
			strlen(v->doubt[i].finding.text), sizeof v->doubt[i].finding.text - 1);
	}
	for (unsigned i = 0; i < NODES; i++)
		assert_int_equal(v->node[i].health, HEALTH_GOOD);
	free(v);
}

/* --- limits --- */

static uint64_t more_ms(const struct settings *s)
{
	(void)s;
	return 1000;
}

static void test_times(void **state)
{
	const struct phase_input in = { 0 };
	const struct phase longer = { .name = "longer", .limit_ms = 2000, .more_ms = more_ms };
	struct checkup_times t = checkup_times(&in, &longer, false);

	(void)state;
	assert_int_equal(t.measure, 3000);
	assert_true(t.killed >= t.measure && t.awaited > t.killed && t.judged > t.awaited);
	assert_true(checkup_times(&in, &longer, true).awaited > t.awaited);
}

/* Whatever is slow. */
static void test_strict_times(void **state)
{
	static const struct {
		uint64_t gate_ms, judged;
	} limits[] = { { 0, 3000 }, { 500, 3000 }, { 3000, 3000 }, { 5000, 5000 }, { 60000, 60000 },
		{ 86400000, 86400000 } };
	const struct phase gate = { .name = "gate", .strict = true };

	(void)state;
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		const struct phase_input in = { .gate_ms = limits[i].gate_ms };
		struct checkup_times t = checkup_times(&in, &gate, true);

		assert_int_equal(t.judged, limits[i].judged);
		assert_true(t.measure > 1000 && t.killed > t.measure && t.awaited > t.killed &&
			t.judged > t.awaited);
	}
}

TESTS(checkup)
{
	static struct suite s;

	SUITE_ROWS(&s, test_judge, rows);
	suite_add(&s, "a node tells what it has measured, or why it could not", test_measure, NULL,
		NULL);
	suite_add(&s, "what a child wrote may be anything", test_trust, NULL, NULL);
	suite_add(&s, "nodes are waited for beyond a phase's limit", test_times, NULL, NULL);
	suite_add(&s, "a strict phase's parts are within its limit", test_strict_times, NULL, NULL);
	return suite_run(&s);
}
