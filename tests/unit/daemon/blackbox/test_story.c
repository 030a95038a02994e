/* test_story.c - what is told of a failure, and in which order. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "daemon/blackbox/bundle.h"
#include "daemon/blackbox/story.h"

static const struct bundle_worker workers[] = {
	{ .rank = 0,
		.fate = FATE_ENDED,
		.end = "killed by SIGTERM",
		.lines = "nobody reads this",
		.look = { .known = true,
			.state = 'D',
			.wait = "rpc_wait_bit_killable",
			.call = "read",
			.cpu_ms = 61250,
			.threads = 9,
			.later_ms = 200,
			.later_cpu_ms = 100 } },
	{ .rank = 1,
		.fate = FATE_FIRST,
		.end = "exit code 1",
		.error = "ValueError: the teapot is empty",
		.lines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n\x1b[31mred",
		.log = "/logs/1" },
};
static const struct bundle_finding findings[] = {
	{ "threads", "rank 0", "good", "9 threads" },
	{ "nvml", "", "unknown", "no answer within 5 s" },
	{ "nvml", "GPU 3", "bad", "Xid 79: it has fallen off the bus" },
};
static const struct bundle part = {
	.name = "failure-20261126T112233.123Z-attempt-0",
	.job = "train",
	.host = "gpu07",
	.nnodes = 2,
	.world_size = 4,
	.wall_ms = 1795692153123,
	.kind = "exception",
	.first = { true, 1, 0, "gpu07", "exit code 1", "ValueError: the teapot is empty", NULL },
	.workers = workers,
	.worker_count = 2,
	.findings = findings,
	.finding_count = 3,
};
static const struct bundle_rank ranks[] = {
	{ 2, 1, FATE_FAILED, "exit code 1", 310, true },
	{ 3, 1, FATE_FAILED, "killed by SIGSEGV", 9000, false },
};
static const struct bundle_node nodes[] = { { 0, "gpu07", "/box/n0", "2 workers", false },
	{ 1, "gpu08", "/box/n1", "2 workers: 2 failed", false } };
static const struct bundle_index whole = {
	.name = "failure-20261126T112233.123Z-attempt-0",
	.job = "train",
	.nnodes = 2,
	.world_size = 4,
	.wall_ms = 1795692153123,
	.kind = "exception",
	.why = "root cause: rank 1",
	.unsure = true,
	.futile = 2,
	.first = { true, 1, 0, "gpu07", "exit code 1", "ValueError: the teapot is empty",
		"python t.py" },
	.ranks = ranks,
	.rank_count = 2,
	.counts = { [FATE_FIRST] = 1, [FATE_FAILED] = 5, [FATE_ENDED] = 1 },
	.nodes = nodes,
	.node_count = 2,
};

/* These stand in the story, in that order; NULL ends them. */
static void assert_tells(const struct bundle_index *x, const struct bundle *parts, size_t count,
	const char *const *tells)
{
	struct text t = { 0 };
	const char *at;

	story_add(x, parts, count, &t);
	at = text_string(&t);
	for (; *tells; tells++) {
		const char *found = strstr(at, *tells);

		if (!found)
			fail_msg("\"%s\" is not told, or too early, in:\n%s", *tells,
				text_string(&t));
		at = found + strlen(*tells);
	}
	assert_null(strchr(text_string(&t), '\x1b'));
	text_done(&t);
}

static void test_node(void **state)
{
	(void)state;
	assert_tells(NULL, &part, 1,
		(const char *const[]){ "failure-20261126T112233.123Z-attempt-0\n",
			"job train, attempt 0, 4 workers on 2 nodes, 2026-11-26T11:22:33.123Z",
			"What came first", "rank 1 on node 0 (gpu07): exit code 1",
			"ValueError: the teapot is empty", "the whole job's story is in index.json",
			"What each node saw", "node 0 (gpu07)", "rank 1: exit code 1", "| 3\n",
			"| 9\n", "| \\x1b[31mred", "its log: /logs/1",
			"rank 0: killed by SIGTERM (launchd ended it); before that in the kernel, "
			"where no signal ends it in read at rpc_wait_bit_killable, 61.2 s of CPU (50 "
			"% of a CPU since then), 9 threads",
			"nvml, GPU 3: Xid 79", "nvml: no answer within 5 s",
			"threads, rank 0: 9 threads", "What to look at next",
			"1. Read the exception of rank 1", "2. On node 0 nvml says: GPU 3: Xid 79",
			"3. Rank 0 was stuck in the kernel (state D)", NULL });
}

/* The loudest are victims, and the first line says already what the verdict does. */
static void test_culprit_first(void **state)
{
	const struct bundle_worker loud[] = { { .rank = 0,
						      .fate = FATE_ENDED,
						      .end = "killed by SIGTERM",
						      .error = "RuntimeError: closed by peer",
						      .look = { .known = true,
							      .state = 'R',
							      .later_ms = 14,
							      .later_cpu_ms = 10 } },
		{ .rank = 1, .fate = FATE_FAILED, .end = "exit code 1" },
		{ .rank = 2, .fate = FATE_FIRST, .end = "killed by SIGSEGV" } };
	struct bundle b = part;
	struct bundle_index x = whole;
	struct text t = { 0 };

	(void)state;
	b.workers = loud;
	b.worker_count = 3;
	b.job = x.job = "none";
	x.why = "root cause: rank 2 on gpu07: killed by SIGSEGV";
	assert_tells(&x, &b, 1,
		(const char *const[]){ "job without an id", "rank 2: killed by SIGSEGV",
			"rank 1: exit code 1", "rank 0: killed by SIGTERM", "closed by peer",
			NULL });
	x.first.known = false;
	assert_tells(&x, &b, 1,
		(const char *const[]){
			"What came first\n  rank 2 on gpu07: killed by SIGSEGV\n", NULL });
	x.first.known = true;
	story_add(&x, &b, 1, &t);
	assert_null(strstr(text_string(&t), "root cause"));
	assert_null(strstr(text_string(&t), "% of"));
	text_done(&t);
}

/* Who has them is not told how to get them. */
static void test_stacks(void **state)
{
	const struct bundle_finding stack = { "python", "rank 1", "good", "step at t.py:1" };
	struct bundle b = { .name = "x", .kind = "hang" };
	struct text t = { 0 };

	(void)state;
	assert_tells(NULL, &b, 1,
		(const char *const[]){ "1. Compare", "2. There are no stacks of Python", NULL });
	b.findings = &stack;
	b.finding_count = 1;
	story_add(NULL, &b, 1, &t);
	assert_null(strstr(text_string(&t), "2. "));
	text_done(&t);
}

static void test_job(void **state)
{
	(void)state;
	assert_tells(&whole, &part, 1,
		(const char *const[]){ "What came first", "rank 1 on node 0", "python t.py",
			"2 attempts in a row ended without a new step",
			"nobody can tell who was first", "Who followed, and why",
			"rank 2 (node 1): exit code 1, 0.310 s later: it says that another worker had "
			"gone",
			"rank 3 (node 1): killed by SIGSEGV, 9.000 s later: that late it may have a "
			"cause of its own",
			"3 workers more failed by themselves",
			"1 worker: launchd ended it because of the failure", "What each node saw",
			"node 0 (gpu07)", "node 1 (gpu08): 2 workers: 2 failed",
			"on that node: /box/n1", "What to look at next", NULL });
}

/* Nothing of a failure is known but that. */
static void test_bare(void **state)
{
	static const struct bundle_index nothing = { .name = NULL };
	static const struct bundle nobody = { .name = NULL };

	(void)state;
	assert_tells(&nothing, NULL, 0, (const char *const[]){ "What came first", "1. The", NULL });
	assert_tells(NULL, &nobody, 1, (const char *const[]){ "What came first", "1. The", NULL });
}

static const struct kind_row {
	const char *says, *kind, *advice, *end;
} kinds[] = {
	{ "an exit code", "exit", "gave an exit code and no exception", NULL },
	{ "a signal", "signal", "look for a core dump", "killed by SIGSEGV" },
	{ "a signal that leaves no core dump", "signal", "an OOM killer that launchd can't see",
		"killed by SIGKILL" },
	{ "a signal that somebody sends", "signal", "who sends signals on node 0",
		"killed by SIGTERM" },
	{ "the OOM killer", "oom", "compare its memory with the limit", NULL },
	{ "no start", "not_startable", "could not be started", NULL },
	{ "a hang", "hang", "Compare the stacks", NULL },
	{ "a look", "look", "Compare the stacks", NULL },
	{ "a time limit", "timeout", "The time limit was over", NULL },
	{ "a lost node", "node_lost", "kernel log of the node that was lost", NULL },
	{ "a kind of a newer launchd's", "odd", "The workers' logs", NULL },
};

static void test_kind(void **state)
{
	const struct kind_row *row = *state;
	const struct bundle b = { .name = "x",
		.kind = row->kind,
		.first = { .known = row->end != NULL, .text = row->end } };

	assert_tells(
		NULL, &b, 1, (const char *const[]){ "What to look at next", row->advice, NULL });
}

/* Of many workers the telling ones have their lines, and the length is bounded. */
static void test_many(void **state)
{
	enum { MANY = 5000 };
	struct bundle_worker *many = calloc(MANY, sizeof *many);
	struct bundle b = part;
	struct text t = { 0 };

	(void)state;
	assert_non_null(many);
	for (unsigned i = 0; i < MANY; i++)
		many[i] = (struct bundle_worker){ .rank = i, .fate = FATE_ENDED, .end = "x" };
	many[MANY - 1] = workers[1];
	b.workers = many;
	b.worker_count = MANY;
	story_add(NULL, &b, 1, &t);
	assert_contains(text_string(&t), "rank 1: exit code 1");
	assert_contains(text_string(&t), "4992 more: see bundle.json");
	assert_true(t.len < 8192);
	text_done(&t);
	free(many);
}

TESTS(story)
{
	static struct suite s;

	suite_add(&s, "a node's part", test_node, NULL, NULL);
	suite_add(&s, "the whole job", test_job, NULL, NULL);
	suite_add(&s, "the culprit first", test_culprit_first, NULL, NULL);
	suite_add(&s, "stacks", test_stacks, NULL, NULL);
	suite_add(&s, "next to nothing", test_bare, NULL, NULL);
	SUITE_ROWS(&s, test_kind, kinds);
	suite_add(&s, "many workers", test_many, NULL, NULL);
	return suite_run(&s);
}
