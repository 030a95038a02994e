/* test_place.c - a port that nobody else takes, and a directory that leaves nothing behind. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/workers/place.h"

/* Binds and listens at the port; 0 or the errno of the first that fails. */
static int listen_at(int family, unsigned port, bool reuse)
{
	const int on = 1;
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((in_port_t)port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons((in_port_t)port) };
	const struct sockaddr *addr = family == AF_INET ?
		(const struct sockaddr *)(const void *)&v4 :
		(const struct sockaddr *)(const void *)&v6;
	autoclose fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	if (reuse)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, addr, family == AF_INET ? sizeof v4 : sizeof v6) < 0)
		return errno;
	return listen(fd, 1) < 0 ? errno : 0;
}

static const struct port_row {
	const char *says;
	int family;
	bool reuse;
	int error;
} ports[] = {
	{ "IPv4 with SO_REUSEADDR may listen there", AF_INET, true, 0 },
	{ "IPv4 without SO_REUSEADDR may not", AF_INET, false, EADDRINUSE },
	{ "IPv6 with SO_REUSEADDR may listen there", AF_INET6, true, 0 },
	{ "IPv6 without SO_REUSEADDR may not", AF_INET6, false, EADDRINUSE },
};

static void test_port(void **state)
{
	const struct port_row *row = *state;
	struct failure why = { 0 };
	int fd = -1, first, second, family = 0, listening = -1;
	socklen_t len = sizeof family;
	unsigned port = 0;

	assert_int_equal(port_reserve(&fd, &port, &why), 0);
	assert_true(fd > 2 && port > 0 && port < 65536);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	(void)getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len);
	(void)getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len);
	first = listen_at(row->family, port, row->reuse);
	second = listen_at(row->family, port, row->reuse); /* again, as a restarted rank 0 does */
	(void)close(fd);
	assert_int_equal(listening, 0);
	if (row->family == AF_INET6 && family == AF_INET)
		skip(); /* IPv6 is off here */
	assert_int_equal(first, row->error);
	assert_int_equal(second, row->error);
}

static void test_two_ports(void **state)
{
	struct failure why = { 0 };
	int fd[2] = { -1, -1 };
	unsigned port[2] = { 0, 0 };

	(void)state;
	assert_int_equal(port_reserve(&fd[0], &port[0], &why), 0);
	assert_int_equal(port_reserve(&fd[1], &port[1], &why), 0);
	(void)close(fd[0]);
	(void)close(fd[1]);
	assert_int_not_equal(port[0], port[1]);
}

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

	SUITE_ROWS(&s, test_port, ports);
	suite_add(&s, "two reservations are of two ports", test_two_ports, NULL, NULL);
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
