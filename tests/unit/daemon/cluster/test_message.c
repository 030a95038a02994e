/* test_message.c - messages between launchers: what is written is read again, and nothing else. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "daemon/cluster/message.h"
#include "daemon/net/wire.h"
#include "tests/unit/daemon/cluster/message_fixture.h"

static void test_join(void **state)
{
	const struct message_join m = { .node_rank = 1,
		.nnodes = 4,
		.nproc = 8,
		.max_restarts = 3,
		.store = STORE_WISH_RANK0,
		.run_hash = message_run_hash("train-7"),
		.run_id = "train-7",
		.name = "gpu07.cluster",
		.version = "0.1.0",
		.reached = "fe80::1%eth0" };
	struct message_join got;
	struct wire_out w = { 0 };
	struct message bytes;

	(void)state;
	message_put_join(&w, &m);
	bytes = message_of(&w);
	assert_int_equal(message_get_join(bytes.at, bytes.len, &got), 0);
	assert_int_equal(got.node_rank, 1);
	assert_int_equal(got.nnodes, 4);
	assert_int_equal(got.nproc, 8);
	assert_int_equal(got.max_restarts, 3);
	assert_int_equal(got.store, STORE_WISH_RANK0);
	assert_true(got.run_hash == m.run_hash);
	assert_string_equal(got.run_id, m.run_id);
	assert_string_equal(got.name, m.name);
	assert_string_equal(got.version, m.version);
	assert_string_equal(got.reached, m.reached);
	assert_whole(MESSAGE_JOIN, &bytes);
}

/* The whole id counts, not only what is shown of it. */
static void test_run_hash(void **state)
{
	char one[3 * RUN_ID_SIZE], other[3 * RUN_ID_SIZE];

	(void)state;
	memset(one, 'x', sizeof one - 1);
	one[sizeof one - 1] = '\0';
	memcpy(other, one, sizeof one);
	assert_true(message_run_hash(one) == message_run_hash(other));
	other[sizeof other - 2] = 'y';
	assert_true(message_run_hash(one) != message_run_hash(other));
	assert_true(message_run_hash(NULL) == 0);
	assert_true(message_run_hash("") != 0);
	assert_true(message_run_hash("\a") != message_run_hash("\b"));
}

static void test_welcome(void **state)
{
	unsigned nproc[] = { 8, 4, 8 };
	const struct message_welcome m = { .node_rank = 2,
		.nnodes = 3,
		.master_addr = "10.0.0.1",
		.master_port = 65535,
		.max_restarts = 7,
		.agent_store = true,
		.nproc = nproc };
	struct message_welcome got;
	struct arena arena = { 0 };
	struct wire_out w = { 0 };
	struct message bytes;

	(void)state;
	message_put_welcome(&w, &m);
	bytes = message_of(&w);
	assert_int_equal(message_get_welcome(bytes.at, bytes.len, &arena, &got), 0);
	assert_int_equal(got.node_rank, 2);
	assert_int_equal(got.nnodes, 3);
	assert_string_equal(got.master_addr, "10.0.0.1");
	assert_int_equal(got.master_port, 65535);
	assert_int_equal(got.max_restarts, 7);
	assert_true(got.agent_store);
	assert_memory_equal(got.nproc, nproc, sizeof nproc);
	bytes.at[0] = 3; /* a node that there is not */
	assert_int_equal(message_get_welcome(bytes.at, bytes.len, &arena, &got), -EPROTO);
	bytes.at[0] = 2;
	arena_done(&arena);
	assert_whole(MESSAGE_WELCOME, &bytes);
}

static void test_small(void **state)
{
	const struct message_refused refused = { REFUSED_JOB, -ETIMEDOUT,
		"nodes 2, 5 did not come" };
	const struct message_start start = { 3, 29500 };
	const struct verdict verdict = { 139, false, 3,
		{ .kind = CAUSE_FAILURE,
			.culprit = { .rank = 3, .end = { .how = ENDED_SIGNAL, .value = SIGSEGV } },
			.host = "gpu07" },
		true, "root cause: rank 3" };
	struct message_refused got_refused;
	struct message_start got_start;
	struct verdict got_verdict;
	char text[MESSAGE_TEXT_SIZE];
	int signal;
	struct wire_out w = { 0 };
	struct message bytes;

	(void)state;
	message_put_refused(&w, &refused);
	bytes = message_of(&w);
	assert_int_equal(message_get_refused(bytes.at, bytes.len, &got_refused), 0);
	assert_int_equal(got_refused.why, REFUSED_JOB);
	assert_int_equal(got_refused.code, -ETIMEDOUT);
	assert_string_equal(got_refused.text, refused.text);
	assert_whole(MESSAGE_REFUSED, &bytes);

	message_put_text(&w, "waiting for node 3");
	bytes = message_of(&w);
	assert_int_equal(message_get_text(bytes.at, bytes.len, text), 0);
	assert_string_equal(text, "waiting for node 3");
	assert_whole(MESSAGE_WAITING, &bytes);

	message_put_signal(&w, SIGUSR1);
	bytes = message_of(&w);
	assert_int_equal(message_get_signal(bytes.at, bytes.len, &signal), 0);
	assert_int_equal(signal, SIGUSR1);
	assert_whole(MESSAGE_SIGNAL, &bytes);

	message_put_start(&w, &start);
	bytes = message_of(&w);
	assert_int_equal(message_get_start(bytes.at, bytes.len, &got_start), 0);
	assert_int_equal(got_start.attempt, 3);
	assert_int_equal(got_start.master_port, 29500);
	assert_whole(MESSAGE_START, &bytes);

	message_put_verdict(&w, &verdict);
	bytes = message_of(&w);
	assert_int_equal(message_get_verdict(bytes.at, bytes.len, &got_verdict), 0);
	assert_int_equal(got_verdict.exit_code, 139);
	assert_false(got_verdict.well);
	assert_int_equal(got_verdict.attempt, 3);
	assert_string_equal(got_verdict.text, verdict.text);
	assert_true(got_verdict.unsure);
	assert_int_equal(cause_culprit(&got_verdict.cause)->rank, 3);
	assert_string_equal(got_verdict.cause.host, "gpu07");
	assert_whole(MESSAGE_VERDICT, &bytes);
}

static void test_ranks(void **state)
{
	const unsigned ranks[] = { 3, 5, 4095 };
	struct arena arena = { 0 };
	struct wire_out w = { 0 };
	struct message bytes;
	unsigned attempt, *got;
	size_t count;

	(void)state;
	for (size_t n = 0; n < 4; n += 3) {
		message_put_ranks(&w, 6, ranks, n);
		bytes = message_of(&w);
		assert_int_equal(
			message_get_ranks(bytes.at, bytes.len, &arena, &attempt, &got, &count), 0);
		assert_int_equal(attempt, 6);
		assert_int_equal(count, n);
		assert_memory_equal(got, ranks, n * sizeof *ranks);
		assert_whole(MESSAGE_JOINED, &bytes);
	}
	arena_done(&arena);
}

/* A text that is too long, and one that would write to a terminal. */
static void test_lines(void **state)
{
	char text[2 * MESSAGE_TEXT_SIZE], got[MESSAGE_TEXT_SIZE] = "before";
	struct wire_out w = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof text - 1; i++)
		text[i] = i % 2 ? '\xa4' : '\xc3'; /* a-umlaut */
	text[sizeof text - 1] = '\0';
	message_put_text(&w, text + 1);
	message_put_text(&w, text);
	wire_out_done(&w);
	message_put_text(&w, text);
	assert_int_equal(message_get_text(w.at, w.len, got), 0);
	assert_int_equal(strlen(got), MESSAGE_TEXT_SIZE - 2); /* no half of one */
	wire_out_done(&w);

	message_put_text(&w, "a\033[2Jb\n");
	assert_int_equal(message_get_text(w.at, w.len, got), 0);
	assert_string_equal(got, "a?[2Jb?");
	w.at[w.len - 1] = '\n';
	assert_int_equal(message_get_text(w.at, w.len, got), -EPROTO);
	assert_string_equal(got, "a?[2Jb?");
	wire_out_done(&w);
}

/* A number of ranks that the message has no bytes for asks for no memory. */
static void test_lengths(void **state)
{
	const unsigned char huge[] = { 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4 };
	struct arena arena = { 0 };
	unsigned attempt, *ranks;
	size_t count;

	(void)state;
	assert_int_equal(
		message_get_ranks(huge, sizeof huge, &arena, &attempt, &ranks, &count), -EPROTO);
	assert_null(arena.last);
	arena_done(&arena);
}

int main(void)
{
	static struct suite s;

	suite_add(&s, "join", test_join, NULL, NULL);
	suite_add(&s, "ids of runs", test_run_hash, NULL, NULL);
	suite_add(&s, "welcome", test_welcome, NULL, NULL);
	suite_add(&s, "small ones", test_small, NULL, NULL);
	suite_add(&s, "ranks", test_ranks, NULL, NULL);
	suite_add(&s, "long lines, and evil ones", test_lines, NULL, NULL);
	suite_add(&s, "a length that lies", test_lengths, NULL, NULL);
	return suite_run(&s);
}
