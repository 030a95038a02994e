/* test_run_dir.c - a directory that leaves nothing behind. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/workers/run_dir.h"

/* A directory of the test's own, given to the code as TMPDIR. */
struct yard {
	struct arena arena;
	struct failure why;
	char path[64], variable[80];
	const char *env[2];
	const char *run;
};

static int yard_make(void **state)
{
	static struct yard y;

	y = (struct yard){ .path = "/tmp/launchd_test_place_XXXXXX" };
	*state = &y;
	if (!mkdtemp(y.path))
		return -1;
	(void)snprintf(y.variable, sizeof y.variable, "TMPDIR=%s", y.path);
	y.env[0] = y.variable;
	return 0;
}

static int yard_done(void **state)
{
	struct yard *y = *state;
	int rc = run_dir_remove(y->path);

	arena_done(&y->arena);
	return rc;
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	return lstat(path, &st) < 0 ? 0 : st.st_mode;
}

static void touch(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	(void)close(fd);
}

static void test_made(void **state)
{
	struct yard *y = *state;
	const mode_t mask = umask(0);
	int rc = run_dir_make(y->env, &y->arena, &y->run, &y->why);

	(void)umask(mask);
	assert_int_equal(rc, 0);
	assert_int_equal(strncmp(y->run, y->path, strlen(y->path)), 0);
	assert_int_equal(mode_of(y->run), S_IFDIR | 0700);
	assert_int_equal(run_dir_remove(y->run), 0);
	assert_int_equal(mode_of(y->run), 0);
}

static void test_default_place(void **state)
{
	static const char *const empty[] = { "TMPDIR=", NULL };
	struct yard *y = *state;

	assert_int_equal(run_dir_make(empty, &y->arena, &y->run, &y->why), 0);
	assert_int_equal(run_dir_remove(y->run), 0);
	assert_int_equal(strncmp(y->run, "/tmp/launchd_", 13), 0);
}

static void test_nowhere(void **state)
{
	static const char *const env[] = { "TMPDIR=/nowhere/at/all", NULL };
	struct yard *y = *state;

	assert_outcome(run_dir_make(env, &y->arena, &y->run, &y->why), 0, &y->why, NULL);
	assert_int_equal(run_dir_remove(y->run), 0);
	assert_int_equal(strncmp(y->run, "/tmp/launchd_", 13), 0);
}

static void test_relative(void **state)
{
	static const char *const env[] = { "TMPDIR=sub", NULL };
	struct yard *y = *state;
	char *before = get_current_dir_name();
	int rc;

	assert_int_equal(mkdir(arena_printf(&y->arena, "%s/sub", y->path), 0700), 0);
	assert_int_equal(chdir(y->path), 0);
	rc = run_dir_make(env, &y->arena, &y->run, &y->why);
	assert_int_equal(chdir(before), 0);
	free(before);
	assert_outcome(rc, 0, &y->why, NULL);
	assert_contains(y->run, y->path); /* whole, and good from any directory */
	assert_int_equal(mode_of(y->run), S_IFDIR | 0700);
}

static void test_full(void **state)
{
	struct yard *y = *state;

	assert_int_equal(run_dir_make(y->env, &y->arena, &y->run, &y->why), 0);
	touch(arena_printf(&y->arena, "%s/error.json", y->run));
	assert_int_equal(mkdir(arena_printf(&y->arena, "%s/a", y->run), 0700), 0);
	assert_int_equal(mkdir(arena_printf(&y->arena, "%s/a/b", y->run), 0700), 0);
	touch(arena_printf(&y->arena, "%s/a/b/c", y->run));
	assert_int_equal(run_dir_remove(y->run), 0);
	assert_int_equal(mode_of(y->run), 0);
}

static void test_links(void **state)
{
	struct yard *y = *state;
	const char *kept = arena_printf(&y->arena, "%s/kept", y->path);
	const char *file = arena_printf(&y->arena, "%s/file", kept);

	assert_int_equal(mkdir(kept, 0700), 0);
	touch(file);
	assert_int_equal(run_dir_make(y->env, &y->arena, &y->run, &y->why), 0);
	assert_int_equal(symlink(kept, arena_printf(&y->arena, "%s/dir", y->run)), 0);
	assert_int_equal(symlink(file, arena_printf(&y->arena, "%s/file", y->run)), 0);
	assert_int_equal(symlink("/nowhere", arena_printf(&y->arena, "%s/none", y->run)), 0);
	assert_int_equal(run_dir_remove(y->run), 0);
	assert_int_equal(mode_of(y->run), 0);
	assert_true(S_ISDIR(mode_of(kept)));
	assert_true(S_ISREG(mode_of(file)));
}

static void test_absent(void **state)
{
	struct yard *y = *state;

	assert_int_equal(run_dir_remove(arena_printf(&y->arena, "%s/none", y->path)), -ENOENT);
}

int main(void)
{
	static struct suite s;

	suite_add(&s, "a run's directory is the user's alone, whatever the umask", test_made,
		yard_make, yard_done);
	suite_add(&s, "it is in /tmp where nothing else is said", test_default_place, yard_make,
		yard_done);
	suite_add(&s, "it is in /tmp where the place that is said is gone", test_nowhere, yard_make,
		yard_done);
	suite_add(&s, "its path is absolute, whatever TMPDIR is", test_relative, yard_make,
		yard_done);
	suite_add(&s, "it is removed with all that workers put there", test_full, yard_make,
		yard_done);
	suite_add(&s, "links are removed, not followed", test_links, yard_make, yard_done);
	suite_add(&s, "what is not there can't be removed", test_absent, yard_make, yard_done);
	return suite_run(&s);
}
