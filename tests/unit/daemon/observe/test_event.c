/* test_event.c - the lines of --events. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "daemon/job/ending.h"
#include "daemon/job/job_end.h"
#include "daemon/observe/event.h"
#include "daemon/plan/plan.h"
#include "tests/unit/json.h"

#define S(seconds) ((uint64_t)((seconds)*1e9))
#define HEAD(name) \
	"{\"v\":1,\"event\":\"" name "\",\"mono_ns\":5000000000," \
	"\"time\":\"2025-11-21T06:19:59.345678Z\",\"node\":2,"

/* two seconds after the events */
static const struct event_frame frame = { true, 2, S(7), 1763706001345678901 };

static const char *arguments[] = { "a b", "--x=\"\x01\xff\"", NULL };
static const struct vec args = { arguments, 2, 3 };
static const struct vec no_args = { NULL, 0, 0 };
static const struct plan plan = { .run_id = "run \"7\"",
	.nnodes = 4,
	.nproc = 8,
	.first_rank = 16,
	.world_size = 32,
	.max_restarts = 3,
	.script = "train.py",
	.args = &args };
static const struct plan bare = {
	.script = "x", .nnodes = 1, .nproc = 1, .world_size = 1, .args = &no_args
};

static const struct outcome started = {
	.rank = 17, .local_rank = 1, .attempt = 2, .pid = 4711, .started_ns = S(5)
};
static const struct outcome failed = { .rank = 17,
	.local_rank = 1,
	.pid = 4711,
	.end = { ENDED_EXIT, 7, false },
	.started_ns = S(3.5),
	.ended_ns = S(5) };
static const struct outcome dumped = {
	.pid = 4711, .end = { ENDED_SIGNAL, SIGSEGV, true }, .started_ns = S(4), .ended_ns = S(5)
};
static const struct outcome unstarted = {
	.rank = 1, .end = { ENDED_UNSTARTED, ENOENT, false }, .started_ns = S(4), .ended_ns = S(5)
};

static const struct sender shell = { 812, 1000, false, "ba\"sh" };
static const struct sender nobody = { 0, 0, false, "" };

static const struct run_end ended = {
	.job.goodput = { .attempts = 2,
		.total_ns = 160000000000,
		.running_ns = 138000000000,
		.startup_ns = 2000000000,
		.ending_ns = 500000000,
		.lost = { [CAUSE_FAILURE] = { 1, 19500000000, 4250000000 } },
		.knows_steps = true },
};
static const struct cause by_failure = { .kind = CAUSE_FAILURE, .node = 1 };
static const struct cause by_signal = { .kind = CAUSE_SIGNAL, .signal = SIGTERM };
static const struct cause by_watch = { .kind = CAUSE_PREEMPTED, .node = 3 };
static const struct cause by_usr2 = { .kind = CAUSE_PREEMPTED, .signal = SIGUSR2 };
static const struct cause by_bad = { .kind = CAUSE_BAD_NODE, .exclude = "gpu07,gpu\"12" };
static const struct cause by_loss = { .kind = CAUSE_NODE_LOST, .node = 3, .detail = "\"silent\"" };

#define WORKER(rank, local, attempt) \
	"\"rank\":" rank ",\"local_rank\":" local ",\"attempt\":" attempt ",\"pid\":4711"

static struct past_attempt past[] = { { .reason = "restart 1 of at most 3" },
	{ .attempt = 1, .reason = "restart 2 of at most 3" } };
static const struct job_end failed_twice = { .verdict.cause = { .kind = CAUSE_FAILURE,
						     .exclude = "gpu07" },
	.past = { .at = past, .total = 2 } };

/* How workers end, and who sends signals, is test_outcome_json.c's. */
/* clang-format off */
static const struct row {
	const char *says;
	struct event e;
	const char *line; /* without the closing brace and newline */
} rows[] = {
	{ "job_started", { EVENT_JOB_STARTED, S(5), .job_started = { &plan, "gpu\n07" } },
		HEAD("job_started") "\"run_id\":\"run \\\"7\\\"\",\"launchd\":\"" LAUNCHD_VERSION
		"\",\"host\":\"gpu\\u000a07\",\"nnodes\":4,\"nproc_per_node\":8,\"first_rank\":16,"
		"\"world_size\":32,\"max_restarts\":3,"
		"\"command\":[\"train.py\",\"a b\",\"--x=\\\"\\u0001\\ufffd\\\"\"]" },
	{ "a job without an id and arguments", { EVENT_JOB_STARTED, S(5),
			.job_started = { &bare, "h" } },
		HEAD("job_started") "\"run_id\":null,\"launchd\":\"" LAUNCHD_VERSION
		"\",\"host\":\"h\",\"nnodes\":1,\"nproc_per_node\":1,\"first_rank\":0,"
		"\"world_size\":1,\"max_restarts\":0,\"command\":[\"x\"]" },
	{ "attempt_started", { EVENT_ATTEMPT_STARTED, S(5),
			.attempt_started = { 1, "10.0.0.4", 29500 } },
		HEAD("attempt_started")
		"\"attempt\":1,\"master_addr\":\"10.0.0.4\",\"master_port\":29500" },
	{ "worker_started", { EVENT_WORKER_STARTED, S(5), .worker = &started },
		HEAD("worker_started") WORKER("17", "1", "2") },
	{ "worker_ended by an exit code", { EVENT_WORKER_ENDED, S(5), .worker = &failed },
		HEAD("worker_ended") WORKER("17", "1", "0") ",\"how\":\"exit\",\"exit_code\":7,"
		"\"signal\":null,\"error\":null,\"core_dumped\":false,\"oom\":\"no\",\"oom_limit\":null,\"oom_limit_bytes\":null,"
		"\"ended_by_launchd\":false,\"killed_by_launchd\":false,\"asked_signal\":null,"
		"\"seconds\":1.500000" },
	{ "worker_ended by a signal", { EVENT_WORKER_ENDED, S(5), .worker = &dumped },
		HEAD("worker_ended") WORKER("0", "0", "0") ",\"how\":\"signal\",\"exit_code\":null,"
		"\"signal\":\"SIGSEGV\",\"error\":null,\"core_dumped\":true,\"oom\":\"no\",\"oom_limit\":null,\"oom_limit_bytes\":null,"
		"\"ended_by_launchd\":false,\"killed_by_launchd\":false,\"asked_signal\":null,"
		"\"seconds\":1.000000" },
	{ "worker_ended before it began", { EVENT_WORKER_ENDED, S(5), .worker = &unstarted },
		HEAD("worker_ended") "\"rank\":1,\"local_rank\":0,\"attempt\":0,\"pid\":null,"
		"\"how\":\"not_startable\",\"exit_code\":null,\"signal\":null,"
		"\"error\":\"No such file or directory\",\"core_dumped\":false,\"oom\":\"no\",\"oom_limit\":null,\"oom_limit_bytes\":null,"
		"\"ended_by_launchd\":false,\"killed_by_launchd\":false,\"asked_signal\":null,"
		"\"seconds\":1.000000" },
	{ "signal_received", { EVENT_SIGNAL_RECEIVED, S(5),
			.received = { SIGUSR1, &shell, "forward" } },
		HEAD("signal_received") "\"signal\":\"SIGUSR1\",\"sender\":{\"pid\":812,\"uid\":1000,"
		"\"command\":\"ba\\\"sh\",\"kernel\":false},\"reaction\":\"forward\"" },
	{ "signal_received from nobody", { EVENT_SIGNAL_RECEIVED, S(5),
			.received = { 37, &nobody, "ignore" } },
		HEAD("signal_received") "\"signal\":\"SIGRTMIN+3\",\"sender\":null,"
		"\"reaction\":\"ignore\"" },
	{ "signal_forwarded", { EVENT_SIGNAL_FORWARDED, S(5), .forwarded = SIGUSR2 },
		HEAD("signal_forwarded") "\"signal\":\"SIGUSR2\"" },
	{ "stop for a failure", { EVENT_STOP, S(5),
			.stop = { &by_failure, EVENT_STOP_STOP, SIGTERM, 30000 } },
		HEAD("stop") "\"urgency\":\"stop\",\"cause\":\"failure\",\"cause_node\":1,"
		"\"cause_signal\":null,\"detail\":null,\"signal\":\"SIGTERM\","
		"\"grace_seconds\":30.000" },
	{ "stop for a signal, of which no worker is left", { EVENT_STOP, S(5),
			.stop = { &by_signal, EVENT_STOP_HURRY, 0, 1250 } },
		HEAD("stop") "\"urgency\":\"hurry\",\"cause\":\"signal\",\"cause_node\":0,"
		"\"cause_signal\":\"SIGTERM\",\"detail\":null,\"signal\":null,"
		"\"grace_seconds\":1.250" },
	{ "stop for a lost node", { EVENT_STOP, S(5),
			.stop = { &by_loss, EVENT_STOP_KILL, SIGKILL, 0 } },
		HEAD("stop") "\"urgency\":\"kill\",\"cause\":\"node_lost\",\"cause_node\":3,"
		"\"cause_signal\":null,\"detail\":\"\\\"silent\\\"\",\"signal\":\"SIGKILL\","
		"\"grace_seconds\":0.000" },
	{ "node_joined", { EVENT_NODE_JOINED, S(5), .other = { 3, "gpu\\07", NULL } },
		HEAD("node_joined") "\"node_rank\":3,\"name\":\"gpu\\\\07\"" },
	{ "node_lost", { EVENT_NODE_LOST, S(5), .other = { 3, "", "silent for 10.0 s" } },
		HEAD("node_lost") "\"node_rank\":3,\"name\":\"\",\"detail\":\"silent for 10.0 s\"" },
	{ "restart", { EVENT_RESTART, S(5), .restart = { 2, 10500, &failed_twice } },
		HEAD("restart") "\"next_attempt\":2,\"delay_seconds\":10.500,\"decision\":\"restart\","
		"\"reason\":\"restart 2 of at most 3\",\"exclude\":[\"gpu07\"]" },
	{ "verdict", { EVENT_VERDICT, S(5),
			.verdict = { 1, 7, "root cause: \x1b", &failed, NULL, "the \"limit\"" } },
		HEAD("verdict") "\"attempt\":1,\"exit_code\":7,"
		"\"text\":\"root cause: \\u001b\",\"culprit_rank\":17,"
		"\"cause\":null,\"exclude\":null,"
		"\"restart\":{\"decision\":\"no\",\"reason\":\"the \\\"limit\\\"\"}" },
	{ "verdict on bad nodes", { EVENT_VERDICT, S(5), .verdict = { 0, 122, "bad", NULL, &by_bad, NULL } },
		HEAD("verdict") "\"attempt\":0,\"exit_code\":122,\"text\":\"bad\",\"culprit_rank\":null,"
		"\"cause\":\"bad_node\",\"exclude\":[\"gpu07\",\"gpu\\\"12\"],"
		"\"restart\":null" },
	{ "check_started", { EVENT_CHECK_STARTED, S(5), .check_started = { 1, "quick, links", 28500 } },
		HEAD("check_started") "\"attempt\":1,\"phases\":\"quick, links\",\"limit_seconds\":28.500" },
	{ "check_ended", { EVENT_CHECK_ENDED, S(5), .check_ended = { 1, 4, 1, 2, 1250000000, "gpu07" } },
		HEAD("check_ended") "\"attempt\":1,\"nodes\":4,\"bad\":1,\"unknown\":2,\"seconds\":1.250,"
		"\"exclude\":[\"gpu07\"]" },
	{ "blackbox", { EVENT_BLACKBOX, S(5), .blackbox = { 1, "/box/failure-1", NULL } },
		HEAD("blackbox") "\"attempt\":1,\"path\":\"/box/failure-1\",\"error\":null" },
	{ "blackbox that could not be", { EVENT_BLACKBOX, S(5), .blackbox = { 1, NULL, "it is full" } },
		HEAD("blackbox") "\"attempt\":1,\"path\":null,\"error\":\"it is full\"" },
	{ "preemption, by a watch", { EVENT_PREEMPTION, S(5),
			.preemption = { &by_watch, 119500, SIGUSR1 } },
		HEAD("preemption") "\"source\":\"--preempt-watch\",\"cause_node\":3,"
		"\"seconds_left\":119.500,\"signal\":\"SIGUSR1\"" },
	{ "preemption, by a signal", { EVENT_PREEMPTION, S(5),
			.preemption = { &by_usr2, 30000, SIGTERM } },
		HEAD("preemption") "\"source\":\"SIGUSR2\",\"cause_node\":0,"
		"\"seconds_left\":30.000,\"signal\":\"SIGTERM\"" },
	{ "step", { EVENT_STEP, S(5), .step = { 1, 12345678901 } },
		HEAD("step") "\"attempt\":1,\"step\":12345678901" },
	{ "hang", { EVENT_HANG, S(5),
			.hang = { "suspect", "outside", (const unsigned[]){ 3, 5 }, 2, 8250,
				"ranks 3, 5" } },
		HEAD("hang") "\"state\":\"suspect\",\"class\":\"outside\",\"ranks\":[3,5],"
		"\"quiet_seconds\":8.250,\"text\":\"ranks 3, 5\"" },
	{ "a hang of all alike", { EVENT_HANG, S(5),
			.hang = { "cleared", "all_wait", NULL, 0, 9000, "all" } },
		HEAD("hang") "\"state\":\"cleared\",\"class\":\"all_wait\",\"ranks\":[],"
		"\"quiet_seconds\":9.000,\"text\":\"all\"" },
	{ "check_ended well", { EVENT_CHECK_ENDED, S(5), .check_ended = { 0, 4, 0, 0, 0, NULL } },
		HEAD("check_ended") "\"attempt\":0,\"nodes\":4,\"bad\":0,\"unknown\":0,\"seconds\":0.000,"
		"\"exclude\":null" },
	{ "verdict without a culprit", { EVENT_VERDICT, S(5), .verdict = { 0, 0, "well", NULL, NULL, "" } },
		HEAD("verdict") "\"attempt\":0,\"exit_code\":0,\"text\":\"well\","
		"\"culprit_rank\":null,\"cause\":null,\"exclude\":null,\"restart\":null" },
	{ "job_ended", { EVENT_JOB_ENDED, S(5), .job_ended = { 139, NULL } },
		HEAD("job_ended") "\"exit_code\":139,\"goodput\":null" },
	{ "job_ended, on node rank 0", { EVENT_JOB_ENDED, S(5), .job_ended = { 1, &ended } },
		HEAD("job_ended") "\"exit_code\":1,\"goodput\":{\"percent\":86.2,\"seconds\":160.000,"
		"\"attempts\":2,\"running_seconds\":138.000,\"startup_seconds\":2.000,"
		"\"ending_seconds\":0.500,\"lost\":[{\"cause\":\"failure\",\"attempts\":1,"
		"\"seconds\":19.500,\"work_seconds\":4.250}],\"steps_known\":true}" },
};
/* clang-format on */

static void test_event(void **state)
{
	const struct row *row = *state;
	struct text t = { 0 }, line = { 0 };

	text_printf(&line, "%s}\n", row->line);
	event_add(&t, &row->e, &frame);
	assert_string_equal(text_string(&t), text_string(&line));
	assert_true(json_is_valid(text_string(&t), t.len - 1));
	assert_null(strchr(strchr(text_string(&t), '\n') + 1, '\n'));
	text_done(&t);
	text_done(&line);
}

static void test_every_kind(void **state)
{
	bool seen[EVENT_LINES] = { false };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		seen[rows[i].e.kind] = true;
	for (int kind = 0; kind < EVENT_LINES; kind++)
		assert_true(seen[kind]);
}

/* The wall clock is read when the line is made, the event was before, or a moment after. */
static void test_clocks(void **state)
{
	static const struct {
		uint64_t at_ns;
		const char *time;
	} moments[] = {
		{ S(7), "\"mono_ns\":7000000000,\"time\":\"2025-11-21T06:20:01.345678Z\"" },
		{ S(7) + 1000, "\"mono_ns\":7000001000,\"time\":\"2025-11-21T06:20:01.345679Z\"" },
		{ S(1), "\"mono_ns\":1000000000,\"time\":\"2025-11-21T06:19:55.345678Z\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
		const struct event e = { EVENT_JOB_ENDED, moments[i].at_ns,
			.job_ended = { 0, NULL } };
		struct text t = { 0 };

		event_add(&t, &e, &frame);
		assert_contains(text_string(&t), moments[i].time);
		text_done(&t);
	}
}

static void test_node_unknown(void **state)
{
	static const struct event_frame unranked = { false, 2, S(7), 0 };
	const struct event e = { EVENT_JOB_ENDED, S(7), .job_ended = { 0, NULL } };
	struct text t = { 0 };

	(void)state;
	event_add(&t, &e, &unranked);
	assert_string_equal(text_string(&t),
		"{\"v\":1,\"event\":\"job_ended\",\"mono_ns\":7000000000,"
		"\"time\":\"1970-01-01T00:00:00.000000Z\",\"node\":null,\"exit_code\":0,\"goodput\":null}\n");
	text_done(&t);
}

TESTS(event)
{
	static struct suite s;

	SUITE_ROWS(&s, test_event, rows);
	suite_add(&s, "every kind has a row and a name of its own", test_every_kind, NULL, NULL);
	suite_add(&s, "both clocks tell of the same moment", test_clocks, NULL, NULL);
	suite_add(&s, "the node's rank is not known", test_node_unknown, NULL, NULL);
	return suite_run(&s);
}
