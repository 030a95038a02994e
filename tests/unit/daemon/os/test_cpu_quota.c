/* test_cpu_quota.c - the least quota of a cgroup and those above it, in trees of files. */
#include "tests/unit/daemon/output/scratch_dir.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/os/cgroup_paths.h"
#include "daemon/os/cpu_quota.h"

static const struct quota_row {
	const char *says;
	const char *top, *slice, *own; /* cpu.max of version 2; NULL: no such file */
	const char *old_quota;         /* cpu.cfs_quota_us of version 1, of a period of 50 ms */
	uint64_t quota;
} rows[] = {
	{ "no quota", NULL, "max 100000\n", "max 100000\n", NULL, 0 },
	{ "no cgroup has the controller", NULL, NULL, NULL, NULL, 0 },
	{ "our own", NULL, "max 100000\n", "400000 100000\n", NULL, 4000 },
	{ "a part of a CPU", NULL, NULL, "150000 100000\n", NULL, 1500 },
	{ "one above ours", NULL, "250000 100000\n", "max 100000\n", NULL, 2500 },
	{ "the least counts", NULL, "250000 100000\n", "400000 100000\n", NULL, 2500 },
	{ "a container's, at the mount point", "200000 100000\n", "max 100000\n", "max 100000\n",
		NULL, 2000 },
	{ "next to nothing", NULL, NULL, "1000 10000000\n", NULL, 1 },
	{ "what is no number", NULL, NULL, "much 100000\n", NULL, 0 },
	{ "half a line", NULL, NULL, "100000\n", NULL, 0 },
	{ "version 1", NULL, NULL, NULL, "150000\n", 3000 },
	{ "version 1 without", NULL, NULL, NULL, "-1\n", 0 },
	{ "both", NULL, NULL, "200000 100000\n", "150000\n", 2000 },
};

static void write_file(const char *dir, const char *name, const char *text)
{
	char path[128];
	FILE *file;

	if (!text)
		return;
	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void test_quota(void **state)
{
	const struct quota_row *row = *state;
	char root[] = "/tmp/launchd_test_cpu_quota_XXXXXX", slice[64], own[64], old[64];
	struct cgroup_paths paths = { .unified = { own, 0 }, .cpu = { old, 0 } };
	uint64_t quota;

	assert_non_null(mkdtemp(root));
	paths.unified.top = paths.cpu.top = strlen(root);
	(void)snprintf(slice, sizeof slice, "%s/slice", root);
	(void)snprintf(own, sizeof own, "%s/slice/own", root);
	(void)snprintf(old, sizeof old, "%s/old", root);
	assert_true(mkdir(slice, 0700) == 0 && mkdir(own, 0700) == 0 && mkdir(old, 0700) == 0);
	write_file(root, "cpu.max", row->top);
	write_file(slice, "cpu.max", row->slice);
	write_file(own, "cpu.max", row->own);
	write_file(old, "cpu.cfs_quota_us", row->old_quota);
	write_file(old, "cpu.cfs_period_us", "50000\n");
	quota = cpu_quota_read(&paths);
	assert_int_equal(scratch_remove(root), 0);
	assert_int_equal(quota, row->quota);
}

static void test_nowhere(void **state)
{
	const struct cgroup_paths paths = { 0 };

	(void)state;
	assert_int_equal(cpu_quota_read(&paths), 0);
}

TESTS(cpu_quota)
{
	static struct suite s;

	SUITE_ROWS(&s, test_quota, rows);
	suite_add(&s, "no cgroup", test_nowhere, NULL, NULL);
	return suite_run(&s);
}
