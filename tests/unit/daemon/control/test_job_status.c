/* test_job_status.c - a job's state as clients of the control socket read it. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <string.h>

#include "common/text.h"
#include "daemon/control/job_status.h"
#include "tests/unit/json.h"

static void check(const struct job_status *s, const char *expected)
{
	struct text out = { 0 };

	job_status_json(s, &out);
	assert_true(json_is_valid(out.at, out.len));
	assert_string_equal(text_string(&out), expected);
	text_done(&out);
}

#define MEETING \
	"{\"launchd\":\"" LAUNCHD_VERSION "\",\"name\":\"llama \\\"7b\\\"\"," \
	"\"run_id\":null,\"state\":\"meeting\",\"attempt\":0,\"max_restarts\":0," \
	"\"nnodes\":4,\"nproc_per_node\":8,\"world_size\":32,\"node_rank\":null," \
	"\"host\":\"n0\",\"guard_pid\":811,\"supervisor_pid\":812," \
	"\"at\":1764000007.000,\"started_at\":1764000000.012,\"attempt_started_at\":null,\"stopping\":null,\"hang\":null,\"step\":null,\"step_at\":null," \
	"\"log_dir\":null,"

static void test_meeting(void **state)
{
	const unsigned awaited[] = { 1, 3 };
	static const char *const names[] = { "n0", "n1", "n2", "n3" };
	struct job_status s = {
		.name = "llama \"7b\"",
		.state = "meeting",
		.host = "n0",
		.nnodes = 4,
		.nproc_per_node = 8,
		.world_size = 32,
		.guard = 811,
		.supervisor = 812,
		.at_ns = 1764000007000000000,
		.started_ns = 1764000000012345678,
		.awaited = awaited,
		.awaited_count = 2,
	};

	(void)state;
	check(&s,
		MEETING
		"\"awaited\":[1,3],\"awaited_hosts\":null,\"workers\":[],\"placement\":null}");
	s.node_names = names;
	check(&s,
		MEETING
		"\"awaited\":[1,3],\"awaited_hosts\":[\"n1\",\"n3\"],\"workers\":[],\"placement\":null}");
}

static void test_working(void **state)
{
	const struct worker_status workers[] = {
		{
			.rank = 2,
			.local_rank = 0,
			.pid = 820,
			.state = "running",
			.started_ns = 2000000000,
			.exit_code = -1,
			.has_usage = true,
			.cpu_ms = 12345,
			.memory_bytes = 5000000000,
			.is_seen = true,
			.joined = true,
			.last_line = "step \xff 100",
			.files = { "/l/0/stdout.log", NULL },
		},
		{
			.rank = 3,
			.local_rank = 1,
			.pid = 821,
			.state = "ended",
			.started_ns = 2000000000,
			.ended_ns = 3500000000,
			.exit_code = -1,
			.signal = SIGKILL,
		},
		{ .rank = 4, .local_rank = 2, .state = "ended", .exit_code = 0 },
	};
	const struct job_status s = {
		.name = "a",
		.run_id = "17",
		.state = "working",
		.host = "n1",
		.stopping = "a worker failed",
		.hang = "rank 1 is stopped",
		.step_known = true,
		.step = 1200,
		.step_at_ns = 2500000000,
		.log_dir = "/l",
		.attempt = 1,
		.max_restarts = 3,
		.nnodes = 2,
		.nproc_per_node = 3,
		.world_size = 6,
		.node_rank = 1,
		.node_known = true,
		.guard = 5,
		.supervisor = 6,
		.started_ns = 1000000000,
		.attempt_started_ns = 1999999999,
		.workers = workers,
		.worker_count = 3,
		.placement = "{\"picture\":[]}",
	};

	(void)state;
	check(&s,
		"{\"launchd\":\"" LAUNCHD_VERSION "\",\"name\":\"a\",\"run_id\":\"17\","
		"\"state\":\"working\",\"attempt\":1,\"max_restarts\":3,\"nnodes\":2,"
		"\"nproc_per_node\":3,\"world_size\":6,\"node_rank\":1,\"host\":\"n1\","
		"\"guard_pid\":5,\"supervisor_pid\":6,\"at\":null,\"started_at\":1.000,"
		"\"attempt_started_at\":1.999,\"stopping\":\"a worker failed\",\"hang\":\"rank 1 is stopped\",\"step\":1200,\"step_at\":2.500,"
		"\"log_dir\":\"/l\",\"awaited\":[],\"awaited_hosts\":null,\"workers\":["
		"{\"rank\":2,\"local_rank\":0,\"pid\":820,\"state\":\"running\","
		"\"started_at\":2.000,\"ended_at\":null,\"exit_code\":null,\"signal\":null,"
		"\"cpu_seconds\":12.34,\"memory_bytes\":5000000000,\"joined\":true,"
		"\"last_line\":\"step \\ufffd 100\",\"stdout\":\"/l/0/stdout.log\","
		"\"stderr\":null},"
		"{\"rank\":3,\"local_rank\":1,\"pid\":821,\"state\":\"ended\","
		"\"started_at\":2.000,\"ended_at\":3.500,\"exit_code\":null,"
		"\"signal\":\"SIGKILL\",\"cpu_seconds\":null,\"memory_bytes\":null,"
		"\"joined\":null,\"last_line\":null,\"stdout\":null,\"stderr\":null},"
		"{\"rank\":4,\"local_rank\":2,\"pid\":null,\"state\":\"ended\","
		"\"started_at\":null,\"ended_at\":null,\"exit_code\":0,\"signal\":null,"
		"\"cpu_seconds\":null,\"memory_bytes\":null,\"joined\":null,"
		"\"last_line\":null,\"stdout\":null,\"stderr\":null}],\"placement\":{\"picture\":[]}}");
}

TESTS(job_status)
{
	struct suite s = { .count = 0 };

	suite_add(&s, "nodes are awaited", test_meeting, NULL, NULL);
	suite_add(&s, "workers in each state", test_working, NULL, NULL);
	return suite_run(&s);
}
