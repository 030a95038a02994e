/* test_message_ends.c - messages about how workers end: what is written is read again. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "daemon/cluster/message.h"
#include "daemon/net/wire.h"
#include "daemon/report/error_file.h"
#include "tests/unit/daemon/cluster/message_fixture.h"

static const struct cause cause = {
	.kind = CAUSE_SIGNAL,
	.signal = SIGTERM,
	.sender = { .pid = 812, .uid = 1000, .kernel = false, .command = "bash" },
	.at_ns = 77,
	.noticed_ns = 78,
	.node = 3,
	.host = "gpu09",
	.detail = "its connection was closed",
};

static const struct outcome outcome = {
	.rank = 9,
	.local_rank = 1,
	.attempt = 2,
	.node = 4,
	.pid = 4711,
	.end = { ENDED_SIGNAL, SIGSEGV, true },
	.oom = OOM_LIKELY,
	.oom_limit = OOM_LIMIT_OWN,
	.oom_bytes = UINT64_C(3) << 40,
	.asked = ASKED_TO_STOP,
	.asked_signal = SIGTERM,
	.started_ns = 1,
	.ended_ns = 1ULL << 62,
	.asked_ns = 3,
	.late_ns = 4,
	.blames = BLAMES_A_WAIT,
	.waited = { true, true, true, 2, { 70000, 1, 0, 0, 0, 0, 0, 8 } },
	.unjoined = true,
	.shm_full = true,
	.left = 5,
	.left_killed = 6,
};

static void assert_cause(const struct cause *a, const struct cause *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->signal, b->signal);
	assert_int_equal(a->sender.pid, b->sender.pid);
	assert_int_equal(a->sender.uid, b->sender.uid);
	assert_int_equal(a->sender.kernel, b->sender.kernel);
	assert_string_equal(a->sender.command, b->sender.command);
	assert_int_equal(a->at_ns, b->at_ns);
	assert_int_equal(a->noticed_ns, b->noticed_ns);
	assert_int_equal(a->node, b->node);
	assert_string_equal(a->host, b->host);
	assert_string_equal(a->detail, b->detail);
}

static void assert_outcomes(const struct outcome *a, const struct outcome *b)
{
	assert_int_equal(a->rank, b->rank);
	assert_int_equal(a->local_rank, b->local_rank);
	assert_int_equal(a->attempt, b->attempt);
	assert_int_equal(a->node, b->node);
	assert_int_equal(a->pid, b->pid);
	assert_memory_equal(&a->end.how, &b->end.how, sizeof a->end.how);
	assert_int_equal(a->end.value, b->end.value);
	assert_int_equal(a->end.core, b->end.core);
	assert_int_equal(a->oom, b->oom);
	assert_int_equal(a->oom_limit, b->oom_limit);
	assert_int_equal(a->oom_bytes, b->oom_bytes);
	assert_int_equal(a->asked, b->asked);
	assert_int_equal(a->asked_signal, b->asked_signal);
	assert_int_equal(a->started_ns, b->started_ns);
	assert_int_equal(a->ended_ns, b->ended_ns);
	assert_int_equal(a->asked_ns, b->asked_ns);
	assert_int_equal(a->late_ns, b->late_ns);
	assert_int_equal(a->blames, b->blames);
	assert_int_equal(a->waited.in_store, b->waited.in_store);
	assert_int_equal(a->waited.dials, b->waited.dials);
	assert_int_equal(a->waited.more, b->waited.more);
	assert_int_equal(a->waited.count, b->waited.count);
	assert_memory_equal(a->waited.ranks, b->waited.ranks, sizeof a->waited.ranks);
	assert_int_equal(a->unjoined, b->unjoined);
	assert_int_equal(a->shm_full, b->shm_full);
	assert_int_equal(a->left, b->left);
	assert_int_equal(a->left_killed, b->left_killed);
}

static void test_stop(void **state)
{
	const struct message m = { MESSAGE_STOP,
		.stop = { 1, URGENCY_HURRY, SIGINT, 30000, cause } };
	struct arena arena = { 0 };
	struct stop got;

	(void)state;
	got = read_again(&m, &arena).stop;
	assert_int_equal(got.attempt, 1);
	assert_int_equal(got.urgency, URGENCY_HURRY);
	assert_int_equal(got.signal, SIGINT);
	assert_int_equal(got.grace_ms, 30000);
	assert_cause(&got.cause, &cause);
}

/* Whoever hears of a failure keeps the culprit. */
static void test_stop_for_failure(void **state)
{
	struct message m = { MESSAGE_STOP,
		.stop = { 1, URGENCY_STOP, SIGTERM, 30000, cause_of_failure(&outcome) } };
	struct arena arena = { 0 };
	struct message got;

	(void)state;
	(void)strcpy(m.stop.cause.host, "gpu09");
	got = read_again(&m, &arena);
	assert_cause(&got.stop.cause, &m.stop.cause);
	assert_outcomes(&got.stop.cause.culprit, &outcome);
}

/* With the worker that the others waited for, and without. */
static void test_stop_for_timeout(void **state)
{
	struct message m = { MESSAGE_STOP,
		.stop = { 1, URGENCY_STOP, SIGTERM, 30000,
			{ .kind = CAUSE_TIMEOUT,
				.victim = outcome,
				.culprit = outcome,
				.has_culprit = true,
				.detail = "rank 0 timed out waiting for it" } } };
	struct arena arena = { 0 };
	struct message got;

	(void)state;
	m.stop.cause.culprit.rank = 70001;
	got = read_again(&m, &arena);
	assert_cause(&got.stop.cause, &m.stop.cause);
	assert_outcomes(&got.stop.cause.victim, &outcome);
	assert_outcomes(cause_culprit(&got.stop.cause), &m.stop.cause.culprit);
	m.stop.cause.has_culprit = false;
	got = read_again(&m, &arena);
	assert_outcomes(&got.stop.cause.victim, &outcome);
	assert_null(cause_culprit(&got.stop.cause));
}

static void test_outcomes(void **state)
{
	struct outcome list[3] = { outcome, outcome, outcome };
	const struct message failed = { MESSAGE_FAILED, .failed = outcome };
	const struct message m = { MESSAGE_OUTCOMES, .outcomes = { 2, list, 3 } };
	struct arena arena = { 0 };
	struct message got;

	(void)state;
	got = read_again(&failed, &arena);
	assert_outcomes(&got.failed, &outcome);

	list[1].end = (struct ending){ ENDED_UNSTARTED, ENOENT, false };
	list[2].end = (struct ending){ ENDED_NONE, 0, false };
	got = read_again(&m, &arena);
	assert_int_equal(got.outcomes.attempt, 2);
	assert_int_equal(got.outcomes.count, 3);
	for (int i = 0; i < 3; i++)
		assert_outcomes(&got.outcomes.list[i], &list[i]);
	arena_done(&arena);
}

static void test_many_outcomes(void **state)
{
	static struct outcome list[OUTCOMES_MAX];
	const struct message m = { MESSAGE_OUTCOMES, .outcomes = { 0, list, OUTCOMES_MAX } };
	struct arena arena = { 0 };
	struct wire_out w = { 0 };
	struct message got;

	(void)state;
	for (int i = 0; i < OUTCOMES_MAX; i++)
		list[i] = outcome;
	message_put(&w, &m);
	assert_int_equal(message_get(MESSAGE_OUTCOMES, w.at, w.len, &arena, &got), 0);
	assert_int_equal(got.outcomes.count, OUTCOMES_MAX);
	wire_put_raw(&w, w.at + 4, OUTCOME_BYTES); /* one more than there may be */
	assert_int_equal(message_get(MESSAGE_OUTCOMES, w.at, w.len, &arena, &got), -EPROTO);
	assert_int_equal(got.outcomes.count, OUTCOMES_MAX);
	wire_out_done(&w);
	arena_done(&arena);
}

static void assert_same(const char *a, const char *b)
{
	assert_int_equal(a == NULL, b == NULL);
	if (a)
		assert_string_equal(a, b);
}

static void test_record(void **state)
{
	static const struct error_record records[] = {
		{ .message = "ValueError: \t\xff", .traceback = "a\nb", .timestamp = 1700000000 },
		{ .message = "" },
		{ .raw = "{\"mess", .raw_why = "truncated, or not JSON" },
	};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		const struct error_record *r = i < 3 ? &records[i] : NULL;
		const struct message m = { MESSAGE_RECORD,
			.record = { 1, 5, r, i == 1 ? NULL : "./train 'a b'",
				{ i % 2 ? "a\n\x1b[2J\xff" : NULL,
					i > 1 ? "/log/1/stderr.log" : NULL } } };
		struct arena arena = { 0 };
		struct message_record got = read_again(&m, &arena).record;

		assert_int_equal(got.attempt, 1);
		assert_int_equal(got.rank, 5);
		assert_same(got.command, m.record.command);
		assert_same(got.words.lines, m.record.words.lines);
		assert_same(got.words.log, m.record.words.log);
		assert_int_equal(got.record == NULL, r == NULL);
		if (r) {
			assert_same(got.record->message, r->message);
			assert_same(got.record->traceback, r->traceback);
			assert_int_equal(got.record->timestamp, r->timestamp);
			assert_same(got.record->raw, r->raw);
			assert_same(got.record->raw_why, r->raw_why);
		}
		arena_done(&arena);
	}
}

/* An error file of the largest size, of which any byte may be anything. */
static void test_large_record(void **state)
{
	enum { LARGE = RECORD_MAX_BYTES + 10 };
	char *text = malloc(LARGE + 1);
	struct error_record record = { .message = text, .traceback = text };
	const struct message m = { MESSAGE_RECORD,
		.record = { 0, 0, &record, text, { text, text } } };
	struct arena arena = { 0 };
	struct wire_out w = { 0 };
	struct message got;

	(void)state;
	assert_non_null(text);
	memset(text, 'x', LARGE);
	text[LARGE] = '\0';
	message_put(&w, &m);
	assert_false(w.failed);
	assert_int_equal(message_get(MESSAGE_RECORD, w.at, w.len, &arena, &got), 0);
	assert_int_equal(strlen(got.record.record->message), RECORD_MAX_BYTES);
	assert_int_equal(strlen(got.record.command), 64 * 1024);
	assert_int_equal(strlen(got.record.words.lines), LAST_LINES_BYTES);
	assert_null(got.record.words.log); /* the path of another file */
	wire_out_done(&w);
	arena_done(&arena);
	free(text);
}

/* Linked with --wrap: malloc() fails when it has been called so often. Volatile, as in
 * test_tail.c. */
static volatile unsigned mallocs = UINT_MAX;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	if (mallocs == 0)
		return NULL;
	mallocs--;
	return __real_malloc(size);
}

/* Without memory at first, then with some for more and more of it. Returns how often there was too
 * little. */
static unsigned read_without_memory(const struct message *m)
{
	struct bytes bytes = bytes_of(m);
	unsigned failed = 0;
	int rc = -ENOMEM;

	while (rc != 0) {
		struct message got = { .type = MESSAGE_END };
		struct arena arena = { 0 };

		mallocs = failed;
		rc = read_bytes(&bytes, &arena, &got);
		if (rc != 0) {
			assert_int_equal(mallocs, 0);
			assert_int_equal(rc, -ENOMEM);
			assert_int_equal(got.type, MESSAGE_END); /* untouched */
			assert_null(arena.last);                 /* nothing is kept of it */
			failed++;
		}
		mallocs = UINT_MAX;
		arena_done(&arena);
	}
	free(bytes.at);
	return failed;
}

/* A text that there was no memory for isn't taken for an empty one. */
static void test_no_memory(void **state)
{
	enum { LARGE = 20000 }; /* more than an arena takes from malloc() at once */
	static char text[LARGE + 1];
	static unsigned ranks[LARGE];
	struct error_record record = { .raw = text, .raw_why = "truncated" };
	const struct message texts = { MESSAGE_RECORD,
		.record = { 0, 0, &record, text, { text, NULL } } };
	const struct message list = { MESSAGE_JOINED, .joined = { 0, ranks, LARGE } };
	const struct message none = { MESSAGE_JOINED, .joined = { 0, ranks, 0 } };

	(void)state;
	memset(text, 'x', LARGE);
	assert_true(read_without_memory(&texts) > 2);
	assert_int_equal(read_without_memory(&list), 1);
	assert_int_equal(read_without_memory(&none), 1);
}

/* Last words of `lines_len` and `log_len` bytes behind an empty record. */
static int read_words(size_t lines_len, size_t log_len, bool nul)
{
	static char bytes[LAST_LINES_BYTES + 1];
	struct message got;
	struct arena arena = { 0 };
	struct wire_out w = { 0 };
	int rc;

	memset(bytes, 'x', sizeof bytes);
	bytes[lines_len / 2] = nul ? '\0' : '\x1b';
	wire_put_u32(&w, 1);
	wire_put_u32(&w, 5);
	wire_put_u8(&w, false); /* no command */
	wire_put_u8(&w, false); /* no error file */
	wire_put_u8(&w, true);
	wire_put_bytes(&w, bytes, lines_len);
	wire_put_u8(&w, true);
	wire_put_bytes(&w, bytes, log_len);
	rc = message_get(MESSAGE_RECORD, w.at, w.len, &arena, &got);
	if (rc == 0) {
		assert_int_equal(strlen(got.record.words.lines), lines_len);
		assert_int_equal(strlen(got.record.words.log), log_len);
	} else {
		assert_null(arena.last); /* nothing is kept of it */
	}
	wire_out_done(&w);
	arena_done(&arena);
	return rc;
}

static void test_words_bounds(void **state)
{
	(void)state;
	assert_int_equal(read_words(LAST_LINES_BYTES, LOG_BYTES, false), 0);
	assert_int_equal(read_words(1, 0, false), 0);
	assert_int_equal(read_words(LAST_LINES_BYTES + 1, 1, false), -EPROTO);
	assert_int_equal(read_words(1, LOG_BYTES + 1, false), -EPROTO);
	assert_int_equal(read_words(100, 1, true), -EPROTO);
	assert_int_equal(read_words(1, 100, true), -EPROTO);
}

static void test_ended(void **state)
{
	struct message m = { MESSAGE_ENDED,
		.ended = { .attempt = 2,
			.cause = cause,
			.left = 3,
			.left_killed = 1,
			.survivors = { { .pid = 9,
				.uid = 8,
				.state = 'D',
				.command = "python",
				.node = 1 } },
			.survivor_count = 1,
			.started_ns = 10,
			.ended_ns = 20 } };
	struct arena arena = { 0 };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct node_end got;

		m.ended.survivor_count = i == 0 ? 1 : 100; /* more than are told */
		m.ended.left_unknown = i == 0;
		got = read_again(&m, &arena).ended;
		assert_int_equal(got.attempt, 2);
		assert_cause(&got.cause, &cause);
		assert_int_equal(got.left, 3);
		assert_int_equal(got.left_killed, 1);
		assert_true(got.left_unknown == m.ended.left_unknown);
		assert_int_equal(got.started_ns, 10);
		assert_int_equal(got.ended_ns, 20);
		assert_int_equal(got.survivor_count, m.ended.survivor_count);
		assert_int_equal(got.survivors[0].pid, 9);
		assert_int_equal(got.survivors[0].uid, 8);
		assert_int_equal(got.survivors[0].state, 'D');
		assert_string_equal(got.survivors[0].command, "python");
		assert_int_equal(got.survivors[0].node, 1);
		assert_null(got.outcomes);
		assert_int_equal(got.count, 0);
	}
}

/* Values that no launcher writes: byte `at` of a failed worker's outcome set to `value`. */
static const struct value_row {
	const char *says;
	size_t at;
	unsigned char value;
} values[] = {
	{ "no pid is negative", 19, 0x80 },
	{ "no fifth way to end", 20, 4 },
	{ "no signal above 127", 21, 128 },
	{ "no signal 0", 21, 0 },
	{ "no exit code above 255", 22, 1 },
	{ "a core is dumped, or not", 23, 2 },
	{ "no fifth kind of OOM", 24, 4 },
	{ "no fifth limit of memory", 25, 4 },
	{ "no fourth way to be asked", 34, 3 },
	{ "no signal above 127 that asked", 35, 255 },
	{ "no time before the machine's own", 67, 255 },
	{ "nobody else to blame", 68, 5 },
	{ "no ninth rank that it waited for", 72, 9 },
};

static void test_value(void **state)
{
	const struct value_row *row = *state;
	const struct message m = { MESSAGE_FAILED, .failed = outcome };
	struct bytes bytes = bytes_of(&m);
	struct arena arena = { 0 };
	struct message got;

	assert_int_equal(bytes.len, OUTCOME_BYTES);
	bytes.at[row->at] = row->value;
	assert_int_equal(read_bytes(&bytes, &arena, &got), -EPROTO);
	free(bytes.at);
}

TESTS(message_ends)
{
	static struct suite s;

	suite_add(&s, "stop", test_stop, NULL, NULL);
	suite_add(&s, "STOP for a failure", test_stop_for_failure, NULL, NULL);
	suite_add(&s, "STOP for a time-out", test_stop_for_timeout, NULL, NULL);
	suite_add(&s, "outcomes", test_outcomes, NULL, NULL);
	suite_add(&s, "4096 outcomes, and no more", test_many_outcomes, NULL, NULL);
	suite_add(&s, "a worker's words", test_record, NULL, NULL);
	suite_add(&s, "more words than are sent", test_large_record, NULL, NULL);
	suite_add(&s, "words without memory for them", test_no_memory, NULL, NULL);
	suite_add(&s, "last words in their bounds", test_words_bounds, NULL, NULL);
	suite_add(&s, "a node's end", test_ended, NULL, NULL);
	SUITE_ROWS(&s, test_value, values);
	return suite_run(&s);
}
