/* test_nodes.c - the report of a job of several nodes, word by word. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/job/ending.h"
#include "daemon/plan/plan.h"
#include "tests/unit/daemon/report/report_fixture.h"

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
#define FIRST            "launchd: error: root cause: " CULPRIT ": exit code 1 after 12.5 s\n"
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
	  "launchd: note: rank 1 (local rank 1, pid 11) on gpu06 (node 0): exit code 0 after "
	  "2.00 s\n"
	  "launchd: note: rank 0 (local rank 0, pid 10) on gpu06 (node 0): ended by launchd's "
	  "SIGTERM within 0.02 s\n"
	  "launchd: note: rank 2 (local rank 0, pid 12) on gpu07 (node 1): ended by launchd's "
	  "SIGTERM within 0.01 s\n" },
	{ "no command of another node that has not told it",
	  { GONE(0), GONE(1), GONE(2), AT(3, BY_EXIT(1), RAN(1, 13.5)) }, 4, 3, { FAILURE,
	    STARTED },
	  { { .name = "gpu06" }, { .name = "gpu07" } }, 2, { 0 },
	  FIRST
	  "launchd: note: ranks 0-2 (nodes 0, 1): not started\n" },
	{ "who lost a peer and failed, after the culprit and before it was dead",
	  { AT(0, BY_EXIT(1), .blames = BLAMES_A_PEER, RAN(1, 13.52)),
	    AT(1, BY_EXIT(134), .blames = BLAMES_A_PEER, RAN(1, 13.4)),
	    AT(2, BY_EXIT(1), .blames = BLAMES_A_PEER, RAN(1, 13.5001)),
	    AT(3, BY_EXIT(1), RAN(1, 13.5)) }, 4, 3, { FAILURE, STARTED },
	  { { .name = "gpu06" }, { .name = "gpu07" } }, 2, { .command = "x" },
	  FIRST "launchd: error: command: x\n"
	  "launchd: note: rank 0 (local rank 0, pid 10) on gpu06 (node 0): lost a peer and failed "
	  "0.02 s later: exit code 1\n"
	  "launchd: note: rank 1 (local rank 1, pid 11) on gpu06 (node 0): lost a peer and failed "
	  "after 12.4 s: exit code 134\n"
	  "launchd: note: rank 2 (local rank 0, pid 12) on gpu07 (node 1): lost a peer and failed "
	  "0.00 s later: exit code 1\n" },
	{ "the clocks can't tell who was first",
	  { AT(0, BY_EXIT(1), RAN(1, 13.5003)), AT(1, BY_SIGNAL(SIGSEGV), RAN(1, 13.5006)),
	    AT(2, BY_EXIT(9), RAN(1, 13.5001)), AT(3, BY_EXIT(1), RAN(1, 13.5)) }, 4, 3,
	  { FAILURE, STARTED, .unsure = true },
	  { { .name = "gpu06", .clock_error_ns = 10000 },
	    { .name = "gpu07", .clock_error_ns = 360000 } }, 2, { .command = "x" },
	  "launchd: error: root cause: possibly " CULPRIT ": exit code 1 after 12.5 s\n"
	  "launchd: error: command: x\n"
	  "launchd: error: rank 0 (local rank 0, pid 10) on gpu06 (node 0): failed at the same "
	  "time: "
	  "exit code 1; either may be the root cause (the nodes' clocks agree only to 0.4 ms)\n"
	  "launchd: error: rank 2 (local rank 0, pid 12) on gpu07 (node 1): failed at the same "
	  "time: "
	  "exit code 9; either may be the root cause\n"
	  "launchd: note: rank 1 (local rank 1, pid 11) on gpu06 (node 0): failed 0.00 s later: "
	  "killed by SIGSEGV\n" },
	{ "clocks that nobody could compare",
	  { AT(0, BY_EXIT(1), RAN(1, 99)), GONE(1), GONE(2), AT(3, BY_EXIT(1), RAN(1, 13.5)) },
	    4, 3,
	  { FAILURE, STARTED, .unsure = true },
	  { { .name = "gpu06" }, { .name = "gpu07", .clock_error_ns = S(3600) } }, 2,
	  { .command = "x" },
	  "launchd: error: root cause: possibly " CULPRIT ": exit code 1 after 12.5 s\n"
	  "launchd: error: command: x\n"
	  "launchd: error: rank 0 (local rank 0, pid 10) on gpu06 (node 0): failed at the same "
	  "time: "
	  "exit code 1; either may be the root cause (the nodes' clocks could not be "
	  "compared)\n"
	  "launchd: note: rank 1 (local rank 1) on gpu06 (node 0): not started\n"
	  "launchd: note: rank 2 (local rank 0) on gpu07 (node 1): not started\n" },
	{ "near it, but known to be a consequence",
	  { AT(0, BY_SIGNAL(SIGABRT), RAN(1, 13.5003)), AT(3, BY_EXIT(1), RAN(1, 13.5)) }, 2, 1,
	  { FAILURE, STARTED },
	  { { .name = "gpu06" }, { .name = "gpu07", .clock_error_ns = 400000 } }, 2,
	  { .command = "x" },
	  FIRST "launchd: error: command: x\n"
	  "launchd: note: rank 0 (local rank 0, pid 10) on gpu06 (node 0): failed 0.00 s later: "
	  "killed "
	  "by SIGABRT\n" },
	{ "doubt that no worker's line tells",
	  { AT(3, BY_EXIT(1), RAN(1, 13.5)) }, 1, 0, { FAILURE, STARTED, .unsure = true },
	  { { .name = "gpu06" }, { .name = "gpu07" } }, 2, { .command = "x" },
	  "launchd: error: root cause: possibly " CULPRIT ": exit code 1 after 12.5 s\n"
	  "launchd: error: command: x\n"
	  "launchd: note: another worker may have failed first: the nodes' clocks can't tell\n" },
	{ "a node was lost, and a second one; a third never joined",
	  { AT(0, BY_EXIT(1), .blames = BLAMES_A_PEER, RAN(1, 13.5)), AT(1, TERMED(14, 14.5)),
	    GONE(2), AT(3, BY_EXIT(0), RAN(1, 2)), GONE(4), GONE(5) }, 6, -1,
	  { .cause = { .kind = CAUSE_NODE_LOST, .node = 1, .at_ns = S(13.3),
		       .detail = "its connection was closed" }, STARTED },
	  { { .name = "gpu06" }, { .name = "gpu07", .lost = true }, { .name = "gpu\n8",
	    .lost = true } },
	  3, { 0 },
	  "launchd: error: root cause: node 1 (gpu07) was lost after 12.3 s: its connection was "
	  "closed; 2 of 3 nodes were lost: nodes 1, 2\n"
	  "launchd: note: rank 0 (local rank 0, pid 10) on gpu06 (node 0): lost a peer and failed "
	  "after "
	  "12.5 s: exit code 1\n"
	  "launchd: note: rank 3 (local rank 1, pid 13) on gpu07 (node 1): exit code 0 after "
	  "1.00 s\n"
	  "launchd: note: rank 1 (local rank 1, pid 11) on gpu06 (node 0): ended by launchd's "
	  "SIGTERM within 0.50 s\n"
	  "launchd: note: ranks 2, 4, 5 (nodes 1, 2): unknown: the nodes were lost\n"
	  "launchd: note: node 2 (gpu\\x0a8) was lost, too\n" },
	{ "a lost node that may not be the first, and one that was not",
	  { GONE(0), GONE(2), GONE(4) }, 3, -1, { .cause = { .kind = CAUSE_NODE_LOST, .node = 0 } },
	  { { .name = "gpu06", .lost = true }, { .name = "gpu07", .lost = true },
	    { .name = "gpu08", .lost = true, .lost_unsure = true } }, 3, { 0 },
	  "launchd: error: root cause: node 0 (gpu06) was lost; 3 of 3 nodes were lost: nodes 0-2\n"
	  "launchd: note: ranks 0, 2, 4 (nodes 0-2): unknown: the nodes were lost\n"
	  "launchd: note: nodes 1, 2 were lost, too; launchd can't tell which was first\n" },
	{ "another node's --max-runtime, of which this one knows nothing", { GONE(0) }, 1, -1,
	  { .cause = { .kind = CAUSE_MAX_RUNTIME, .node = 1, .at_ns = S(13) }, STARTED },
	  { { .name = "gpu06" }, { .name = "gpu07" } }, 2, { 0 },
	  "launchd: error: root cause: --max-runtime expired on gpu07 (node 1) after 12.0 s\n"
	  "launchd: note: rank 0 (local rank 0) on gpu06 (node 0): not started\n" },
	{ "all other nodes fell silent", { GONE(2), GONE(4) }, 2, -1,
	  { .cause = { .kind = CAUSE_NODE_LOST, .node = 1, .at_ns = S(1), .noticed_ns = S(11) } },
	  { { .name = "gpu06" }, { .name = "gpu07", .lost = true },
	    { .name = "gpu08", .lost = true, .lost_unsure = true } }, 3, { 0 },
	  "launchd: error: root cause: node 1 (gpu07) was lost; 2 of 3 nodes were lost: nodes 1, 2\nlaunchd: note: rank 2 (local rank 0) on gpu07 (node 1): unknown: the node was lost\nlaunchd: note: rank 4 (local rank 0) on gpu08 (node 2): unknown: the node was lost\nlaunchd: note: node 2 (gpu08) was lost, too; launchd can't tell which was first\nlaunchd: note: no other node is heard from: node 0 (gpu06) may itself have been cut off\n" },
	{ "this node slept, and the others went on without it", { GONE(2), GONE(4) }, 2, -1,
	  { .cause = { .kind = CAUSE_NODE_LOST, .node = 0, .asleep = true, .at_ns = S(1),
		       .noticed_ns = S(11) } },
	  { { .name = "gpu06" }, { .name = "gpu07", .lost = true }, { .name = "gpu08",
	    .lost = true } }, 3, { 0 },
	  "launchd: error: root cause: node 0 (gpu06) was itself frozen or suspended\n"
	  "launchd: note: rank 2 (local rank 0) on gpu07 (node 1): unknown: the node was lost\n"
	  "launchd: note: rank 4 (local rank 0) on gpu08 (node 2): unknown: the node was lost\n"
	  "launchd: note: nodes 1, 2 were gone when this node resumed\n" },
	{ "a lost node and a failure that the clocks can't order, and nodes that never joined",
	  { GONE(0), GONE(2), AT(4, BY_EXIT(1), RAN(1, 13.5)) }, 3, -1,
	  { .cause = { .kind = CAUSE_NODE_LOST, .node = 0 }, .unsure = true },
	  { { .name = "gpu06", .lost = true }, { .name = "" }, { .name = "gpu08" } }, 3, { 0 },
	  "launchd: error: root cause: node 0 (gpu06) was lost\n"
	  "launchd: note: a worker may have failed before the node was lost: launchd can't "
	  "tell\n"
	  "launchd: note: rank 4 (local rank 0, pid 14) on gpu08 (node 2): exit code 1 after "
	  "12.5 s\n"
	  "launchd: note: rank 0 (local rank 0) on gpu06 (node 0): unknown: the node was lost\n"
	  "launchd: note: rank 2 (local rank 0) on node 1: unknown: the node never joined\n"
	  "launchd: note: node 1 never joined\n" },
	{ "nodes that were lost beside a failure",
	  { AT(3, BY_EXIT(1), RAN(1, 13.5)) }, 1, 0, { FAILURE, STARTED },
	  { { .name = "gpu06", .lost = true }, { .name = "gpu07" }, { .name = "a",
	    .lost = true } }, 3,
	  { .command = "x" },
	  FIRST "launchd: error: command: x\nlaunchd: note: nodes 0, 2 were lost\n" },
	{ "where the signal came in",
	  { { 0 } }, 0, -1,
	  { .cause = { .kind = CAUSE_SIGNAL, .signal = SIGTERM, .node = 1, .at_ns = S(2.5),
		       .sender = { 812, 1000, false, "scancel" } },
	    STARTED },
	  { { .name = "gpu06" }, { .name = "gpu07" } }, 2, { 0 },
	  "launchd: error: root cause: launchd received SIGTERM on gpu07 (node 1) from pid 812 (scancel, uid 1000) after 1.50 s\n" },
	{ "a signal, and a failure that the clocks can't order",
	  { AT(3, BY_EXIT(1), RAN(1, 2.5)) }, 1, -1,
	  { .cause = { .kind = CAUSE_SIGNAL, .signal = SIGTERM, .node = 0, .at_ns = S(2.5) },
	    .unsure = true, STARTED },
	  { { .name = "gpu06" }, { .name = "gpu07" } }, 2, { 0 },
	  "launchd: error: root cause: launchd received SIGTERM on gpu06 (node 0) after 1.50 s\nlaunchd: note: a worker may have failed first: the nodes' clocks can't tell\nlaunchd: note: rank 3 (local rank 1, pid 13) on gpu07 (node 1): exit code 1 after 1.50 s\n" },
	{ "where launchd was killed", { { 0 } }, 0, -1,
	  { .cause = { .kind = CAUSE_GUARD, .node = 1, .at_ns = S(2) }, STARTED },
	  { { .name = "gpu06" }, { .name = "gpu07" } }, 2, { 0 },
	  "launchd: error: root cause: launchd itself was killed on gpu07 (node 1) after 1.00 "
	  "s\n" },
	{ "what was left behind, and survived, is said with its node",
	  { AT(0, .left = 1, BY_EXIT(0)), AT(1, .left = 1, BY_EXIT(0)),
	    AT(2, .left = 2, .left_killed = 2, BY_EXIT(0)), AT(3, BY_EXIT(1), RAN(1, 13.5),
	      .left = 1) },
	  4, 3, { FAILURE, STARTED, .survivors = { { 71, 500, 'D', "python3", 1 } },
	  .survivor_count = 1 },
	  { { .name = "gpu06" }, { .name = "gpu07" } }, 2, { .command = "x" },
	  FIRST "launchd: error: command: x\n"
	  "launchd: note: ranks 0-2 (nodes 0, 1): exit code 0 after 0.00 s\n"
	  "launchd: note: ranks 0, 1, 3 (nodes 0, 1) left 1 process behind each; it ended after launchd's SIGTERM\n"
	  "launchd: note: rank 2 (node 1, gpu07) left 2 processes behind; launchd killed them\n"
	  "launchd: warning: still alive on gpu07 (node 1): pid 71 (python3, uid 500): stuck in "
	  "the kernel (state D); it ends when its system call returns\n" },
	{ "a job that went well",
	  { AT(0, BY_EXIT(0), RAN(1, 2)), AT(2, BY_EXIT(0), RAN(1, 2)) }, 2, -1, { 0 },
	  { { .name = "gpu06" }, { .name = "gpu07" } }, 2, { .max_restarts = 3 }, "" },
	{ "a node's own report of a job that lost node rank 0",
	  { { .pid = 10, TERMED(3, 3.01) } }, 1, -1,
	  { .cause = { .kind = CAUSE_NODE_LOST, .node = 4, .detail = "silent for 10.0 s" } },
	  { { .name = "" } }, 0, { 0 },
	  "launchd: error: root cause: node 4 was lost: silent for 10.0 s\n"
	  "launchd: note: rank 0 (local rank 0, pid 10): ended by launchd's SIGTERM within 0.01 "
	  "s\n" },
	{ "a node's own report of a job that lost contact with node rank 0",
	  { { .pid = 10, TERMED(3, 3.01) } }, 1, -1,
	  { .cause = { .kind = CAUSE_NODE_LOST, .node = 0, .host = "10.0.0.4", .contact = true,
		       .detail = "silent for 10.0 s" } },
	  { { .name = "" } }, 0, { 0 },
	  "launchd: error: root cause: this node lost contact with node 0 (10.0.0.4): silent for "
	  "10.0 s\n"
	  "launchd: note: rank 0 (local rank 0, pid 10): ended by launchd's SIGTERM within 0.01 "
	  "s\n" },
	{ "a node's own report of a job that another node's worker ended",
	  { { .pid = 10, TERMED(3, 3.01) } }, 1, -1,
	  { .cause = { .kind = CAUSE_FAILURE, .node = 3, .host = "gpu99",
		       .culprit = { .rank = 9, .local_rank = 1, .node = 3, .pid = 77,
				    BY_EXIT(7) } } },
	  { { .name = "" } }, 0, { 0 },
	  "launchd: error: root cause: rank 9 (local rank 1, pid 77) on gpu99 (node 3): exit code "
	  "7\n"
	  "launchd: note: rank 0 (local rank 0, pid 10): ended by launchd's SIGTERM within 0.01 "
	  "s\n" },
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
	if (row->first >= 0 && r.cause.kind == CAUSE_FAILURE)
		r.cause = cause_of_failure(&row->o[row->first]);
	r.nodes = row->node_count ? row->nodes : NULL;
	r.node_count = row->node_count;
	in.result = &r;
	text = report_made(in, report_text);
	assert_string_equal(text, row->text);
	free(text);
}

/* --only-rank starts one worker in all: those of other nodes are not missed either. */
static void test_only_rank(void **state)
{
	const struct outcome o[] = { AT(0, BY_EXIT(1), RAN(1, 2)), GONE(1), GONE(2) };
	const struct node nodes[] = { { .name = "gpu06" }, { .name = "gpu07" } };
	const struct result r = { .outcomes = o,
		.count = 3,
		.cause = cause_of_failure(&o[0]),
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
		"launchd: error: root cause: rank 0 (local rank 0, pid 10) on gpu06 (node 0): "
		"exit code 1 after 1.00 s\nlaunchd: error: command: ./train\n");
	free(text);
}

/* It comes from another launcher: bounded, and nothing that a terminal obeys. */
static void test_foreign_command(void **state)
{
	const struct outcome o = AT(3, BY_EXIT(1), RAN(1, 2));
	const struct node nodes[] = { { .name = "gpu06" }, { .name = "gpu07" } };
	const struct result r = { .outcomes = &o,
		.count = 1,
		.cause = cause_of_failure(&o),
		.nodes = nodes,
		.node_count = 2 };
	char command[5001] = "";
	char *text;

	(void)state;
	memset(command, 'c', sizeof command - 1);
	command[0] = '\x1b';
	text = report_made((struct report_input){ .result = &r, .command = command }, report_text);
	assert_contains(text, "command: \\x1bccc");
	assert_contains(text, "ccc ...\n");
	assert_in_range(strlen(text), 600, 800);
	free(text);
}

/* Where the root cause is another one, there is one root cause. */
static void test_own_culprit(void **state)
{
	const struct outcome o = AT(3, BY_EXIT(9), RAN(1, 2));
	const struct result r = { .outcomes = &o, .count = 1, .cause = cause_of_failure(&o) };
	char *text = report_made(
		(struct report_input){ .result = &r, .is_local = true, .words = { NULL, "/logs" } },
		report_culprit_text);

	(void)state;
	assert_contains(text,
		"launchd: error: first failure on this node: rank 3 (local rank 1, pid 13) on");
	assert_contains(text,
		"launchd: error: command: ./train 'a b' --lr=1\nlaunchd: error: log: /logs\n");
	assert_null(strstr(text, "root cause"));
	free(text);
}

/* What remains of a job that went well is said there, too. */
static void test_well(void **state)
{
	const struct outcome o = AT(3, BY_EXIT(0), RAN(1, 2), .left = 1, .left_killed = 1);
	const struct node nodes[] = { { .name = "gpu06" }, { .name = "gpu07" } };
	const struct result r = { .outcomes = &o, .count = 1, .nodes = nodes, .node_count = 2 };
	const unsigned waiting[] = { 3 };
	char *text = report_made(
		(struct report_input){
			.result = &r, .max_restarts = 1, .waiting = waiting, .waiting_count = 1 },
		report_text);

	(void)state;
	assert_string_equal(text,
		"launchd: warning: rank 3 (node 1, gpu07) left 1 process behind; "
		"launchd killed it\n");
	free(text);
}

TESTS(nodes)
{
	static struct suite s;

	set_time_zone();
	SUITE_ROWS(&s, test_nodes, rows);
	suite_add(&s, "this node's culprit beside the job's", test_own_culprit, NULL, NULL);
	suite_add(&s, "--only-rank on several nodes", test_only_rank, NULL, NULL);
	suite_add(&s, "a command of another node is cut", test_foreign_command, NULL, NULL);
	suite_add(&s, "a job that went well, but for what it left", test_well, NULL, NULL);
	return suite_run(&s);
}
