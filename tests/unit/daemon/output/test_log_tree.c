/* test_log_tree.c - the directories of log files are torchrun's. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/output/log_tree.h"
#include "tests/unit/daemon/output/scratch_dir.h"

static bool is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* "file" is one, "there" is a directory. */
static void setup(void)
{
	FILE *f;

	scratch_clear();
	f = fopen("file", "we");
	assert_true(f && fclose(f) == 0 && mkdir("there", 0700) == 0);
}

static const struct run_row {
	const char *says, *log_dir, *run_id;
	const char *where; /* below the working directory, or absolute; the name follows */
	int rc;
	const char *part;
} runs[] = {
	{ "a directory that is there", "there", "job", "there/job_", 0, NULL },
	{ "a new one", "new", "job", "new/job_", 0, NULL },
	{ "several new ones", "a/b/c", "job", "a/b/c/job_", 0, NULL },
	{ "with slashes", "there//d/", "job", "there//d//job_", 0, NULL },
	{ "this directory", ".", "job", "./job_", 0, NULL },
	{ "a run id with a slash is one directory", "there", "../a/b", "there/.._a_b_", 0, NULL },
	{ "an empty run id", "there", "", "there/_", 0, NULL },
	{ "a file", "file", "job", NULL, -ENOTDIR, "/file: Not a dir" },
	{ "below a file", "file/a", "job", NULL, -ENOTDIR, "/file/a: Not a dir" },
	{ "below a file's new directory", "file/a/b", "job", NULL, -ENOTDIR,
		"can't create the log" },
	{ "where nothing can be made", "/proc/logs", "job", NULL, -ENOENT,
		"can't create the log directory /proc/logs: " },
	{ "below such a place: the first one that can't be made is named", "/proc/logs/a", "job",
		NULL, -ENOENT, "can't create the log directory /proc/logs: " },
};

static void test_run(void **state)
{
	static const char *const env[] = { NULL };
	const struct run_row *row = *state;
	struct log_tree tree = { .lock = -1 };
	const char *path, *name;
	struct failure why = { 0 };
	struct arena arena = { 0 };
	char here[256], expected[512];
	int rc;

	setup();
	assert_non_null(getcwd(here, sizeof here));
	rc = tree_make_run(row->log_dir, row->run_id, env, &arena, &tree, &why);
	path = tree.run_dir;
	assert_outcome(rc, row->rc, &why, row->part);
	if (rc == 0) {
		(void)snprintf(expected, sizeof expected, "%s/%s", here, row->where);
		assert_true(is_dir(path));
		assert_int_equal(strlen(path), strlen(expected) + 8);
		assert_memory_equal(path, expected, strlen(expected));
		name = path + strlen(expected);
		assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_"), 8);
	} else {
		assert_null(path);
	}
	arena_done(&arena);
}

static void test_tmpdir(void **state)
{
	char here[256], variable[300];
	const char *env[] = { variable, NULL }, *first;
	struct log_tree tree = { .lock = -1 };
	struct failure why = { 0 };
	struct arena arena = { 0 };
	struct stat st;
	char base[512];
	int fd;

	(void)state;
	setup();
	assert_non_null(getcwd(here, sizeof here));
	(void)snprintf(variable, sizeof variable, "TMPDIR=%s", here);
	assert_int_equal(tree_make_run(NULL, "job", env, &arena, &tree, &why), 0);
	first = tree.run_dir;
	assert_contains(first, here);
	assert_contains(first, "/launchd_logs_");
	assert_contains(first, "/job_");
	(void)snprintf(base, sizeof base, "%.*s", (int)(strrchr(first, '/') - first), first);
	assert_int_equal(stat(base, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1); /* systemd-tmpfiles leaves it alone */
	fd_closep(&fd);
	assert_true(tree_is_there(&tree));
	assert_int_equal(rename(base, "away"), 0);
	assert_false(tree_is_there(&tree));
	assert_int_equal(mkdir(base, 0700), 0);
	assert_int_equal(mkdir(first, 0700), 0);
	assert_false(tree_is_there(&tree)); /* another one's */
	assert_int_equal(tree_make_run(NULL, "job", env, &arena, &tree, &why), 0);
	assert_string_not_equal(first, tree.run_dir);
	assert_true(tree_is_there(&tree));
	assert_int_equal(rmdir(tree.run_dir), 0);
	assert_false(tree_is_there(&tree));
	fd_closep(&tree.lock);
	arena_done(&arena);
}

/* Not in memory, where it may be large and nobody would remove it. */
static void test_tmpdir_gone(void **state)
{
	static const char *const env[] = { "TMPDIR=/nowhere", NULL };
	struct log_tree tree = { .lock = -1 };
	struct failure why = { 0 };
	struct arena arena = { 0 };

	(void)state;
	assert_int_equal(tree_make_run(NULL, "job", env, &arena, &tree, &why), 0);
	assert_string_equal(why.text, "TMPDIR=/nowhere can't be used: No such file or directory");
	assert_int_equal(strncmp(tree.run_dir, "/tmp/launchd_logs_", 18), 0);
	assert_int_equal(tmp_dir_remove(tree.own), 0);
	fd_closep(&tree.lock);
	arena_done(&arena);
}

static void test_attempt(void **state)
{
	struct failure why = { 0 };
	struct arena arena = { 0 };
	const char *dir = NULL, *again = NULL;

	(void)state;
	setup();
	assert_int_equal(tree_make_attempt("there", 3, 8, 3, &arena, &dir, &why), 0);
	assert_string_equal(dir, "there/attempt_3");
	assert_true(is_dir("there/attempt_3/8") && is_dir("there/attempt_3/10"));
	assert_false(is_dir("there/attempt_3/7") || is_dir("there/attempt_3/11"));
	assert_outcome(tree_make_attempt("there", 3, 8, 3, &arena, &again, &why), -EEXIST, &why,
		"can't create the log directory there/attempt_3: File exists");
	assert_null(again);
	assert_int_equal(tree_make_attempt("there", 4, 0, 0, &arena, &again, &why), 0);
	assert_true(is_dir("there/attempt_4"));
	arena_done(&arena);
}

static const struct base_row {
	const char *says, *dir;
	const char *part; /* NULL: it can be made */
} bases[] = {
	{ "a base that is there", "there", NULL },
	{ "new bases", "x/y/z", NULL },
	{ "a base below a file", "file/x", "--log-dir: can't create the log directory file/x" },
	{ "a base that is a file", "file", "--log-dir: can't write to the log directory file" },
};

static void test_base(void **state)
{
	const struct base_row *row = *state;
	struct failure why = { 0 };

	setup();
	assert_outcome(tree_make_base(row->dir, "--log-dir", &why), row->part ? -EINVAL : 0, &why,
		row->part);
	assert_int_equal(is_dir(row->dir), !row->part);
}

TESTS(log_tree)
{
	static struct suite s;
	int rc = scratch_make() < 0 ? 2 : 0;

	SUITE_ROWS(&s, test_run, runs);
	SUITE_ROWS(&s, test_base, bases);
	suite_add(&s, "a directory in $TMPDIR", test_tmpdir, NULL, NULL);
	suite_add(&s, "a $TMPDIR that isn't there", test_tmpdir_gone, NULL, NULL);
	suite_add(&s, "an attempt's directories", test_attempt, NULL, NULL);
	if (rc == 0)
		rc = suite_run(&s);
	return scratch_done() < 0 ? 2 : rc;
}
