/* ctl_place.c - see ctl_place.h */
#include "daemon/control/ctl_place.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/vec.h"

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
		if (rc == 0)
			rc = bind_at(p->path);
		if (rc != -ENOENT)
			return rc;
		rc = 0;
	}
	return rc < 0 ? rc : -ENOENT;
}

int ctl_listen(const char *const *env, pid_t guard, struct ctl_place *ret, struct failure *why)
{
	const char *runtime = env_get(env, "RUNTIME_DIRECTORY");
	const char *user = env_get(env, "XDG_RUNTIME_DIR");
	struct ctl_place dir = { .own_dir = false };
	int rc = -ENOENT;

	*ret = (struct ctl_place){ .own_dir = false };
	if (runtime && *runtime == '/')
		rc = listen_in_runtime(runtime, guard, ret);
	/* it may be another user's, or of another host: mpirun hands variables on */
	if (rc < 0 && user && *user == '/' && check_dir(user) == 0 &&
		path_set(&dir, user, "/launchd") == 0)
		rc = listen_in_own(dir.path, guard, ret);
	if (rc < 0 && path_set(&dir, "/tmp", "/launchd-%u", (unsigned)geteuid()) == 0)
		rc = listen_in_own(dir.path, guard, ret);
	if (rc >= 0)
		return rc;
	(void)failure_set(
		why, rc, "launchctl can't reach this job: %s: %s", ret->path, strerror(-rc));
	*ret = (struct ctl_place){ .own_dir = false };
	return rc;
}

void ctl_forget(struct ctl_place *p)
{
	char *slash = strrchr(p->path, '/');

	if (!slash)
		return;
	(void)unlink(p->path); /* it may be gone: somebody cleans /tmp */
	*slash = '\0';
	if (p->own_dir)
		(void)rmdir(p->path); /* fails while others are in it */
	p->path[0] = '\0';
}
