/* test_check_options.c - options of launchd-nodecheck, its place, and what is demanded of GPUs. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "common/text.h"
#include "daemon/nodecheck/check_options.h"
#include "daemon/nodecheck/gpu_speed.h"

static const struct options_row {
	const char *says;
	const char *argv[4];
	int rc;
	const char *part; /* of the sentence */
} rows[] = {
	{ "none", { NULL }, 0, NULL },
	{ "a value behind =", { "--limit=90s" }, 0, NULL },
	{ "a value in the next word", { "--limit", "90" }, 0, NULL },
	{ "an unknown one", { "--fast" }, -EINVAL, "\"--fast\" is no option" },
	{ "a word", { "fast" }, -EINVAL, "\"fast\" is no option" },
	{ "a value for none", { "--json=yes" }, -EINVAL, "--json takes no value" },
	{ "no value", { "--limit" }, -EINVAL, "--limit wants a value: SECONDS" },
	{ "no time", { "--limit", "soon" }, -EINVAL, "--limit: \"soon\"" },
	{ "no time at all", { "--limit", "0" }, -EINVAL, "--limit: \"0\"" },
	{ "too much", { "--memory", "101" }, -EINVAL, "from 1 to 100" },
	{ "an unknown stage", { "--only", "gpu,all" }, -EINVAL, "\"all\" is none of gpu" },
	{ "an empty stage", { "--only", "gpu," }, -EINVAL, "\"\" is none of gpu" },
	{ "an unknown demand", { "--least", "speed=1" }, -EINVAL, "\"speed\" is none of" },
	{ "a demand without a rate", { "--least", "node" }, -EINVAL, "\"node\" is no NAME=RATE" },
	{ "a demand that is no rate", { "--least", "node=fast" }, -EINVAL, "\"fast\" of node" },
};

static int read_row(const char *const *words, struct check_options *o, struct failure *why)
{
	char *argv[6] = { (char *)(uintptr_t) "launchd-nodecheck" };
	int argc = 1;

	for (size_t i = 0; i < 4 && words[i]; i++)
		argv[argc++] = (char *)(uintptr_t)words[i];
	return check_options_read(argc, argv, o, why);
}

static void test_row(void **state)
{
	const struct options_row *row = *state;
	struct check_options o = { .memory_percent = 4711 };
	struct failure why = { 0 };

	assert_outcome(read_row(row->argv, &o, &why), row->rc, &why, row->part);
	if (row->rc < 0) {
		assert_int_equal(o.memory_percent, 4711);
		assert_int_equal(failure_exit_code(&why), 2);
	}
}

static void test_values(void **state)
{
	const char *const words[] = { "--least=memory=2600,compute=38.5,job=0.5",
		"--only=gpu,pairs", "--message=64", "--peers=0" };
	struct check_options o;
	struct failure why = { 0 };

	(void)state;
	assert_int_equal(read_row(words, &o, &why), 0);
	assert_int_equal(o.demands.least[DEMAND_MEMORY], 2600000);
	assert_int_equal(o.demands.least[DEMAND_COMPUTE], 38500000);
	assert_int_equal(o.demands.least[DEMAND_JOB], 500);
	assert_true(o.demands.stages[STAGE_GPU] && o.demands.stages[STAGE_PAIRS]);
	assert_false(o.demands.stages[STAGE_NODE] || o.demands.stages[STAGE_JOB]);
	assert_int_equal(o.message_bytes, 64 << 20);
	assert_int_equal(o.demands.percent, 0);
	assert_int_equal(o.memory_percent, 90);
}

static void test_help(void **state)
{
	struct text out = { 0 };

	(void)state;
	check_options_help(&out);
	assert_contains(text_string(&out), "--least NAME=RATE");
	assert_null(strstr(text_string(&out), "--part")); /* its own affair */
	text_done(&out);
}

static const char *const *environment;

static const char *variable(const char *name)
{
	size_t len = strlen(name);

	for (const char *const *at = environment; *at; at++)
		if (strncmp(*at, name, len) == 0 && (*at)[len] == '=')
			return *at + len + 1;
	return NULL;
}

static const struct place_row {
	const char *says;
	const char *env[9];
	int rc;
	const char *part;
	unsigned rank, node;
} places[] = {
	{ "by hand", { NULL }, 0, NULL, 0, 0 },
	{ "as a worker",
		{ "RANK=5", "WORLD_SIZE=8", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=4", "GROUP_RANK=1",
			"MASTER_ADDR=n0", "MASTER_PORT=29500" },
		0, NULL, 5, 1 },
	{ "without a group",
		{ "RANK=1", "WORLD_SIZE=2", "NODE_RANK=1", "MASTER_ADDR=n0", "MASTER_PORT=29500" },
		0, NULL, 1, 1 },
	{ "one alone needs no store", { "RANK=0", "WORLD_SIZE=1" }, 0, NULL, 0, 0 },
	{ "a rank beyond the end", { "RANK=8", "WORLD_SIZE=8" }, -EINVAL, "RANK: \"8\"", 0, 0 },
	{ "no store", { "RANK=1", "WORLD_SIZE=2" }, -EINVAL, "MASTER_ADDR and MASTER_PORT", 0, 0 },
	{ "no number", { "RANK=x", "WORLD_SIZE=2" }, -EINVAL, "RANK: \"x\"", 0, 0 },
	{ "local ranks that don't fit",
		{ "RANK=7", "WORLD_SIZE=8", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=4", "MASTER_ADDR=a",
			"MASTER_PORT=1" },
		-EINVAL, "don't fit together", 0, 0 },
};

static void test_place(void **state)
{
	const struct place_row *row = *state;
	struct check_place p = { 0 };
	struct failure why = { 0 };

	environment = row->env;
	assert_outcome(check_place_read(variable, &p, &why), row->rc, &why, row->part);
	assert_int_equal(p.rank, row->rank);
	assert_int_equal(p.node, row->node);
}

static const struct speed_row {
	const char *says, *name, *words;
} speeds[] = {
	{ "H100 of a board", "NVIDIA H100 80GB HBM3", "H100" },
	{ "H100 of a slot", "NVIDIA H100 PCIe", "H100 PCIe" },
	{ "H100 in pairs", "NVIDIA H100 NVL", "H100 NVL" },
	{ "H200", "NVIDIA H200", "H200" },
	{ "Grace Hopper is no H200", "NVIDIA GH200 480GB", "GH200" },
	{ "A10 is no A100", "NVIDIA A10", "A10" },
	{ "A100 is no A10", "NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB" },
	{ "A10G is no A10", "NVIDIA A10G", "A10G" },
	{ "L4 is no L40", "NVIDIA L4", "L4" },
	{ "another one", "NVIDIA GeForce RTX 5090", NULL },
	{ "nothing", "", NULL },
};

static void test_speed(void **state)
{
	const struct speed_row *row = *state;
	const struct gpu_speed *s = gpu_speed_find(row->name);

	assert_int_equal(s != NULL, row->words != NULL);
	if (s)
		assert_string_equal(s->words, row->words);
}

/* No row is hidden by one before it. */
static void test_speeds_all_found(void **state)
{
	(void)state;
	for (const struct gpu_speed *s = gpu_speeds; s->words; s++)
		assert_ptr_equal(gpu_speed_find(s->words), s);
}

TESTS(check_options)
{
	struct suite s = { .count = 0 };

	SUITE_ROWS(&s, test_row, rows);
	suite_add(&s, "values arrive", test_values, NULL, NULL);
	suite_add(&s, "--help has what is the user's", test_help, NULL, NULL);
	SUITE_ROWS(&s, test_place, places);
	SUITE_ROWS(&s, test_speed, speeds);
	suite_add(&s, "each model is found by its own words", test_speeds_all_found, NULL, NULL);
	return suite_run(&s);
}
