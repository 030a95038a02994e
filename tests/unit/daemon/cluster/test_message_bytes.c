/* test_message_bytes.c - the bytes of each message: launchers of one version of the protocol
 * (HANDSHAKE_VERSION) must agree on them. Who has a reason to change them changes the version. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <string.h>

#include "common/siphash.h"
#include "daemon/cluster/message.h"
#include "daemon/net/wire.h"

static const struct outcome outcome = {
	.rank = 1,
	.local_rank = 2,
	.attempt = 3,
	.node = 4,
	.pid = 5000,
	.end = { ENDED_SIGNAL, SIGSEGV, true },
	.oom = OOM_LIKELY,
	.asked = ASKED_TO_STOP,
	.asked_signal = SIGTERM,
	.started_ns = 6,
	.ended_ns = UINT64_C(1) << 40,
	.asked_ns = 7,
	.late_ns = 8,
	.blames = BLAMES_A_PEER,
	.left = 9,
	.left_killed = 10,
};

#define BY_SIGNAL \
	{ \
		.kind = CAUSE_SIGNAL, .signal = SIGINT, \
		.sender = { .pid = 77, .uid = 1000, .command = "bash" }, .at_ns = 11, \
		.noticed_ns = 12, .node = 1, .host = "host", .detail = "detail" \
	}

static void put_join(struct wire_out *w)
{
	message_put_join(w,
		&(struct message_join){ .node_rank = NODE_RANK_UNKNOWN,
			.nnodes = 4,
			.nproc = 8,
			.max_restarts = 2,
			.store = STORE_WISH_AGENT,
			.run_hash = message_run_hash("run"),
			.run_id = "r\nun",
			.name = "h\xc3\xb6st",
			.version = "0.1",
			.reached = "10.0.0.1" });
}

static void put_welcome(struct wire_out *w)
{
	unsigned nproc[] = { 1, 2, 300000 };

	message_put_welcome(w,
		&(struct message_welcome){ .node_rank = 1,
			.nnodes = 3,
			.master_addr = "10.1.1.1",
			.master_port = 29500,
			.max_restarts = 5,
			.agent_store = true,
			.nproc = nproc });
}

static void put_refused(struct wire_out *w)
{
	message_put_refused(w, &(struct message_refused){ REFUSED_RUNNING, -110, "a text" });
}

static void put_text(struct wire_out *w)
{
	message_put_text(w, "a\ttext");
}

static void put_failed(struct wire_out *w)
{
	message_put_failed(w, &outcome);
}

static void put_stop(struct wire_out *w)
{
	message_put_stop(w,
		&(struct stop){ .attempt = 1,
			.urgency = URGENCY_HURRY,
			.signal = SIGTERM,
			.grace_ms = 30000,
			.cause = BY_SIGNAL });
}

static void put_signal(struct wire_out *w)
{
	message_put_signal(w, SIGUSR1);
}

static void put_outcomes(struct wire_out *w)
{
	message_put_outcomes(w, 1, (struct outcome[]){ outcome, outcome }, 2);
}

static void put_record(struct wire_out *w)
{
	static const struct error_record record = { .message = "message", .timestamp = 1 };

	message_put_record(
		w, &(struct message_record){ 1, 2, &record, "command", { "lines\n", NULL } });
}

static void put_ended(struct wire_out *w)
{
	message_put_ended(w,
		&(struct node_end){ .attempt = 1,
			.cause = BY_SIGNAL,
			.left = 2,
			.left_killed = 3,
			.left_unknown = true,
			.started_ns = 4,
			.ended_ns = 5,
			.survivors = { { 6, 7, 'D', "survivor", 8 } },
			.survivor_count = 1 });
}

static void put_start(struct wire_out *w)
{
	message_put_start(w, &(struct message_start){ 1, 29500 });
}

static void put_verdict(struct wire_out *w)
{
	message_put_verdict(w,
		&(struct verdict){ .exit_code = 143,
			.attempt = 1,
			.text = "text",
			.unsure = true,
			.cause = { .kind = CAUSE_FAILURE, .culprit = outcome } });
}

static void put_ranks(struct wire_out *w)
{
	message_put_ranks(w, 1, (unsigned[]){ 2, 3 }, 2);
}

static void put_log(struct wire_out *w)
{
	message_put_log(w, 2, "a\0b", 3);
}

static void put_log_room(struct wire_out *w)
{
	message_put_log_room(w, 4096);
}

static const struct row {
	const char *says;
	void (*put)(struct wire_out *w);
	size_t len;
	uint64_t hash;
} rows[] = {
	{ "JOIN", put_join, 61, UINT64_C(0xfe74796aef5f3f0c) },
	{ "WELCOME", put_welcome, 39, UINT64_C(0xd95be5fa61f6ad3c) },
	{ "REFUSED", put_refused, 13, UINT64_C(0x2386d5d2032282f6) },
	{ "WAITING", put_text, 10, UINT64_C(0x7704c56686659384) },
	{ "FAILED", put_failed, 68, UINT64_C(0x29152f87658e0308) },
	{ "STOP", put_stop, 71, UINT64_C(0x41bd37c3c671457a) },
	{ "SIGNAL", put_signal, 1, UINT64_C(0xfeaceb1f570eae7a) },
	{ "OUTCOMES", put_outcomes, 140, UINT64_C(0x891006a5d18251cf) },
	{ "RECORD", put_record, 56, UINT64_C(0x9991423095348ce0) },
	{ "ENDED", put_ended, 119, UINT64_C(0xf94d483cbd51f999) },
	{ "START", put_start, 6, UINT64_C(0x1ab6ab480c447f30) },
	{ "VERDICT", put_verdict, 126, UINT64_C(0x5af18d38e6ebcf1c) },
	{ "JOINED", put_ranks, 16, UINT64_C(0x48a1586b5bad1289) },
	{ "LOG", put_log, 4, UINT64_C(0x737259c9b65c5873) },
	{ "LOG_ROOM", put_log_room, 4, UINT64_C(0x0b1065ba985b1da9) },
};

static void test_bytes(void **state)
{
	static const uint8_t key[SIPHASH_KEY_SIZE] = "bytes of a wire";
	const struct row *row = *state;
	struct wire_out w = { 0 };

	row->put(&w);
	assert_false(w.failed);
	assert_int_equal(w.len, row->len);
	assert_int_equal(siphash(key, w.at, w.len), row->hash);
	wire_out_done(&w);
}

int main(void)
{
	static struct suite s;

	SUITE_ROWS(&s, test_bytes, rows);
	return suite_run(&s);
}
