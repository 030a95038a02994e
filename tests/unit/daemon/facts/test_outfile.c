/* test_outfile.c - whether a file can be written, found out before. Permissions are the process
 * tests' matter: root has all of them. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/facts/outfile.h"

/* Has a directory "there", a file "there/old". The tests' directory while they run. */
static char scratch[] = "/tmp/launchd_test_outfile_XXXXXX";

static const struct outfile_row {
	const char *says, *path;
	const char *part; /* of the sentence; NULL: it can */
} rows[] = {
	{ "a new file in this directory", "new.json", NULL },
	{ "a new file in another", "there/new.json", NULL },
	{ "a file that is there", "there/old", NULL },
	{ "a device", "/dev/null", NULL },
	{ "no such directory", "gone/new.json",
		"--report: gone/new.json: its directory gone: No such file or directory" },
	{ "a directory below a file", "there/old/new.json", "there/old is not a directory" },
	{ "a directory below no directory", "there/old/x/new", "there/old/x: Not a directory" },
	{ "a directory", "there", "--report: there is a directory" },
	{ "a directory with a slash", "there/", "--report: there/ is a directory" },
	{ "a new directory", "new/", "its directory new: No such file" },
	{ "the root", "/", "/ is a directory" },
	{ "a link to nothing", "dangling", NULL },
};

static void test_outfile(void **state)
{
	const struct outfile_row *row = *state;
	struct failure why = { 0 };
	struct stat st;
	int rc = outfile_check(row->path, "--report", &why);

	assert_outcome(rc, row->part ? -EINVAL : 0, &why, row->part);
	assert_true(stat("new.json", &st) < 0 && stat("there/new.json", &st) < 0);
}

static const struct outfile_row directories[] = {
	{ "a directory that is there", "there", NULL },
	{ "with a slash", "there/", NULL },
	{ "this one", ".", NULL },
	{ "the root", "/", NULL },
	{ "a new one in this directory", "logs", NULL },
	{ "a new one in another", "there/logs", NULL },
	{ "several new ones", "there/a/b/c", NULL },
	{ "several new ones below the root", "/launchd_test_outfile/a/b", NULL },
	{ "a file", "there/old", "--log-dir: there/old is not a directory" },
	{ "a new one below a file", "there/old/logs",
		"there/old/logs: its directory there/old/logs" },
	{ "a device", "/dev/zero", "--log-dir: /dev/zero is not a directory" },
};

static void test_outdir(void **state)
{
	const struct outfile_row *row = *state;
	struct failure why = { 0 };
	struct stat st;
	int rc = outdir_check(row->path, "--log-dir", &why);
	const char *part = row->part;

	if (!part && row->path[0] == '/' && access("/", W_OK) < 0)
		part = "/ can't be written to: Permission denied"; /* we aren't root */
	assert_outcome(rc, part ? -EINVAL : 0, &why, part);
	assert_true(stat("logs", &st) < 0 && stat("there/a", &st) < 0);
}

static const struct outfd_row {
	const char *says;
	int flags; /* -1: closed */
	const char *part;
} descriptors[] = {
	{ "a descriptor to write to", O_WRONLY, NULL },
	{ "one to read and write", O_RDWR, NULL },
	{ "one to read from", O_RDONLY, "is open for reading only" },
	{ "one for no use at all", O_PATH, "is open for reading only" },
	{ "one that is closed", -1, "is not open: whoever starts launchd must open it" },
};

static void test_outfd(void **state)
{
	const struct outfd_row *row = *state;
	struct failure why = { 0 };
	int fd = open("/dev/null", (row->flags < 0 ? 0 : row->flags) | O_CLOEXEC), rc;

	assert_true(fd >= 0);
	if (row->flags < 0)
		assert_int_equal(close(fd), 0);
	rc = outfd_check(fd, "--events", &why);
	assert_outcome(rc, row->part ? -EINVAL : 0, &why, row->part);
	if (row->flags >= 0)
		assert_int_equal(close(fd), 0);
}

static int make_scratch(void)
{
	int fd;

	if (!mkdtemp(scratch) || chdir(scratch) < 0 || mkdir("there", 0700) < 0 ||
		symlink("nothing", "dangling") < 0)
		return -1;
	fd = open("there/old", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	return fd < 0 ? -1 : close(fd);
}

static int remove_scratch(void)
{
	(void)remove("there/old");
	(void)remove("there");
	(void)remove("dangling");
	return chdir("/") < 0 ? -1 : rmdir(scratch);
}

TESTS(outfile)
{
	static struct suite s;
	int rc = make_scratch() < 0 ? 2 : 0;

	SUITE_ROWS(&s, test_outfile, rows);
	SUITE_ROWS(&s, test_outdir, directories);
	SUITE_ROWS(&s, test_outfd, descriptors);
	if (rc == 0)
		rc = suite_run(&s);
	return remove_scratch() < 0 ? 2 : rc;
}
