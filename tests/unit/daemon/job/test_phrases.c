/* test_phrases.c - what reports are put together from. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "common/text.h"
#include "daemon/job/ending.h"
#include "daemon/job/phrases.h"

#define MS(n) ((uint64_t)(n)*1000000)

static const struct span_row {
	const char *says;
	uint64_t ns;
	const char *text;
} spans[] = {
	{ "nothing", 0, "0.00 s" },
	{ "hundredths", MS(30), "0.03 s" },
	{ "the last hundredth", MS(9990), "9.99 s" },
	{ "tenths from 10 s", MS(10000), "10.0 s" },
	{ "the last tenth", MS(599900), "599.9 s" },
	{ "minutes from ten", MS(600000), "10 min 00 s" },
	{ "minutes and seconds", MS(999999), "16 min 39 s" },
	{ "hours from ten", MS(36000000), "10 h 00 min" },
	{ "hours and minutes", MS(443100000), "123 h 05 min" },
};

static void test_span(void **state)
{
	const struct span_row *row = *state;
	struct text t = { 0 };

	span_add(&t, 7, row->ns + 7);
	assert_string_equal(text_string(&t), row->text);
	text_done(&t);
}

static void test_backwards(void **state)
{
	struct text t = { 0 };

	(void)state;
	span_add(&t, MS(5), MS(3));
	assert_string_equal(text_string(&t), "0.00 s");
	text_done(&t);
}

/* 2025-11-21T06:19:59.345Z at 1 s of the other clock */
static const struct result started = { .started_ns = MS(1000),
	.started_wall_ns = 1763705999345678901 };

static void test_moment(void **state)
{
	const struct result unknown = { .started_ns = MS(1000) };
	struct text t = { 0 };

	(void)state;
	assert_true(moment_add(&t, &started, MS(2000), false));
	text_add(&t, "|");
	assert_true(moment_add(&t, &started, MS(500), true));
	assert_false(moment_add(&t, &started, 0, true));
	assert_false(moment_add(&t, &unknown, MS(2000), true));
	assert_string_equal(
		text_string(&t), "2025-11-21 07:50:00.345 +0130|2025-11-21T07:49:58.845+01:30");
	text_done(&t);
}

static const struct list_row {
	const char *says;
	unsigned list[40];
	size_t count;
	const char *text;
} lists[] = {
	{ "one", { 3 }, 1, "node 3" },
	{ "two neighbours are no range", { 3, 4 }, 2, "nodes 3, 4" },
	{ "three are", { 3, 4, 5 }, 3, "nodes 3-5" },
	{ "gaps", { 0, 2, 3, 4, 9 }, 5, "nodes 0, 2-4, 9" },
	{ "sixteen ranges", { 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30 }, 16,
		"nodes 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30" },
	{ "and more", { 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 33 }, 18,
		"nodes 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, ... (18 in all)" },
};

static void test_list(void **state)
{
	const struct list_row *row = *state;
	struct text t = { 0 };

	numbers_add(&t, "node", row->list, row->count);
	assert_string_equal(text_string(&t), row->text);
	text_done(&t);
}

static const struct names_row {
	const char *says;
	size_t count, room;
	const char *text;
} named[] = {
	{ "one, whatever the room", 1, 0, "gpu02 (node 1)" },
	{ "all that there are", 3, 48, "gpu02 (node 1), gpu03 (node 2), gpu10 (node 9)" },
	{ "the last one needs no room for more", 3, 46,
		"gpu02 (node 1), gpu03 (node 2), gpu10 (node 9)" },
	{ "a byte less", 3, 45, "gpu02 (node 1), gpu03 (node 2) and 1 more" },
	{ "no room for two and more", 3, 44, "gpu02 (node 1) and 2 more" },
};

static void test_named(void **state)
{
	static const char *const names[] = { "", "gpu02", "gpu03", "", "", "", "", "", "",
		"gpu10" };
	static const unsigned list[] = { 1, 2, 9 };
	const struct names_row *row = *state;
	struct text t = { 0 };

	nodes_add(&t, list, row->count, names, row->room);
	assert_string_equal(text_string(&t), row->text);
	text_done(&t);
}

static void test_nameless(void **state)
{
	static const unsigned list[] = { 1, 2, 9 };
	struct text t = { 0 };

	(void)state;
	nodes_add(&t, list, 3, NULL, 0);
	assert_string_equal(text_string(&t), "nodes 1, 2, 9");
	text_done(&t);
}

static void test_ranks(void **state)
{
	const struct outcome a = { .rank = 1 }, b = { .rank = 2 }, c = { .rank = 3 };
	const struct outcome *const list[] = { &a, &b, &c };
	struct text t = { 0 };

	(void)state;
	ranks_add(&t, list, 3);
	text_add(&t, "; ");
	ranks_add(&t, list, 1);
	assert_string_equal(text_string(&t), "ranks 1-3; rank 1");
	text_done(&t);
}

static const struct cause_row {
	const char *says;
	struct cause cause;
	uint64_t max_runtime_ms;
	const char *text;
} causes[] = {
	{ "a signal", { .kind = CAUSE_SIGNAL, .signal = SIGTERM }, 0, "launchd received SIGTERM" },
	{ "a time limit", { .kind = CAUSE_MAX_RUNTIME }, 90000, "--max-runtime (90.0 s) expired" },
	{ "a time limit of another node", { .kind = CAUSE_MAX_RUNTIME }, 0,
		"--max-runtime expired" },
	{ "a killed guard", { .kind = CAUSE_GUARD }, 0, "launchd itself was killed" },
	{ "an ended launcher", { .kind = CAUSE_LAUNCHER }, 0,
		"launchd's parent process (mpirun, srun) ended" },
	{ "a hang-up", { .kind = CAUSE_HANGUP }, 0,
		"mpirun or srun has ended (nobody reads launchd's output any more)" },
	{ "another attempt", { .kind = CAUSE_RESTART }, 0, "a restart was requested" },
	{ "a bad node", { .kind = CAUSE_BAD_NODE }, 0, "a node is bad" },
	{ "a hang", { .kind = CAUSE_HANG, .detail = "rank 3 was outside" }, 0,
		"the job hung: rank 3 was outside" },
	{ "a preemption by a watch", { .kind = CAUSE_PREEMPTED, .detail = "120 s left" }, 0,
		"preemption was announced by --preempt-watch (120 s left)" },
	{ "a preemption by a signal", { .kind = CAUSE_PREEMPTED, .signal = SIGUSR1 }, 0,
		"preemption was announced by SIGUSR1" },
	{ "none", { .kind = CAUSE_NONE }, 5, "" },
	{ "a worker, which others name", { .kind = CAUSE_FAILURE }, 5, "" },
	{ "a node, which others name", { .kind = CAUSE_NODE_LOST }, 5, "" },
};

static void test_cause(void **state)
{
	const struct cause_row *row = *state;
	struct text t = { 0 };

	cause_add(&row->cause, row->max_runtime_ms, &t);
	assert_string_equal(text_string(&t), row->text);
	text_done(&t);
}

#define NAME10  "gpu000001,"
#define NAMES60 NAME10 NAME10 NAME10 NAME10 NAME10 NAME10

static const struct bad_row {
	const char *says, *exclude, *text; /* behind "node 1" */
} bads[] = {
	{ "one bad node", "gpu07", " is bad: GPU 2: broken\\x1b; exclude: gpu07" },
	{ "two of them", "gpu07,gpu12",
		" is bad: GPU 2: broken\\x1b; 2 nodes are bad; exclude: gpu07,gpu12" },
	{ "a name that nobody knows", "", " is bad: GPU 2: broken\\x1b" },
	{ "more than can be read", NAMES60 NAMES60 "last",
		" is bad: GPU 2: broken\\x1b; 13 nodes are bad; exclude: " NAMES60 NAMES60 "last" },
	{ "many more", NAMES60 NAMES60 NAMES60,
		" is bad: GPU 2: broken\\x1b; 19 nodes are bad; exclude: " NAMES60 NAMES60
		"... (--report has all)" },
};

static void test_bad(void **state)
{
	const struct bad_row *row = *state;
	const struct cause c = {
		.kind = CAUSE_BAD_NODE, .detail = "GPU 2: broken\x1b", .exclude = row->exclude
	};
	struct text t = { 0 };

	bad_add(&t, &c);
	assert_string_equal(text_string(&t), row->text);
	text_done(&t);
}

static const struct loss_row {
	const char *says;
	struct cause cause;
	struct node nodes[4];
	unsigned count;
	const char *text; /* behind "node 1" */
} losses[] = {
	{ "one of two", { .kind = CAUSE_NODE_LOST }, { { .lost = false }, { .lost = true } }, 2,
		" was lost" },
	{ "half of them", { .kind = CAUSE_NODE_LOST },
		{ { .lost = false }, { .lost = true }, { .lost = false }, { .lost = true } }, 4,
		" was lost; 2 of 4 nodes were lost: nodes 1, 3" },
	{ "less than half", { .kind = CAUSE_NODE_LOST }, { { .lost = false }, { .lost = true } }, 4,
		" was lost" },
	{ "this node slept", { .kind = CAUSE_NODE_LOST, .asleep = true },
		{ { .lost = true }, { .lost = true } }, 2, " was itself frozen or suspended" },
	{ "contact is all that was lost", { .kind = CAUSE_NODE_LOST, .contact = true },
		{ { .lost = true } }, 2, "" },
};

static void test_loss(void **state)
{
	const struct loss_row *row = *state;
	const struct result r = {
		.cause = row->cause, .nodes = row->nodes, .node_count = row->count
	};
	struct text t = { 0 };

	loss_add(&t, &row->cause);
	losses_add(&t, &r);
	assert_string_equal(text_string(&t), row->text);
	text_done(&t);
}

static const struct outcome_row {
	const char *says;
	struct outcome outcome;
	const char *text;
} outcomes[] = {
	{ "an exit code",
		{ .rank = 3, .local_rank = 1, .pid = 47, .end = { ENDED_EXIT, 1, false } },
		"rank 3 (local rank 1, pid 47): exit code 1" },
	{ "a signal", { .pid = 4, .end = { ENDED_SIGNAL, SIGSEGV, true } },
		"rank 0 (local rank 0, pid 4): killed by SIGSEGV (core dumped)" },
	{ "the OOM killer", { .pid = 4, .end = { ENDED_SIGNAL, SIGKILL, false }, .oom = OOM_YES },
		"rank 0 (local rank 0, pid 4): killed by the kernel's OOM killer (SIGKILL)" },
	{ "the OOM killer, probably",
		{ .pid = 4, .end = { ENDED_SIGNAL, SIGKILL, false }, .oom = OOM_LIKELY },
		"rank 0 (local rank 0, pid 4): killed by SIGKILL (likely by the kernel's OOM "
		"killer)" },
	{ "the OOM killer, for its own limit",
		{ .pid = 4,
			.end = { ENDED_SIGNAL, SIGKILL, false },
			.oom = OOM_YES,
			.oom_limit = OOM_LIMIT_OWN,
			.oom_bytes = UINT64_C(2) << 30 },
		"rank 0 (local rank 0, pid 4): killed by the kernel's OOM killer (SIGKILL) at its "
		"memory limit, 2 GiB (--cgroup-memory)" },
	{ "the OOM killer, for a limit above",
		{ .pid = 4,
			.end = { ENDED_SIGNAL, SIGKILL, false },
			.oom = OOM_YES,
			.oom_limit = OOM_LIMIT_ABOVE,
			.oom_bytes = UINT64_C(3) << 29 },
		"rank 0 (local rank 0, pid 4): killed by the kernel's OOM killer (SIGKILL) at the "
		"memory limit of launchd's own cgroup or one above, 1.5 GiB" },
	{ "the OOM killer, for the machine",
		{ .pid = 4,
			.end = { ENDED_SIGNAL, SIGKILL, false },
			.oom = OOM_YES,
			.oom_limit = OOM_LIMIT_NONE },
		"rank 0 (local rank 0, pid 4): killed by the kernel's OOM killer (SIGKILL) because "
		"the machine was out of memory" },
	{ "the OOM killer, a data loader",
		{ .pid = 4, .end = { ENDED_EXIT, 1, false }, .oom = OOM_CHILD },
		"rank 0 (local rank 0, pid 4): exit code 1 (a process that it had started was "
		"killed by the kernel's OOM killer)" },
	{ "no process", { .end = { ENDED_UNSTARTED, 2, false } },
		"rank 0 (local rank 0): could not be started" },
};

static void test_outcome(void **state)
{
	const struct outcome_row *row = *state;
	struct text t = { 0 };

	worker_add(&t, &row->outcome);
	text_add(&t, ": ");
	outcome_add(&t, &row->outcome);
	assert_string_equal(text_string(&t), row->text);
	text_done(&t);
}

static void test_place(void **state)
{
	struct text t = { 0 };

	(void)state;
	place_add(&t, "gpu07", 1);
	text_add(&t, "|");
	place_add(&t, "", 1);
	text_add(&t, "|");
	node_name_add(&t, 1, "gpu07");
	text_add(&t, "|");
	node_name_add(&t, 1, "");
	text_add(&t, "|");
	place_add(&t, "a\x1b[2J", 0);
	assert_string_equal(
		text_string(&t), "gpu07 (node 1)|node 1|node 1 (gpu07)|node 1|a\\x1b[2J (node 0)");
	text_done(&t);
}

static void test_cause_ns(void **state)
{
	struct result r = { .cause = { .kind = CAUSE_SIGNAL, .at_ns = 5 } };

	(void)state;
	assert_int_equal(cause_ns(&r), 5);
	r.cause.kind = CAUSE_FAILURE;
	assert_int_equal(cause_ns(&r), 5);
	r.cause.culprit.ended_ns = 3;
	assert_int_equal(cause_ns(&r), 3);
}

TESTS(phrases)
{
	static struct suite s;

	(void)setenv("TZ", "XYZ-1:30", 1);
	tzset();
	SUITE_ROWS(&s, test_span, spans);
	suite_add(&s, "no span goes backwards", test_backwards, NULL, NULL);
	suite_add(&s, "moments in local time", test_moment, NULL, NULL);
	SUITE_ROWS(&s, test_list, lists);
	SUITE_ROWS(&s, test_named, named);
	suite_add(&s, "nodes without names", test_nameless, NULL, NULL);
	suite_add(&s, "ranks", test_ranks, NULL, NULL);
	SUITE_ROWS(&s, test_cause, causes);
	SUITE_ROWS(&s, test_bad, bads);
	SUITE_ROWS(&s, test_loss, losses);
	SUITE_ROWS(&s, test_outcome, outcomes);
	suite_add(&s, "places", test_place, NULL, NULL);
	suite_add(&s, "when the job's fate was sealed", test_cause_ns, NULL, NULL);
	return suite_run(&s);
}
