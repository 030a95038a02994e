/* ctl_place.c - see ctl_place.h */
#include "daemon/control/ctl_place.h"

#include <errno.h>
#include <glob.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/vec.h"
#include "daemon/os/replace.h"

enum { BACKLOG = 64 };

/* Of a pair whether it was written whole. */
__attribute__((format(printf, 3, 4))) static int path_set(
	struct ctl_place *p, const char *dir, const char *fmt, ...)
{
	va_list ap;
	int n, len = (int)strlen(dir);

	if (len >= (int)sizeof p->path)
		return -ENAMETOOLONG;
	memcpy(p->path, dir, (size_t)len + 1);
	va_start(ap, fmt);
	n = vsnprintf(p->path + len, sizeof p->path - (size_t)len, fmt, ap);
	va_end(ap);
	return n < 0 || n >= (int)sizeof p->path - len ? -ENAMETOOLONG : 0;
}

/* Whether it is a directory of ours that nobody else writes to, and no link to one. */
static int check_dir(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH)) ? 0 : -EPERM;
}

/* Makes the directory that launchd's sockets share. */
static int make_dir(const char *path)
{
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	return check_dir(path);
}

/* Whether somebody listens at an address that is taken. */
static bool is_alive(const struct sockaddr_un *at)
{
	autoclose fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	/* EAGAIN: it has no room for another connection now */
	return fd < 0 || connect(fd, (const struct sockaddr *)at, sizeof *at) == 0 ||
		errno == EAGAIN;
}

static int bind_at(const char *path)
{
	autoclose fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int rc;

	if (fd < 0)
		return -errno;
	memcpy(at.sun_path, path, strlen(path) + 1);
	rc = bind(fd, (const struct sockaddr *)&at, sizeof at) < 0 ? -errno : 0;
	/* of a launcher that was killed together with its guard, which had our pid; unless that is
	 * of another pid namespace, and lives */
	if (rc == -EADDRINUSE && !is_alive(&at) && unlink(path) == 0)
		rc = bind(fd, (const struct sockaddr *)&at, sizeof at) < 0 ? -errno : 0;
	if (rc < 0)
		return rc;
	if (listen(fd, BACKLOG) < 0) {
		rc = -errno;
		(void)unlink(path);
		return rc;
	}
	return fd_take(&fd);
}

/* A directory that the service manager has made for this service alone. */
static int listen_in_runtime(const char *dirs, pid_t guard, struct ctl_place *p)
{
	const char *end = strchr(dirs, ':'); /* of several the first: systemd.exec(5) */
	char first[sizeof p->path];
	size_t len = end ? (size_t)(end - dirs) : strlen(dirs);
	int rc;

	if (len >= sizeof first)
		return -ENAMETOOLONG;
	memcpy(first, dirs, len);
	first[len] = '\0';
	rc = check_dir(first);
	if (rc == 0)
		rc = path_set(p, first, "/%d.sock", (int)guard);
	return rc < 0 ? rc : bind_at(p->path);
}

/* A directory that launchd makes, and whichever of its users is the last removes. */
static int listen_in_own(const char *dir, pid_t guard, struct ctl_place *p)
{
	enum { TRIES = 16 }; /* another one removes it between our two steps */
	int rc = path_set(p, dir, "/%d.sock", (int)guard);

	p->own_dir = true;
	for (unsigned i = 0; rc == 0 && i < TRIES; i++) {
		rc = make_dir(dir);
		if (rc == 0 && (rc = bind_at(p->path)) < 0 && rc != -ENOENT)
			(void)rmdir(dir); /* fails while others are in it */
		if (rc != -ENOENT)
			return rc;
		rc = 0;
	}
	return rc < 0 ? rc : -ENOENT;
}

/* In a directory that all users share: the one of our name, or where somebody else has that name,
 * another one. */
static int listen_in_shared(const char *top, pid_t guard, struct ctl_place *p)
{
	struct ctl_place dir;
	int rc = path_set(&dir, top, "/launchd-%u", (unsigned)geteuid());

	if (rc == 0)
		rc = listen_in_own(dir.path, guard, p);
	if (rc != -EPERM && rc != -ENOTDIR)
		return rc;
	rc = path_set(&dir, top, "/launchd-%u-XXXXXX", (unsigned)geteuid());
	if (rc == 0 && !mkdtemp(dir.path))
		return -errno;
	rc = rc < 0 ? rc : listen_in_own(dir.path, guard, p);
	if (rc < 0)
		(void)rmdir(dir.path);
	return rc;
}

/* The directories that all users share, by preference. */
static const char *const shared_tops[] = { "/tmp", "/dev/shm" };
enum { SHARED_TOPS = sizeof shared_tops / sizeof *shared_tops };

static int listen_somewhere(const char *const *env, pid_t guard, struct ctl_place *ret)
{
	const char *runtime = env_get(env, "RUNTIME_DIRECTORY");
	const char *user = env_get(env, "XDG_RUNTIME_DIR");
	struct ctl_place dir = { .own_dir = false };
	int rc = -ENOENT;

	if (runtime && *runtime == '/')
		rc = listen_in_runtime(runtime, guard, ret);
	/* it may be another user's, or of another host: mpirun hands variables on */
	if (rc < 0 && user && *user == '/' && check_dir(user) == 0 &&
		path_set(&dir, user, "/launchd") == 0)
		rc = listen_in_own(dir.path, guard, ret);
	for (int i = 0; rc < 0 && i < SHARED_TOPS; i++)
		rc = listen_in_shared(shared_tops[i], guard, ret);
	/* where launchctl looks, too, whatever env says */
	if (rc < 0 && path_set(&dir, "/run/user", "/%u", (unsigned)geteuid()) == 0 &&
		check_dir(dir.path) == 0 &&
		path_set(&dir, "/run/user", "/%u/launchd", (unsigned)geteuid()) == 0)
		rc = listen_in_own(dir.path, guard, ret);
	return rc;
}

int ctl_listen(const char *const *env, pid_t guard, struct ctl_place *ret, struct failure *why)
{
	struct stat st;
	int rc;

	*ret = (struct ctl_place){ .own_dir = false };
	rc = listen_somewhere(env, guard, ret);
	if (rc < 0) {
		(void)failure_set(why, rc, "launchctl can't reach this job: %s: %s", ret->path,
			strerror(-rc));
		*ret = (struct ctl_place){ .own_dir = false };
	} else if (lstat(ret->path, &st) == 0) {
		ret->dev = st.st_dev;
		ret->ino = st.st_ino;
	}
	return rc;
}

static bool has_own_file(const struct ctl_place *p)
{
	struct stat st;

	return lstat(p->path, &st) == 0 && st.st_dev == p->dev && st.st_ino == p->ino;
}

bool ctl_is_there(const struct ctl_place *p)
{
	struct ctl_place dir = *p;
	char *slash = strrchr(dir.path, '/');

	if (!slash)
		return false;
	*slash = '\0';
	return check_dir(dir.path) == 0 && has_own_file(p);
}

pid_t ctl_place_guard(const char *name)
{
	size_t digits = strspn(name, "0123456789");

	return digits > 0 && digits < 10 && strcmp(name + digits, ".sock") == 0 ?
		(pid_t)strtol(name, NULL, 10) :
		0;
}

/* "launchd-1000", "launchd-1000-Xf2a9Q" */
static bool read_uid(const char *path, uid_t *ret)
{
	const char *name = strrchr(path, '/') + sizeof "/launchd-" - 1;
	char *end;
	unsigned long uid = strtoul(name, &end, 10);

	*ret = (uid_t)uid;
	return end > name && (*end == '\0' || *end == '-') && uid < UINT32_MAX;
}

struct dir_listing {
	void (*on_dir)(void *owner, const struct ctl_dir *dir);
	void *owner;
};

enum dir_kind { OF_USER, OF_SERVICE, OF_NAME }; /* what a directory's name says */

static void list_matches(const struct dir_listing *l, const char *pattern, enum dir_kind kind)
{
	glob_t found;

	if (glob(pattern, 0, NULL, &found) != 0)
		return; /* none, or a directory that is not ours */
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct ctl_dir d = { .path = found.gl_pathv[i] };

		if (kind == OF_SERVICE)
			d.service = strrchr(d.path, '/') + 1;
		d.has_uid = kind == OF_NAME;
		if (kind != OF_NAME || read_uid(d.path, &d.uid))
			l->on_dir(l->owner, &d);
	}
	globfree(&found);
}

void ctl_dirs(const char *const *env, bool of_all,
	void (*on_dir)(void *owner, const struct ctl_dir *dir), void *owner)
{
	const struct dir_listing l = { on_dir, owner };
	const char *user = env_get(env, "XDG_RUNTIME_DIR");
	struct ctl_place dir;
	char pattern[64];

	if (user && *user == '/' && path_set(&dir, user, "/launchd") == 0)
		on_dir(owner, &(struct ctl_dir){ .path = dir.path });
	list_matches(&l, "/run/launchd/*", OF_SERVICE); /* of the unit launchd@.service */
	(void)snprintf(pattern, sizeof pattern, "/run/user/%u/launchd", (unsigned)geteuid());
	list_matches(&l, of_all ? "/run/user/*/launchd" : pattern, OF_USER);
	for (int i = 0; i < SHARED_TOPS; i++) {
		(void)snprintf(pattern, sizeof pattern, "%s/launchd-%u", shared_tops[i],
			(unsigned)geteuid());
		list_matches(&l, pattern, OF_NAME);
		(void)snprintf(pattern, sizeof pattern, "%s/launchd-%u-*", shared_tops[i],
			(unsigned)geteuid());
		list_matches(&l, pattern, OF_NAME);
		(void)snprintf(pattern, sizeof pattern, "%s/launchd-*", shared_tops[i]);
		if (of_all)
			list_matches(&l, pattern, OF_NAME);
	}
}

static int ctl_forget_now(const void *what)
{
	struct ctl_place p = *(const struct ctl_place *)what;
	char *slash = strrchr(p.path, '/');

	if (has_own_file(
		    &p)) /* somebody cleans /tmp, and its directory may be another user's now */
		(void)unlink(p.path);
	*slash = '\0';
	if (p.own_dir)
		(void)rmdir(p.path); /* fails while others are in it */
	return 0;
}

void ctl_forget(struct ctl_place *p, uint64_t limit_ms)
{
	if (strchr(p->path, '/'))
		(void)path_touch(p->path, limit_ms, ctl_forget_now, p);
	p->path[0] = '\0';
}
