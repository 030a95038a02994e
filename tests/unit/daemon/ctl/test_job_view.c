/* test_job_view.c - a status as people read it: whole, with little in it, and with nonsense. */
#include "tests/unit/unit.h"

#include <string.h>

#include "common/text.h"
#include "daemon/ctl/columns.h"
#include "daemon/ctl/job_view.h"

static struct cjson cjson;

static cJSON *parse(const char *text)
{
	cJSON *root = cjson.parse(text, strlen(text));

	assert_non_null(root);
	return root;
}

static const struct view_row {
	const char *says, *status;
	const char *text;
	struct gpu_bytes gpu; /* of the only worker that runs; 0: there are no GPUs */
} views[] = {
	{ "a job that works",
		"{\"at\":8200,\"name\":\"llama\",\"run_id\":\"17\",\"state\":\"working\",\"attempt\":1,"
		"\"max_restarts\":3,\"nnodes\":2,\"node_rank\":0,\"host\":\"n0\",\"guard_pid\":811,"
		"\"supervisor_pid\":812,\"started_at\":10,\"attempt_started_at\":1000,\"stopping\":null,\"log_dir\":\"/l\","
		"\"awaited\":[],\"workers\":["
		"{\"rank\":8,\"local_rank\":0,\"pid\":820,\"state\":\"running\",\"started_at\":1001,"
		"\"ended_at\":null,\"exit_code\":null,\"signal\":null,\"cpu_seconds\":90061.5,"
		"\"memory_bytes\":914358272,\"joined\":true,\"last_line\":\"step 1\"},"
		"{\"rank\":9,\"local_rank\":1,\"pid\":821,\"state\":\"ended\",\"started_at\":1001,"
		"\"ended_at\":1063,\"exit_code\":3,\"signal\":null,\"cpu_seconds\":null,"
		"\"memory_bytes\":null,\"joined\":null,\"last_line\":\"\\u001b[2Jx\"},"
		"{\"rank\":10,\"local_rank\":2,\"pid\":null,\"state\":\"planned\",\"signal\":null,"
		"\"memory_bytes\":1500,\"joined\":false}]}",
		"llama, run 17: working for 2:00:00; attempt 1; at most 3 restarts\n"
		"node 0 of 2 on n0: launcher 811, supervisor 812; logs in /l\n"
		"RANK  LOCAL  PID  STATE    TIME     CPU       MEMORY   STORE   LAST LINE\n"
		"8     0      820  running  1:59:59  1d 01:01  872 MiB  joined  step 1\n"
		"9     1      821  exit 3   1:02     -         -        -       \\x1b[2Jx\n"
		"10    2      -    planned  -        -         1.5 KiB  no      -\n",
		{ 0 } },
	{ "GPU memory",
		"{\"at\":8,\"name\":\"a\",\"state\":\"working\",\"nnodes\":1,\"node_rank\":0,\"guard_pid\":1,"
		"\"supervisor_pid\":2,\"workers\":["
		"{\"rank\":0,\"pid\":820,\"state\":\"running\",\"ended_at\":null},"
		"{\"rank\":1,\"pid\":821,\"state\":\"ended\",\"ended_at\":3},"
		"{\"rank\":2,\"pid\":null,\"state\":\"planned\"}]}",
		"a: working\nnode 0 of 1: launcher 1, supervisor 2\n"
		"RANK  LOCAL  PID  STATE    TIME  CPU  MEMORY  GPU MEMORY  STORE  LAST LINE\n"
		"0     0      820  running  -     -    -       71 GiB      -      -\n"
		"1     0      821  ended    -     -    -       -           -      -\n"
		"2     0      -    planned  -     -    -       -           -      -\n",
		{ .worker = 820, .bytes = 71ULL << 30 } },
	{ "nodes that are awaited",
		"{\"at\":8,\"name\":\"a\",\"run_id\":\"none\",\"state\":\"meeting\",\"nnodes\":4,"
		"\"node_rank\":null,\"host\":\"n0\",\"guard_pid\":1,\"supervisor_pid\":2,"
		"\"started_at\":1,\"awaited\":[1,3],\"workers\":[]}",
		"a: meeting for 7s; waiting for nodes 1, 3\none of 4 nodes on n0: launcher 1, supervisor "
		"2\n",
		{ 0 } },
	{ "... by name",
		"{\"at\":8,\"name\":\"a\",\"state\":\"meeting\",\"nnodes\":4,\"node_rank\":0,"
		"\"host\":\"n0\",\"guard_pid\":1,\"supervisor_pid\":2,\"started_at\":1,"
		"\"awaited\":[1,2,3],\"awaited_hosts\":[\"n1\",2],\"workers\":[]}",
		"a: meeting for 7s; waiting for nodes 1 (n1), 2, 3\n"
		"node 0 of 4 on n0: launcher 1, supervisor 2\n",
		{ 0 } },
	{ "a job that ends",
		"{\"at\":62,\"name\":\"a\",\"run_id\":\"a\",\"state\":\"working\",\"nnodes\":1,\"node_rank\":0,"
		"\"host\":\"h\",\"guard_pid\":1,\"supervisor_pid\":2,"
		"\"attempt_started_at\":1,\"stopping\":\"a worker failed\",\"awaited\":[2]}",
		"a: working for 1:01; waiting for node 2; stopping: a worker failed\n"
		"node 0 of 1 on h: launcher 1, supervisor 2\n",
		{ 0 } },
	{ "where workers are",
		"{\"at\":62,\"name\":\"a\",\"state\":\"over\",\"nnodes\":1,\"node_rank\":0,"
		"\"host\":\"h\",\"guard_pid\":1,\"supervisor_pid\":2,"
		"\"placement\":{\"picture\":[\"1 socket\",\"  NUMA \\u001bnode\",3]}}",
		"a: over\nnode 0 of 1 on h: launcher 1, supervisor 2\n"
		"\nPlacement\n  1 socket\n    NUMA \\x1bnode\n",
		{ 0 } },
	{ "a placement of nonsense",
		"{\"name\":\"a\",\"state\":\"over\",\"placement\":{\"picture\":\"x\"}}",
		"a: over\none of 0 nodes: launcher 0, supervisor 0\n", { 0 } },
	{ "another launcher's nonsense",
		"{\"at\":8,\"name\":3,\"workers\":{\"x\":1},\"guard_pid\":\"no\"}",
		"?\none of 0 nodes: launcher 0, supervisor 0\n"
		"RANK  LOCAL  PID  STATE  TIME  CPU  MEMORY  STORE  LAST LINE\n"
		"0     0      -    -      -     -    -       -      -\n",
		{ 0 } },
};

static void show(const struct view_row *row,
	void (*view)(const struct cjson *, const cJSON *, const struct view_frame *, struct arena *,
		struct text *))
{
	struct arena arena = { 0 };
	struct text out = { 0 };
	cJSON *root = parse(row->status);
	struct view_frame frame = { .width = 0 };

	if (row->gpu.worker) {
		frame.gpus = &row->gpu;
		frame.gpu_count = 1;
	}
	view(&cjson, root, &frame, &arena, &out);
	assert_string_equal(text_string(&out), row->text);
	cjson.free(root);
	text_done(&out);
	arena_done(&arena);
}

static void test_view(void **state)
{
	show(*state, job_view_status);
}

static void test_pids(void **state)
{
	cJSON *root = parse(views[1].status);
	pid_t pid;

	(void)state;
	assert_int_equal(job_view_pids(&cjson, root, &pid, 1), 1);
	assert_int_equal(pid, views[1].gpu.worker);
	cjson.free(root);
}

static const struct view_row nodes[] = {
	{ "workers of two nodes, each by its own clock, and a pid that both have",
		"{\"nodes\":[{\"at\":8200,\"name\":\"llama\",\"run_id\":\"17\",\"state\":\"working\","
		"\"nnodes\":2,\"node_rank\":0,\"host\":\"n0\",\"guard_pid\":811,\"supervisor_pid\":812,"
		"\"attempt_started_at\":1000,\"workers\":[{\"rank\":0,\"local_rank\":0,\"pid\":820,"
		"\"state\":\"running\",\"started_at\":8140,\"joined\":true,\"last_line\":\"a\"}]},"
		"{\"at\":99,\"node_rank\":1,\"host\":\"n1\",\"workers\":[{\"rank\":1,\"local_rank\":0,"
		"\"pid\":820,\"state\":\"running\",\"started_at\":40}]}]}",
		"llama, run 17: working for 2:00:00\n"
		"node 0 of 2 on n0: launcher 811, supervisor 812\n"
		"NODE  HOST  RANK  LOCAL  PID  STATE    TIME  CPU  MEMORY  GPU MEMORY  STORE   LAST LINE\n"
		"0     n0    0     0      820  running  1:00  -    -       71 GiB      joined  a\n"
		"1     n1    1     0      820  running  59s   -    -       -           -       -\n",
		{ .worker = 820, .bytes = 71ULL << 30 } },
	{ "nodes without workers that are known",
		"{\"nodes\":[{\"at\":8,\"name\":\"a\",\"state\":\"opening\",\"nnodes\":3,\"node_rank\":0,"
		"\"host\":\"n0\",\"guard_pid\":1,\"supervisor_pid\":2,\"workers\":[]},"
		"{\"node_rank\":1,\"host\":\"n\\u001b1\",\"error\":\"it is lost\"},"
		"{\"node_rank\":2,\"host\":null,\"error\":\"it has not joined\"}]}",
		"a: opening\nnode 0 of 3 on n0: launcher 1, supervisor 2\n"
		"node 0 on n0: opening\nnode 1 on n\\x1b1: it is lost\nnode 2: it has not joined\n",
		{ 0 } },
	{ "no answer of node rank 0's", "{\"nodes\":3}", "", { 0 } },
	{ "nonsense", "{\"nodes\":[7]}", "?\none of 0 nodes: launcher 0, supervisor 0\nnode 0\n",
		{ 0 } },
};

static void test_nodes(void **state)
{
	show(*state, job_view_nodes);
}

static void test_list(void **state)
{
	struct arena arena = { 0 };
	struct columns c = { .arena = &arena };
	struct text out = { 0 };
	cJSON *root = parse(views[0].status);

	(void)state;
	job_view_head(&c);
	job_view_row(&cjson, root, 811, "me", &c);
	columns_print(&c, 0, &out);
	assert_string_equal(text_string(&out),
		"JOB    RUN ID  PID  USER  STATE    NODE    WORKERS  TIME\n"
		"llama  17      811  me    working  0 of 2  1 of 3   2:16:30\n");
	cjson.free(root);
	text_done(&out);
	arena_done(&arena);
}

TESTS(job_view)
{
	struct suite s = { .count = 0 };
	struct failure why;

	if (cjson_open(NULL, &cjson, &why) < 0)
		return 77; /* not here */
	SUITE_ROWS(&s, test_view, views);
	SUITE_ROWS(&s, test_nodes, nodes);
	suite_add(&s, "the workers that run", test_pids, NULL, NULL);
	suite_add(&s, "a list of jobs", test_list, NULL, NULL);
	return suite_run(&s);
}
