/* test_keep.c - the files of a bundle: made, cut to their room, and removed again. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/text.h"
#include "daemon/blackbox/keep.h"
#include "tests/unit/daemon/output/scratch_dir.h"

#define NAME(n) "failure-20261126T11223" #n ".000Z-attempt-0"

static int open_part(const char *name)
{
	struct failure why = { 0 };
	autoclose failure_fd = keep_open_failure("a/box", name, &why);
	int fd;

	assert_true(failure_fd >= 0);
	fd = keep_open_node(failure_fd, 3, &why);
	assert_true(fd >= 0);
	return fd;
}

static void test_made(void **state)
{
	struct failure why = { 0 };
	autoclose fd = open_part(NAME(1));
	autoclose again = open_part(NAME(1)); /* another launcher was there before */
	char path[4096];

	(void)state;
	assert_true(again >= 0);
	assert_int_equal(keep_write(fd, "bundle.json", "{}", 2, &why), 0);
	assert_file("a/box/" NAME(1) "/node-3/bundle.json", "{}");
	assert_int_equal(keep_path(fd, path, sizeof path), 0);
	assert_int_equal(*path, '/');
	assert_contains(path, "/a/box/" NAME(1) "/node-3");
	assert_int_equal(keep_path(fd, path, 4), -ENAMETOOLONG);
}

static void test_not_made(void **state)
{
	struct failure why = { 0 };
	int fd = open("file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	(void)state;
	assert_true(fd >= 0 && close(fd) == 0);
	assert_int_equal(keep_open_failure("file/box", NAME(1), &why), -ENOTDIR);
	assert_contains(why.text, "--blackbox: file/box/failure-");
	assert_contains(why.text, "Not a directory");
}

/* A link that somebody has put there leads nowhere. */
static void test_link(void **state)
{
	struct failure why = { 0 };
	autoclose fd = open_part(NAME(1));

	(void)state;
	assert_int_equal(symlinkat("/nowhere", fd, "bundle.json.new"), 0);
	assert_int_equal(keep_write(fd, "bundle.json", "{}", 2, &why), -ELOOP);
	assert_contains(why.text, "bundle.json can't be written");
	assert_file("a/box/" NAME(1) "/node-3/bundle.json", NULL);
}

/* Whole or not at all. */
static void test_full(void **state)
{
	enum { LEN = 100000 };
	char *bytes = calloc(1, LEN);
	struct failure why = { 0 };
	autoclose fd = open_part(NAME(1));

	(void)state;
	assert_non_null(bytes);
	limit_file_size(1000);
	assert_true(keep_write(fd, "bundle.json", bytes, LEN, &why) < 0);
	limit_file_size(0);
	assert_file("a/box/" NAME(1) "/node-3/bundle.json", NULL);
	assert_file("a/box/" NAME(1) "/node-3/bundle.json.new", NULL);
	free(bytes);
}

static void write_lines(const char *path, unsigned count, const char *end)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	for (unsigned i = 1; i <= count; i++)
		(void)fprintf(f, "%u%s", i, i < count ? "\n" : end);
	assert_int_equal(fclose(f), 0);
}

static const struct tail_row {
	const char *says;
	unsigned lines;
	const char *end, *first; /* first NULL: no file */
} tails[] = {
	{ "no line", 0, "", NULL },
	{ "one without an end", 1, "", "1" },
	{ "one", 1, "\n", "1\n" },
	{ "as many as are kept", 200, "\n", "1\n" },
	{ "one more", 201, "\n", "2\n" },
	{ "one more, without an end", 201, "", "2\n" },
	{ "more than are read", 200000, "\n", "199801\n" },
};

static void test_tail(void **state)
{
	const struct tail_row *row = *state;
	struct failure why = { 0 };
	struct text kept;

	{
		autoclose fd = open_part(NAME(1));

		write_lines("log", row->lines, row->end);
		assert_int_equal(keep_tail(fd, "tail.txt", "log", &why), 0);
	}
	if (row->first) {
		kept = scratch_read("a/box/" NAME(1) "/node-3/tail.txt");
		assert_memory_equal(text_string(&kept), row->first, strlen(row->first));
		text_done(&kept);
	} else {
		assert_file("a/box/" NAME(1) "/node-3/tail.txt", NULL);
	}
	scratch_clear();
}

/* No log, or one that would hold whoever reads it up. */
static void test_no_tail(void **state)
{
	struct failure why = { 0 };
	autoclose fd = open_part(NAME(1));

	(void)state;
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(keep_tail(fd, "tail.txt", "nowhere", &why), 0);
	assert_int_equal(keep_tail(fd, "tail.txt", "fifo", &why), 0);
	assert_file("a/box/" NAME(1) "/node-3/tail.txt", NULL);
}

static void make_file(int fd, const char *name, size_t len)
{
	char *bytes = calloc(1, len);
	struct failure why = { 0 };

	assert_non_null(bytes);
	assert_int_equal(keep_write(fd, name, bytes, len, &why), 0);
	free(bytes);
}

static off_t size_of(int fd, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(fd, name, &st, 0), 0);
	return st.st_size;
}

/* The longest files give way, all to the same length. */
static void test_within(void **state)
{
	autoclose fd = open_part(NAME(1));

	(void)state;
	make_file(fd, "short", 10);
	make_file(fd, "long", 5000);
	make_file(fd, "longer", 9000);
	assert_int_equal(keep_within(fd, 20000), 0);
	assert_int_equal(size_of(fd, "longer"), 9000);
	assert_int_equal(keep_within(fd, 9010), 2);
	assert_int_equal(size_of(fd, "long"), 4500);
	assert_int_equal(size_of(fd, "longer"), 4500);
	assert_int_equal(keep_within(fd, 411), 2);
	assert_int_equal(size_of(fd, "long"), 200);
	assert_int_equal(size_of(fd, "longer"), 200);
	assert_int_equal(keep_within(fd, 11), 3);
	assert_true(size_of(fd, "short") + size_of(fd, "long") + size_of(fd, "longer") <= 11);
	assert_int_equal(keep_within(fd, 0), 3);
	assert_int_equal(keep_within(fd, 0), 0);
}

/* The end is what tells. */
static void test_cut(void **state)
{
	autoclose fd = open_part(NAME(1));
	struct failure why = { 0 };
	struct text log = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++)
		text_printf(&log, "line %d\n", i);
	assert_int_equal(keep_write(fd, "rank-0.stderr.txt", text_string(&log), log.len, &why), 0);
	assert_int_equal(keep_within(fd, 65), 1);
	assert_file("a/box/" NAME(1) "/node-3/rank-0.stderr.txt",
		"[launchd has cut what was before this]\nline 998\nline 999\n");
	text_done(&log);
}

/* A part of a dump can't be read. */
static void test_whole(void **state)
{
	autoclose fd = open_part(NAME(1));

	(void)state;
	make_file(fd, "flight-recorder.rank-3", 9000);
	make_file(fd, "rank-3.stdout.txt", 5000);
	make_file(fd, "rank-3.stderr.txt", 5000);
	assert_int_equal(keep_within(fd, 13000), 2);
	assert_int_equal(size_of(fd, "flight-recorder.rank-3"), 9000);
	assert_int_equal(size_of(fd, "rank-3.stdout.txt"), 2000);
	assert_int_equal(size_of(fd, "rank-3.stderr.txt"), 2000);
}

static bool is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

/* What isn't ours stays, whatever its name is; so does what links lead to. */
static void test_newest(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		static const char *const names[] = { NAME(1), NAME(2), NAME(3), NAME(4), NAME(5) };
		autoclose fd = open_part(names[i]);

		make_file(fd, "bundle.json", 10);
		assert_int_equal(symlinkat("../../../../kept", fd, "link"), 0);
	}
	assert_int_equal(mkdir("kept", 0700), 0);
	assert_int_equal(mkdir("a/box/" NAME(0), 0700), 0); /* of ours by its name alone */
	assert_int_equal(mkdir("a/box/mine", 0700), 0);
	assert_int_equal(keep_newest("a/box", 2, NAME(5)), 3);
	assert_false(is_there("a/box/" NAME(3)));
	assert_true(is_there("a/box/" NAME(4) "/node-3/bundle.json"));
	assert_true(is_there("a/box/" NAME(5) "/node-3/bundle.json"));
	assert_true(is_there("a/box/" NAME(0)) && is_there("a/box/mine") && is_there("kept"));
	assert_int_equal(keep_newest("a/box", 2, NAME(5)), 0);
	assert_int_equal(keep_newest("nowhere", 2, NAME(5)), 0);
}

static int tear_down(void **state)
{
	(void)state;
	scratch_clear();
	return 0;
}

TESTS(keep)
{
	static struct suite s;
	int rc = scratch_make() < 0 ? 2 : 0;

	if (rc != 0)
		return rc;
	suite_add(&s, "all that is missing of a path is made", test_made, NULL, tear_down);
	suite_add(&s, "where nothing can be made that is said", test_not_made, NULL, tear_down);
	suite_add(&s, "a link is not followed", test_link, NULL, tear_down);
	suite_add(&s, "a full disk leaves no half of a file", test_full, NULL, tear_down);
	SUITE_ROWS(&s, test_tail, tails);
	suite_add(&s, "a log that is none is left out", test_no_tail, NULL, tear_down);
	suite_add(&s, "files are cut to their room", test_within, NULL, tear_down);
	suite_add(&s, "of what is cut the end stays", test_cut, NULL, tear_down);
	suite_add(&s, "a dump stays whole", test_whole, NULL, tear_down);
	suite_add(&s, "the newest are kept, and what is not ours", test_newest, NULL, tear_down);
	rc = suite_run(&s);
	return scratch_done() < 0 ? 2 : rc;
}
