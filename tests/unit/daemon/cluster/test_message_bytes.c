/* test_message_bytes.c - the bytes of each message: launchers of one version of the protocol
 * (HANDSHAKE_VERSION) must agree on them. Who has a reason to change them changes the version. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <string.h>

#include "common/siphash.h"
#include "daemon/cluster/message.h"
#include "daemon/net/wire.h"

#define RUN_HASH UINT64_C(0xc828745adbebe243)

#define OUTCOME \
	{ \
		.rank = 1, .local_rank = 2, .attempt = 3, .node = 4, .pid = 5000, \
		.end = { ENDED_SIGNAL, SIGSEGV, true }, .oom = OOM_LIKELY, \
		.oom_limit = OOM_LIMIT_ABOVE, .oom_bytes = UINT64_C(1) << 33, \
		.asked = ASKED_TO_STOP, .asked_signal = SIGTERM, .started_ns = 6, \
		.ended_ns = UINT64_C(1) << 40, .asked_ns = 7, .late_ns = 8, \
		.blames = BLAMES_A_PEER, .left = 9, .left_killed = 10, \
	}

#define BY_SIGNAL \
	{ \
		.kind = CAUSE_SIGNAL, .signal = SIGINT, \
		.sender = { .pid = 77, .uid = 1000, .command = "bash" }, .at_ns = 11, \
		.noticed_ns = 12, .node = 1, .host = "host", .detail = "detail" \
	}

static const unsigned ranks[] = { 2, 3 }, nproc[] = { 1, 2, 300000 }, ports[] = { 29501, 29502 };
static const struct peer peers[] = { { .role = 1, .leads = true },
	{ .role = 2, .host = 3, .addr = "10.1.1.2", .port_count = 2, .ports = ports },
	{ .role = 1, .host = 4, .leads = true, .jax_port = 29504 } };
static const struct outcome outcomes[] = { OUTCOME, OUTCOME };
static const struct error_record record = { .message = "message", .timestamp = 1 };

static const struct row {
	const char *says;
	struct message m;
	size_t len;
	uint64_t hash;
} rows[] = {
	{ "JOIN",
		{ MESSAGE_JOIN,
			.join = { .node_rank = NODE_RANK_UNKNOWN,
				.nnodes = 4,
				.nproc = 8,
				.max_restarts = 2,
				.store = STORE_WISH_AGENT,
				.run_hash = RUN_HASH,
				.run_id = "r\nun",
				.job_hash = 9,
				.job = "srun's job 7.0",
				.name = "h\xc3\xb6st",
				.version = "0.1",
				.reached = "10.0.0.1",
				.peer = { .role = 1,
					.host = 2,
					.leads = true,
					.addr = "10.1.1.2",
					.port_count = 2,
					.ports = ports,
					.jax_port = 29503 } } },
		135, UINT64_C(0xc68173dba530b069) },
	{ "WELCOME",
		{ MESSAGE_WELCOME,
			.welcome = { .node_rank = 1,
				.nnodes = 3,
				.master_addr = "10.1.1.1",
				.master_port = 29500,
				.max_restarts = 5,
				.agent_store = true,
				.nproc = nproc,
				.peers = peers } },
		139, UINT64_C(0x27331e768880cba8) },
	{ "REFUSED", { MESSAGE_REFUSED, .refused = { REFUSED_RUNNING, -110, "a text" } }, 13,
		UINT64_C(0x2386d5d2032282f6) },
	{ "WAITING", { MESSAGE_WAITING, .waiting = "a\ttext" }, 10, UINT64_C(0x7704c56686659384) },
	{ "FAILED", { MESSAGE_FAILED, .failed = OUTCOME }, 114, UINT64_C(0xf2d9c4cb7faa2150) },
	{ "STOP",
		{ MESSAGE_STOP,
			.stop = { .attempt = 1,
				.urgency = URGENCY_HURRY,
				.signal = SIGTERM,
				.grace_ms = 30000,
				.cause = BY_SIGNAL } },
		71, UINT64_C(0x41bd37c3c671457a) },
	{ "SIGNAL", { MESSAGE_SIGNAL, .signal = SIGUSR1 }, 1, UINT64_C(0xfeaceb1f570eae7a) },
	{ "OUTCOMES", { MESSAGE_OUTCOMES, .outcomes = { 1, outcomes, 2 } }, 232,
		UINT64_C(0xe46932d2d56b0a34) },
	{ "RECORD", { MESSAGE_RECORD, .record = { 1, 2, &record, "command", { "lines\n", NULL } } },
		56, UINT64_C(0x9991423095348ce0) },
	{ "ENDED",
		{ MESSAGE_ENDED,
			.ended = { .attempt = 1,
				.cause = BY_SIGNAL,
				.left = 2,
				.left_killed = 3,
				.left_unknown = true,
				.started_ns = 4,
				.ended_ns = 5,
				.survivors = { { 6, 7, 'D', "survivor", 8 } },
				.survivor_count = 1 } },
		119, UINT64_C(0xf94d483cbd51f999) },
	{ "START", { MESSAGE_START, .start = { .attempt = 1, .master_port = 29500 } }, 22,
		UINT64_C(0xc1d14868f9059140) },
	{ "START with a check", { MESSAGE_START, .start = { 1, 29500, 3, 60000, 1764000000000 } },
		22, UINT64_C(0xd05c5922779db0c8) },
	{ "CHECKED", { MESSAGE_CHECKED, .checked = 1 }, 4, UINT64_C(0x8477c52e3610c99a) },
	{ "STOP for bad nodes",
		{ MESSAGE_STOP,
			.stop = { .attempt = 1,
				.urgency = URGENCY_STOP,
				.signal = SIGTERM,
				.grace_ms = 30000,
				.cause = { .kind = CAUSE_BAD_NODE,
					.at_ns = 11,
					.node = 1,
					.host = "host",
					.detail = "detail",
					.exclude = "host,other" } } },
		82, UINT64_C(0x4f14ab07e9a4c109) },
	{ "STOP for a preemption",
		{ MESSAGE_STOP,
			.stop = { .attempt = 1,
				.urgency = URGENCY_STOP,
				.signal = SIGUSR1,
				.grace_ms = 120000,
				.cause = { .kind = CAUSE_PREEMPTED,
					.signal = SIGUSR2,
					.at_ns = 11,
					.node = 1,
					.host = "host",
					.detail = "120 s left",
					.requeue_code = 75 } } },
		72, UINT64_C(0xfa4b677f88868aef) },
	{ "VERDICT",
		{ MESSAGE_VERDICT,
			.verdict = { .exit_code = 143,
				.attempt = 1,
				.text = "text",
				.unsure = true,
				.cause = { .kind = CAUSE_FAILURE, .culprit = OUTCOME } } },
		172, UINT64_C(0xa2a4478e8378bb5e) },
	{ "JOINED", { MESSAGE_JOINED, .joined = { 1, ranks, 2 } }, 16,
		UINT64_C(0x48a1586b5bad1289) },
	{ "LOG", { MESSAGE_LOG, .log = { 2, "a\0b", 3 } }, 4, UINT64_C(0x737259c9b65c5873) },
	{ "LOG_ROOM", { MESSAGE_LOG_ROOM, .log_room = 4096 }, 4, UINT64_C(0x0b1065ba985b1da9) },
	{ "QUERY", { MESSAGE_QUERY, .query = 4711 }, 4, UINT64_C(0x1eb2c859fed1533d) },
	{ "STATUS", { MESSAGE_STATUS, .status = { 4711, "{}", 2 } }, 6,
		UINT64_C(0x1d7f08bd9bfc0828) },
	{ "LOOK", { MESSAGE_LOOK, .look = { 1, "a\0b", 3 } }, 7, UINT64_C(0xa5e19b42dd00b8f5) },
	{ "HANG", { MESSAGE_HANG, .hang = { 1, HANG_ORDER_SUSPECT, "text" } }, 13,
		UINT64_C(0x1b57d66f34461739) },
	{ "CHECK", { MESSAGE_CHECK, .check = { 1, 3, CHECK_TOLD, "={}", 3 } }, 9,
		UINT64_C(0x735eb410c73ea619) },
	{ "STEP", { MESSAGE_STEP, .step = { 1, 1000, 2000 } }, 20, UINT64_C(0x2c602cbf09d8cdf3) },
	{ "BUNDLE", { MESSAGE_BUNDLE, .bundle = { 1, "path", "text" } }, 20,
		UINT64_C(0xa3022988522f4c1b) },
};

static void test_bytes(void **state)
{
	static const uint8_t key[SIPHASH_KEY_SIZE] = "bytes of a wire";
	const struct row *row = *state;
	struct wire_out w = { 0 };

	assert_int_equal(message_hash("run"), RUN_HASH);
	message_put(&w, &row->m);
	assert_false(w.failed);
	assert_int_equal(w.len, row->len);
	assert_int_equal(siphash(key, w.at, w.len), row->hash);
	wire_out_done(&w);
}

TESTS(message_bytes)
{
	static struct suite s;

	SUITE_ROWS(&s, test_bytes, rows);
	return suite_run(&s);
}
