/* test_spaces.c - whether a job has filled a file system, by what was free before it. */
#include "tests/unit/unit.h"

#include <sys/statvfs.h>

#include "common/text.h"
#include "daemon/check/spaces.h"

enum { MB = 1 << 20, FS = 7, OTHER = 8 };

static const struct space_row {
	const char *says;
	unsigned long blocks, bytes, files, inodes, flags; /* now; a block is a byte */
	struct disk_space before;
	enum health health;
	const char *why;
} rows[] = {
	{ "there is room", 1000 * MB, 500 * MB, 10, 5, 0, { true, FS, 900 * MB, 9 }, HEALTH_GOOD,
		"" },
	{ "a small one that is empty", 10 * MB, 10 * MB, 10, 9, 0, { true, FS, 10 * MB, 9 },
		HEALTH_GOOD, "" },
	{ "a small one of which some is used", 10 * MB, 6 * MB, 10, 9, 0, { true, FS, 10 * MB, 9 },
		HEALTH_GOOD, "" },
	{ "a small one that was filled", 10 * MB, 1 * MB, 10, 9, 0, { true, FS, 10 * MB, 9 },
		HEALTH_BAD,
		"it is full: 1 MiB of 10 MiB are free, and 10 MiB were before the job's first "
		"attempt" },
	{ "a large one that was filled", 900 * MB, 0, 10, 9, 0, { true, FS, 800 * MB, 9 },
		HEALTH_BAD,
		"it is full: 0 bytes of 900 MiB are free, and 800 MiB were before the job's first "
		"attempt" },
	{ "a large one that was nearly full before", 900 * MB, 9 * MB, 10, 9, 0,
		{ true, FS, 12 * MB, 9 }, HEALTH_GOOD, "" },
	{ "one that was full before", 900 * MB, 0, 10, 9, 0, { true, FS, 0, 9 }, HEALTH_GOOD, "" },
	{ "the last byte of it", 900 * MB, 0, 10, 9, 0, { true, FS, 1, 9 }, HEALTH_BAD,
		"it is full: 0 bytes of 900 MiB are free, and 1 byte were before the job's first attempt" },
	{ "nobody had looked", 900 * MB, 0, 10, 9, 0, { 0 }, HEALTH_UNKNOWN,
		"it is full: 0 bytes of 900 MiB are free; how it was before the job's first attempt is "
		"unknown" },
	{ "another one was there", 10 * MB, 10 * MB, 10, 9, 0, { true, OTHER, 900 * MB, 9 },
		HEALTH_UNKNOWN,
		"it is full: 10 MiB of 10 MiB are free; how it was before the job's first attempt "
		"is unknown" },
	{ "no inode is left", 900 * MB, 500 * MB, 10, 0, 0, { true, FS, 500 * MB, 3 }, HEALTH_BAD,
		"no inode is free" },
	{ "none was left before", 900 * MB, 500 * MB, 10, 0, 0, { true, FS, 500 * MB, 0 },
		HEALTH_GOOD, "" },
	{ "inodes aren't counted", 900 * MB, 500 * MB, 0, 0, 0, { true, FS, 500 * MB, 0 },
		HEALTH_GOOD, "" },
	{ "nothing is counted", 0, 0, 0, 0, 0, { true, FS, 0, 0 }, HEALTH_GOOD, "" },
	{ "nobody writes there", 900 * MB, 0, 10, 0, ST_RDONLY, { true, FS, 10 * MB, 9 },
		HEALTH_GOOD, "" },
};

static void test_judge(void **state)
{
	const struct space_row *row = *state;
	const struct statvfs now = { .f_frsize = 1,
		.f_blocks = row->blocks,
		.f_bavail = row->bytes,
		.f_files = row->files,
		.f_favail = row->inodes,
		.f_flag = row->flags,
		.f_fsid = FS };
	struct text why = { 0 };

	assert_int_equal(space_judge(&now, &row->before, &why), row->health);
	assert_string_equal(text_string(&why), row->why);
	text_done(&why);
}

TESTS(spaces)
{
	static struct suite s;

	SUITE_ROWS(&s, test_judge, rows);
	return suite_run(&s);
}
