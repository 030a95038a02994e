/* test_ctl_place.c - the control socket's directory: which one it is, who may own it, what is left.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/control/ctl_place.h"

enum { GUARD = 4711 };

/* A directory with what a system gives its users: one for a service, and one for a user. */
static struct desk {
	char top[32], runtime[96], user[96];
	char runtime_env[128], user_env[128];
	const char *env[3];
	struct ctl_place place;
	struct failure why;
} d;

static int make(void **state)
{
	(void)state;
	d = (struct desk){ .top = "/tmp/test_ctl_place.XXXXXX" };
	assert_non_null(mkdtemp(d.top));
	(void)snprintf(d.runtime, sizeof d.runtime, "%s/runtime", d.top);
	(void)snprintf(d.user, sizeof d.user, "%s/user", d.top);
	assert_int_equal(mkdir(d.runtime, 0755), 0);
	assert_int_equal(mkdir(d.user, 0700), 0);
	(void)snprintf(d.runtime_env, sizeof d.runtime_env, "RUNTIME_DIRECTORY=%s", d.runtime);
	(void)snprintf(d.user_env, sizeof d.user_env, "XDG_RUNTIME_DIR=%s", d.user);
	d.env[0] = d.user_env;
	return 0;
}

/* Nothing of launchd's may be left in them. */
static int unmake(void **state)
{
	(void)state;
	ctl_forget(&d.place, 0);
	assert_int_equal(rmdir(d.runtime), 0);
	assert_int_equal(rmdir(d.user), 0);
	assert_int_equal(rmdir(d.top), 0);
	return 0;
}

static int listen_now(void)
{
	return ctl_listen(d.env, GUARD, &d.place, &d.why);
}

static void assert_place(const char *dir, const char *rest)
{
	char expected[256];

	(void)snprintf(expected, sizeof expected, "%s%s", dir, rest);
	assert_string_equal(d.place.path, expected);
}

static bool answers(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	autoclose fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0 && strlen(path) < sizeof at.sun_path);
	memcpy(at.sun_path, path, strlen(path) + 1);
	return connect(fd, (const struct sockaddr *)&at, sizeof at) == 0;
}

static void test_users(void **state)
{
	autoclose fd = listen_now();
	struct stat st;
	char dir[128];

	(void)state;
	assert_true(fd >= 0);
	assert_place(d.user, "/launchd/4711.sock");
	assert_true(answers(d.place.path));
	(void)snprintf(dir, sizeof dir, "%s/launchd", d.user);
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	ctl_forget(&d.place, 0);
	assert_string_equal(d.place.path, "");
	assert_int_equal(stat(dir, &st), -1);
	ctl_forget(&d.place, 0); /* nothing */
}

static void test_services(void **state)
{
	autoclose fd = -1;
	char more[256];

	(void)state;
	d.env[1] = d.runtime_env;
	fd = listen_now();
	assert_true(fd >= 0);
	assert_place(d.runtime, "/4711.sock");
	ctl_forget(&d.place, 0);
	assert_int_equal(access(d.runtime, F_OK), 0); /* systemd's, which removes it */
	fd_closep(&fd);
	(void)snprintf(more, sizeof more, "%s:/elsewhere", d.runtime_env);
	d.env[1] = more;
	fd = listen_now();
	assert_true(fd >= 0);
	assert_place(d.runtime, "/4711.sock");
}

static void test_shared(void **state)
{
	struct ctl_place other = { .own_dir = false };
	autoclose fd = listen_now();
	autoclose second = ctl_listen(d.env, GUARD + 1, &other, &d.why);

	(void)state;
	assert_true(fd >= 0 && second >= 0);
	ctl_forget(&d.place, 0);
	assert_true(answers(other.path));
	ctl_forget(&other, 0);
}

/* A supervisor and its guard, killed at once, leave a socket; a later guard has the same pid. */
static void test_left(void **state)
{
	autoclose fd = listen_now();
	struct ctl_place left = d.place;

	(void)state;
	fd_closep(&fd);
	assert_false(answers(left.path));
	fd = listen_now();
	assert_true(fd >= 0);
	assert_string_equal(d.place.path, left.path);
	assert_true(answers(left.path));
}

/* Of a launcher in another pid namespace: it keeps its socket, and we have another place. */
static void test_taken(void **state)
{
	struct ctl_place other = { .own_dir = false };
	autoclose first = listen_now();
	autoclose second = ctl_listen(d.env, GUARD, &other, &d.why);
	char dir[64];

	(void)state;
	(void)snprintf(dir, sizeof dir, "/tmp/launchd-%u/4711.sock", (unsigned)geteuid());
	assert_true(first >= 0 && second >= 0);
	assert_string_equal(other.path, dir);
	assert_true(answers(d.place.path) && answers(other.path));
	ctl_forget(&other, 0);
}

static void test_neither(void **state)
{
	autoclose fd = -1;
	char dir[64];

	(void)state;
	d.env[0] = NULL;
	fd = listen_now();
	(void)snprintf(dir, sizeof dir, "/tmp/launchd-%u/4711.sock", (unsigned)geteuid());
	assert_true(fd >= 0);
	assert_string_equal(d.place.path, dir);
}

/* Directories in which somebody else could put a socket of this name. */
static void test_unsafe(void **state)
{
	autoclose fd = -1;
	char link_at[128];

	(void)state;
	d.env[1] = d.runtime_env;
	assert_int_equal(chmod(d.runtime, 0777), 0);
	fd = listen_now();
	assert_true(fd >= 0);
	assert_place(d.user, "/launchd/4711.sock");
	ctl_forget(&d.place, 0);
	fd_closep(&fd);
	(void)snprintf(link_at, sizeof link_at, "%s/launchd", d.user);
	assert_int_equal(symlink(d.top, link_at), 0);
	fd = listen_now();
	assert_int_equal(unlink(link_at), 0);
	assert_true(fd >= 0);
	assert_place("/tmp/launchd-", strchr(d.place.path, '-') + 1);
}

/* Somebody else has made the directory that would be ours, in all places: no reason to do without.
 * Its sockets are not ours, and the other one is found. */
static void on_dir(void *owner, const struct ctl_dir *dir)
{
	char *found = owner;

	if (strncmp(d.place.path, dir->path, strlen(dir->path)) == 0 &&
		d.place.path[strlen(dir->path)] == '/')
		(void)snprintf(found, 128, "%s", dir->path);
}

static void test_squatted(void **state)
{
	static const char *const none[] = { NULL };
	uid_t uid = 1000000 + (uid_t)getpid(); /* no other test's */
	char tmp[64], shm[64], found[128] = "";
	autoclose fd = -1;

	(void)state;
	needs(geteuid() == 0, "root, to be somebody else");
	(void)snprintf(tmp, sizeof tmp, "/tmp/launchd-%u", (unsigned)uid);
	(void)snprintf(shm, sizeof shm, "/dev/shm/launchd-%u", (unsigned)uid);
	assert_int_equal(mkdir(tmp, 0755), 0);
	assert_int_equal(mkdir(shm, 0755), 0);
	assert_int_equal(seteuid(uid), 0);
	fd = ctl_listen(none, GUARD, &d.place, &d.why);
	assert_true(fd >= 0);
	assert_true(answers(d.place.path));
	ctl_dirs(none, false, on_dir, found);
	assert_memory_equal(found, tmp, strlen(tmp));
	assert_int_equal(found[strlen(tmp)], '-');
	ctl_forget(&d.place, 0);
	assert_int_equal(access(found, F_OK), -1);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(rmdir(tmp), 0);
	assert_int_equal(rmdir(shm), 0);
}

static void test_too_long(void **state)
{
	char long_env[400] = "XDG_RUNTIME_DIR=";
	autoclose fd = -1;
	size_t len = strlen(long_env), top = strlen(d.top);

	(void)state;
	memcpy(long_env + len, d.top, top);
	for (len += top; len < 140; len++)
		long_env[len] = len % 2 ? '.' : '/'; /* "/./././." is the same directory */
	long_env[len] = '\0';
	d.env[0] = long_env;
	fd = listen_now();
	assert_true(fd >= 0);
	assert_place("/tmp/launchd-", strchr(d.place.path, '-') + 1);
}

/* A cleaner has been there, and then somebody who takes the names. */
static void test_removed(void **state)
{
	autoclose fd = listen_now();
	char dir[128], away[128];

	(void)state;
	assert_true(fd >= 0);
	(void)snprintf(dir, sizeof dir, "%s/launchd", d.user);
	(void)snprintf(away, sizeof away, "%s/away", d.top);
	assert_true(ctl_is_there(&d.place));
	assert_int_equal(chmod(dir, 0777), 0);
	assert_false(ctl_is_there(&d.place));
	assert_int_equal(chmod(dir, 0700), 0);
	assert_true(ctl_is_there(&d.place));
	assert_int_equal(rename(dir, away), 0);
	assert_false(ctl_is_there(&d.place));
	assert_int_equal(symlink(away, dir), 0);
	assert_false(ctl_is_there(&d.place));
	assert_int_equal(unlink(dir), 0);
	assert_int_equal(rename(away, dir), 0);
	assert_int_equal(unlink(d.place.path), 0);
	assert_false(ctl_is_there(&d.place));
	assert_int_equal(mkdir(d.place.path, 0700), 0);
	assert_false(ctl_is_there(&d.place));
	ctl_forget(&d.place, 0); /* leaves alone what isn't its own */
	(void)snprintf(away, sizeof away, "%.80s/%d.sock", dir, GUARD);
	assert_int_equal(rmdir(away), 0);
	assert_int_equal(rmdir(dir), 0);
}

TESTS(ctl_place)
{
	struct suite s = { .count = 0 };

	suite_add(&s, "a user's directory", test_users, make, unmake);
	suite_add(&s, "a service's directory", test_services, make, unmake);
	suite_add(&s, "two launchers in one", test_shared, make, unmake);
	suite_add(&s, "one that was left", test_left, make, unmake);
	suite_add(&s, "one that is taken", test_taken, make, unmake);
	suite_add(&s, "neither", test_neither, make, unmake);
	suite_add(&s, "directories that others write to", test_unsafe, make, unmake);
	suite_add(&s, "a name that somebody else has taken", test_squatted, make, unmake);
	suite_add(&s, "one that was removed", test_removed, make, unmake);
	suite_add(&s, "a path that an address has no room for", test_too_long, make, unmake);
	return suite_run(&s);
}
