/* test_verdict.c - which worker failed first, on several nodes. Times are in ms; the
 * clocks of nodes 0 to 3 may be wrong by 0, 1, 2 and 3 ms. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "daemon/job/verdict.h"

enum { NODES = 4, WORKERS_MAX = 5 };

#define AT(ms) ((uint64_t)((ms)*1e6))
#define EXIT(c) \
	{ \
		ENDED_EXIT, (c), false \
	}
#define KILLED_BY(s) \
	{ \
		ENDED_SIGNAL, (s), false \
	}
#define NOT_STARTED \
	{ \
		ENDED_UNSTARTED, ENOENT, false \
	}
#define D(n, how, ...) \
	{ \
		.node = (n), .end = how, .at = __VA_ARGS__ \
	}
#define WELL   D(0, EXIT(0), 5000)
#define BY_US  .asked = ASKED_TO_STOP
#define OWN    .blames = BLAMES_ITSELF
#define PEER   .blames = BLAMES_A_PEER
#define UNREAD .blames = BLAMES_OUTPUT
#define REQUEST(n, t) \
	.asked = { .kind = CAUSE_SIGNAL, .signal = SIGTERM, .node = (n), .at_ns = AT(t) }
#define PREEMPTED(n, t) \
	.asked = { .kind = CAUSE_PREEMPTED, .signal = SIGUSR1, .node = (n), .at_ns = AT(t) }
#define LOST(n, from, to) \
	.lost = { .kind = CAUSE_NODE_LOST, .node = (n), .at_ns = AT(from), .noticed_ns = AT(to) }

static const struct row {
	const char *says;
	struct death {
		unsigned node;
		struct ending end;
		double at, late;
		enum blames blames;
		enum asked asked;
	} dead[WORKERS_MAX];
	struct cause asked, lost;
	enum cause_kind kind;
	int culprit; /* the number of the death; -1: none */
	bool unsure;
} rows[] = {
	{ "nobody failed", { WELL, WELL }, .kind = CAUSE_NONE, .culprit = -1 },
	{ "one failed", { WELL, D(1, EXIT(3), 100) }, .kind = CAUSE_FAILURE, .culprit = 1 },
	{ "the first of two, by more than their clocks' error",
		{ D(1, EXIT(3), 103.1), D(2, EXIT(4), 100) }, .kind = CAUSE_FAILURE, .culprit = 1 },
	{ "one wrote where nobody reads", { WELL, D(1, KILLED_BY(SIGPIPE), 100, UNREAD) },
		.kind = CAUSE_HANGUP, .culprit = -1 },
	{ "two did, and one lost a peer first",
		{ D(1, EXIT(1), 90, PEER), D(1, EXIT(1), 100, UNREAD), D(2, EXIT(1), 120, UNREAD) },
		.kind = CAUSE_HANGUP, .culprit = -1 },
	{ "one did, and another one failed of itself",
		{ D(1, EXIT(1), 100, UNREAD), D(2, KILLED_BY(SIGSEGV), 120) },
		.kind = CAUSE_FAILURE, .culprit = 1 },
	{ "two so close that nobody can tell", { D(1, EXIT(3), 102.9), D(2, EXIT(4), 100) },
		.kind = CAUSE_FAILURE, .culprit = 1, .unsure = true },
	{ "one that was seen late may have been first",
		{ D(1, EXIT(3), 110, 8), D(2, EXIT(4), 100) }, .kind = CAUSE_FAILURE, .culprit = 1,
		.unsure = true },
	{ "one that was seen late, but not that late",
		{ D(1, EXIT(3), 110, 6), D(2, EXIT(4), 100) }, .kind = CAUSE_FAILURE,
		.culprit = 1 },
	{ "the first of two was seen late", { D(1, EXIT(3), 110), D(2, EXIT(4), 100, 8) },
		.kind = CAUSE_FAILURE, .culprit = 1 },
	{ "on one node the order is known, however late they were seen",
		{ D(3, EXIT(3), 100.3, 8), D(3, EXIT(4), 100, 8) }, .kind = CAUSE_FAILURE,
		.culprit = 1 },
	{ "two on one node have one clock", { D(3, EXIT(3), 100.3), D(3, EXIT(4), 100) },
		.kind = CAUSE_FAILURE, .culprit = 1 },
	{ "two on one node that were seen to die as one",
		{ WELL, D(3, EXIT(3), 100), D(3, EXIT(4), 100) }, .kind = CAUSE_FAILURE,
		.culprit = 1, .unsure = true },
	{ "of those the victim is none", { D(3, EXIT(3), 100, PEER), D(3, EXIT(4), 100) },
		.kind = CAUSE_FAILURE, .culprit = 1 },
	{ "the second is unsure only against the first",
		{ D(0, EXIT(3), 100), D(1, EXIT(4), 110), D(2, EXIT(4), 111) },
		.kind = CAUSE_FAILURE, .culprit = 0 },
	{ "who was asked to stop is no culprit",
		{ D(1, KILLED_BY(SIGSEGV), 90, BY_US), D(2, EXIT(4), 100) }, .kind = CAUSE_FAILURE,
		.culprit = 1 },
	{ "a program that could not be started, at its time",
		{ D(1, EXIT(3), 100), D(2, NOT_STARTED, 90) }, .kind = CAUSE_FAILURE,
		.culprit = 1 },
	{ "and not before it", { D(1, EXIT(3), 80), D(2, NOT_STARTED, 90) }, .kind = CAUSE_FAILURE,
		.culprit = 0 },

	{ "who died of a lost peer did so because of whoever did not",
		{ D(1, EXIT(1), 90, PEER), D(2, EXIT(4), 100, OWN) }, .kind = CAUSE_FAILURE,
		.culprit = 1 },
	{ "also on one node", { D(0, EXIT(1), 100, PEER), D(0, EXIT(4), 100.1, OWN) },
		.kind = CAUSE_FAILURE, .culprit = 1 },
	{ "even if it was seen to die 9 s later",
		{ D(1, EXIT(1), 100, PEER), D(2, EXIT(4), 9100, OWN) }, .kind = CAUSE_FAILURE,
		.culprit = 1 },
	{ "but not 11 s later", { D(1, EXIT(1), 100, PEER), D(2, EXIT(4), 11100, OWN) },
		.kind = CAUSE_FAILURE, .culprit = 0 },
	{ "and of one that says nothing", { D(1, EXIT(1), 90, PEER), D(2, EXIT(4), 100) },
		.kind = CAUSE_FAILURE, .culprit = 1 },
	{ "of victims alone the first", { D(1, EXIT(1), 110, PEER), D(2, EXIT(1), 100, PEER) },
		.kind = CAUSE_FAILURE, .culprit = 1 },
	{ "of victims alone, too close", { D(1, EXIT(1), 101, PEER), D(2, EXIT(1), 100, PEER) },
		.kind = CAUSE_FAILURE, .culprit = 1, .unsure = true },
	{ "a victim near the culprit makes nothing unsure",
		{ D(1, EXIT(1), 99, PEER), D(2, EXIT(4), 100, OWN) }, .kind = CAUSE_FAILURE,
		.culprit = 1 },
	{ "SIGABRT is of NCCL's watchdog where another has words of its own",
		{ D(1, KILLED_BY(SIGABRT), 90), D(2, EXIT(4), 100, OWN) }, .kind = CAUSE_FAILURE,
		.culprit = 1 },
	{ "or died of another signal",
		{ D(1, KILLED_BY(SIGABRT), 90), D(2, KILLED_BY(SIGSEGV), 100) },
		.kind = CAUSE_FAILURE, .culprit = 1 },
	{ "SIGABRT is the cause where the others die mute after it",
		{ D(1, KILLED_BY(SIGABRT), 90), D(2, EXIT(1), 100) }, .kind = CAUSE_FAILURE,
		.culprit = 0 },
	{ "SIGABRT after a mute one is none", { D(1, KILLED_BY(SIGABRT), 110), D(2, EXIT(1), 100) },
		.kind = CAUSE_FAILURE, .culprit = 1 },
	{ "SIGABRT and a mute one, too close", { D(1, KILLED_BY(SIGABRT), 99), D(2, EXIT(1), 100) },
		.kind = CAUSE_FAILURE, .culprit = 0, .unsure = true },
	{ "SIGABRT with words of its own is a failure as any",
		{ D(1, KILLED_BY(SIGABRT), 90, OWN), D(2, EXIT(1), 100, OWN) },
		.kind = CAUSE_FAILURE, .culprit = 0 },
	{ "a shell says SIGABRT with 134", { D(1, EXIT(134), 90), D(2, EXIT(4), 100, OWN) },
		.kind = CAUSE_FAILURE, .culprit = 1 },

	{ "a culprit that was asked to stop while it died",
		{ D(1, EXIT(1), 100, PEER), D(2, EXIT(4), 2100, OWN, BY_US) },
		.kind = CAUSE_FAILURE, .culprit = 1 },
	{ "not one that says nothing", { D(1, EXIT(1), 100, PEER), D(2, EXIT(4), 2100, BY_US) },
		.kind = CAUSE_FAILURE, .culprit = 0 },
	{ "not one that our signal ended",
		{ D(1, EXIT(1), 100, PEER), D(2, KILLED_BY(SIGTERM), 2100, OWN, BY_US) },
		.kind = CAUSE_FAILURE, .culprit = 0 },
	{ "not one whose exit code says so",
		{ D(1, EXIT(1), 100, PEER), D(2, EXIT(143), 2100, OWN, BY_US) },
		.kind = CAUSE_FAILURE, .culprit = 0 },
	{ "not one that ended well", { D(1, EXIT(1), 100, PEER), D(2, EXIT(0), 2100, OWN, BY_US) },
		.kind = CAUSE_FAILURE, .culprit = 0 },
	{ "not one that took longer than its victims can know",
		{ D(1, EXIT(1), 100, PEER), D(2, EXIT(4), 12100, OWN, BY_US) },
		.kind = CAUSE_FAILURE, .culprit = 0 },
	{ "not where somebody failed of himself",
		{ D(1, EXIT(1), 100, OWN), D(2, EXIT(4), 2100, OWN, BY_US) }, .kind = CAUSE_FAILURE,
		.culprit = 0 },
	{ "of two that were asked the first",
		{ D(1, EXIT(1), 100, PEER), D(2, EXIT(4), 2100, OWN, BY_US),
			D(3, EXIT(4), 2000, OWN, BY_US) },
		.kind = CAUSE_FAILURE, .culprit = 2 },
	{ "of two that were asked, too close",
		{ D(1, EXIT(1), 100, PEER), D(2, EXIT(4), 2004, OWN, BY_US),
			D(3, EXIT(4), 2000, OWN, BY_US) },
		.kind = CAUSE_FAILURE, .culprit = 2, .unsure = true },

	{ "a request", { D(1, KILLED_BY(SIGTERM), 110, BY_US) }, REQUEST(1, 100),
		.kind = CAUSE_SIGNAL, .culprit = -1 },
	{ "what fails after a request is none of it", { D(2, EXIT(1), 110, OWN) }, REQUEST(1, 100),
		.kind = CAUSE_SIGNAL, .culprit = -1 },
	{ "what failed before it is", { D(2, EXIT(1), 90, OWN) }, REQUEST(1, 100),
		.kind = CAUSE_FAILURE, .culprit = 0 },
	{ "a failure too close to a request", { D(2, EXIT(1), 101, OWN) }, REQUEST(1, 100),
		.kind = CAUSE_FAILURE, .culprit = 0, .unsure = true },
	{ "too close, but of the request's own signal", { D(2, KILLED_BY(SIGTERM), 99) },
		REQUEST(1, 100), .kind = CAUSE_SIGNAL, .culprit = -1 },
	{ "the same signal well before it", { D(2, KILLED_BY(SIGTERM), 90) }, REQUEST(1, 100),
		.kind = CAUSE_FAILURE, .culprit = 0 },
	{ "on one node a request and a failure have one clock", { D(3, EXIT(1), 100.3) },
		REQUEST(3, 100), .kind = CAUSE_SIGNAL, .culprit = -1 },
	{ "what announces a preemption may reach workers first",
		{ D(0, KILLED_BY(SIGUSR1), 100), D(1, EXIT(138), 1000) }, PREEMPTED(0, 1099),
		.kind = CAUSE_PREEMPTED, .culprit = -1 },
	{ "... but not more than a second before", { D(0, KILLED_BY(SIGUSR1), 99) },
		PREEMPTED(0, 1099), .kind = CAUSE_FAILURE, .culprit = 0 },
	{ "... and another signal is no announcement", { D(0, KILLED_BY(SIGUSR2), 1000) },
		PREEMPTED(0, 1099), .kind = CAUSE_FAILURE, .culprit = 0 },
	{ "a victim before a request", { D(2, EXIT(1), 90, PEER), D(0, EXIT(1), 110, OWN) },
		REQUEST(1, 100), .kind = CAUSE_FAILURE, .culprit = 0 },

	{ "a lost node", { D(1, KILLED_BY(SIGTERM), 10200, BY_US) }, LOST(2, 100, 10100),
		.kind = CAUSE_NODE_LOST, .culprit = -1 },
	{ "its victims", { D(1, EXIT(1), 150, PEER), D(3, KILLED_BY(SIGABRT), 160) },
		LOST(2, 100, 10100), .kind = CAUSE_NODE_LOST, .culprit = -1 },
	{ "a victim that was seen before the connection was closed", { D(1, EXIT(1), 95, PEER) },
		LOST(2, 100, 100), .kind = CAUSE_NODE_LOST, .culprit = -1 },
	{ "a victim long before it is one of something else", { D(1, EXIT(1), 95, PEER) },
		LOST(2, 11100, 11100), .kind = CAUSE_FAILURE, .culprit = 0 },
	{ "a failure before the node's last word", { D(1, EXIT(1), 90, OWN) }, LOST(2, 100, 10100),
		.kind = CAUSE_FAILURE, .culprit = 0 },
	{ "a failure that was seen after the node's last word, but late",
		{ D(1, EXIT(1), 110, 20, OWN) }, LOST(2, 105, 105), .kind = CAUSE_NODE_LOST,
		.culprit = -1, .unsure = true },
	{ "a failure in its silence", { D(1, EXIT(1), 150, OWN) }, LOST(2, 100, 10100),
		.kind = CAUSE_NODE_LOST, .culprit = -1, .unsure = true },
	{ "a failure after its connection was closed", { D(1, EXIT(1), 105, OWN) },
		LOST(2, 100, 100), .kind = CAUSE_NODE_LOST, .culprit = -1 },
	{ "a failure too close to that", { D(1, EXIT(1), 99, OWN) }, LOST(2, 100, 100),
		.kind = CAUSE_NODE_LOST, .culprit = -1, .unsure = true },
	{ "what the lost node told of before", { D(2, EXIT(1), 100, OWN) }, LOST(2, 100, 10100),
		.kind = CAUSE_FAILURE, .culprit = 0 },
	{ "a node that a request has ended", { WELL }, REQUEST(1, 100), LOST(2, 150, 150),
		.kind = CAUSE_SIGNAL, .culprit = -1 },
	{ "a request in a node's silence", { WELL }, REQUEST(1, 100), LOST(2, 50, 10050),
		.kind = CAUSE_SIGNAL, .culprit = -1 },
	{ "a request after a node was lost", { WELL }, REQUEST(1, 100), LOST(2, 50, 60),
		.kind = CAUSE_NODE_LOST, .culprit = -1 },
	{ "a failure before a request, and a node that it has ended", { D(3, EXIT(1), 80, OWN) },
		REQUEST(1, 100), LOST(2, 150, 150), .kind = CAUSE_FAILURE, .culprit = 0 },
};

static const struct node nodes[NODES] = {
	{ .name = "gpu06" },
	{ .name = "gpu07", .clock_error_ns = AT(1) },
	{ .name = "gpu08", .clock_error_ns = AT(2) },
	{ .name = "gpu\033[2J", .clock_error_ns = AT(3) },
};

static void test_verdict(void **state)
{
	const struct row *row = *state;
	struct outcome o[WORKERS_MAX] = { { 0 } };
	struct result r = { .outcomes = o, .nodes = nodes, .node_count = NODES };

	while (r.count < WORKERS_MAX && row->dead[r.count].end.how != ENDED_NONE) {
		const struct death *d = &row->dead[r.count];

		o[r.count] = (struct outcome){ .rank = (unsigned)r.count,
			.node = d->node,
			.pid = d->end.how == ENDED_UNSTARTED ? 0 : 100,
			.end = d->end,
			.ended_ns = AT(d->at),
			.late_ns = AT(d->late),
			.blames = d->blames,
			.asked = d->asked,
			.asked_signal = d->asked ? SIGTERM : 0 };
		r.count++;
	}
	verdict_find(&r, &row->asked, &row->lost);
	assert_int_equal(r.cause.kind, row->kind);
	assert_int_equal(result_culprit(&r) ? (int)r.cause.culprit.rank : -1, row->culprit);
	assert_int_equal(r.unsure, row->unsure);
	if (result_culprit(&r)) {
		assert_int_equal(r.cause.node, r.cause.culprit.node);
		assert_int_equal(r.cause.at_ns, o[row->culprit].ended_ns);
	}
}

/* One node's report knows of no other: its clock is right. */
static void test_one_node(void **state)
{
	struct outcome o[] = {
		{ .rank = 0, .pid = 1, .end = EXIT(1), .ended_ns = 1000000 },
		{ .rank = 1, .pid = 2, .end = EXIT(2), .ended_ns = 900000 },
	};
	struct result r = { .outcomes = o, .count = 2 };

	(void)state;
	verdict_find(&r, NULL, NULL);
	assert_true(result_is_culprit(&r, &o[1]));
	assert_false(r.unsure);
	assert_true(result_is_together(&r, &o[0]));
	assert_true(result_is_close(&r, &o[0], &o[1]));
	o[0].ended_ns = 1100000;
	assert_false(result_is_together(&r, &o[0]));
	assert_false(result_is_close(&r, &o[0], &o[1]));
	o[0].ended_ns = 1000000;
	o[0].blames = BLAMES_A_PEER;
	assert_false(result_is_together(&r, &o[0]));
}

static void test_together(void **state)
{
	struct outcome o[] = {
		{ .rank = 0, .node = 1, .pid = 1, .end = EXIT(1), .ended_ns = AT(100) },
		{ .rank = 1, .node = 2, .pid = 2, .end = EXIT(2), .ended_ns = AT(102.9) },
		{ .rank = 2, .node = 0, .pid = 3, .end = EXIT(2), .ended_ns = AT(101.1) },
	};
	struct result r = { .outcomes = o, .count = 3, .nodes = nodes, .node_count = NODES };

	(void)state;
	verdict_find(&r, NULL, NULL);
	assert_true(r.unsure);
	assert_true(result_is_together(&r, &o[1]));
	assert_false(result_is_together(&r, &o[2]));
}

#define CULPRIT \
	{ \
		.rank = 3, .local_rank = 1, .node = 1, .pid = 4711, .end = EXIT(7), .attempt = 2 \
	}
static const struct outcome culprit = CULPRIT;
static const struct outcome twins[] = { { .rank = 2, .node = 1, .attempt = 2, .end = EXIT(1) },
	CULPRIT };

#define RESULT(...) \
	{ \
		.outcomes = &culprit, .count = 1, .nodes = nodes, .node_count = NODES, __VA_ARGS__ \
	}
#define CAUSE(k, n) .cause = { .kind = (k), .node = (n) }
#define FAILED      .cause = { .kind = CAUSE_FAILURE, .culprit = CULPRIT, .node = 1 }

static const struct node half[] = { { .name = "gpu06" }, { .name = "gpu07", .lost = true },
	{ .name = "gpu08" }, { .name = "gpu09", .lost = true } };

static const struct text_row {
	const char *says;
	struct result r;
	int code;
	const char *text;
} texts[] = {
	{ "all went well", RESULT(CAUSE(CAUSE_NONE, 0)), 0, "" },
	{ "a worker", RESULT(FAILED), 7,
		"root cause: rank 3 (local rank 1, pid 4711) on gpu07 (node 1): exit code 7" },
	{ "a worker, unsure", RESULT(.unsure = true, FAILED), 7,
		"root cause: possibly rank 3 (local rank 1, pid 4711) on gpu07 (node 1): exit "
		"code 7; another worker may have failed first: the nodes' clocks can't tell" },
	{ "one of those that died as one",
		{ .outcomes = twins,
			.count = 2,
			.nodes = nodes,
			.node_count = NODES,
			.unsure = true,
			FAILED },
		7,
		"root cause: possibly rank 3 (local rank 1, pid 4711) on gpu07 (node 1): exit "
		"code 7; another worker may have failed first: its node's kernel can't tell" },
	{ "a lost node", RESULT(.cause = { .kind = CAUSE_NODE_LOST, .node = 2, .detail = "cut" }),
		125, "root cause: node 2 (gpu08) was lost: cut" },
	{ "a lost node, unsure",
		RESULT(.unsure = true, .cause = { .kind = CAUSE_NODE_LOST, .node = 2 }), 125,
		"root cause: node 2 (gpu08) was lost; a worker may have failed before that" },
	{ "half of all nodes",
		{ .outcomes = &culprit,
			.count = 1,
			.nodes = half,
			.node_count = 4,
			CAUSE(CAUSE_NODE_LOST, 3) },
		125, "root cause: node 3 (gpu09) was lost; 2 of 4 nodes were lost: nodes 1, 3" },
	{ "a node that only knows that it hears nothing",
		{ .outcomes = &culprit,
			.count = 1,
			.cause = { .kind = CAUSE_NODE_LOST,
				.contact = true,
				.host = "10.0.0.4",
				.detail = "nothing was heard; one of the two was cut off" } },
		125,
		"root cause: this node lost contact with node 0 (10.0.0.4): nothing was heard; one "
		"of the two was cut off" },
	{ "a failure that another node has told",
		{ .outcomes = &culprit,
			.count = 1,
			.cause = { .kind = CAUSE_FAILURE,
				.culprit = CULPRIT,
				.node = 1,
				.host = "gpu99" } },
		7, "root cause: rank 3 (local rank 1, pid 4711) on gpu99 (node 1): exit code 7" },
	{ "a bad node",
		RESULT(.cause = { .kind = CAUSE_BAD_NODE,
			       .node = 2,
			       .detail = "GPU 2: 4 uncorrectable ECC errors",
			       .exclude = "gpu08" }),
		122,
		"root cause: node 2 (gpu08) is bad: GPU 2: 4 uncorrectable ECC errors; exclude: "
		"gpu08" },
	{ "a name does nothing to a terminal", RESULT(CAUSE(CAUSE_MAX_RUNTIME, 3)), 124,
		"root cause: --max-runtime expired on gpu\\x1b[2J (node 3)" },
	{ "a node without a name", RESULT(CAUSE(CAUSE_GUARD, 9)), 137,
		"root cause: launchd itself was killed on node 9" },
	{ "a signal", RESULT(.cause = { .kind = CAUSE_SIGNAL, .signal = SIGINT, .node = 1 }), 130,
		"root cause: launchd received SIGINT on gpu07 (node 1)" },
	{ "mpirun's end", RESULT(CAUSE(CAUSE_LAUNCHER, 1)), 129,
		"root cause: launchd's parent process (mpirun, srun) ended on gpu07 (node 1)" },
	{ "mpirun's readers' end", RESULT(CAUSE(CAUSE_HANGUP, 1)), 129,
		"root cause: mpirun or srun has ended (nobody reads launchd's output any more) on "
		"gpu07 (node 1)" },
};

static void test_text(void **state)
{
	const struct text_row *row = *state;
	struct verdict v;

	verdict_make(&row->r, &v);
	assert_string_equal(v.text, row->text);
	assert_int_equal(v.exit_code, row->code);
	assert_int_equal(v.well, row->code == 0);
	assert_int_equal(v.attempt, 2);
}

TESTS(verdict)
{
	static struct suite s;

	SUITE_ROWS(&s, test_verdict, rows);
	SUITE_ROWS(&s, test_text, texts);
	suite_add(&s, "one node", test_one_node, NULL, NULL);
	suite_add(&s, "who failed together, on several nodes", test_together, NULL, NULL);
	return suite_run(&s);
}
