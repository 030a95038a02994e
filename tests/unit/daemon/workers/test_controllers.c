/* test_controllers.c - sets of controllers and limits as the kernel's files have them. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "daemon/plan/plan.h"
#include "daemon/workers/controllers.h"

#define MEMORY CONTROLLER_BIT(CONTROLLER_MEMORY)
#define CPU    CONTROLLER_BIT(CONTROLLER_CPU)
#define PIDS   CONTROLLER_BIT(CONTROLLER_PIDS)

static const struct list_row {
	const char *says, *list;
	unsigned set;
	const char *enables, *shown;
} lists[] = {
	{ "nothing", "", 0, "", "" },
	{ "an empty line", "\n", 0, "", "" },
	{ "all, among others", "cpuset cpu io memory hugetlb pids rdma misc\n", MEMORY | CPU | PIDS,
		"+memory +cpu +pids", "memory, cpu, pids" },
	{ "a name that begins so", "cpuset memoryless pids", PIDS, "+pids", "pids" },
	{ "a name that is cut off", "mem cp", 0, "", "" },
};

static void test_list(void **state)
{
	const struct list_row *row = *state;
	struct text enables = { 0 }, shown = { 0 };

	assert_int_equal(controllers_parse(row->list), row->set);
	controllers_add(&enables, row->set, '+');
	controllers_add(&shown, row->set, '\0');
	assert_string_equal(text_string(&enables), row->enables);
	assert_string_equal(text_string(&shown), row->shown);
	text_done(&enables);
	text_done(&shown);
}

static const struct limit_row {
	const char *says;
	struct worker_limits limits;
	unsigned need;
	const char *files; /* "name=text " each */
	const char *from;  /* of the first */
} limits[] = {
	{ "none", { 0, 0, 0, "m", "c", "p" }, 0, "", NULL },
	{ "memory", { 1 << 20, 0, 0, "m", "c", "p" }, MEMORY,
		"memory.max=1048576 memory.oom.group=1 memory.swap.max=0 ", "m" },
	{ "CPUs with decimals", { 0, 1500, 0, "m", "c", "p" }, CPU, "cpu.max=150000 100000 ", "c" },
	{ "the least of a CPU", { 0, 10, 0, "m", "c", "p" }, CPU, "cpu.max=1000 100000 ", "c" },
	{ "pids", { 0, 0, 9, "m", "c", "job.ini:3" }, PIDS, "pids.max=9 ", "job.ini:3" },
	{ "all", { 4096, 65536000, 1, "m", "c", "p" }, MEMORY | CPU | PIDS,
		"memory.max=4096 memory.oom.group=1 memory.swap.max=0 cpu.max=6553600000 100000 "
		"pids.max=1 ",
		"m" },
};

static void test_limits(void **state)
{
	const struct limit_row *row = *state;
	struct limit_file files[LIMIT_FILES_MAX];
	size_t count = limits_files(&row->limits, files);
	struct text all = { 0 };

	assert_in_range(count, 0, LIMIT_FILES_MAX);
	for (size_t i = 0; i < count; i++)
		text_printf(&all, "%s=%s ", files[i].name, files[i].text);
	assert_string_equal(text_string(&all), row->files);
	text_done(&all);
	assert_int_equal(limits_need(&row->limits), row->need);
	if (row->from)
		assert_string_equal(limits_from(&row->limits, row->need), row->from);
	else
		assert_null(limits_from(&row->limits, MEMORY | CPU | PIDS));
}

/* Of several limits the one that lacks its controller. */
static void test_from(void **state)
{
	const struct worker_limits all = { 1, 1, 1, "m", "c", "p" };

	(void)state;
	assert_string_equal(limits_from(&all, PIDS), "p");
	assert_string_equal(limits_from(&all, PIDS | CPU), "c");
	assert_null(limits_from(&all, 0));
}

TESTS(controllers)
{
	static struct suite s;

	SUITE_ROWS(&s, test_list, lists);
	SUITE_ROWS(&s, test_limits, limits);
	suite_add(&s, "the limit that can't be set", test_from, NULL, NULL);
	return suite_run(&s);
}
