/* test_reporter.c - what the user reads of each thing that happens. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/text.h"
#include "common/vec.h"
#include "daemon/job/job_end.h"
#include "daemon/observe/bus.h"
#include "daemon/observe/reporter.h"
#include "daemon/observe/say.h"
#include "daemon/plan/plan.h"
#include "tests/unit/json.h"

#define VERDICT "root cause: rank 1 (local rank 0, pid 11) on far (node 1): exit code 3"

/* A reporter of a plan whose job has two nodes of one worker each; this one is node 0, or 1. */
struct listening {
	struct bus bus;
	struct reporter reporter;
	struct arena arena;
	struct vec args;
	struct plan plan;
	struct outcome outcomes[2];
	struct node nodes[2];
	struct result all; /* of the whole job: rank 1 has failed */
	struct run_end end;
	struct text said;
};

static void take(void *owner, const char *bytes, size_t len)
{
	text_add_bytes(owner, bytes, len);
}

static void listen_as(struct listening *l, unsigned node_rank)
{
	*l = (struct listening){
		.plan = { .script = "./train",
			.args = &l->args,
			.use_env = true,
			.nnodes = 2,
			.node_rank = node_rank,
			.start_first = 0,
			.start_count = 1,
			.output.tail_lines = 20 },
		.outcomes = { { .rank = 0,
				      .node = 0,
				      .pid = 10,
				      .started_ns = 1,
				      .ended_ns = 5000000000,
				      .end = { ENDED_EXIT, 4, false } },
			{ .rank = 1,
				.node = 1,
				.pid = 11,
				.started_ns = 1,
				.ended_ns = 2000000000,
				.end = { ENDED_EXIT, 3, false } } },
		.nodes = { { .name = "near" }, { .name = "far" } },
		.reporter = { .hostname = "near", .least = NOTE_INFO },
	};
	l->reporter.arena = &l->arena;
	l->reporter.plan = &l->plan;
	l->all = (struct result){ .outcomes = l->outcomes,
		.count = 2,
		.nodes = l->nodes,
		.node_count = 2,
		.cause = { .kind = CAUSE_FAILURE, .culprit = l->outcomes[1], .node = 1 } };
	l->end.own = (struct result){ .outcomes = &l->outcomes[node_rank],
		.count = 1,
		.cause = { .kind = CAUSE_FAILURE, .culprit = l->outcomes[node_rank] } };
	l->end.job.verdict = (struct verdict){ .exit_code = 3, .cause = l->all.cause };
	(void)snprintf(l->end.job.verdict.text, VERDICT_TEXT_SIZE, "%s", VERDICT);
	say_through(take, &l->said);
	reporter_start(&l->reporter, &l->bus);
}

static void end_job(struct listening *l)
{
	bus_emit(&l->bus, &(struct event){ .kind = EVENT_JOB_ENDED, .job_ended = { 3, &l->end } });
}

static void stop_listening(struct listening *l)
{
	say_through(NULL, NULL);
	text_done(&l->said);
	arena_done(&l->arena);
}

static const struct note_row {
	const char *says;
	enum note_level least, level;
	const char *said;
} notes[] = {
	{ "a note is said", NOTE_INFO, NOTE_INFO, "launchd: note: x\n" },
	{ "a warning is said", NOTE_INFO, NOTE_WARNING, "launchd: warning: x\n" },
	{ "what only --verbose wants is not", NOTE_INFO, NOTE_VERBOSE, "" },
	{ "with --verbose it is", NOTE_VERBOSE, NOTE_VERBOSE, "launchd: note: x\n" },
	{ "what is less than wanted is not", NOTE_WARNING, NOTE_INFO, "" },
	{ "just what is wanted is", NOTE_WARNING, NOTE_WARNING, "launchd: warning: x\n" },
};

static void test_notes(void **state)
{
	const struct note_row *row = *state;
	struct listening l;

	listen_as(&l, 0);
	l.reporter.least = row->least;
	bus_note(&l.bus, row->level, "x");
	assert_string_equal(text_string(&l.said), row->said);
	stop_listening(&l);
}

static void test_say(void **state)
{
	struct listening l;

	(void)state;
	listen_as(&l, 0);
	reporter_say(&l.reporter, true, "a");
	reporter_say(&l.reporter, false, "b");
	l.reporter.least = NOTE_WARNING;
	reporter_say(&l.reporter, true, "c");
	reporter_say(&l.reporter, false, "d");
	assert_string_equal(text_string(&l.said),
		"launchd: warning: a\nlaunchd: note: b\nlaunchd: warning: c\n");
	stop_listening(&l);
}

static void test_worker_started(void **state)
{
	const struct outcome o = { .rank = 5, .local_rank = 2, .attempt = 1, .pid = 77 };
	const struct event e = { .kind = EVENT_WORKER_STARTED, .worker = &o };
	struct listening l;

	(void)state;
	listen_as(&l, 0);
	bus_emit(&l.bus, &e);
	assert_int_equal(l.said.len, 0);
	l.reporter.least = NOTE_VERBOSE;
	bus_emit(&l.bus, &e);
	assert_contains(text_string(&l.said), "started rank 5 (local rank 2, attempt 1, pid 77)\n");
	stop_listening(&l);
}

static void test_unfinished(void **state)
{
	const struct outcome some[] = {
		{ .rank = 0, .pid = 1, .ended_ns = 1000000000, .end = { ENDED_EXIT, 0, false } },
		{ .rank = 1, .pid = 2 },
	};
	struct event e = {
		.kind = EVENT_UNFINISHED, .at_ns = 3000000000, .unfinished = { some, 2 }
	};
	struct listening l;

	(void)state;
	listen_as(&l, 0);
	bus_emit(&l.bus, &e);
	assert_string_equal(text_string(&l.said),
		"launchd: note: rank 0 ended with exit code 0, 2.00 s ago; rank 1 (pid 2) is "
		"still running\n");
	l.said.len = 0;
	e.unfinished.count = 1; /* who is done, and nobody else */
	bus_emit(&l.bus, &e);
	assert_int_equal(l.said.len, 0);
	stop_listening(&l);
}

/* The plan that counts is the one with which the job has started; so does the node in JSON. */
static void test_job_started(void **state)
{
	struct plan final;
	struct listening l;

	(void)state;
	listen_as(&l, 0);
	final = l.plan;
	final.node_rank = 1;
	bus_emit(&l.bus,
		&(struct event){ .kind = EVENT_JOB_STARTED, .job_started = { &final, "near" } });
	assert_ptr_equal(l.reporter.plan, &final);
	stop_listening(&l);
}

/* Who has heard all nodes reports all of it. */
static void test_whole_report(void **state)
{
	struct listening l;

	(void)state;
	listen_as(&l, 0);
	l.end.job.result = &l.all;
	end_job(&l);
	assert_contains(text_string(&l.said),
		"launchd: error: root cause: rank 1 (local rank 0, pid 11) on far (node 1): exit "
		"code 3 after 2.00 s\n");
	assert_contains(text_string(&l.said), "rank 0 (local rank 0, pid 10)");
	stop_listening(&l);
}

/* Who is told the verdict says no more than that. */
static void test_verdict_only(void **state)
{
	struct listening l;

	(void)state;
	listen_as(&l, 0);
	end_job(&l);
	assert_string_equal(text_string(&l.said), "launchd: error: " VERDICT "\n");
	stop_listening(&l);
}

static const struct joined_row {
	const char *says;
	struct cause cause;
	bool alone;
	const char *said;
} joineds[] = {
	{ "a failure is another node's to report",
		{ .kind = CAUSE_FAILURE, .culprit.rank = 1, .node = 1 }, false,
		"launchd: error: rank 1 on node 1 failed: node 0 reports\n" },
	{ "so is a node that was lost", { .kind = CAUSE_NODE_LOST, .node = 2 }, false,
		"launchd: error: a node was lost: node 0 reports\n" },
	{ "and a signal", { .kind = CAUSE_SIGNAL, .signal = SIGTERM }, false,
		"launchd: error: launchd received SIGTERM: node 0 reports\n" },
	{ "but not where node 0 has gone", { .kind = CAUSE_NODE_LOST, .host = "near" }, true,
		"launchd: error: root cause: node 0 (near) was lost" },
};

/* mpirun and srun show all nodes' words in one place. */
static void test_joined(void **state)
{
	const struct joined_row *row = *state;
	struct listening l;

	listen_as(&l, 1);
	l.plan.output.joined = true;
	l.end.job.alone = row->alone;
	l.end.job.verdict.cause = row->cause;
	end_job(&l);
	assert_memory_equal(text_string(&l.said), row->said, strlen(row->said));
	assert_int_equal(strstr(text_string(&l.said), "root cause") != NULL, row->alone);
	stop_listening(&l);
}

/* Who has lost node rank 0 reports its own, and its own first failure besides another's. */
static void test_alone(void **state)
{
	bool elsewhere = *state != NULL;
	struct listening l;
	const char *own;

	listen_as(&l, 0);
	l.end.job.alone = true;
	if (!elsewhere)
		l.end.job.verdict.cause = l.end.own.cause;
	else
		l.end.job.verdict.cause =
			(struct cause){ .kind = CAUSE_NODE_LOST, .node = 1, .host = "far" };
	l.end.own_culprit.words = (struct last_words){ .lines = "my last words" };
	end_job(&l);
	own = strstr(text_string(&l.said), "my last words");
	assert_non_null(own);
	assert_null(strstr(own + 1, "my last words"));
	assert_contains(text_string(&l.said),
		elsewhere ? "first failure on this node: rank 0 " :
			    "launchd: error: root cause: rank 0 ");
	if (elsewhere)
		assert_contains(text_string(&l.said), "root cause: node 1 (far) was lost");
	stop_listening(&l);
}

static void test_success(void **state)
{
	struct listening l;

	(void)state;
	listen_as(&l, 0);
	l.end.job.verdict = (struct verdict){ .well = true };
	end_job(&l);
	assert_int_equal(l.said.len, 0);
	l.reporter.least = NOTE_VERBOSE;
	end_job(&l);
	assert_string_equal(
		text_string(&l.said), "launchd: note: all workers exited with code 0\n");
	stop_listening(&l);
}

static void test_no_job(void **state)
{
	struct listening l;

	(void)state;
	listen_as(&l, 0);
	bus_emit(&l.bus, &(struct event){ .kind = EVENT_JOB_ENDED, .job_ended = { 2, NULL } });
	assert_int_equal(l.said.len, 0);
	stop_listening(&l);
}

/* The first process of this launcher was killed: who knows no cause has nothing to say. */
static void test_killed(void **state)
{
	struct listening l;
	const struct event e = { .kind = EVENT_KILLED, .killed = &l.end };

	(void)state;
	listen_as(&l, 0);
	l.end.own_culprit.words = (struct last_words){ .lines = "my last words" };
	bus_emit(&l.bus, &e);
	assert_contains(text_string(&l.said), "launchd: note: launchd was killed, as mpirun");
	assert_contains(text_string(&l.said), "root cause: rank 0");
	assert_contains(text_string(&l.said), "my last words");
	l.said.len = 0;
	l.end.own.cause = (struct cause){ .kind = CAUSE_NONE };
	bus_emit(&l.bus, &e);
	assert_int_equal(l.said.len, 0);
	stop_listening(&l);
}

/* The line of the root cause comes once, where both reports name the same one. */
static void test_killed_before_the_end(void **state)
{
	struct listening l;

	(void)state;
	for (unsigned culprit = 0; culprit < 2; culprit++) {
		listen_as(&l, 0);
		l.end.own.cause.culprit = l.outcomes[culprit];
		l.end.job.result = &l.all;
		bus_emit(&l.bus, &(struct event){ .kind = EVENT_KILLED, .killed = &l.end });
		l.said.len = 0;
		end_job(&l);
		if (culprit == 0)
			assert_contains(text_string(&l.said), "root cause: rank 1");
		else
			assert_null(strstr(text_string(&l.said), "root cause"));
		assert_contains(text_string(&l.said), "rank 0 (local rank 0, pid 10) on near");
		stop_listening(&l);
	}
}

static void test_restart(void **state)
{
	struct listening l;

	(void)state;
	listen_as(&l, 0);
	l.plan.max_restarts = 2;
	l.end.job.result = &l.all;
	bus_emit(&l.bus,
		&(struct event){ .kind = EVENT_RESTART, .restart = { 1, 1500, &l.end.job } });
	assert_contains(text_string(&l.said), "rank 1");
	assert_contains(text_string(&l.said), "restart 1 of at most 2");
	assert_contains(text_string(&l.said), "1.50 s");
	stop_listening(&l);
}

/* --report: the file is written where any worker was started here, or all is known. */
static void test_file(void **state)
{
	char path[] = "/tmp/launchd_reporter_XXXXXX";
	static char json[1 << 16];
	struct listening l;
	long len;

	(void)state;
	assert_non_null(mkdtemp(path));
	listen_as(&l, 0);
	l.plan.report_path = arena_printf(&l.arena, "%s/report", path);
	l.end.own.count = 0;
	end_job(&l); /* nothing was started, and nothing is known */
	assert_int_equal(access(l.plan.report_path, F_OK), -1);
	l.end.own.count = 1;
	end_job(&l);
	len = fd_read_file(l.plan.report_path, json, sizeof json);
	assert_true(len > 0);
	assert_true(json_is_valid(json, (size_t)len));
	assert_contains(json, VERDICT);
	assert_int_equal(unlink(l.plan.report_path), 0);
	l.end.own.count = 0;
	l.end.job.result = &l.all;
	end_job(&l);
	assert_int_equal(unlink(l.plan.report_path), 0);
	assert_int_equal(rmdir(path), 0);
	l.said.len = 0;
	end_job(&l); /* where there is no directory any more */
	assert_contains(text_string(&l.said), "launchd: warning: ");
	assert_contains(text_string(&l.said), l.plan.report_path);
	stop_listening(&l);
}

TESTS(reporter)
{
	static struct suite s;
	static bool yes = true;

	SUITE_ROWS(&s, test_notes, notes);
	suite_add(&s, "what another thread has to say", test_say, NULL, NULL);
	suite_add(&s, "a worker has started, for --verbose", test_worker_started, NULL, NULL);
	suite_add(&s, "some are done, and others still run", test_unfinished, NULL, NULL);
	suite_add(&s, "the job starts by another plan", test_job_started, NULL, NULL);
	suite_add(&s, "all of a job is reported", test_whole_report, NULL, NULL);
	suite_add(&s, "another node reports it", test_verdict_only, NULL, NULL);
	SUITE_ROWS(&s, test_joined, joineds);
	suite_add(&s, "nobody else reports this node's culprit", test_alone, NULL, NULL);
	suite_add(&s, "nobody else reports it, and the cause is elsewhere", test_alone, NULL, NULL);
	s.at[s.count - 1].initial_state = &yes;
	suite_add(&s, "a job that ended well", test_success, NULL, NULL);
	suite_add(&s, "no job was run", test_no_job, NULL, NULL);
	suite_add(&s, "launchd's first process is killed", test_killed, NULL, NULL);
	suite_add(&s, "the same root cause after that", test_killed_before_the_end, NULL, NULL);
	suite_add(&s, "a restart", test_restart, NULL, NULL);
	suite_add(&s, "a report's file", test_file, NULL, NULL);
	return suite_run(&s);
}
