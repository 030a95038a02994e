/* test_metrics.c - what is counted of each event, and how it is written. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "daemon/job/job_end.h"
#include "daemon/observe/event.h"
#include "daemon/plan/plan.h"
#include "daemon/service/metrics.h"

#define S(seconds) ((seconds)*1000000000ull)
#define WALL_S     1700000000ll

enum { EVENTS_MAX = 16, LINES_MAX = 12 };

/* Ranks 4 to 6 are this node's. */
static const struct plan plan = { .run_id = "run",
	.node_rank = 2,
	.nnodes = 4,
	.world_size = 12,
	.max_restarts = 3,
	.first_rank = 4,
	.start_count = 3 };

static const struct outcome four = { .rank = 4, .pid = 1 }, five = { .rank = 5, .pid = 2 },
			    six = { .rank = 6, .pid = 3 }, unstarted = { .rank = 4 };
static const struct outcome well = { .rank = 4, .pid = 1, .end = { ENDED_EXIT, 0, false } },
			    well5 = { .rank = 5, .pid = 2, .end = { ENDED_EXIT, 0, false } },
			    well6 = { .rank = 6, .pid = 3, .end = { ENDED_EXIT, 0, false } },
			    failed = { .rank = 5, .pid = 2, .end = { ENDED_EXIT, 7, false } },
			    killed = { .rank = 4,
				    .pid = 1,
				    .end = { ENDED_SIGNAL, SIGSEGV, false } },
			    oom = { .rank = 6,
				    .pid = 3,
				    .oom = OOM_LIKELY,
				    .end = { ENDED_SIGNAL, SIGKILL, false } },
			    missing = { .rank = 5, .end = { ENDED_UNSTARTED, 2, false } },
			    unmade = { .rank = 5, .end = { ENDED_UNMADE, 12, false } },
			    asked = { .rank = 6,
				    .pid = 3,
				    .asked = ASKED_TO_STOP,
				    .end = { ENDED_SIGNAL, SIGTERM, false } },
			    asked4 = { .rank = 4,
				    .pid = 1,
				    .asked = ASKED_KILLED,
				    .end = { ENDED_SIGNAL, SIGKILL, false } },
			    elsewhere = { .rank = 11, .end = { ENDED_EXIT, 1, false } };

static const struct cause by_exit = { .kind = CAUSE_FAILURE,
	.culprit = { .end = { ENDED_EXIT, 7, false } } };
static const struct cause by_segv = { .kind = CAUSE_FAILURE,
	.culprit = { .end = { ENDED_SIGNAL, SIGSEGV, false } } };
static const struct cause none = { .kind = CAUSE_NONE }, by_signal = { .kind = CAUSE_SIGNAL },
			  by_runtime = { .kind = CAUSE_MAX_RUNTIME },
			  by_guard = { .kind = CAUSE_GUARD },
			  by_launcher = { .kind = CAUSE_LAUNCHER },
			  by_hangup = { .kind = CAUSE_HANGUP },
			  by_request = { .kind = CAUSE_RESTART },
			  by_bad_node = { .kind = CAUSE_BAD_NODE },
			  by_loss = { .kind = CAUSE_NODE_LOST };
static const struct job_end after_segv = {
	.verdict.cause = { .kind = CAUSE_FAILURE,
		.culprit = { .end = { ENDED_SIGNAL, SIGSEGV, false } } }
};

static const struct job_end with_goodput = { .verdict.cause = { .kind = CAUSE_HANG },
	.goodput = { .attempts = 2,
		.total_ns = 40000000000,
		.running_ns = 30000000000,
		.startup_ns = 1500000000,
		.lost = { [CAUSE_FAILURE] = { 1, 4000000000, 0 },
			[CAUSE_HANG] = { 1, 4500000000, 0 } } } };
static const struct run_end ended = {
	.job.goodput = { .attempts = 1, .total_ns = 40000000000, .running_ns = 40000000000 }
};

#define JOB(s) \
	{ \
		EVENT_JOB_STARTED, S(s), .job_started = { &plan, "gpu\"07" } \
	}
#define ATTEMPT(s) \
	{ \
		EVENT_ATTEMPT_STARTED, S(s), .attempt_started = { 0, "h", 1 } \
	}
#define BEGIN(s, o) \
	{ \
		EVENT_WORKER_STARTED, S(s), .worker = &(o) \
	}
#define END(s, o) \
	{ \
		EVENT_WORKER_ENDED, S(s), .worker = &(o) \
	}
#define STOP(s, c) \
	{ \
		EVENT_STOP, S(s), .stop = { &(c), EVENT_STOP_STOP, SIGTERM, 0 } \
	}
#define AGAIN(s, to) \
	{ \
		EVENT_RESTART, S(s), .restart = { 1, 0, &(to) } \
	}
#define VERDICT(s, code, c) \
	{ \
		EVENT_VERDICT, S(s), .verdict = { 0, code, "", NULL, &(c), NULL } \
	}
#define OVER(s, code) \
	{ \
		EVENT_JOB_ENDED, S(s), .job_ended = { code, NULL } \
	}
#define ALL_RUN BEGIN(2, four), BEGIN(2, five), BEGIN(2, six)

/* clang-format off */
static const struct count_row {
	const char *says;
	struct event events[EVENTS_MAX]; /* ends with at_ns 0 */
	const char *lines[LINES_MAX];    /* without the labels that all have; "!x": no such family */
} counts[] = {
	{ "before the nodes have met there is nothing but the version", { { 0 } },
		{ "launchd_build_info{version=\"" LAUNCHD_VERSION "\"} 1", "!launchd_job_info",
			"!launchd_workers", "!launchd_attempts_total", "!launchd_job_exit_code" } },
	{ "a job that has not started its workers", { JOB(1) },
		{ "launchd_job_info{host=\"gpu\\\"07\",run_id=\"run\"} 1", "launchd_job_nodes{} 4",
			"launchd_job_workers{} 12", "launchd_job_max_restarts{} 3",
			"launchd_job_start_time_seconds{} 1700000001.000000",
			"launchd_workers{state=\"pending\"} 3", "launchd_attempts_total{} 0",
			"launchd_restarts_total{} 0", "!launchd_attempt_start_time_seconds",
			"!launchd_job_end_time_seconds", "!launchd_job_exit_code" } },
	{ "workers that run", { JOB(1), ATTEMPT(2), BEGIN(2, four), BEGIN(2, six) },
		{ "launchd_workers{state=\"pending\"} 1", "launchd_workers{state=\"running\"} 2",
			"launchd_attempts_total{} 1", "launchd_restarts_total{} 0",
			"launchd_attempt_start_time_seconds{} 1700000002.000000" } },
	{ "a job that goes well", { JOB(1), ATTEMPT(2), ALL_RUN, END(3, well), END(4, well5),
			END(5, well6), VERDICT(5, 0, none), OVER(6, 0) },
		{ "launchd_workers{state=\"running\"} 0", "launchd_workers{state=\"succeeded\"} 3",
			"launchd_attempt_ends_total{cause=\"success\"} 1",
			"launchd_job_exit_code{} 0",
			"launchd_job_end_time_seconds{} 1700000006.000000",
			"launchd_failed_attempts_seconds_total{} 0.000000",
			"launchd_restart_downtime_seconds_total{} 0.000000" } },
	{ "each way in which a worker fails", { JOB(1), ATTEMPT(2), ALL_RUN, END(3, killed),
			END(4, failed), END(5, oom) },
		{ "launchd_worker_failures_total{cause=\"exit\"} 1",
			"launchd_worker_failures_total{cause=\"signal\"} 1",
			"launchd_worker_failures_total{cause=\"oom\"} 1",
			"launchd_worker_failures_total{cause=\"not_startable\"} 0",
			"launchd_workers{state=\"failed\"} 3" } },
	{ "workers that can't be started", { JOB(1), ATTEMPT(2), BEGIN(2, four), END(2, missing),
			END(2, unmade) },
		{ "launchd_worker_failures_total{cause=\"not_startable\"} 2",
			"launchd_workers{state=\"failed\"} 1",
			"launchd_workers{state=\"running\"} 1" } },
	{ "workers behind one that could not be started", { JOB(1), ATTEMPT(2), BEGIN(2, four),
			END(2, missing), END(2, asked4), VERDICT(3, 127, by_exit) },
		{ "launchd_workers{state=\"pending\"} 0", "launchd_workers{state=\"failed\"} 1",
			"launchd_workers{state=\"stopped\"} 2" } },
	{ "while workers are stopped", { JOB(1), ATTEMPT(2), ALL_RUN, END(3, failed),
			STOP(3, by_exit) },
		{ "launchd_workers{state=\"stopping\"} 2", "launchd_workers{state=\"failed\"} 1",
			"launchd_attempt_ends_total{cause=\"exit\"} 0" } },
	{ "a worker that was stopped did not fail", { JOB(1), ATTEMPT(2), ALL_RUN,
			END(3, failed), STOP(3, by_exit), END(4, asked) },
		{ "launchd_workers{state=\"stopping\"} 1", "launchd_workers{state=\"stopped\"} 1",
			"launchd_worker_failures_total{cause=\"signal\"} 0" } },
	{ "one that starts though all are stopped", { JOB(1), ATTEMPT(2), BEGIN(2, four),
			STOP(2, by_signal), BEGIN(2, five) },
		{ "launchd_workers{state=\"stopping\"} 2" } },
	{ "one that a request kept from being started", { JOB(1), ATTEMPT(2), BEGIN(2, unstarted) },
		{ "launchd_workers{state=\"stopped\"} 1", "launchd_workers{state=\"running\"} 0" } },
	{ "another node's worker changes nothing", { JOB(1), ATTEMPT(2), ALL_RUN,
			END(3, elsewhere) },
		{ "launchd_workers{state=\"running\"} 3" } },
	{ "a restart: what the attempt did until it failed, and until the next began is lost",
		{ JOB(1), ATTEMPT(2), ALL_RUN, END(12, failed), STOP(13, by_exit), END(17, asked),
			AGAIN(18, after_segv), ATTEMPT(22) },
		{ "launchd_failed_attempts_seconds_total{} 10.000000",
			"launchd_restart_downtime_seconds_total{} 10.000000",
			"launchd_attempts_total{} 2", "launchd_restarts_total{} 1",
			"launchd_workers{state=\"pending\"} 3", "launchd_workers{state=\"failed\"} 0",
			"launchd_worker_failures_total{cause=\"exit\"} 1",
			"launchd_attempt_start_time_seconds{} 1700000022.000000",
			/* node rank 0 has heard of another one that came before */
			"launchd_attempt_ends_total{cause=\"signal\"} 1",
			"launchd_attempt_ends_total{cause=\"exit\"} 0" } },
	{ "a restart for another node's failure", { JOB(1), ATTEMPT(2), ALL_RUN, STOP(5, by_segv),
			ATTEMPT(9) },
		{ "launchd_failed_attempts_seconds_total{} 3.000000",
			"launchd_restart_downtime_seconds_total{} 4.000000",
			"launchd_attempt_ends_total{cause=\"signal\"} 1",
			"launchd_worker_failures_total{cause=\"signal\"} 0" } },
	{ "a restart of a node whose workers were done", { JOB(1), ATTEMPT(2), ALL_RUN,
			END(3, well), END(3, well5), END(4, well6), ATTEMPT(9) },
		{ "launchd_failed_attempts_seconds_total{} 2.000000",
			"launchd_restart_downtime_seconds_total{} 5.000000",
			"launchd_attempt_ends_total{cause=\"unknown\"} 1" } },
	{ "several restarts", { JOB(1), ATTEMPT(2), STOP(3, by_segv), ATTEMPT(5), STOP(9, by_exit),
			ATTEMPT(10), STOP(20, by_loss), VERDICT(21, 125, by_loss) },
		{ "launchd_failed_attempts_seconds_total{} 5.000000",
			"launchd_restart_downtime_seconds_total{} 3.000000",
			"launchd_attempts_total{} 3", "launchd_restarts_total{} 2",
			"launchd_attempt_ends_total{cause=\"signal\"} 1",
			"launchd_attempt_ends_total{cause=\"exit\"} 1",
			"launchd_attempt_ends_total{cause=\"node_lost\"} 1",
			"launchd_job_exit_code{} 125" } },
	{ "goodput, after an attempt", { JOB(1), ATTEMPT(2), AGAIN(9, with_goodput) },
		{ "launchd_goodput_ratio{} 0.750",
			"launchd_goodput_running_seconds_total{} 30.000000",
			"launchd_goodput_startup_seconds_total{} 1.500000",
			"launchd_goodput_lost_seconds_total{cause=\"failure\"} 4.000000",
			"launchd_goodput_lost_seconds_total{cause=\"hang\"} 4.500000" } },
	{ "goodput, at the end", { JOB(1), ATTEMPT(2),
			{ EVENT_JOB_ENDED, S(9), .job_ended = { 0, &ended } } },
		{ "launchd_goodput_ratio{} 1.000",
			"launchd_goodput_running_seconds_total{} 40.000000" } },
	{ "goodput, before an attempt has ended", { JOB(1), ATTEMPT(2) },
		{ "!launchd_goodput_ratio", "!launchd_goodput_lost_seconds_total" } },
	{ "a request", { JOB(1), ATTEMPT(2), VERDICT(3, 143, by_signal) },
		{ "launchd_attempt_ends_total{cause=\"stop_signal\"} 1" } },
	{ "a bad node", { JOB(1), ATTEMPT(2), VERDICT(3, 122, by_bad_node) },
		{ "launchd_attempt_ends_total{cause=\"bad_node\"} 1" } },
	{ "--max-runtime", { JOB(1), ATTEMPT(2), VERDICT(3, 124, by_runtime) },
		{ "launchd_attempt_ends_total{cause=\"max_runtime\"} 1" } },
	{ "a killed guard", { JOB(1), ATTEMPT(2), VERDICT(3, 137, by_guard) },
		{ "launchd_attempt_ends_total{cause=\"launchd_killed\"} 1" } },
	{ "the end of what started launchd", { JOB(1), ATTEMPT(2), VERDICT(3, 129, by_launcher) },
		{ "launchd_attempt_ends_total{cause=\"launcher_ended\"} 1" } },
	{ "a hang-up", { JOB(1), ATTEMPT(2), VERDICT(3, 129, by_hangup) },
		{ "launchd_attempt_ends_total{cause=\"hang_up\"} 1" } },
	{ "one that somebody asked for", { JOB(1), ATTEMPT(2), STOP(4, by_request), ATTEMPT(5) },
		{ "launchd_attempt_ends_total{cause=\"restart_requested\"} 1",
			"launchd_restarts_total{} 1" } },
	{ "a verdict without an attempt", { VERDICT(3, 143, by_signal) },
		{ "!launchd_attempt_ends_total", "!launchd_job_exit_code" } },
	{ "steps", { JOB(1), ATTEMPT(2), { EVENT_STEP, S(3), .step = { 0, 1200 } } },
		{ "launchd_job_step{} 1200", "launchd_job_step_time_seconds{} 1700000003.000000" } },
	{ "steps of an attempt that is over", { JOB(1), ATTEMPT(2),
			{ EVENT_STEP, S(3), .step = { 0, 1200 } }, ATTEMPT(5) },
		{ "!launchd_job_step", "!launchd_job_step_time_seconds" } },
	{ "what is no event of its own", { JOB(1), { EVENT_NOTE, S(2), .note = { NOTE_INFO, "x" } } },
		{ "launchd_attempts_total{} 0" } },
};
/* clang-format on */

static bool is_here(const char *page, const char *line)
{
	const char *at = strstr(page, line);

	return at && (at == page || at[-1] == '\n') && at[strlen(line)] == '\n';
}

/* A sample of the table with the labels that all have. */
static void full_line(const char *line, const char *common, char *ret, size_t room)
{
	const char *own = strchr(line, '{') + 1;

	(void)snprintf(ret, room, "%.*s%s%s%s", (int)(own - line), line, common,
		*own == '}' ? "" : ",", own);
}

static void assert_lines(const char *page, const char *const *lines, const char *common)
{
	for (size_t i = 0; i < LINES_MAX && lines[i]; i++) {
		char line[256];

		if (*lines[i] == '!') {
			assert_null(strstr(page, lines[i] + 1));
			continue;
		}
		full_line(lines[i], common, line, sizeof line);
		if (!is_here(page, line))
			fail_msg("no line \"%s\" in\n%s", line, page);
	}
}

static void test_count(void **state)
{
	const struct count_row *row = *state;
	const struct sight sight = { .room = 0 };
	const struct metrics_moment now = { .sight = &sight };
	struct arena arena = { 0 };
	struct metrics m = { .arena = &arena, .job_name = "a\\b\n" };
	struct text page = { 0 };

	for (size_t i = 0; i < EVENTS_MAX && row->events[i].at_ns; i++)
		metrics_hear(
			&m, &row->events[i], (int64_t)S(WALL_S) + (int64_t)row->events[i].at_ns);
	metrics_render(&m, &now, &page);
	assert_lines(text_string(&page), row->lines,
		m.started ? "job_name=\"a\\\\b\\n\",node_rank=\"2\"" :
			    "job_name=\"a\\\\b\\n\",node_rank=\"\"");
	text_done(&page);
	arena_done(&arena);
}

/* What others know is written as they say it. */
static void test_moment(void **state)
{
	static const struct event met = JOB(1);
	static const char *const lines[] = { "launchd_output_bytes_total{stream=\"stdout\"} 1",
		"launchd_output_bytes_total{stream=\"stderr\"} 2",
		"launchd_log_bytes_total{stream=\"stdout\"} 3",
		"launchd_output_dropped_lines_total{stream=\"stderr\"} 6",
		"launchd_nodes{state=\"joined\"} 3", "launchd_nodes{state=\"lost\"} 1",
		"launchd_beat_round_trip_seconds{peer=\"1\"} 0.000250",
		"launchd_beat_round_trip_seconds{peer=\"3\"} 2.000000",
		"launchd_store_clients{} 12", "launchd_store_keys{} 99", NULL };
	struct trip trips[] = { { 1, 250000 }, { 3, S(2) } };
	const struct sight sight = { .trips = trips,
		.trip_count = 2,
		.nodes_known = true,
		.nodes = { [NODE_JOINED] = 3, [NODE_LOST] = 1 },
		.has_store = true,
		.store_clients = 12,
		.store_keys = 99 };
	const struct metrics_moment now = { .output = { { 1, 2 }, { 3, 4 }, { 5, 6 } },
		.sight = &sight };
	struct arena arena = { 0 };
	struct metrics m = { .arena = &arena, .job_name = "j" };
	struct text page = { 0 };

	(void)state;
	metrics_hear(&m, &met, 1);
	metrics_render(&m, &now, &page);
	assert_lines(text_string(&page), lines, "job_name=\"j\",node_rank=\"2\"");
	text_done(&page);
	arena_done(&arena);
}

TESTS(metrics)
{
	static struct suite s;

	SUITE_ROWS(&s, test_count, counts);
	suite_add(&s, "what others know", test_moment, NULL, NULL);
	return suite_run(&s);
}
