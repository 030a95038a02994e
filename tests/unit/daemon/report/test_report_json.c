/* test_report_json.c - the report for programs. With the argument "reports" it prints the
 * reports of all rows, as one JSON list, for check_schema.py. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "daemon/job/ending.h"
#include "daemon/job/goodput.h"
#include "daemon/job/history.h"
#include "daemon/plan/plan.h"
#include "daemon/report/error_file.h"
#include "daemon/report/report.h"
#include "tests/unit/daemon/report/report_fixture.h"
#include "tests/unit/json.h"

static const struct error_record recorded = { "E: \"x\"\n", "T\n", 7, NULL, NULL };
static const struct error_record unread = { .raw = "{\xff\x1b", .raw_why = "is cut off" };

/* clang-format off */
#define STARTED .started_ns = S(1), .started_wall_ns = 1763705999345678901

#define SEVERAL STARTED, .nodes = three, .node_count = 3

static const struct node three[] = { { .name = "gpu06" },
	{ .name = "gpu\"7", .clock_error_ns = 360400, .lost = true }, { .name = "" } };
static const unsigned waiting[] = { 3, 5 };

static const struct json_row {
	const char *says;
	struct outcome o[4];
	size_t count;
	int first; /* -1: none */
	struct result r;
	const struct error_record *record;
	const char *part; /* stands in the report */
} rows[] = {
	{ "all ended with 0",
	  { { .pid = 10, .end = { ENDED_EXIT, 0, false }, .started_ns = S(1),
	      .ended_ns = S(2.000001) } }, 1, -1, { STARTED, .ended_ns = S(2.000001) }, NULL,
	  "\"seconds\":1.000001,\"exit_code\":0},\n \"cause\":{\"kind\":\"none\",\"at\":null,"
	  "\"seconds\":null,\"node\":null,\"unsure\":false,\"detail\":null,\"signal\":null,\"sender\":null,"
	  "\"exclude\":null},\n"
	  " \"culprit\":null" },
	{ "a failure with its words",
	  { { .pid = 10, .end = { ENDED_EXIT, 7, false }, .started_ns = S(1), .ended_ns = S(2) } },
	  1, 0, { .cause.kind = CAUSE_FAILURE, STARTED }, &recorded,
	  "\"hint\":null,\"error_file\":{\"message\":\"E: \\\"x\\\"\\u000a\",\"traceback\":\"T\\u000a\","
	  "\"timestamp\":7,\"raw\":null,\"raw_why\":null},\n  \"last_lines\":null" },
	{ "a failure with words that can't be read",
	  { { .pid = 10, .end = { ENDED_EXIT, 7, false } } }, 1, 0,
	  { .cause.kind = CAUSE_FAILURE }, &unread,
	  "\"timestamp\":null,\"raw\":\"{\\ufffd\\u001b\",\"raw_why\":\"is cut off\"}" },
	{ "a program that is not there",
	  { { .end = { ENDED_UNSTARTED, ENOENT, false } }, { .rank = 1, .local_rank = 1 } }, 2, 0,
	  { .cause.kind = CAUSE_FAILURE }, NULL,
	  "\"how\":\"not_startable\",\"exit_code\":null,\"signal\":null,"
	  "\"error\":\"No such file or directory\"" },
	{ "a signal with its sender",
	  { { .pid = 10, .asked = ASKED_KILLED, .asked_signal = SIGTERM, .asked_ns = S(3),
	      .started_ns = S(1), .ended_ns = S(8), .end = { ENDED_SIGNAL, SIGKILL, true },
	      .oom = OOM_LIKELY, .left = 3, .left_killed = 2 } }, 1, -1,
	  { .cause = { .kind = CAUSE_SIGNAL, .signal = SIGTERM,
	      .sender = { 812, 1000, false, "b\"sh" },
	      .at_ns = S(3) }, STARTED,
	    .left = 5, .left_killed = 4 }, NULL,
	  "\"signal\":\"SIGTERM\",\"sender\":{\"pid\":812,\"uid\":1000,\"command\":\"b\\\"sh\","
	  "\"kernel\":false},\"exclude\":null}" },
	{ "a signal of the kernel's", { { 0 } }, 0, -1,
	  { .cause = { .kind = CAUSE_SIGNAL, .signal = SIGHUP, .sender = { .kernel = true } } },
	    NULL,
	  "\"sender\":{\"pid\":null,\"uid\":null,\"command\":null,\"kernel\":true},"
	  "\"exclude\":null}" },
	{ "a signal of nobody known", { { 0 } }, 0, -1,
	  { .cause = { .kind = CAUSE_SIGNAL, .signal = SIGHUP } }, NULL,
	  "\"signal\":\"SIGHUP\",\"sender\":null,\"exclude\":null}" },
	{ "--max-runtime", { { 0 } }, 0, -1, { .cause.kind = CAUSE_MAX_RUNTIME }, NULL,
	  "\"kind\":\"max_runtime\"" },
	{ "launchd was killed", { { 0 } }, 0, -1, { .cause.kind = CAUSE_GUARD }, NULL,
	  "\"kind\":\"launchd_killed\"" },
	{ "its launcher has ended", { { 0 } }, 0, -1, { .cause.kind = CAUSE_LAUNCHER }, NULL,
	  "\"kind\":\"launcher_ended\"" },
	{ "its launcher hung up", { { 0 } }, 0, -1, { .cause.kind = CAUSE_HANGUP }, NULL,
	  "\"kind\":\"hang_up\"" },
	{ "a worker that could not be killed, one by OOM, one together",
	  { { .pid = 10, .end = { ENDED_SIGNAL, SIGKILL, false }, .oom = OOM_YES,
	      .ended_ns = S(2) },
	    { .rank = 1, .local_rank = 1, .pid = 11, .asked = ASKED_KILLED },
	    { .rank = 2, .local_rank = 2, .pid = 12, .end = { ENDED_EXIT, 1, false },
	      .ended_ns = S(2) } }, 3, 0,
	  { .cause.kind = CAUSE_FAILURE }, NULL, "\"pid\":11,\"how\":\"alive\"" },
	{ "nobody could look for what was left", { { 0 } }, 0, -1,
	  { .left = 1, .left_unknown = true }, NULL,
	  "\"left\":1,\"left_killed\":0,\"left_known\":false,\n" },
	{ "survivors", { { 0 } }, 0, -1,
	  { .survivors = { { 71, 500, 'D', "python3", 0 }, { 72, 0, '?', "su\ndo", 0 } },
	    .survivor_count = 2 }, NULL,
	  "\"left_known\":true,\n \"survivor_count\":2,\"survivors\":[\n"
	  "  {\"pid\":71,\"uid\":500,\"state\":\"D\",\"command\":\"python3\",\"node\":2},\n"
	  "  {\"pid\":72,\"uid\":0,\"state\":\"?\",\"command\":\"su\\u000ado\",\"node\":2}" },
};

static const struct goodput goodput = { .attempts = 1,
	.total_ns = 25000000000,
	.running_ns = 10000000000,
	.startup_ns = 500000000,
	.lost[CAUSE_HANG] = { 1, 14500000000, 12000000000 } };

static struct past_attempt attempts[] = {
	{ .cause = CAUSE_FAILURE, .has_culprit = true, .rank = 5, .local_rank = 1, .node = 1,
	  .site.text = "E at \"a.py\":3", .started_ns = S(1), .ended_ns = S(4), .has_step = true,
	  .step = 1200, .restarts = true, .reason = "restart 1 of at most 1" },
	{ .attempt = 1, .cause = CAUSE_HANG, .started_ns = S(4), .ended_ns = S(5) },
};
static struct past_attempt same[] = {
	{ .cause = CAUSE_FAILURE, .has_culprit = true, .local_rank = 1, .node = 1 },
	{ .attempt = 1, .cause = CAUSE_FAILURE, .has_culprit = true, .local_rank = 1, .node = 1 },
};
static struct place_tally twice = { .node = 1, .local_rank = 1, .times = 2 };
static const struct history past = { .at = attempts, .total = 2 };
static const struct history place = { .at = same, .total = 2, .places = &twice, .place_count = 1 };

/* On several nodes, or on one of them. */
static const struct several_row {
	struct json_row row;
	struct report_input in; /* what the report is made from besides */
} several[] = {
	{ { "the culprit is on another node, one died of it, and one may be it",
	  { { .pid = 10, .end = { ENDED_EXIT, 7, false }, .ended_ns = S(2), .node = 1 },
	    { .rank = 1, .pid = 11, .node = 0, .end = { ENDED_EXIT, 1, false },
	      .ended_ns = S(2.1), .blames = BLAMES_A_PEER },
	    { .rank = 2, .pid = 12, .node = 2, .end = { ENDED_EXIT, 1, false },
	      .ended_ns = S(2.0003), .blames = BLAMES_ITSELF } }, 3, 0,
	  { .cause.kind = CAUSE_FAILURE, .unsure = true, SEVERAL }, NULL,
	  "\"node\":1,\"unsure\":true,\"detail\":null,\"signal\":null,\"sender\":null,"
	  "\"exclude\":null},\n"
	  " \"culprit\":{\"rank\":0,\"local_rank\":0,\"node\":1,\n"
	  "  \"command\":null,\"command_line\":\"python 'a b'\",\n" },
	  { .command = "python 'a b'" } },
	{ { "nobody has told the culprit's command",
	  { { .pid = 10, .end = { ENDED_EXIT, 7, false }, .node = 1 } }, 1, 0,
	  { .cause.kind = CAUSE_FAILURE, SEVERAL }, NULL,
	  "\"command\":null,\"command_line\":null,\n" },
	  { 0 } },
	{ { "what it wrote last, and where",
	  { { .pid = 10, .end = { ENDED_EXIT, 7, false }, .node = 1 } }, 1, 0,
	  { .cause.kind = CAUSE_FAILURE, SEVERAL }, NULL,
	  "\"last_lines\":[\"2\",\n   \"\\u001b\\ufffd\"],\"log\":\"/l/stderr.log\"},\n" },
	  { .words = { "1\n2\n\x1b\xff\n", "/l/stderr.log" } } },
	{ { "the nodes",
	  { { 0 } }, 0, -1, { .cause.kind = CAUSE_MAX_RUNTIME, SEVERAL }, NULL,
	  "\"nodes\":[\n  {\"rank\":0,\"name\":\"gpu06\",\"lost\":false,\"lost_unsure\":false,"
	  "\"clock_error_seconds\":0.000000},\n  {\"rank\":1,\"name\":\"gpu\\\"7\","
	  "\"lost\":true,\"lost_unsure\":false,"
	  "\"clock_error_seconds\":0.000360},\n  {\"rank\":2,\"name\":null,"
	  "\"lost\":false,\"lost_unsure\":false,"
	  "\"clock_error_seconds\":0.000000}],\n \"not_in_store\":[3,5],\n" },
	  { .waiting = waiting, .waiting_count = 2 } },
	{ { "a node was lost",
	  { { .node = 1 } }, 1, -1,
	  { .cause = { .kind = CAUSE_NODE_LOST, .node = 1, .detail = "silent for 10.0 s" },
	    SEVERAL, .survivors = { { 71, 500, 'D', "x", 1 } }, .survivor_count = 1 }, NULL,
	  "{\"kind\":\"node_lost\",\"at\":null,\"seconds\":null,\"node\":1,"
	  "\"unsure\":false,\"detail\":\"silent for 10.0 s\",\n" },
	  { 0 } },
	{ { "the ends of its workers",
	  { { .node = 1 } }, 1, -1, { .cause = { .kind = CAUSE_NODE_LOST, .node = 1 }, SEVERAL },
	  NULL, "\"pid\":null,\"how\":\"not_known\"," },
	  { 0 } },
	{ { "the job's verdict on node rank 0, and its attempts",
	  { { 0 } }, 0, -1, { .cause.kind = CAUSE_MAX_RUNTIME, SEVERAL }, NULL,
	  "\"scope\":\"job\",\"verdict\":\"root cause: SIGKILL\",\"attempt\":1,"
	  "\"max_restarts\":3,\"no_restart\":\"too \\\"soon\\\"\",\"blackbox\":null,\n" },
	  { .verdict = "root cause: SIGKILL", .verdict_code = 9, .attempt = 1, .max_restarts = 3,
	    .why_not = "too \"soon\"" } },
	{ { "its attempts",
	  { { .rank = 5, .node = 1 } }, 1, 0, { .cause.kind = CAUSE_FAILURE, SEVERAL }, NULL,
	  "\"restarts\":["
	  "{\"attempt\":0,\"cause\":\"failure\",\"culprit\":{\"rank\":5,\"local_rank\":1,"
	  "\"node\":1,\"exception\":\"E at \\\"a.py\\\":3\"},\"step\":1200,\"seconds\":3.000000,"
	  "\"decision\":\"restart\",\"reason\":\"restart 1 of at most 1\"},"
	  "{\"attempt\":1,\"cause\":\"hang\",\"culprit\":null,\"step\":null,\"seconds\":1.000000,"
	  "\"decision\":\"no\",\"reason\":null}],\"same_place\":null" },
	  { .verdict = "x", .past = &past } },
	{ { "a place that failed twice",
	  { { .rank = 5, .node = 1 }, { .rank = 6 } }, 2, 0,
	  { .cause.kind = CAUSE_FAILURE, SEVERAL }, NULL,
	  "\"same_place\":\"node 1 (gpu\\\"7) was the first to fail in 2 of 2 attempts, local rank 1 "
	  "each time\"" },
	  { .verdict = "x", .past = &place } },
	{ { "what became of its time", { { 0 } }, 0, -1, { .cause.kind = CAUSE_HANG, SEVERAL }, NULL,
	  "\"goodput\":{\"percent\":40.0,\"seconds\":25.000,\"attempts\":1,"
	  "\"running_seconds\":10.000,\"startup_seconds\":0.500,\"ending_seconds\":0.000,"
	  "\"lost\":[{\"cause\":\"hang\",\"attempts\":1,\"seconds\":14.500,"
	  "\"work_seconds\":12.000}],\"steps_known\":false}" },
	  { .verdict = "x", .goodput = &goodput } },
	{ { "the job's exit code on another node, whose own workers ended with 0",
	  { { .pid = 10, .end = { ENDED_EXIT, 0, false } } }, 1, -1, { STARTED, .ended_ns = S(2) },
	  NULL, "\"seconds\":1.000000,\"exit_code\":9}" },
	  { .verdict = "x", .verdict_code = 9 } },
	{ { "the scope there", { { 0 } }, 0, -1, { STARTED }, NULL,
	  "\"scope\":\"node\",\"verdict\":\"x\"" },
	  { .verdict = "x", .why_not = "" } },
	{ { "where the job was ended, in the report of another node", { { 0 } }, 0, -1,
	  { .cause = { .kind = CAUSE_GUARD, .node = 3 } }, NULL,
	  "\"kind\":\"launchd_killed\",\"at\":null,\"seconds\":null,\"node\":3," },
	  { .verdict = "x" } },
};
/* clang-format on */

static void add_report(const struct json_row *row, struct report_input in, struct text *out)
{
	struct arena arena = { 0 };
	struct vec args = { 0 };
	const struct plan plan = { .script = "./train",
		.use_env = true,
		.args = &args,
		.run_id = "job 7",
		.node_rank = 2,
		.nnodes = 4,
		.nproc = 4,
		.first_rank = 8,
		.world_size = 16,
		.start_count = 4,
		.output.tail_lines = 2 };
	struct result r = row->r;

	in.result = &r;
	in.plan = &plan;
	in.hostname = "host";
	in.record = row->record;
	in.uid = 500;
	in.arena = &arena;
	r.outcomes = row->o;
	r.count = row->count;
	if (row->first >= 0 && r.cause.kind == CAUSE_FAILURE)
		r.cause = cause_of_failure(&row->o[row->first]);
	vec_add(&arena, &args, "a b");
	report_json(&in, out);
	arena_done(&arena);
}

static const struct report_input none = { .attempt = 0 };

/* Without the line breaks and their indents, which are for people only. */
static const char *joined(const char *json, char *ret, size_t room)
{
	size_t n = 0;

	for (; *json && n + 1 < room; json++)
		if (*json == '\n')
			json += strspn(json, "\n ") - 1;
		else
			ret[n++] = *json;
	ret[n] = '\0';
	return ret;
}

static void assert_joined(const struct text *json, const char *part)
{
	char all[16384], wanted[4096];

	assert_contains(
		joined(text_string(json), all, sizeof all), joined(part, wanted, sizeof wanted));
}

static void test_json(void **state)
{
	const struct json_row *row = *state;
	struct text t = { 0 };

	add_report(row, none, &t);
	assert_false(t.failed);
	assert_true(json_is_valid(text_string(&t), t.len));
	assert_joined(&t, row->part);
	text_done(&t);
}

static void test_several(void **state)
{
	const struct several_row *several_row = *state;
	struct text t = { 0 };

	add_report(&several_row->row, several_row->in, &t);
	assert_false(t.failed);
	assert_true(json_is_valid(text_string(&t), t.len));
	assert_joined(&t, several_row->row.part);
	text_done(&t);
}

/* Every name and its place. */
static void test_whole(void **state)
{
	static const struct json_row row = { "",
		{ { .rank = 8,
			  .pid = 10,
			  .attempt = 1,
			  .end = { ENDED_SIGNAL, SIGSEGV, true },
			  .started_ns = S(1.5),
			  .ended_ns = S(13.75) },
			{ .rank = 9,
				.local_rank = 1,
				.pid = 11,
				.asked = ASKED_TO_STOP,
				.asked_signal = SIGTERM,
				.end = { ENDED_EXIT, 0, false },
				.started_ns = S(1),
				.asked_ns = S(13.75),
				.ended_ns = S(14),
				.left = 2,
				.left_killed = 1 } },
		2, 0,
		{ .cause = { .kind = CAUSE_FAILURE, .at_ns = S(13.8) },
			STARTED,
			.ended_ns = S(14) },
		NULL, NULL };
	struct text t = { 0 };

	(void)state;
	add_report(&row, none, &t);
	assert_string_equal(text_string(&t),
		"{\n \"schema\":1,\n \"launchd\":\"" LAUNCHD_VERSION "\",\n"
		" \"job\":{\"run_id\":\"job 7\",\"command\":[\"./train\",\"a b\"],"
		"\"host\":\"host\",\"node_rank\":2,\"nnodes\":4,\"nproc_per_node\":4,"
		"\"first_rank\":8,\"world_size\":16,"
		"\"scope\":\"node\",\"verdict\":null,\"attempt\":0,\"max_restarts\":0,"
		"\"no_restart\":null,\"blackbox\":null,"
		"\"started\":\"2025-11-21T07:49:59.345+01:30\","
		"\"ended\":\"2025-11-21T07:50:12.345+01:30\",\"seconds\":13.000000,"
		"\"exit_code\":139},\n"
		" \"cause\":{\"kind\":\"failure\",\"at\":\"2025-11-21T07:50:12.095+01:30\","
		"\"seconds\":12.750000,\"node\":2,\"unsure\":false,\"detail\":null,"
		"\"signal\":null,\"sender\":null,"
		"\"exclude\":null},\n"
		" \"culprit\":{\"rank\":8,\"local_rank\":0,\"node\":2,"
		"\"command\":[\"./train\",\"a b\"],\"command_line\":\"./train 'a b'\","
		"\"hint\":null,\"error_file\":null,"
		"\"last_lines\":null,\"log\":null},\n"
		" \"restarts\":[],\n \"same_place\":null,\n \"goodput\":null,\n"
		" \"nodes\":[\n"
		"  {\"rank\":2,\"name\":\"host\",\"lost\":false,\"lost_unsure\":false,"
		"\"clock_error_seconds\":0.000000}],\n"
		" \"not_in_store\":[],\n"
		" \"workers\":[\n"
		"  {\"rank\":8,\"local_rank\":0,\"node\":2,\"attempt\":1,\"pid\":10,"
		"\"how\":\"signal\","
		"\"exit_code\":null,\"signal\":\"SIGSEGV\",\"error\":null,\"core_dumped\":true,"
		"\"oom\":\"no\",\"oom_limit\":null,\"oom_limit_bytes\":null,\"blames\":\"nobody\",\"together\":false,"
		"\"ended_by_launchd\":false,\"killed_by_launchd\":false,\"asked_signal\":null,"
		"\"seconds_after_asked\":null,"
		"\"started_seconds\":0.500000,\"ended_seconds\":12.750000,"
		"\"seconds\":12.250000,\"left\":0,\"left_killed\":0},\n"
		"  {\"rank\":9,\"local_rank\":1,\"node\":2,\"attempt\":0,\"pid\":11,"
		"\"how\":\"exit\","
		"\"exit_code\":0,\"signal\":null,\"error\":null,\"core_dumped\":false,"
		"\"oom\":\"no\",\"oom_limit\":null,\"oom_limit_bytes\":null,\"blames\":\"nobody\",\"together\":false,"
		"\"ended_by_launchd\":true,\"killed_by_launchd\":false,"
		"\"asked_signal\":\"SIGTERM\",\"seconds_after_asked\":0.250000,"
		"\"started_seconds\":0.000000,\"ended_seconds\":13.000000,"
		"\"seconds\":13.000000,\"left\":2,\"left_killed\":1}],\n"
		" \"left\":0,\n \"left_killed\":0,\n \"left_known\":true,\n"
		" \"survivor_count\":0,\n \"survivors\":[]}\n");
	text_done(&t);
}

static void test_many_survivors(void **state)
{
	static const struct json_row row = { "", { { 0 } }, 0, -1,
		{ .survivor_count = SURVIVORS_MAX + 5 }, NULL, NULL };
	struct text t = { 0 };
	size_t count = 0;

	(void)state;
	add_report(&row, none, &t);
	assert_true(json_is_valid(text_string(&t), t.len));
	assert_contains(text_string(&t), "\"survivor_count\":21,");
	for (const char *at = text_string(&t); (at = strstr(at, "{\"pid\":")); at++)
		count++;
	assert_int_equal(count, SURVIVORS_MAX);
	text_done(&t);
}

/* For check_schema.py. */
static int print_all(void)
{
	struct text t = { 0 };
	bool written;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		text_add(&t, i ? "," : "[");
		add_report(&rows[i], none, &t);
	}
	for (size_t i = 0; i < sizeof several / sizeof *several; i++) {
		text_add(&t, ",");
		add_report(&several[i].row, several[i].in, &t);
	}
	text_add(&t, "]\n");
	written = !t.failed && fputs(text_string(&t), stdout) >= 0 && fflush(stdout) == 0;
	text_done(&t);
	return written ? 0 : 1;
}

TESTS(report_json)
{
	static struct suite s;

	set_time_zone();
	SUITE_ROWS(&s, test_json, rows);
	SUITE_ROWS(&s, test_several, several);
	suite_add(&s, "every name in its place", test_whole, NULL, NULL);
	suite_add(&s, "more survivors than names", test_many_survivors, NULL, NULL);
	return suite_run(&s);
}

/* for check_schema.py */
TESTS(reports)
{
	set_time_zone();
	return print_all();
}
