/* test_tmp_dir.c - a directory of our own: where it is, whose it stays, that nothing is left of it.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/os/tmp_dir.h"

/* A directory of the test's own, given to the code as TMPDIR. */
struct scratch {
	struct arena arena;
	struct failure why;
	struct tmp_dir whole; /* of which all the rest is removed */
	const char *path;
	char variable[80];
	const char *env[2];
	struct tmp_dir run;
	int lock;
};

static int make_scratch(void **state)
{
	static const char *const none[] = { NULL };
	static struct scratch s;
	int lock;

	s = (struct scratch){ .lock = -1 };
	*state = &s;
	if (tmp_dir_make(none, "launchd_test_", TMP_DIR_PASSING, &s.whole, &lock, &s.why) < 0)
		return -1;
	fd_closep(&lock);
	s.path = s.whole.path;
	(void)snprintf(s.variable, sizeof s.variable, "TMPDIR=%.60s", s.path);
	s.env[0] = s.variable;
	return 0;
}

static int remove_scratch(void **state)
{
	struct scratch *s = *state;

	fd_closep(&s->lock);
	arena_done(&s->arena);
	return tmp_dir_remove(&s->whole);
}

static int make_in(struct scratch *s, const char *const *env)
{
	return tmp_dir_make(env, "launchd_", TMP_DIR_PASSING, &s->run, &s->lock, &s->why);
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
	int rc = make_in(s, s->env);

	(void)umask(mask);
	assert_int_equal(rc, 0);
	assert_int_equal(strncmp(s->run.path, s->path, strlen(s->path)), 0);
	assert_int_equal(mode_of(s->run.path), S_IFDIR | 0700);
	assert_int_equal(tmp_dir_remove(&s->run), 0);
	assert_int_equal(mode_of(s->run.path), 0);
}

static void test_default_place(void **state)
{
	static const char *const empty[] = { "TMPDIR=", NULL };
	struct scratch *s = *state;

	assert_int_equal(make_in(s, empty), 0);
	assert_int_equal(tmp_dir_remove(&s->run), 0);
	assert_int_equal(strncmp(s->run.path, "/tmp/launchd_", 13), 0);
}

static void test_nowhere(void **state)
{
	static const char *const env[] = { "TMPDIR=/nowhere/at/all", NULL };
	struct scratch *s = *state;

	assert_int_equal(make_in(s, env), 0);
	assert_string_equal(
		s->why.text, "TMPDIR=/nowhere/at/all can't be used: No such file or directory");
	assert_int_equal(tmp_dir_remove(&s->run), 0);
	assert_int_equal(strncmp(s->run.path, "/tmp/launchd_", 13), 0);
}

static void test_locked(void **state)
{
	struct scratch *s = *state;
	int fd;

	assert_int_equal(make_in(s, s->env), 0);
	assert_int_equal(s->why.code, 0);
	fd = open(s->run.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
	assert_int_equal(fcntl(s->lock, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	fd_closep(&s->lock);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	fd_closep(&fd);
}

/* What has its name now is left as it is: it may be another user's. */
static void assert_gone(struct scratch *s)
{
	mode_t mode = mode_of(s->run.path);

	assert_false(tmp_dir_is_there(&s->run));
	assert_int_equal(tmp_dir_remove(&s->run), -ENOENT);
	assert_int_equal(mode_of(s->run.path), mode);
}

static void test_replaced(void **state)
{
	struct scratch *s = *state;

	assert_int_equal(make_in(s, s->env), 0);
	assert_true(tmp_dir_is_there(&s->run));
	assert_int_equal(rmdir(s->run.path), 0);
	assert_gone(s);
	assert_int_equal(mkdir(s->run.path, 0700), 0);
	assert_gone(s);
	assert_int_equal(rmdir(s->run.path), 0);
	assert_int_equal(symlink(s->path, s->run.path), 0);
	assert_gone(s);
}

/* Of one that was moved, too: by its link it could be found. */
static void test_moved(void **state)
{
	struct scratch *s = *state;
	const char *away = arena_printf(&s->arena, "%s/away", s->path);

	assert_int_equal(make_in(s, s->env), 0);
	assert_int_equal(rename(s->run.path, away), 0);
	assert_int_equal(symlink(away, s->run.path), 0);
	assert_gone(s);
	assert_true(S_ISDIR(mode_of(away)));
}

static void test_relative(void **state)
{
	static const char *const env[] = { "TMPDIR=sub", NULL };
	struct scratch *s = *state;
	char *before = get_current_dir_name();
	int rc;

	assert_int_equal(mkdir(arena_printf(&s->arena, "%s/sub", s->path), 0700), 0);
	assert_int_equal(chdir(s->path), 0);
	rc = make_in(s, env);
	assert_int_equal(chdir(before), 0);
	free(before);
	assert_outcome(rc, 0, &s->why, NULL);
	assert_contains(s->run.path, s->path); /* whole, and good from any directory */
	assert_int_equal(mode_of(s->run.path), S_IFDIR | 0700);
}

static void test_full(void **state)
{
	struct scratch *s = *state;

	assert_int_equal(make_in(s, s->env), 0);
	touch(arena_printf(&s->arena, "%s/error.json", s->run.path));
	assert_int_equal(mkdir(arena_printf(&s->arena, "%s/a", s->run.path), 0700), 0);
	assert_int_equal(mkdir(arena_printf(&s->arena, "%s/a/b", s->run.path), 0700), 0);
	touch(arena_printf(&s->arena, "%s/a/b/c", s->run.path));
	assert_int_equal(tmp_dir_remove(&s->run), 0);
	assert_int_equal(mode_of(s->run.path), 0);
}

static void test_links(void **state)
{
	struct scratch *s = *state;
	const char *kept = arena_printf(&s->arena, "%s/kept", s->path);
	const char *file = arena_printf(&s->arena, "%s/file", kept);

	assert_int_equal(mkdir(kept, 0700), 0);
	touch(file);
	assert_int_equal(make_in(s, s->env), 0);
	assert_int_equal(symlink(kept, arena_printf(&s->arena, "%s/dir", s->run.path)), 0);
	assert_int_equal(symlink(file, arena_printf(&s->arena, "%s/file", s->run.path)), 0);
	assert_int_equal(symlink("/nowhere", arena_printf(&s->arena, "%s/none", s->run.path)), 0);
	assert_int_equal(tmp_dir_remove(&s->run), 0);
	assert_int_equal(mode_of(s->run.path), 0);
	assert_true(S_ISDIR(mode_of(kept)));
	assert_true(S_ISREG(mode_of(file)));
}

TESTS(tmp_dir)
{
	static struct suite s;

	suite_add(&s, "a directory is the user's alone, whatever the umask", test_made,
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
	suite_add(&s, "its lock is others' to see, and no worker's", test_locked, make_scratch,
		remove_scratch);
	suite_add(&s, "another one of its name is not taken for it", test_replaced, make_scratch,
		remove_scratch);
	suite_add(&s, "nor is a link to it", test_moved, make_scratch, remove_scratch);
	return suite_run(&s);
}
