/* test_replace.c - who may read a file that was replaced; all else is in test_report_file.c. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/os/rehearsal.h"
#include "daemon/os/replace.h"

static const struct mode_row {
	const char *says;
	unsigned how;
	mode_t umask, mode;
} modes[] = {
	{ "as the umask has it", 0, 027, 0640 },
	{ "as the umask has it, durably", REPLACE_DURABLY, 077, 0600 },
	{ "for all in spite of the umask", REPLACE_FOR_ALL, 077, 0644 },
	{ "for all, durably", REPLACE_FOR_ALL | REPLACE_DURABLY, 027, 0644 },
};

static void test_mode(void **state)
{
	const struct mode_row *row = *state;
	mode_t before = umask(row->umask);
	char dir[] = "/tmp/launchd-replace-XXXXXX", path[48], bytes[8];
	struct stat st;

	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof path, "%s/f", dir);
	for (int i = 0; i < 2; i++) { /* a new one, and one that was there */
		assert_int_equal(file_replace(path, "text", 4, row->how), 0);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 0777, row->mode);
		assert_int_equal(fd_read_file(path, bytes, sizeof bytes), 4);
		assert_string_equal(bytes, "text");
	}
	(void)umask(before);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0); /* nothing else is in it */
}

pid_t __real_fork(void);
pid_t __wrap_fork(void);

static bool no_process;

pid_t __wrap_fork(void)
{
	if (!no_process)
		return __real_fork();
	errno = EAGAIN;
	return -1;
}

static const struct last_row {
	const char *says, *top;
	bool no_process;
	int rc;
} lasts[] = {
	{ "a child writes it", "/tmp", false, 0 },
	{ "a child writes it far away", "/dev", false, 0 },
	{ "without a child this process does", "/tmp", true, 0 },
	{ "but not far away, where it may hang", "/dev", true, -EAGAIN },
};

static int unlink_now(const void *what)
{
	return unlink(what);
}

static void test_last(void **state)
{
	const struct last_row *row = *state;
	char dir[64], path[80], bytes[8];
	int rc;

	(void)snprintf(dir, sizeof dir, "%s/launchd-replace-XXXXXX", row->top);
	if (path_is_far("/") || path_is_far("/tmp") || !path_is_far("/dev") || !mkdtemp(dir))
		skip();
	(void)snprintf(path, sizeof path, "%s/f", dir);
	no_process = row->no_process;
	rc = file_replace_last(path, "text", 4, 0);
	no_process = false;
	assert_int_equal(rc, row->rc);
	assert_int_equal(fd_read_file(path, bytes, sizeof bytes), rc == 0 ? 4 : -ENOENT);
	no_process = row->no_process;
	assert_int_equal(path_touch(path, 0, unlink_now, path), rc == 0 ? 0 : rc);
	no_process = false;
	assert_int_equal(rmdir(dir), 0);
}

TESTS(replace)
{
	static struct suite s;

	SUITE_ROWS(&s, test_mode, modes);
	SUITE_ROWS(&s, test_last, lasts);
	return suite_run(&s);
}
