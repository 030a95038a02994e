/* test_nodes.c - the report of a job of several nodes, word by word and never long. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/plan/plan.h"
#include "daemon/report/ending.h"
#include "tests/unit/reporting.h"

/* Worker n of nodes with two workers each. */
#define AT(n, ...) \
	{ \
		.rank = (n), .local_rank = (n) % 2, .node = (n) / 2, .pid = 10 + (n), __VA_ARGS__ \
	}
#define GONE(n) \
	{ \
		.rank = (n), .local_rank = (n) % 2, .node = (n) / 2 \
	}
#define TERMED(from, to) STOPPED(SIGTERM, from), BY_SIGNAL(SIGTERM), RAN(1, to)
#define CULPRIT          "rank 3 (local rank 1, pid 13) on gpu07 (node 1)"
#define FIRST            "launchd: error: first to fail: " CULPRIT ": exit code 1 after 12.5 s\n"
#define STARTED          .started_ns = S(1)

enum { NODES = 3 };

/* clang-format off */
static const struct nodes_row {
	const char *says;
	struct outcome o[6];
	size_t count;
	int first; /* -1: none */
	struct result r;
	struct node nodes[NODES];
	unsigned node_count;
	struct report_input in;
	const char *text;
} rows[] = {
	{ "the culprit is on another node, and its command comes as text",
	  { AT(0, TERMED(13.5, 13.52)), AT(1, BY_EXIT(0), RAN(1, 3)), AT(2, TERMED(13.5, 13.51)),
	    AT(3, BY_EXIT(1), RAN(1, 13.5)) }, 4, 3, { FAILURE, STARTED },
	  { { .name = "gpu06" }, { .name = "gpu07" } }, 2, { .command = "python 'a b'" },
	  FIRST "launchd: error: command: python 'a b'\n"
	  "launchd: note: rank 1 (local rank 1, pid 11) on gpu06 (node 0): exit code 0 after 2.00 s\n"
	  "launchd: note: rank 0 (local rank 0, pid 10) on gpu06 (node 0): killed by SIGTERM, 0.02 s "
	  "after launchd's SIGTERM\n"
	  "launchd: note: rank 2 (local rank 0, pid 12) on gpu07 (node 1): killed by SIGTERM, 0.01 s "
	  "after launchd's SIGTERM\n" },
	{ "no command of another node that has not told it",
	  { GONE(0), GONE(1), GONE(2), AT(3, BY_EXIT(1), RAN(1, 13.5)) }, 4, 3, { FAILURE, STARTED },
	  { { .name = "gpu06" }, { .name = "gpu07" } }, 2, { 0 },
	  FIRST
	  "launchd: note: rank 0 (local rank 0) on gpu06 (node 0): not started\n"
	  "launchd: note: rank 1 (local rank 1) on gpu06 (node 0): not started\n"
	  "launchd: note: rank 2 (local rank 0) on gpu07 (node 1): not started\n" },
	{ "who died of a lost peer, after the culprit and before it was dead",
	  { AT(0, BY_EXIT(1), .blames = BLAMES_A_PEER, RAN(1, 13.52)),
	    AT(1, BY_EXIT(1), .blames = BLAMES_A_PEER, RAN(1, 13.4)),
	    AT(2, BY_EXIT(1), .blames = BLAMES_A_PEER, RAN(1, 13.5001)),
	    AT(3, BY_EXIT(1), RAN(1, 13.5)) }, 4, 3, { FAILURE, STARTED },
	  { { .name = "gpu06" }, { .name = "gpu07" } }, 2, { .command = "x" },
	  FIRST "launchd: error: command: x\n"
	  "launchd: note: rank 0 (local rank 0, pid 10) on gpu06 (node 0): died of a lost peer 0.02 s "
	  "later: exit code 1\n"
	  "launchd: note: rank 1 (local rank 1, pid 11) on gpu06 (node 0): died of a lost peer after "
	  "12.4 s: exit code 1\n"
	  "launchd: note: rank 2 (local rank 0, pid 12) on gpu07 (node 1): died of a lost peer 0.00 s "
	  "later: exit code 1\n" },
	{ "the clocks can't tell who was first",
	  { AT(0, BY_EXIT(1), RAN(1, 13.5003)), AT(1, BY_SIGNAL(SIGSEGV), RAN(1, 13.5006)),
	    AT(2, BY_EXIT(9), RAN(1, 13.5001)), AT(3, BY_EXIT(1), RAN(1, 13.5)) }, 4, 3,
	  { FAILURE, STARTED, .unsure = true },
	  { { .name = "gpu06", .clock_error_ns = 10000 },
	    { .name = "gpu07", .clock_error_ns = 360000 } }, 2, { .command = "x" },
	  "launchd: error: one of the first to fail: " CULPRIT ": exit code 1 after 12.5 s\n"
	  "launchd: error: command: x\n"
	  "launchd: error: rank 0 (local rank 0, pid 10) on gpu06 (node 0): failed at the same time: "
	  "exit code 1; either may be the cause: the nodes' clocks agree to 0.4 ms only\n"
	  "launchd: error: rank 2 (local rank 0, pid 12) on gpu07 (node 1): failed at the same time: "
	  "exit code 9; either may be the cause\n"
	  "launchd: note: rank 1 (local rank 1, pid 11) on gpu06 (node 0): failed 0.00 s later: "
	  "killed by SIGSEGV\n" },
	{ "clocks that nobody could compare",
	  { AT(0, BY_EXIT(1), RAN(1, 99)), GONE(1), GONE(2), AT(3, BY_EXIT(1), RAN(1, 13.5)) }, 4, 3,
	  { FAILURE, STARTED, .unsure = true },
	  { { .name = "gpu06" }, { .name = "gpu07", .clock_error_ns = S(3600) } }, 2,
	  { .command = "x" },
	  "launchd: error: one of the first to fail: " CULPRIT ": exit code 1 after 12.5 s\n"
	  "launchd: error: command: x\n"
	  "launchd: error: rank 0 (local rank 0, pid 10) on gpu06 (node 0): failed at the same time: "
	  "exit code 1; either may be the cause: the nodes' clocks could not be compared\n"
	  "launchd: note: rank 1 (local rank 1) on gpu06 (node 0): not started\n"
	  "launchd: note: rank 2 (local rank 0) on gpu07 (node 1): not started\n" },
	{ "near it, but known to be a consequence",
	  { AT(0, BY_SIGNAL(SIGABRT), RAN(1, 13.5003)), AT(3, BY_EXIT(1), RAN(1, 13.5)) }, 2, 1,
	  { FAILURE, STARTED },
	  { { .name = "gpu06" }, { .name = "gpu07", .clock_error_ns = 400000 } }, 2,
	  { .command = "x" },
	  FIRST "launchd: error: command: x\n"
	  "launchd: note: rank 0 (local rank 0, pid 10) on gpu06 (node 0): failed 0.00 s later: killed "
	  "by SIGABRT\n" },
	{ "doubt that no worker's line tells",
	  { AT(3, BY_EXIT(1), RAN(1, 13.5)) }, 1, 0, { FAILURE, STARTED, .unsure = true },
	  { { .name = "gpu06" }, { .name = "gpu07" } }, 2, { .command = "x" },
	  "launchd: error: one of the first to fail: " CULPRIT ": exit code 1 after 12.5 s\n"
	  "launchd: error: command: x\n"
	  "launchd: note: others may have failed before, as the nodes' clocks can't tell\n" },
	{ "a node was lost, and a second one; a third never joined",
	  { AT(0, BY_EXIT(1), .blames = BLAMES_A_PEER, RAN(1, 13.5)), AT(1, TERMED(14, 14.5)),
	    GONE(2), AT(3, BY_EXIT(0), RAN(1, 2)), GONE(4), GONE(5) }, 6, -1,
	  { .cause = { .kind = CAUSE_NODE_LOST, .node = 1, .at_ns = S(13.3),
		       .detail = "its connection was closed" }, STARTED },
	  { { .name = "gpu06" }, { .name = "gpu07", .lost = true }, { .name = "gpu\n8", .lost = true } },
	  3, { 0 },
	  "launchd: error: node 1 (gpu07) was lost after 12.3 s: its connection was closed\n"
	  "launchd: note: rank 0 (local rank 0, pid 10) on gpu06 (node 0): died of a lost peer after "
	  "12.5 s: exit code 1\n"
	  "launchd: note: rank 3 (local rank 1, pid 13) on gpu07 (node 1): exit code 0 after 1.00 s\n"
	  "launchd: note: rank 1 (local rank 1, pid 11) on gpu06 (node 0): killed by SIGTERM, 0.50 s "
	  "after launchd's SIGTERM\n"
	  "launchd: note: rank 2 (local rank 0) on gpu07 (node 1): not known: the node was lost\n"
	  "launchd: note: rank 4 (local rank 0) on gpu\\x0a8 (node 2): not known: the node was lost\n"
	  "launchd: note: rank 5 (local rank 1) on gpu\\x0a8 (node 2): not known: the node was lost\n"
	  "launchd: note: node 2 (gpu\\x0a8) was lost, too\n" },
	{ "a lost node and a failure that the clocks can't order, and nodes that never joined",
	  { GONE(0), GONE(2), AT(4, BY_EXIT(1), RAN(1, 13.5)) }, 3, -1,
	  { .cause = { .kind = CAUSE_NODE_LOST, .node = 0 }, .unsure = true },
	  { { .name = "gpu06", .lost = true }, { .name = "" }, { .name = "gpu08" } }, 3, { 0 },
	  "launchd: error: node 0 (gpu06) was lost\n"
	  "launchd: note: a worker on another node may have failed before, as the nodes' clocks can't "
	  "tell\n"
	  "launchd: note: rank 4 (local rank 0, pid 14) on gpu08 (node 2): exit code 1 after 12.5 s\n"
	  "launchd: note: rank 0 (local rank 0) on gpu06 (node 0): not known: the node was lost\n"
	  "launchd: note: rank 2 (local rank 0) on node 1: not known: the node never joined\n"
	  "launchd: note: node 1 never joined\n" },
	{ "nodes that were lost beside a failure",
	  { AT(3, BY_EXIT(1), RAN(1, 13.5)) }, 1, 0, { FAILURE, STARTED },
	  { { .name = "gpu06", .lost = true }, { .name = "gpu07" }, { .name = "a", .lost = true } }, 3,
	  { .command = "x" },
	  FIRST "launchd: error: command: x\nlaunchd: note: nodes 0, 2 were lost\n" },
	{ "where the signal came in",
	  { { 0 } }, 0, -1,
	  { .cause = { .kind = CAUSE_SIGNAL, .signal = SIGTERM, .node = 1, .at_ns = S(2.5),
		       .sender = { 812, 1000, false, "scancel" } },
	    STARTED },
	  { { .name = "gpu06" }, { .name = "gpu07" } }, 2, { 0 },
	  "launchd: error: the job was ended by SIGTERM on gpu07 (node 1), sent by pid 812 (scancel, "
	  "uid 1000), after 1.50 s\n" },
	{ "where launchd was killed", { { 0 } }, 0, -1,
	  { .cause = { .kind = CAUSE_GUARD, .node = 1, .at_ns = S(2) }, STARTED },
	  { { .name = "gpu06" }, { .name = "gpu07" } }, 2, { 0 },
	  "launchd: error: the job was ended on gpu07 (node 1) after 1.00 s: launchd itself was "
	  "killed\n" },
	{ "what was left behind, and survived, is said with its node",
	  { AT(0, .left = 1, BY_EXIT(0)), AT(1, .left = 1, BY_EXIT(0)),
	    AT(2, .left = 2, .left_killed = 2, BY_EXIT(0)), AT(3, BY_EXIT(1), RAN(1, 13.5), .left = 1) },
	  4, 3, { FAILURE, STARTED, .survivors = { { 71, 500, 'D', "python3", 1 } },
	  .survivor_count = 1 },
	  { { .name = "gpu06" }, { .name = "gpu07" } }, 2, { .command = "x" },
	  FIRST "launchd: error: command: x\n"
	  "launchd: note: rank 0 (local rank 0, pid 10) on gpu06 (node 0): exit code 0 after 0.00 s\n"
	  "launchd: note: rank 1 (local rank 1, pid 11) on gpu06 (node 0): exit code 0 after 0.00 s\n"
	  "launchd: note: rank 2 (local rank 0, pid 12) on gpu07 (node 1): exit code 0 after 0.00 s\n"
	  "launchd: note: ranks 0, 1, 3 (nodes 0, 1) left 1 process behind each; it ended in time\n"
	  "launchd: note: rank 2 (node 1, gpu07) left 2 processes behind; launchd killed them\n"
	  "launchd: warning: still alive on gpu07 (node 1): pid 71 (python3, uid 500): in the kernel "
	  "(state D), ends when it comes back\n" },
	{ "a job that went well",
	  { AT(0, BY_EXIT(0), RAN(1, 2)), AT(2, BY_EXIT(0), RAN(1, 2)) }, 2, -1, { 0 },
	  { { .name = "gpu06" }, { .name = "gpu07" } }, 2, { .max_restarts = 3 }, "" },
	{ "a node's own report of a job that lost node rank 0",
	  { { .pid = 10, TERMED(3, 3.01) } }, 1, -1,
	  { .cause = { .kind = CAUSE_NODE_LOST, .node = 4, .detail = "silent for 10.0 s" } },
	  { { .name = "" } }, 0, { 0 },
	  "launchd: error: node 4 was lost: silent for 10.0 s\n"
	  "launchd: note: rank 0 (local rank 0, pid 10): killed by SIGTERM, 0.01 s after launchd's "
	  "SIGTERM\n" },
};
/* clang-format on */

static void test_nodes(void **state)
{
	const struct nodes_row *row = *state;
	struct result r = row->r;
	struct report_input in = row->in;
	char *text;

	r.outcomes = row->o;
	r.count = row->count;
	r.culprit = row->first < 0 ? NULL : &row->o[row->first];
	r.nodes = row->node_count ? row->nodes : NULL;
	r.node_count = row->node_count;
	in.result = &r;
	text = report_made(in, report_text);
	assert_string_equal(text, row->text);
	free(text);
}

enum { MANY_NODES = 256, EACH = 16, MANY = MANY_NODES * EACH };

/* A job of many nodes with 16 workers each. */
struct crowd {
	struct node nodes[MANY_NODES];
	struct outcome o[MANY];
	struct result r;
};

/* All were stopped after rank 20 failed. */
static struct crowd *crowd_make(unsigned nodes)
{
	struct crowd *c = calloc(1, sizeof *c);

	assert_non_null(c);
	for (unsigned i = 0; i < nodes; i++)
		(void)snprintf(c->nodes[i].name, sizeof c->nodes[i].name, "gpu%02u", i);
	for (unsigned i = 0; i < nodes * EACH; i++)
		c->o[i] = (struct outcome){ .rank = i,
			.local_rank = i % EACH,
			.node = i / EACH,
			.pid = (pid_t)(100 + i),
			TERMED(2, 2.01) };
	c->o[20] = (struct outcome){
		.rank = 20, .local_rank = 4, .node = 1, .pid = 120, BY_EXIT(1), RAN(1, 2)
	};
	c->r = (struct result){ .outcomes = c->o,
		.count = (size_t)nodes * EACH,
		.culprit = &c->o[20],
		FAILURE,
		.nodes = c->nodes,
		.node_count = nodes };
	return c;
}

static char *crowd_report(const struct crowd *c)
{
	static const unsigned waiting[] = { 3, 5, 17, 1000 };

	return report_made((struct report_input){ .result = &c->r,
				   .command = "x",
				   .waiting = waiting,
				   .waiting_count = sizeof waiting / sizeof *waiting },
		report_text);
}

#define CROWD_FIRST \
	"launchd: error: first to fail: rank 20 (local rank 4, pid 120) on gpu01 (node 1): exit " \
	"code 1 after 1.00 s\n" \
	"launchd: error: command: x\n"

/* 1,024 workers: a whole node's story names it, and a story of many counts them. */
static void test_64_nodes(void **state)
{
	struct crowd *c = crowd_make(64);
	char *text;

	(void)state;
	for (unsigned i = 0; i < EACH; i++) {
		c->o[7 * EACH + i].asked = ASKED_KILLED;
		c->o[7 * EACH + i].end.value = SIGKILL;
		c->o[7 * EACH + i].ended_ns = S(32);
		c->o[40 * EACH + i] =
			(struct outcome){ .rank = 40 * EACH + i, .local_rank = i, .node = 40 };
		c->o[50 * EACH + i] =
			(struct outcome){ .rank = 50 * EACH + i, .local_rank = i, .node = 50 };
	}
	c->nodes[40].lost = c->nodes[50].lost = true;
	text = crowd_report(c);
	assert_string_equal(text,
		CROWD_FIRST
		"launchd: note: ranks 0-19, 21-111, 128-639, 656-799, 816-1023 (nodes 0-6, 8-39, "
		"41-49, 51-63): killed by SIGTERM, 0.01 s after launchd's SIGTERM\n"
		"launchd: note: ranks 112-127 (node 7, gpu07): still there 30.0 s after launchd's "
		"SIGTERM: killed by SIGKILL\n"
		"launchd: note: ranks 640-655, 800-815 (nodes 40, 50): not known: the nodes were "
		"lost\n"
		"launchd: note: nodes 40, 50 were lost\n"
		"launchd: note: ranks 3, 5, 17, 1000 (nodes 0, 1, 62) had not joined the store\n");
	free(text);
	free(c);
}

/* README: "When a worker fails". */
static void test_readme(void **state)
{
	static struct outcome o[32];
	static const struct node nodes[] = { { .name = "gpu06" }, { .name = "gpu07" },
		{ .name = "gpu08" }, { .name = "gpu09" } };
	struct result r = { .outcomes = o,
		.count = 32,
		.culprit = &o[11],
		FAILURE,
		.started_ns = S(1),
		.nodes = nodes,
		.node_count = 4 };
	char *text;

	(void)state;
	for (unsigned i = 0; i < 32; i++)
		o[i] = (struct outcome){ .rank = i,
			.local_rank = i % 8,
			.node = i / 8,
			.pid = (pid_t)(4702 + i),
			TERMED(13.5, 13.51) };
	o[31].ended_ns = S(13.55);
	o[10].asked = o[11].asked = o[12].asked = ASKED_NOTHING;
	o[10].asked_signal = o[11].asked_signal = o[12].asked_signal = 0;
	o[10].end = o[11].end = o[12].end = (struct ending){ ENDED_EXIT, 1, false };
	o[10].blames = o[12].blames = BLAMES_A_PEER;
	o[11].ended_ns = S(13.3);
	o[10].ended_ns = S(13.31);
	o[12].ended_ns = S(13.32);
	text = report_made((struct report_input){ .result = &r, .command = "x" }, report_text);
	assert_string_equal(text,
		"launchd: error: first to fail: rank 11 (local rank 3, pid 4713) on gpu07 (node "
		"1): exit code 1 after 12.3 s\n"
		"launchd: error: command: x\n"
		"launchd: note: ranks 10, 12 (node 1, gpu07): died of a lost peer 0.01 s to 0.02 s "
		"later: exit code 1\n"
		"launchd: note: ranks 0-9, 13-31 (nodes 0-3): killed by SIGTERM, 0.01 s to 0.05 s "
		"after launchd's SIGTERM\n");
	free(text);
}

static void test_one_node_waits(void **state)
{
	struct crowd *c = crowd_make(2);
	const unsigned waiting[] = { 17, 19 };
	struct report_input in = { .result = &c->r, .waiting = waiting, .waiting_count = 2 };
	char *text = report_made(in, report_text);

	(void)state;
	assert_contains(text, "note: ranks 17, 19 (node 1, gpu01) had not joined the store\n");
	free(text);
	c->r.nodes = NULL;
	in.waiting_count = 1;
	text = report_made(in, report_text);
	assert_contains(text, "note: rank 17 had not joined the store\n");
	free(text);
	free(c);
}

/* Anything that may become of 4,096 workers, by a generator with a seed. */
static void scatter(struct crowd *c, unsigned seed)
{
	uint64_t x = seed * 2654435761u + 1;

	for (unsigned i = 0; i < MANY; i++) {
		struct outcome *o = &c->o[i];

		x = x * 6364136223846793005u + 1442695040888963407u;
		o->end = (struct ending){ (enum how)(x >> 60) % 3, 1 + (int)(x >> 33) % 60, false };
		o->asked = (enum asked)((x >> 40) % 3);
		o->asked_signal = (int)(x >> 42) % 20;
		o->blames = (enum blames)((x >> 45) % 3);
		o->pid = (x >> 47) % 8 ? (pid_t)(1 + i) : 0;
		o->left = (unsigned)(x >> 50) % 1000;
		o->left_killed = (unsigned)(x >> 52) % 7;
		o->ended_ns = S(2) + (x >> 20) % S(9);
		c->nodes[o->node].lost = (x >> 57) % 3 == 0;
		c->nodes[o->node].clock_error_ns = x >> 30;
		memset(c->nodes[o->node].name, x % 5 ? '\x1b' : 0, NODE_NAME_SIZE - 1);
	}
	c->r.unsure = seed % 2;
	c->r.survivor_count = 10000;
	c->r.cause = (struct cause){ .kind = (enum cause_kind)(1 + seed % 7), .node = seed };
	c->r.culprit = &c->o[seed];
}

static void test_bounded(void **state)
{
	enum { LINES_MAX = 90, BYTES_MAX = 32768 };
	static unsigned waiting[MANY];

	(void)state;
	for (unsigned i = 0; i < MANY; i++)
		waiting[i] = i / 3 * 5;
	for (unsigned seed = 0; seed < 21; seed++) {
		struct crowd *c = crowd_make(MANY_NODES);
		size_t lines = 0;
		char *text;

		scatter(c, seed);
		text = report_made((struct report_input){ .result = &c->r,
					   .max_restarts = 3,
					   .waiting = waiting,
					   .waiting_count = MANY },
			report_text);
		for (const char *p = text; *p; p++)
			lines += *p == '\n';
		assert_in_range(lines, 40, LINES_MAX);
		assert_in_range(strlen(text), 1, BYTES_MAX);
		free(text);
		free(c);
	}
}

/* --only-rank starts one worker in all: those of other nodes are not missed either. */
static void test_only_rank(void **state)
{
	const struct outcome o[] = { AT(0, BY_EXIT(1), RAN(1, 2)), GONE(1), GONE(2) };
	const struct node nodes[] = { { .name = "gpu06" }, { .name = "gpu07" } };
	const struct result r = { .outcomes = o,
		.count = 3,
		.culprit = &o[0],
		FAILURE,
		.nodes = nodes,
		.node_count = 2 };
	const struct vec args = { 0 };
	const struct plan plan = { .script = "./train",
		.use_env = true,
		.args = &args,
		.nproc = 2,
		.nnodes = 2,
		.start_count = 1 };
	char *text = report_made((struct report_input){ .result = &r, .plan = &plan }, report_text);

	(void)state;
	assert_string_equal(text,
		"launchd: error: first to fail: rank 0 (local rank 0, pid 10) on gpu06 (node 0): "
		"exit code 1 after 1.00 s\nlaunchd: error: command: ./train\n");
	free(text);
}

int main(void)
{
	static struct suite s;

	set_time_zone();
	SUITE_ROWS(&s, test_nodes, rows);
	suite_add(&s, "1,024 workers on 64 nodes", test_64_nodes, NULL, NULL);
	suite_add(&s, "what README shows", test_readme, NULL, NULL);
	suite_add(&s, "whoever the store waits for", test_one_node_waits, NULL, NULL);
	suite_add(&s, "4,096 workers are a bounded report", test_bounded, NULL, NULL);
	suite_add(&s, "--only-rank on several nodes", test_only_rank, NULL, NULL);
	return suite_run(&s);
}
