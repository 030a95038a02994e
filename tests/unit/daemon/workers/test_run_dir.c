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
struct scratch {
	struct arena arena;
	struct failure why;
	char path[64], variable[80];
	const char *env[2];
	const char *run;
};

static int make_scratch(void **state)
{
	static struct scratch s;

	s = (struct scratch){ .path = "/tmp/launchd_test_place_XXXXXX" };
	*state = &s;
	if (!mkdtemp(s.path))
		return -1;
	(void)snprintf(s.variable, sizeof s.variable, "TMPDIR=%s", s.path);
	s.env[0] = s.variable;
	return 0;
}

static int remove_scratch(void **state)
{
	struct scratch *s = *state;
	int rc = run_dir_remove(s->path);

	arena_done(&s->arena);
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
	struct scratch *s = *state;
	const mode_t mask = umask(0);
	int rc = run_dir_make(s->env, &s->arena, &s->run, &s->why);

	(void)umask(mask);
	assert_int_equal(rc, 0);
	assert_int_equal(strncmp(s->run, s->path, strlen(s->path)), 0);
	assert_int_equal(mode_of(s->run), S_IFDIR | 0700);
	assert_int_equal(run_dir_remove(s->run), 0);
	assert_int_equal(mode_of(s->run), 0);
}

static void test_default_place(void **state)
{
	static const char *const empty[] = { "TMPDIR=", NULL };
	struct scratch *s = *state;

	assert_int_equal(run_dir_make(empty, &s->arena, &s->run, &s->why), 0);
	assert_int_equal(run_dir_remove(s->run), 0);
	assert_int_equal(strncmp(s->run, "/tmp/launchd_", 13), 0);
}

static void test_nowhere(void **state)
{
	static const char *const env[] = { "TMPDIR=/nowhere/at/all", NULL };
	struct scratch *s = *state;

	assert_outcome(run_dir_make(env, &s->arena, &s->run, &s->why), 0, &s->why, NULL);
	assert_int_equal(run_dir_remove(s->run), 0);
	assert_int_equal(strncmp(s->run, "/tmp/launchd_", 13), 0);
}

static void test_relative(void **state)
{
	static const char *const env[] = { "TMPDIR=sub", NULL };
	struct scratch *s = *state;
	char *before = get_current_dir_name();
	int rc;

	assert_int_equal(mkdir(arena_printf(&s->arena, "%s/sub", s->path), 0700), 0);
	assert_int_equal(chdir(s->path), 0);
	rc = run_dir_make(env, &s->arena, &s->run, &s->why);
	assert_int_equal(chdir(before), 0);
	free(before);
	assert_outcome(rc, 0, &s->why, NULL);
	assert_contains(s->run, s->path); /* whole, and good from any directory */
	assert_int_equal(mode_of(s->run), S_IFDIR | 0700);
}

static void test_full(void **state)
{
	struct scratch *s = *state;

	assert_int_equal(run_dir_make(s->env, &s->arena, &s->run, &s->why), 0);
	touch(arena_printf(&s->arena, "%s/error.json", s->run));
	assert_int_equal(mkdir(arena_printf(&s->arena, "%s/a", s->run), 0700), 0);
	assert_int_equal(mkdir(arena_printf(&s->arena, "%s/a/b", s->run), 0700), 0);
	touch(arena_printf(&s->arena, "%s/a/b/c", s->run));
	assert_int_equal(run_dir_remove(s->run), 0);
	assert_int_equal(mode_of(s->run), 0);
}

static void test_links(void **state)
{
	struct scratch *s = *state;
	const char *kept = arena_printf(&s->arena, "%s/kept", s->path);
	const char *file = arena_printf(&s->arena, "%s/file", kept);

	assert_int_equal(mkdir(kept, 0700), 0);
	touch(file);
	assert_int_equal(run_dir_make(s->env, &s->arena, &s->run, &s->why), 0);
	assert_int_equal(symlink(kept, arena_printf(&s->arena, "%s/dir", s->run)), 0);
	assert_int_equal(symlink(file, arena_printf(&s->arena, "%s/file", s->run)), 0);
	assert_int_equal(symlink("/nowhere", arena_printf(&s->arena, "%s/none", s->run)), 0);
	assert_int_equal(run_dir_remove(s->run), 0);
	assert_int_equal(mode_of(s->run), 0);
	assert_true(S_ISDIR(mode_of(kept)));
	assert_true(S_ISREG(mode_of(file)));
}

static void test_absent(void **state)
{
	struct scratch *s = *state;

	assert_int_equal(run_dir_remove(arena_printf(&s->arena, "%s/none", s->path)), -ENOENT);
}

TESTS(run_dir)
{
	static struct suite s;

	suite_add(&s, "a run's directory is the user's alone, whatever the umask", test_made,
		make_scratch, remove_scratch);
	suite_add(&s, "it is in /tmp where nothing else is said", test_default_place, make_scratch,
		remove_scratch);
	suite_add(&s, "it is in /tmp where the place that is said is gone", test_nowhere,
		make_scratch, remove_scratch);
	suite_add(&s, "its path is absolute, whatever TMPDIR is", test_relative, make_scratch,
		remove_scratch);
	suite_add(&s, "it is removed with all that workers put there", test_full, make_scratch,
		remove_scratch);
	suite_add(&s, "links are removed, not followed", test_links, make_scratch, remove_scratch);
	suite_add(&s, "what is not there can't be removed", test_absent, make_scratch,
		remove_scratch);
	return suite_run(&s);
}
