/* test_message.c - messages between launchers: what is written is read again, and nothing else. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "daemon/cluster/message.h"
#include "tests/unit/daemon/cluster/message_fixture.h"

static void assert_peer(const struct peer *got, const struct peer *expected)
{
	assert_true(got->role == expected->role);
	assert_true(got->host == expected->host);
	assert_int_equal(got->leads, expected->leads);
	assert_int_equal(got->addr != NULL, expected->addr != NULL);
	if (got->addr)
		assert_string_equal(got->addr, expected->addr);
	assert_int_equal(got->port_count, expected->port_count);
	assert_int_equal(got->jax_port, expected->jax_port);
	if (got->port_count > 0)
		assert_memory_equal(
			got->ports, expected->ports, got->port_count * sizeof *got->ports);
}

static void test_join(void **state)
{
	static const unsigned ports[] = { 1, 65535 };
	const struct message m = { MESSAGE_JOIN,
		.join = { .node_rank = 1,
			.nnodes = 4,
			.nproc = 8,
			.max_restarts = 3,
			.store = STORE_WISH_RANK0,
			.run_hash = message_hash("train-7"),
			.run_id = "train-7",
			.job_hash = message_hash("srun's job 7.0"),
			.job = "srun's job 7.0",
			.name = "gpu07.cluster",
			.version = "0.1.0",
			.reached = "fe80::1%eth0",
			.peer = { .role = 7,
				.host = UINT64_MAX,
				.leads = true,
				.addr = "10.0.0.7",
				.port_count = 2,
				.ports = ports,
				.jax_port = 65534 } } };
	struct bytes bytes = bytes_of(&m);
	struct message wrong = { .type = MESSAGE_JOIN };
	unsigned char *at;
	struct arena arena = { 0 };
	struct message_join got;

	(void)state;
	got = read_again(&m, &arena).join;
	assert_int_equal(got.node_rank, 1);
	assert_int_equal(got.nnodes, 4);
	assert_int_equal(got.nproc, 8);
	assert_int_equal(got.max_restarts, 3);
	assert_int_equal(got.store, STORE_WISH_RANK0);
	assert_true(got.run_hash == m.join.run_hash);
	assert_string_equal(got.run_id, m.join.run_id);
	assert_true(got.job_hash == m.join.job_hash);
	assert_string_equal(got.job, m.join.job);
	assert_string_equal(got.name, m.join.name);
	assert_string_equal(got.version, m.join.version);
	assert_string_equal(got.reached, m.join.reached);
	assert_peer(&got.peer, &m.join.peer);
	at = memmem(bytes.at, bytes.len, "10.0.0.7", 8);
	assert_non_null(at);
	*at = '\033';
	assert_int_equal(read_bytes(&bytes, &arena, &wrong), -EPROTO);
	*at = '1';
	assert_int_equal(read_bytes(&bytes, &arena, &wrong), 0);
	memset(bytes.at + bytes.len - 6, 0, 4); /* the last port is 0 */
	assert_int_equal(read_bytes(&bytes, &arena, &wrong), -EPROTO);
	arena_done(&arena);
	free(bytes.at);
}

/* The whole id counts, not only what is shown of it. */
static void test_run_hash(void **state)
{
	char one[3 * RUN_ID_SIZE], other[3 * RUN_ID_SIZE];

	(void)state;
	memset(one, 'x', sizeof one - 1);
	one[sizeof one - 1] = '\0';
	memcpy(other, one, sizeof one);
	assert_true(message_hash(one) == message_hash(other));
	other[sizeof other - 2] = 'y';
	assert_true(message_hash(one) != message_hash(other));
	assert_true(message_hash(NULL) == 0);
	assert_true(message_hash("") != 0);
	assert_true(message_hash("\a") != message_hash("\b"));
}

static void test_welcome(void **state)
{
	static const unsigned ports[] = { 29501 };
	const struct peer peers[] = { { .role = 1, .leads = true },
		{ .role = 2, .host = 3, .addr = "::1", .port_count = 1, .ports = ports },
		{ .role = 1, .leads = true, .jax_port = 29502 } };
	unsigned nproc[] = { 8, 4, 8 };
	const struct message m = { MESSAGE_WELCOME,
		.welcome = { .node_rank = 2,
			.nnodes = 3,
			.master_addr = "10.0.0.1",
			.master_port = 65535,
			.max_restarts = 7,
			.agent_store = true,
			.nproc = nproc,
			.peers = peers } };
	struct arena arena = { 0 };
	struct bytes bytes = bytes_of(&m);
	struct message got;

	(void)state;
	got = read_again(&m, &arena);
	assert_int_equal(got.welcome.node_rank, 2);
	assert_int_equal(got.welcome.nnodes, 3);
	assert_string_equal(got.welcome.master_addr, "10.0.0.1");
	assert_int_equal(got.welcome.master_port, 65535);
	assert_int_equal(got.welcome.max_restarts, 7);
	assert_true(got.welcome.agent_store);
	assert_memory_equal(got.welcome.nproc, nproc, sizeof nproc);
	for (size_t i = 0; i < 3; i++)
		assert_peer(&got.welcome.peers[i], &peers[i]);
	bytes.at[0] = 3; /* a node that there is not */
	assert_int_equal(read_bytes(&bytes, &arena, &got), -EPROTO);
	arena_done(&arena);
	free(bytes.at);
}

static void test_small(void **state)
{
	const struct message refused = { MESSAGE_REFUSED,
		.refused = { REFUSED_JOB, -ETIMEDOUT, "nodes 2, 5 did not come" } };
	const struct message waiting = message_waiting("waiting for node 3");
	const struct message signal = { MESSAGE_SIGNAL, .signal = SIGUSR1 };
	const struct message start = { MESSAGE_START,
		.start = { 3, 29500, 5, 60000, 1764150000123 } };
	const struct message checked = { MESSAGE_CHECKED, .checked = 7 };
	const struct message leave = { .type = MESSAGE_LEAVE };
	const struct message verdict = { MESSAGE_VERDICT,
		.verdict = { 139, false, 3,
			{ .kind = CAUSE_FAILURE,
				.culprit = { .rank = 3,
					.end = { .how = ENDED_SIGNAL, .value = SIGSEGV } },
				.host = "gpu07" },
			true, "root cause: rank 3" } };
	struct arena arena = { 0 };
	struct message got;

	(void)state;
	got = read_again(&refused, &arena);
	assert_int_equal(got.refused.why, REFUSED_JOB);
	assert_int_equal(got.refused.code, -ETIMEDOUT);
	assert_string_equal(got.refused.text, refused.refused.text);

	got = read_again(&waiting, &arena);
	assert_string_equal(got.waiting, "waiting for node 3");

	got = read_again(&signal, &arena);
	assert_int_equal(got.signal, SIGUSR1);

	got = read_again(&start, &arena);
	assert_int_equal(got.start.job_ms, start.start.job_ms);
	assert_int_equal(got.start.attempt, 3);
	assert_int_equal(got.start.master_port, 29500);
	assert_int_equal(got.start.checks, 5);
	assert_int_equal(got.start.gate_ms, 60000);

	got = read_again(&checked, &arena);
	assert_int_equal(got.checked, 7);

	(void)read_again(&leave, &arena);

	got = read_again(&verdict, &arena);
	assert_int_equal(got.verdict.exit_code, 139);
	assert_false(got.verdict.well);
	assert_int_equal(got.verdict.attempt, 3);
	assert_string_equal(got.verdict.text, verdict.verdict.text);
	assert_true(got.verdict.unsure);
	assert_int_equal(cause_culprit(&got.verdict.cause)->rank, 3);
	assert_string_equal(got.verdict.cause.host, "gpu07");
	assert_null(arena.last);
}

/* Its bytes go to the message's end, so that fewer are a message, too. */
static void test_check(void **state)
{
	const struct message check = { MESSAGE_CHECK,
		.check = { 7, 3, CHECK_SAYS, "10.0.0.4 41234", 14 } };
	struct bytes b = bytes_of(&check);
	struct arena arena = { 0 };
	struct message got;

	(void)state;
	assert_int_equal(read_bytes(&b, &arena, &got), 0);
	assert_int_equal(got.check.attempt, 7);
	assert_int_equal(got.check.phase, 3);
	assert_int_equal(got.check.word, CHECK_SAYS);
	assert_int_equal(got.check.len, 14);
	assert_memory_equal(got.check.at, "10.0.0.4 41234", 14);
	b.at[5] = CHECK_WORDS;
	assert_int_equal(read_bytes(&b, &arena, &got), -EPROTO);
	b.at[5] = CHECK_SAYS;
	b.at[4] = CHECK_PHASE_MAX + 1;
	assert_int_equal(read_bytes(&b, &arena, &got), -EPROTO);
	arena_done(&arena);
	free(b.at);
}

static void test_ranks(void **state)
{
	static const unsigned ranks[] = { 3, 5, 4095 };
	struct arena arena = { 0 };

	(void)state;
	for (size_t n = 0; n < 4; n += 3) {
		const struct message m = { MESSAGE_JOINED, .joined = { 6, ranks, n } };
		struct message got = read_again(&m, &arena);

		assert_int_equal(got.joined.attempt, 6);
		assert_int_equal(got.joined.count, n);
		assert_memory_equal(got.joined.list, ranks, n * sizeof *ranks);
	}
	arena_done(&arena);
}

/* A text that is too long, and one that would write to a terminal. */
static void test_lines(void **state)
{
	char text[2 * MESSAGE_TEXT_SIZE];
	struct message m, got = { .type = MESSAGE_END };
	struct arena arena = { 0 };
	struct bytes bytes;

	(void)state;
	for (size_t i = 0; i < sizeof text - 1; i++)
		text[i] = i % 2 ? '\xa4' : '\xc3'; /* a-umlaut */
	text[sizeof text - 1] = '\0';
	m = message_waiting(text);
	got = read_again(&m, &arena);
	assert_int_equal(strlen(got.waiting), MESSAGE_TEXT_SIZE - 2); /* no half of one */

	m = message_waiting("a\033[2Jb\n");
	bytes = bytes_of(&m);
	assert_int_equal(read_bytes(&bytes, &arena, &got), 0);
	assert_string_equal(got.waiting, "a?[2Jb?");
	bytes.at[bytes.len - 1] = '\n';
	assert_int_equal(read_bytes(&bytes, &arena, &got), -EPROTO);
	assert_string_equal(got.waiting, "a?[2Jb?");
	free(bytes.at);
}

/* A number of ranks that the message has no bytes for asks for no memory. */
static void test_status(void **state)
{
	static const size_t lens[] = { 0, 1, 4711, MESSAGE_STATUS_MAX };
	static char text[MESSAGE_STATUS_MAX + 5];
	struct message m = { MESSAGE_STATUS, .status = { .query = UINT32_MAX, .at = text } };
	struct arena arena = { 0 };

	(void)state;
	memset(text, '{', sizeof text);
	for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
		struct bytes written;
		struct message got;

		m.status.len = lens[i];
		written = bytes_of(&m);
		assert_int_equal(read_bytes(&written, &arena, &got), 0);
		assert_int_equal(got.status.query, UINT32_MAX);
		assert_int_equal(got.status.len, lens[i]);
		assert_memory_equal(got.status.at, text, lens[i]);
		free(written.at);
	}
	assert_null(arena.last); /* however often it comes, it takes no memory */
	assert_int_equal(
		message_get(MESSAGE_STATUS, (const unsigned char *)text, 3, &arena, &m), -EPROTO);
	assert_int_equal(
		message_get(MESSAGE_STATUS, (const unsigned char *)text, sizeof text, &arena, &m),
		-EPROTO);
	assert_int_equal(m.status.query, UINT32_MAX); /* it is as it was */
	arena_done(&arena);
}

static void test_lengths(void **state)
{
	const unsigned char huge[] = { 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4 };
	struct arena arena = { 0 };
	struct message m;

	(void)state;
	assert_int_equal(message_get(MESSAGE_JOINED, huge, sizeof huge, &arena, &m), -EPROTO);
	assert_null(arena.last);
	arena_done(&arena);
}

/* Of another version, or of the link. */
static void test_types(void **state)
{
	struct arena arena = { 0 };
	struct message m;

	(void)state;
	for (unsigned type = 0; type < 256; type++)
		assert_int_equal(message_get(type, (const unsigned char *)"", 0, &arena, &m),
			type == MESSAGE_READY || type == MESSAGE_LEAVE ? 0 : -EPROTO);
}

TESTS(message)
{
	static struct suite s;

	suite_add(&s, "join", test_join, NULL, NULL);
	suite_add(&s, "ids of runs", test_run_hash, NULL, NULL);
	suite_add(&s, "welcome", test_welcome, NULL, NULL);
	suite_add(&s, "small ones", test_small, NULL, NULL);
	suite_add(&s, "a word of a check", test_check, NULL, NULL);
	suite_add(&s, "ranks", test_ranks, NULL, NULL);
	suite_add(&s, "long lines, and evil ones", test_lines, NULL, NULL);
	suite_add(&s, "how a node is", test_status, NULL, NULL);
	suite_add(&s, "a length that lies", test_lengths, NULL, NULL);
	suite_add(&s, "types that there are not", test_types, NULL, NULL);
	return suite_run(&s);
}
