/* test_report_file.c - the file of --report is the old one or the whole new one. */
#include "tests/unit/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/report/report_file.h"

struct place {
	char dir[32];
	char path[64]; /* of the report */
	struct failure why;
};

static int place_make(void **state)
{
	struct place *p = calloc(1, sizeof *p);

	if (!p)
		return -1;
	*state = p;
	strcpy(p->dir, "/tmp/report.XXXXXX");
	if (!mkdtemp(p->dir))
		return -1;
	(void)snprintf(p->path, sizeof p->path, "%s/r.json", p->dir);
	return 0;
}

/* Removes the place; the number of entries that it had. */
static int place_empty(const struct place *p)
{
	DIR *dir = opendir(p->dir);
	struct dirent *entry;
	int count = 0;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.') {
			count++;
			(void)unlinkat(dirfd(dir), entry->d_name, 0);
		}
	if (dir)
		(void)closedir(dir);
	return count;
}

static int place_done(void **state)
{
	struct place *p = *state;

	(void)place_empty(p);
	(void)rmdir(p->dir);
	free(p);
	return 0;
}

static void assert_file(const char *path, const char *text)
{
	char bytes[64];

	assert_true(fd_read_file(path, bytes, sizeof bytes) >= 0);
	assert_string_equal(bytes, text);
}

static void test_new(void **state)
{
	struct place *p = *state;
	mode_t before = umask(027);
	struct stat st;
	int rc = report_write("--report", p->path, "one", 3, &p->why);

	(void)umask(before);
	assert_outcome(rc, 0, &p->why, NULL);
	assert_file(p->path, "one");
	assert_int_equal(stat(p->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_int_equal(place_empty(p), 1);
}

static void test_old(void **state)
{
	struct place *p = *state;

	assert_int_equal(report_write("--report", p->path, "longer", 6, &p->why), 0);
	assert_int_equal(report_write("--report", p->path, "new", 3, &p->why), 0);
	assert_file(p->path, "new");
	assert_int_equal(place_empty(p), 1);
}

static void test_link(void **state)
{
	struct place *p = *state;
	char link[80];
	struct stat st;

	(void)snprintf(link, sizeof link, "%s/link", p->dir);
	assert_int_equal(report_write("--report", p->path, "old", 3, &p->why), 0);
	assert_int_equal(symlink("r.json", link), 0);
	assert_int_equal(report_write("--report", link, "new", 3, &p->why), 0);
	assert_file(p->path, "new");
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(place_empty(p), 2);
}

static void test_name_is_taken(void **state)
{
	struct place *p = *state;
	char taken[96];

	(void)snprintf(taken, sizeof taken, "%s.%d.0", p->path, (int)getpid());
	assert_int_equal(symlink("/tmp/nowhere/x", taken), 0);
	assert_int_equal(report_write("--report", p->path, "new", 3, &p->why), 0);
	assert_file(p->path, "new");
	assert_int_equal(place_empty(p), 2);
}

static void test_fifo(void **state)
{
	struct place *p = *state;
	char bytes[8] = "";
	autoclose reader = -1;

	assert_int_equal(mkfifo(p->path, 0600), 0);
	assert_outcome(
		report_write("--report", p->path, "new", 3, &p->why), -ENXIO, &p->why, p->path);
	reader = open(p->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(reader >= 0);
	p->why = (struct failure){ 0 };
	assert_outcome(report_write("--report", p->path, "new", 3, &p->why), 0, &p->why, NULL);
	assert_int_equal(read(reader, bytes, sizeof bytes), 3);
	assert_string_equal(bytes, "new");
	assert_int_equal(place_empty(p), 1);
}

static void test_device(void **state)
{
	struct place *p = *state;
	struct stat st;

	assert_outcome(report_write("--report", "/dev/full", "new", 3, &p->why), -ENOSPC, &p->why,
		"--report: /dev/full can't be written: ");
	assert_int_equal(stat("/dev/full", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
}

static void test_directory(void **state)
{
	struct place *p = *state;

	assert_outcome(
		report_write("--report", p->dir, "new", 3, &p->why), -EISDIR, &p->why, p->dir);
	assert_int_equal(place_empty(p), 0);
}

static void test_no_directory(void **state)
{
	struct place *p = *state;
	char path[96];

	(void)snprintf(path, sizeof path, "%s/none/r.json", p->dir);
	assert_outcome(report_write("--report", path, "new", 3, &p->why), -ENOENT, &p->why, path);
	assert_int_equal(place_empty(p), 0);
}

static void test_long_name(void **state)
{
	struct place *p = *state;
	char path[5000];

	memset(path, 'a', sizeof path);
	path[sizeof path - 1] = '\0';
	assert_outcome(report_write("--report", path, "new", 3, &p->why), -ENAMETOOLONG, &p->why,
		"--report: aaa");
}

/* The old report stays, and nothing of the new one does. */
static void test_full(void **state)
{
	struct place *p = *state;
	struct rlimit before, small;
	void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
	int rc;

	assert_int_equal(report_write("--report", p->path, "old", 3, &p->why), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 2;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	rc = report_write("--report", p->path, "new", 3, &p->why);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	(void)signal(SIGXFSZ, handler);
	assert_outcome(rc, -EFBIG, &p->why, p->path);
	assert_file(p->path, "old");
	assert_int_equal(place_empty(p), 1);
}

TESTS(report_file)
{
	static const struct {
		const char *says;
		CMUnitTestFunction test;
	} tests[] = {
		{ "a new file, with the umask's mode", test_new },
		{ "an old file is replaced", test_old },
		{ "a link stays a link", test_link },
		{ "a name beside it that is taken", test_name_is_taken },
		{ "a FIFO is written to, and not waited for", test_fifo },
		{ "a device stays one", test_device },
		{ "a directory", test_directory },
		{ "no directory", test_no_directory },
		{ "a name that is too long", test_long_name },
		{ "no room: the old one stays", test_full },
	};
	static struct suite s;

	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		suite_add(&s, tests[i].says, tests[i].test, place_make, place_done);
	return suite_run(&s);
}
