/* test_rehearsal.c - files that a child touches first. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/os/rehearsal.h"

static void test_far(void **state)
{
	static const struct {
		const char *from, *path;
		bool far;
	} rows[] = {
		{ "/", NULL, false },
		{ "/", "", false },
		{ "/", "/", false },
		{ "/proc", "/", false },
		{ "/", "/missing/file", false },
		{ "/", "missing", false },
		{ "/", "/proc", true },
		{ "/", "/proc/self/status", true },
		{ "/", "/proc/missing", true },
		{ "/", "/missing/../proc", false }, /* it ends before */
		{ "/", "proc/version", true },
		{ "/", "/tmp", false },
		{ "/", "/tmp//missing", false },
		{ "/", "/run", false },
		{ "/", "/dev/shm/missing", false },
		{ "/", "/dev/shmissing", true },
		{ "/", "/tmp/../proc", true },
		{ "/proc", "missing", true },
	};
	int here = open(".", O_RDONLY | O_CLOEXEC);

	(void)state;
	if (path_is_far("/"))
		skip(); /* before Linux 5.6 nobody knows */
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(chdir(rows[i].from), 0);
		if (path_is_far(rows[i].path) != rows[i].far)
			fail_msg("row %zu", i);
	}
	assert_int_equal(fchdir(here), 0);
	(void)close(here);
}

static void make(const void *how)
{
	rehearsal_path("--log-dir", how);
	(void)mkdir(how, 0700);
}

static void crash(const void *how)
{
	(void)how;
	(void)raise(SIGKILL);
}

static void test_rehearse(void **state)
{
	char dir[] = "/tmp/rehearsal_XXXXXX";
	struct failure why = { 0 };

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(rmdir(dir), 0);
	assert_outcome(rehearse(make, dir, &why), 0, &why, NULL);
	assert_int_equal(rmdir(dir), 0); /* it was done, by the child */
	assert_outcome(rehearse(crash, NULL, &why), 0, &why, NULL);
	rehearsal_path("", "no rehearsal");
	assert_outcome(path_answers("--config", "/proc/version", &why), 0, &why, NULL);
	assert_outcome(path_answers("--config", "/proc/missing", &why), 0, &why, NULL);
}

/* Nobody has its other end. */
static void test_fifo(void **state)
{
	char dir[] = "/dev/rehearsal_XXXXXX", path[64];
	struct failure why = { 0 };

	(void)state;
	if (!mkdtemp(dir))
		skip();
	(void)snprintf(path, sizeof path, "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_outcome(path_answers("--config", path, &why), 0, &why, NULL);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

TESTS(rehearsal)
{
	static struct suite s;

	suite_add(&s, "what leaves the mount of / is far", test_far, NULL, NULL);
	suite_add(&s, "a child does it, whatever becomes of that", test_rehearse, NULL, NULL);
	suite_add(&s, "a FIFO isn't opened", test_fifo, NULL, NULL);
	return suite_run(&s);
}
