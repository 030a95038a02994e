/* test_bulletin.c - what systemd is told of each thing that happens. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "daemon/job/job_end.h"
#include "daemon/observe/event.h"
#include "daemon/plan/plan.h"
#include "daemon/service/bulletin.h"

/* A run of two workers on node 0 of `nodes`, and what was said of the latest event. */
struct run_of_two {
	struct arena arena;
	struct plan plan;
	struct bulletin bulletin;
	struct text out;
};

static void begin(struct run_of_two *r, unsigned nodes, bool rank_known)
{
	*r = (struct run_of_two){ .plan = { .nnodes = nodes, .start_count = 2 } };
	r->plan.reactions.of[15] = (struct reaction){ .kind = REACTION_END, .grace_ms = 5000 };
	r->plan.reactions.of[10] = (struct reaction){ .kind = REACTION_FORWARD };
	bulletin_begin(&r->bulletin, &r->plan, nodes > 1, rank_known, &r->arena, &r->out);
}

static void expect(struct run_of_two *r, const char *lines)
{
	assert_string_equal(text_string(&r->out), lines);
	text_done(&r->out);
}

static void tell(struct run_of_two *r, const struct event *e, const char *lines)
{
	bulletin_take(&r->bulletin, e, &r->out);
	expect(r, lines);
}

static void tell_node(struct run_of_two *r, bool lost, unsigned rank, const char *lines)
{
	tell(r,
		&(struct event){ .kind = lost ? EVENT_NODE_LOST : EVENT_NODE_JOINED,
			.other = { rank, "gpu", "it\nis gone" } },
		lines);
}

static void tell_worker(
	struct run_of_two *r, enum event_kind kind, struct outcome o, const char *lines)
{
	tell(r, &(struct event){ .kind = kind, .worker = &o }, lines);
}

static void start(struct run_of_two *r)
{
	const struct outcome o = { .pid = 7 };

	tell(r, &(struct event){ .kind = EVENT_JOB_STARTED, .job_started = { &r->plan, "n" } }, "");
	tell(r, &(struct event){ .kind = EVENT_ATTEMPT_STARTED },
		"STATUS=attempt 0: starting 2 workers\n");
	tell_worker(r, EVENT_WORKER_STARTED, o, "");
	bulletin_take(&r->bulletin, &(struct event){ .kind = EVENT_WORKER_STARTED, .worker = &o },
		&r->out);
}

static void end(struct run_of_two *r)
{
	text_done(&r->out);
	arena_done(&r->arena);
}

static void test_meeting(void **state)
{
	struct run_of_two r;

	(void)state;
	begin(&r, 3, true);
	expect(&r, "STATUS=waiting for 2 of 3 nodes: nodes 1, 2\n");
	tell_node(&r, false, 2, "STATUS=waiting for 1 of 3 nodes: node 1\n");
	tell_node(&r, true, 2, "STATUS=waiting for 2 of 3 nodes: nodes 1, 2\n");
	tell_node(&r, false, 9, "");
	end(&r);
	begin(&r, 3, false);
	expect(&r, "STATUS=waiting for the job's 3 nodes to meet\n");
	tell_node(&r, false, 2, "");
	end(&r);
	begin(&r, 1, true);
	expect(&r, "STATUS=starting\n");
	end(&r);
}

static void test_names(void **state)
{
	static const char *names[40];
	struct run_of_two r;

	(void)state;
	for (unsigned i = 0; i < 40; i++)
		names[i] = "a-host-of-some-length";
	names[1] = "gpu02";
	names[2] = "gpu03";
	r = (struct run_of_two){ .plan = { .nnodes = 3, .node_names = names } };
	bulletin_begin(&r.bulletin, &r.plan, true, true, &r.arena, &r.out);
	expect(&r, "STATUS=waiting for 2 of 3 nodes: gpu02 (node 1), gpu03 (node 2)\n");
	tell_node(&r, false, 1, "STATUS=waiting for 1 of 3 nodes: gpu03 (node 2)\n");
	end(&r);
	r = (struct run_of_two){ .plan = { .nnodes = 40, .node_names = names } };
	bulletin_begin(&r.bulletin, &r.plan, true, true, &r.arena, &r.out);
	assert_contains(text_string(&r.out), ", a-host-of-some-length (node 7) and 32 more\n");
	assert_in_range(
		r.out.len, BULLETIN_STATUS_MAX - 40, strlen("STATUS=\n") + BULLETIN_STATUS_MAX);
	end(&r);
}

static void test_ready(void **state)
{
	struct run_of_two r;

	(void)state;
	begin(&r, 1, true);
	text_done(&r.out);
	start(&r);
	expect(&r, "READY=1\nSTATUS=attempt 0: 2 of 2 workers running\n");
	tell_worker(&r, EVENT_WORKER_ENDED,
		(struct outcome){ .pid = 7, .end = { ENDED_EXIT, 3, false } },
		"STATUS=attempt 0: 1 of 2 workers running, 1 failed\n");
	/* another attempt: ready is said once */
	tell(&r, &(struct event){ .kind = EVENT_ATTEMPT_STARTED, .attempt_started = { 1, "a", 1 } },
		"STATUS=attempt 1: starting 2 workers\n");
	tell_worker(&r, EVENT_WORKER_STARTED, (struct outcome){ .pid = 8 }, "");
	tell_worker(&r, EVENT_WORKER_STARTED, (struct outcome){ .pid = 9 },
		"STATUS=attempt 1: 2 of 2 workers running\n");
	end(&r);
}

static void test_ready_joined(void **state)
{
	const struct event joined = { .kind = EVENT_WORKERS_JOINED };
	struct run_of_two r;

	(void)state;
	begin(&r, 1, true);
	r.plan.ready_joined = true;
	text_done(&r.out);
	start(&r);
	expect(&r, "STATUS=attempt 0: 2 of 2 workers running, not all have joined the store\n");
	tell(&r, &joined, "READY=1\nSTATUS=attempt 0: 2 of 2 workers running\n");
	end(&r);
	begin(&r, 1, true); /* too late */
	r.plan.ready_joined = true;
	r.bulletin.stopping = true;
	text_done(&r.out);
	tell(&r, &joined, "");
	end(&r);
}

static void test_unstarted(void **state)
{
	struct run_of_two r;

	(void)state;
	begin(&r, 1, true);
	text_done(&r.out);
	for (int i = 0; i < 3; i++)
		tell_worker(&r, EVENT_WORKER_STARTED, (struct outcome){ .pid = 0 }, "");
	tell(&r, &(struct event){ .kind = EVENT_JOB_ENDED, .job_ended = { 1, NULL } },
		"STOPPING=1\nSTATUS=ended with exit code 1: no worker was started\n");
	end(&r);
}

static void test_check(void **state)
{
	const struct event check = { .kind = EVENT_CHECK_STARTED,
		.check_started = { 0, "quick, links", 28000 } };
	struct run_of_two r;

	(void)state;
	begin(&r, 1, true);
	text_done(&r.out);
	tell(&r, &check,
		"EXTEND_TIMEOUT_USEC=88000000\n"
		"STATUS=attempt 0: checking nodes (quick, links) before the workers start\n");
	tell(&r, &(struct event){ .kind = EVENT_CHECK_ENDED, .check_ended = { .nodes = 1 } }, "");
	r.bulletin.ready = true; /* before a restart */
	tell(&r, &check,
		"STATUS=attempt 0: checking nodes (quick, links) before the workers start\n");
	end(&r);
}

static void test_stop(void **state)
{
	const struct cause failure = { .kind = CAUSE_FAILURE };
	const struct cause restart = { .kind = CAUSE_RESTART };
	const struct cause lost = { .kind = CAUSE_NODE_LOST };
	struct run_of_two r;

	(void)state;
	begin(&r, 2, true);
	text_done(&r.out);
	start(&r);
	text_done(&r.out);
	tell(&r, &(struct event){ .kind = EVENT_SIGNAL_RECEIVED, .received = { 10, NULL, "" } },
		"");
	tell(&r, &(struct event){ .kind = EVENT_STOP, .stop = { &failure, "stop", 15, 1500 } },
		"STATUS=a worker failed; the workers have 1.5 s to end\n");
	tell(&r, &(struct event){ .kind = EVENT_STOP, .stop = { &restart, "stop", 15, 1500 } },
		"STATUS=a restart was requested; the workers have 1.5 s to end\n");
	tell_node(&r, true, 1,
		"STATUS=lost node 1 (gpu): it\\x0ais gone; attempt 0: 2 of 2 workers running on "
		"node 0 of 2 nodes\n");
	tell(&r, &(struct event){ .kind = EVENT_STOP, .stop = { &lost, "stop", 15, 2000 } },
		"STOPPING=1\nEXTEND_TIMEOUT_USEC=62000000\n"
		"STATUS=a node was lost; the workers have 2 s to end\n");
	tell(&r, &(struct event){ .kind = EVENT_SIGNAL_RECEIVED, .received = { 15, NULL, "" } },
		"EXTEND_TIMEOUT_USEC=65000000\n");
	tell(&r,
		&(struct event){
			.kind = EVENT_VERDICT, .verdict = { 0, 125, "lost", NULL, NULL, NULL } },
		"EXTEND_TIMEOUT_USEC=60000000\nSTATUS=ended with exit code 125: lost\n");
	end(&r);
}

static void test_bounded(void **state)
{
	struct job_end over = { .why_not = "" };
	struct run_of_two r;

	(void)state;
	memset(over.verdict.text, 'x', sizeof over.verdict.text - 1);
	begin(&r, 1, true);
	text_done(&r.out);
	bulletin_take(&r.bulletin,
		&(struct event){ .kind = EVENT_RESTART, .restart = { 1, 500, &over } }, &r.out);
	assert_contains(
		text_string(&r.out), "STATUS=attempt 1 starts in 0.5 s; the one before: xxx");
	assert_int_equal(r.out.len, strlen("STATUS=\n") + BULLETIN_STATUS_MAX);
	end(&r);
}

static void test_watchdog(void **state)
{
	(void)state;
	assert_int_equal(bulletin_watchdog_ms("60000000", "7", 7), 30000);
	assert_int_equal(bulletin_watchdog_ms("60000000", NULL, 7), 30000);
	assert_int_equal(bulletin_watchdog_ms("60000000", "8", 7), 0);
	assert_int_equal(bulletin_watchdog_ms("60000000", "x", 7), 0);
	assert_int_equal(bulletin_watchdog_ms("1", "7", 7), 1);
	assert_int_equal(bulletin_watchdog_ms("0", "7", 7), 0);
	assert_int_equal(bulletin_watchdog_ms(NULL, "7", 7), 0);
}

TESTS(bulletin)
{
	static struct suite s;

	suite_add(&s, "the nodes that are awaited are named", test_meeting, NULL, NULL);
	suite_add(&s, "... by name, as many as find room", test_names, NULL, NULL);
	suite_add(&s, "ready once, when all workers have started", test_ready, NULL, NULL);
	suite_add(
		&s, "ready when all have joined, if that is wished", test_ready_joined, NULL, NULL);
	suite_add(&s, "never ready where no worker was started", test_unstarted, NULL, NULL);
	suite_add(&s, "nodes are checked", test_check, NULL, NULL);
	suite_add(&s, "stopping, and time for the grace", test_stop, NULL, NULL);
	suite_add(&s, "a status has a limit", test_bounded, NULL, NULL);
	suite_add(&s, "whose watchdog, and how often", test_watchdog, NULL, NULL);
	return suite_run(&s);
}
