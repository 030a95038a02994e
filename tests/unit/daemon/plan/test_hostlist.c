/* test_hostlist.c - the first host of Slurm's lists. */
#include "tests/unit/unit.h"

#include "daemon/plan/topology.h"

static const struct host_row {
	const char *says, *list, *first;
} rows[] = {
	{ "one host", "gpu1", "gpu1" },
	{ "several hosts", "gpu1,gpu2", "gpu1" },
	{ "a range", "gpu[1-4]", "gpu1" },
	{ "a range with leading zeros", "gpu[001-004]", "gpu001" },
	{ "numbers", "gpu[3,1]", "gpu3" },
	{ "numbers and ranges, and another name", "gpu[01-04,07],login", "gpu01" },
	{ "a bracket in the middle", "rack[2-3]-node", "rack2-node" },
	{ "two brackets", "r[2-3]n[07-09]", "r2n07" },
	{ "a name that holds a dash", "gpu-a-[1-2]", "gpu-a-1" },
	{ "a name with a dot", "a.b[1-2].c,d", "a.b1.c" },
	{ "nothing", "", "" },
	{ "an open bracket", "gpu[1", "gpu1" },
	{ "an empty bracket", "gpu[]x", "gpux" },
	{ "only a comma", ",a", "" },
};

static void test_first(void **state)
{
	const struct host_row *row = *state;
	struct arena a = { 0 };

	assert_string_equal(hostlist_first(&a, row->list), row->first);
	arena_done(&a);
}

TESTS(hostlist)
{
	static struct suite s;

	SUITE_ROWS(&s, test_first, rows);
	return suite_run(&s);
}
