/* test_others.c - what the report says of many workers: all of it, in few lines. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/job/ending.h"
#include "tests/unit/daemon/report/report_fixture.h"

enum { MANY = 512 };

/* 512 workers, all stopped by SIGTERM 10 ms after rank 3 failed; `change` changes some. */
static void assert_many(void (*change)(struct outcome *), const char *expected)
{
	static struct outcome o[MANY];
	struct result r = { .outcomes = o, .count = MANY };
	char *report;

	for (unsigned i = 0; i < MANY; i++)
		o[i] = (struct outcome){ .rank = i,
			.local_rank = i,
			.pid = (pid_t)(100 + i),
			.end = { ENDED_SIGNAL, SIGTERM, false },
			STOPPED(SIGTERM, 2),
			RAN(1, 2.01) };
	o[3] = (struct outcome){ .rank = 3, .local_rank = 3, .pid = 103, BY_EXIT(1), RAN(1, 2) };
	change(o);
	r.cause = cause_of_failure(&o[3]);
	report = report_of(&r, NULL, arguments, 0, MANY);
	assert_string_equal(report, expected);
	free(report);
}

#define MANY_HEAD HEAD("3 (local rank 3, pid 103)", "exit code 1 after 1.00 s") COMMAND

static void change_some(struct outcome *o)
{
	o[5].ended_ns = S(2.04);
	o[7] = (struct outcome){ .rank = 7, .local_rank = 7, .pid = 107, RAN(1, 1.5), BY_EXIT(0) };
	o[100].end.value = SIGSEGV;
	for (int i = 200; i < 300; i++) {
		o[i].asked = ASKED_KILLED;
		o[i].end.value = SIGKILL;
		o[i].ended_ns = S(32);
	}
	for (int i = 400; i < 403; i++) {
		o[i].asked = ASKED_NOTHING;
		o[i].asked_signal = 0;
		o[i].end = (struct ending){ ENDED_EXIT, 1, false };
		o[i].ended_ns = S(2) + 1000;
	}
}

static void test_many(void **state)
{
	(void)state;
	assert_many(change_some,
		MANY_HEAD
		"launchd: error: ranks 400-402: failed at the same time: exit code 1; any of them "
		"may be the root cause\n"
		"launchd: note: rank 7 (local rank 7, pid 107): exit code 0 after 0.50 s\n"
		"launchd: note: ranks 0-2, 4-6, 8-99, 101-199, 300-399, 403-511: ended by "
		"launchd's SIGTERM within 0.04 s\n"
		"launchd: note: rank 100 (local rank 100, pid 200): killed by SIGSEGV within 0.01 "
		"s of launchd's SIGTERM\n"
		"launchd: note: ranks 200-299: still running 30.0 s after launchd's SIGTERM: "
		"killed "
		"by SIGKILL\n");
}

static void change_one(struct outcome *o)
{
	o[37].ended_ns = S(31.8);
}

static void test_straggler(void **state)
{
	(void)state;
	assert_many(change_one,
		MANY_HEAD
		"launchd: note: ranks 0-2, 4-511: ended by launchd's SIGTERM within 29.8 s (rank "
		"37 was last)\n");
}

static void change_odd(struct outcome *o)
{
	for (int i = 0; i < MANY; i += 2)
		o[i].end.value = SIGABRT;
}

static void test_many_ranges(void **state)
{
	(void)state;
	assert_many(change_odd,
		MANY_HEAD
		"launchd: note: ranks 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, "
		"... (256 in all): killed by SIGABRT within 0.01 s of launchd's SIGTERM\n"
		"launchd: note: ranks 1, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, "
		"... (255 in all): ended by launchd's SIGTERM within 0.01 s\n");
}

/* Never 511 lines, even if all stories differ. */
static void test_many_stories(void **state)
{
	static struct outcome o[MANY];
	const struct result r = {
		.outcomes = o, .count = MANY, .cause = { .kind = CAUSE_SIGNAL, .signal = SIGTERM }
	};
	size_t lines = 0;
	char *report;

	(void)state;
	for (unsigned i = 0; i < MANY; i++)
		o[i] = (struct outcome){ .rank = i, .local_rank = i, .pid = 1, BY_EXIT((int)i) };
	report = report_of(&r, NULL, arguments, 0, MANY);
	for (const char *p = report; *p; p++)
		lines += *p == '\n';
	assert_int_equal(lines, 1 + 32 + 1);
	assert_contains(report,
		"launchd: note: 480 more workers are not listed: see --report "
		"FILE\n");
	free(report);
}

enum { CROWD_NODES = 256, EACH = 16, CROWD = CROWD_NODES * EACH };

/* A job of many nodes with 16 workers each. */
struct crowd {
	struct node nodes[CROWD_NODES];
	struct outcome o[CROWD];
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
			STOPPED(SIGTERM, 2),
			BY_SIGNAL(SIGTERM),
			RAN(1, 2.01) };
	c->o[20] = (struct outcome){
		.rank = 20, .local_rank = 4, .node = 1, .pid = 120, BY_EXIT(1), RAN(1, 2)
	};
	c->r = (struct result){ .outcomes = c->o,
		.count = (size_t)nodes * EACH,
		.cause = cause_of_failure(&c->o[20]),
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
	"launchd: error: root cause: rank 20 (local rank 4, pid 120) on gpu01 (node 1): exit " \
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
		"41-49, 51-63): ended by launchd's SIGTERM within 0.01 s\n"
		"launchd: note: ranks 112-127 (node 7, gpu07): still running 30.0 s after "
		"launchd's "
		"SIGTERM: killed by SIGKILL\n"
		"launchd: note: ranks 640-655, 800-815 (nodes 40, 50): unknown: the nodes were "
		"lost\n"
		"launchd: note: nodes 40, 50 were lost\n"
		"launchd: note: ranks 3, 5, 17, 1000 (nodes 0, 1, 62) had not joined the store\n");
	free(text);
	free(c);
}

/* A culprit, two victims that lost it as a peer, and the rest. */
static void test_culprit_and_victims(void **state)
{
	static struct outcome o[32];
	static const struct node nodes[] = { { .name = "gpu06" }, { .name = "gpu07" },
		{ .name = "gpu08" }, { .name = "gpu09" } };
	struct result r = {
		.outcomes = o, .count = 32, .started_ns = S(1), .nodes = nodes, .node_count = 4
	};
	char *text;

	(void)state;
	for (unsigned i = 0; i < 32; i++)
		o[i] = (struct outcome){ .rank = i,
			.local_rank = i % 8,
			.node = i / 8,
			.pid = (pid_t)(4702 + i),
			STOPPED(SIGTERM, 13.5),
			BY_SIGNAL(SIGTERM),
			RAN(1, 13.51) };
	o[31].ended_ns = S(13.55);
	o[10].asked = o[11].asked = o[12].asked = ASKED_NOTHING;
	o[10].asked_signal = o[11].asked_signal = o[12].asked_signal = 0;
	o[10].end = o[11].end = o[12].end = (struct ending){ ENDED_EXIT, 1, false };
	o[10].blames = o[12].blames = BLAMES_A_PEER;
	o[11].ended_ns = S(13.3);
	o[10].ended_ns = S(13.31);
	o[12].ended_ns = S(13.32);
	r.cause = cause_of_failure(&o[11]);
	text = report_made((struct report_input){ .result = &r, .command = "x" }, report_text);
	assert_string_equal(text,
		"launchd: error: root cause: rank 11 (local rank 3, pid 4713) on gpu07 (node "
		"1): exit code 1 after 12.3 s\n"
		"launchd: error: command: x\n"
		"launchd: note: ranks 10, 12 (node 1, gpu07): lost a peer and failed 0.01 s to "
		"0.02 s "
		"later: exit code 1\n"
		"launchd: note: ranks 0-9, 13-31 (nodes 0-3): ended by launchd's SIGTERM within "
		"0.05 s\n");
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

	for (unsigned i = 0; i < CROWD; i++) {
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
	if (c->r.cause.kind == CAUSE_FAILURE)
		c->r.cause = cause_of_failure(&c->o[seed]);
}

static void test_bounded(void **state)
{
	enum { LINES_MAX = 90, BYTES_MAX = 32768 };
	static unsigned waiting[CROWD];

	(void)state;
	for (unsigned i = 0; i < CROWD; i++)
		waiting[i] = i / 3 * 5;
	for (unsigned seed = 0; seed < (SANITIZED ? 7 : 21); seed++) {
		struct crowd *c = crowd_make(CROWD_NODES);
		size_t lines = 0;
		char *text;

		scatter(c, seed);
		text = report_made((struct report_input){ .result = &c->r,
					   .max_restarts = 3,
					   .waiting = waiting,
					   .waiting_count = CROWD },
			report_text);
		for (const char *p = text; *p; p++)
			lines += *p == '\n';
		assert_in_range(lines, 40, LINES_MAX);
		assert_in_range(strlen(text), 1, BYTES_MAX);
		free(text);
		free(c);
	}
}

TESTS(others)
{
	static struct suite s;

	suite_add(&s, "equal stories share a line", test_many, NULL, NULL);
	suite_add(&s, "the one that all waited for", test_straggler, NULL, NULL);
	suite_add(&s, "a long list of ranks is cut", test_many_ranges, NULL, NULL);
	suite_add(&s, "512 stories are not 512 lines", test_many_stories, NULL, NULL);
	suite_add(&s, "1,024 workers on 64 nodes", test_64_nodes, NULL, NULL);
	suite_add(&s, "a culprit, its victims, and the rest", test_culprit_and_victims, NULL, NULL);
	suite_add(&s, "whoever the store waits for", test_one_node_waits, NULL, NULL);
	suite_add(&s, "4,096 workers are a bounded report", test_bounded, NULL, NULL);
	return suite_run(&s);
}
