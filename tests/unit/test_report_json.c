/* test_report_json.c - the report for programs. With the argument "print" the reports of all rows
 * are printed, as one JSON list, for check_schema.py. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "daemon/plan/plan.h"
#include "daemon/report/ending.h"
#include "daemon/report/record.h"
#include "daemon/report/report.h"
#include "tests/unit/json.h"
#include "tests/unit/reporting.h"

static const struct error_record recorded = { "E: \"x\"\n", "T\n", 7, NULL, NULL };
static const struct error_record unread = { .raw = "{\xff\x1b", .raw_why = "is cut off" };

/* clang-format off */
#define STARTED .started_ns = S(1), .started_wall_ns = 1763705999345678901

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
	  "\"seconds\":null,\"signal\":null,\"sender\":null},\n \"culprit\":null" },
	{ "a failure with its words",
	  { { .pid = 10, .end = { ENDED_EXIT, 7, false }, .started_ns = S(1), .ended_ns = S(2) } },
	  1, 0, { .cause.kind = CAUSE_FAILURE, STARTED }, &recorded,
	  "\"error_file\":{\"message\":\"E: \\\"x\\\"\\u000a\",\"traceback\":\"T\\u000a\","
	  "\"timestamp\":7,\"raw\":null,\"raw_why\":null}}" },
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
	  { .cause = { CAUSE_SIGNAL, SIGTERM, { 812, 1000, false, "b\"sh" }, S(3) }, STARTED,
	    .left = 5, .left_killed = 4 }, NULL,
	  "\"signal\":\"SIGTERM\",\"sender\":{\"pid\":812,\"uid\":1000,\"command\":\"b\\\"sh\","
	  "\"kernel\":false}}" },
	{ "a signal of the kernel's", { { 0 } }, 0, -1,
	  { .cause = { CAUSE_SIGNAL, SIGHUP, { .kernel = true }, 0 } }, NULL,
	  "\"sender\":{\"pid\":null,\"uid\":null,\"command\":null,\"kernel\":true}}" },
	{ "a signal of nobody known", { { 0 } }, 0, -1,
	  { .cause = { .kind = CAUSE_SIGNAL, .signal = SIGHUP } }, NULL,
	  "\"signal\":\"SIGHUP\",\"sender\":null}" },
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
	{ "survivors", { { 0 } }, 0, -1,
	  { .survivors = { { 71, 500, 'D', "python3" }, { 72, 0, '?', "su\ndo" } },
	    .survivor_count = 2 }, NULL,
	  "\"survivor_count\":2,\"survivors\":[\n"
	  "  {\"pid\":71,\"uid\":500,\"state\":\"D\",\"command\":\"python3\"},\n"
	  "  {\"pid\":72,\"uid\":0,\"state\":\"?\",\"command\":\"su\\u000ado\"}" },
};
/* clang-format on */

static void add_report(const struct json_row *row, struct text *out)
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
		.start_count = 4 };
	struct result r = row->r;
	const struct report_input in = { &r, &plan, "host", row->record, 500, &arena };

	r.outcomes = row->o;
	r.count = row->count;
	r.culprit = row->first < 0 ? NULL : &row->o[row->first];
	vec_add(&arena, &args, "a b");
	report_json(&in, out);
	arena_done(&arena);
}

static void test_json(void **state)
{
	const struct json_row *row = *state;
	struct text t = { 0 };

	add_report(row, &t);
	assert_false(t.failed);
	assert_true(json_is_valid(text_string(&t), t.len));
	assert_contains(text_string(&t), row->part);
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
	add_report(&row, &t);
	assert_string_equal(text_string(&t),
		"{\"schema\":1,\"launchd\":\"" LAUNCHD_VERSION "\",\n"
		" \"job\":{\"run_id\":\"job 7\",\"command\":[\"./train\",\"a b\"],\n"
		"  \"host\":\"host\",\"node_rank\":2,\"nnodes\":4,\"nproc_per_node\":4,"
		"\"first_rank\":8,\"world_size\":16,\n"
		"  \"started\":\"2025-11-21T07:49:59.345+01:30\","
		"\"ended\":\"2025-11-21T07:50:12.345+01:30\",\"seconds\":13.000000,"
		"\"exit_code\":139},\n"
		" \"cause\":{\"kind\":\"failure\",\"at\":\"2025-11-21T07:50:12.095+01:30\","
		"\"seconds\":12.750000,\"signal\":null,\"sender\":null},\n"
		" \"culprit\":{\"rank\":8,\"local_rank\":0,\"command\":[\"./train\",\"a b\"],\n"
		"  \"error_file\":null},\n"
		" \"workers\":[\n"
		"  {\"rank\":8,\"local_rank\":0,\"attempt\":1,\"pid\":10,\"how\":\"signal\","
		"\"exit_code\":null,\"signal\":\"SIGSEGV\",\"error\":null,\"core_dumped\":true,"
		"\"oom\":\"no\",\"together\":false,\n"
		"   \"ended_by_launchd\":false,\"killed_by_launchd\":false,\"asked_signal\":null,"
		"\"seconds_after_asked\":null,\n"
		"   \"started_seconds\":0.500000,\"ended_seconds\":12.750000,"
		"\"seconds\":12.250000,\"left\":0,\"left_killed\":0},\n"
		"  {\"rank\":9,\"local_rank\":1,\"attempt\":0,\"pid\":11,\"how\":\"exit\","
		"\"exit_code\":0,\"signal\":null,\"error\":null,\"core_dumped\":false,"
		"\"oom\":\"no\",\"together\":false,\n"
		"   \"ended_by_launchd\":true,\"killed_by_launchd\":false,"
		"\"asked_signal\":\"SIGTERM\",\"seconds_after_asked\":0.250000,\n"
		"   \"started_seconds\":0.000000,\"ended_seconds\":13.000000,"
		"\"seconds\":13.000000,\"left\":2,\"left_killed\":1}],\n"
		" \"left\":0,\"left_killed\":0,\n"
		" \"survivor_count\":0,\"survivors\":[]}\n");
	text_done(&t);
}

static void test_many_survivors(void **state)
{
	static const struct json_row row = { "", { { 0 } }, 0, -1,
		{ .survivor_count = SURVIVORS_MAX + 5 }, NULL, NULL };
	struct text t = { 0 };
	size_t count = 0;

	(void)state;
	add_report(&row, &t);
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
		add_report(&rows[i], &t);
	}
	text_add(&t, "]\n");
	written = !t.failed && fputs(text_string(&t), stdout) >= 0 && fflush(stdout) == 0;
	text_done(&t);
	return written ? 0 : 1;
}

int main(int argc, char **argv)
{
	static struct suite s;

	set_time_zone();
	if (argc == 2 && strcmp(argv[1], "print") == 0)
		return print_all();
	SUITE_ROWS(&s, test_json, rows);
	suite_add(&s, "every name in its place", test_whole, NULL, NULL);
	suite_add(&s, "more survivors than names", test_many_survivors, NULL, NULL);
	return suite_run(&s);
}
