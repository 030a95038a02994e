/* job_sockets.c - see job_sockets.h */
#include "daemon/ctl/job_sockets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/fd.h"
#include "common/monotonic.h"
#include "daemon/control/ctl_place.h"
#include "daemon/os/procfs.h"

enum {
	NAMES_MAX = 4096, /* that are read of a directory, which may be an enemy's */
	LOOK_MS = 300,
	RETRY_MS = 50,
	ENOUGH_MS = 2000, /* for the others, when there is enough */
};

/* A directory, opened. */
struct socket_dir {
	int fd;
	uid_t uid;
	const char *path;
	const char *place; /* as struct job_seen has it */
};

/* Whether the listener is the supervisor of the guard that the socket is named after. A guard of
 * another pid namespace has other numbers here, and one that was killed has none. */
static bool guard_fits(struct job_seen *j)
{
	struct process supervisor;

	if (j->link.supervisor <= 0)
		return true;
	if (process_read(j->link.supervisor, &supervisor) < 0)
		return j->uid == geteuid();
	j->known = supervisor.parent == j->guard;
	return j->known || process_innermost_pid(supervisor.parent) == j->guard ||
		(kill(j->guard, 0) < 0 && errno == ESRCH);
}

/* By the opened directory, since its path may lead elsewhere by now; without /proc by the path. */
static int connect_to(const struct jobs *jobs, struct job_seen *j, int dir, const char *dir_path)
{
	struct failure none = { 0 };
	char path[PATH_MAX];
	int rc;

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d/%d.sock", dir, (int)j->guard);
	if (dir_path && proc_look() == PROC_NONE)
		(void)snprintf(path, sizeof path, "%s/%d.sock", dir_path, (int)j->guard);
	rc = ctl_link_open(jobs->cjson, path, &j->link, &none);
	if (rc == 0 && (j->link.uid != j->uid || !guard_fits(j))) {
		ctl_link_close(&j->link);
		rc = -EPERM;
	}
	return rc;
}

static struct job_seen *jobs_add(struct jobs *jobs)
{
	if (jobs->count == jobs->room) {
		size_t room = jobs->room ? 2 * jobs->room : 16;
		struct job_seen *at = arena_alloc(jobs->arena, room * sizeof *at);

		if (!at)
			return NULL;
		if (jobs->count > 0)
			memcpy(at, jobs->at, jobs->count * sizeof *at);
		jobs->at = at;
		jobs->room = room;
	}
	return &jobs->at[jobs->count++];
}

static void open_socket(struct jobs *jobs, const struct socket_dir *d, const char *name)
{
	struct job_seen j = { .link.fd = -1, .uid = d->uid, .place = d->place, .dir = -1 }, *kept;
	struct stat st;
	int rc;

	j.guard = ctl_place_guard(name);
	if (j.guard == 0 || fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		!S_ISSOCK(st.st_mode) || st.st_uid != d->uid)
		return;
	rc = connect_to(jobs, &j, d->fd, d->path);
	if (rc == -EAGAIN)
		j.dir = fcntl(d->fd, F_DUPFD_CLOEXEC, 3);
	if (rc < 0 && j.dir < 0)
		return;
	kept = jobs_add(jobs);
	if (kept)
		*kept = j;
}

static void look_into(struct jobs *jobs, struct socket_dir *d)
{
	DIR *list = fdopendir(d->fd);
	const struct dirent *e;

	if (!list)
		return;
	for (int i = 0; i < NAMES_MAX && (e = readdir(list)); i++)
		open_socket(jobs, d, e->d_name);
	(void)closedir(list);
	d->fd = -1;
}

static bool may_look(const struct ctl_dir *dir, const struct stat *st)
{
	return S_ISDIR(st->st_mode) && !(st->st_mode & (S_IWGRP | S_IWOTH)) &&
		(geteuid() == 0 || st->st_uid == geteuid()) &&
		(!dir->has_uid || st->st_uid == dir->uid);
}

/* Each directory once: two names may lead to one. */
struct socket_scan {
	struct jobs *jobs;
	size_t count;
	struct {
		dev_t dev;
		ino_t ino;
	} seen[64]; /* more of them are other users': theirs have one name each */
};

static bool was_seen(struct socket_scan *s, const struct stat *st)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->seen[i].dev == st->st_dev && s->seen[i].ino == st->st_ino)
			return true;
	if (s->count < sizeof s->seen / sizeof *s->seen) {
		s->seen[s->count].dev = st->st_dev;
		s->seen[s->count++].ino = st->st_ino;
	}
	return false;
}

static void on_dir(void *owner, const struct ctl_dir *dir)
{
	struct socket_scan *s = owner;
	struct socket_dir d = {
		.fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK),
		.path = dir->path,
	};
	struct stat st;

	if (d.fd < 0)
		return;
	if (fstat(d.fd, &st) == 0 && may_look(dir, &st) && !was_seen(s, &st)) {
		d.uid = st.st_uid;
		d.place = dir->service ? arena_strdup(s->jobs->arena, dir->service) : NULL;
		look_into(s->jobs, &d);
	}
	fd_closep(&d.fd);
}

void jobs_open(
	struct jobs *ret, const char *const *env, const struct cjson *cjson, struct arena *arena)
{
	struct socket_scan s = { .jobs = ret };

	*ret = (struct jobs){ .cjson = cjson, .arena = arena };
	ctl_dirs(env, geteuid() == 0, on_dir, &s);
}

static void forget_job(struct jobs *jobs, struct job_seen *j)
{
	jobs->cjson->free(j->root);
	j->root = NULL;
	ctl_link_close(&j->link);
	fd_closep(&j->dir);
}

void jobs_close(struct jobs *jobs)
{
	for (size_t i = 0; i < jobs->count; i++)
		forget_job(jobs, &jobs->at[i]);
	jobs->count = 0;
}

static void end_asking(struct job_seen *j)
{
	j->asked = false;
	fd_closep(&j->dir);
}

static void begin_asking(struct job_seen *j)
{
	if (ctl_link_send(&j->link, "status", "", &j->why) < 0)
		end_asking(j);
}

/* One that had no room for our connection. */
static void connect_again(struct jobs *jobs, struct job_seen *j)
{
	int rc = connect_to(jobs, j, j->dir, NULL);

	if (rc == -EAGAIN)
		return;
	fd_closep(&j->dir);
	if (rc == 0)
		begin_asking(j);
	else
		j->asked = false;
}

/* 0: it has not answered yet. */
static void hear_job(struct job_seen *j, int64_t waited_ms)
{
	if (ctl_link_try(&j->link, waited_ms, &j->root, &j->status, &j->why) != 0)
		end_asking(j);
}

/* Waits until one of those that are asked has something to say, and not long. */
static void wait_for_any(const struct jobs *jobs, struct pollfd *polls, int64_t left_ms)
{
	int64_t most = LOOK_MS;

	for (size_t i = 0; i < jobs->count; i++) {
		const struct job_seen *j = &jobs->at[i];

		polls[i] = (struct pollfd){ .fd = j->asked ? j->link.fd : -1, .events = POLLIN };
		most = j->dir >= 0 ? RETRY_MS : most;
	}
	(void)poll(polls, jobs->count, (int)(left_ms < most ? left_ms : most));
}

/* Returns how many have yet to answer. */
static size_t look_at_all(struct jobs *jobs, int64_t waited_ms)
{
	size_t left = 0;

	for (size_t i = 0; i < jobs->count; i++) {
		struct job_seen *j = &jobs->at[i];

		if (j->asked && j->dir >= 0)
			connect_again(jobs, j);
		else if (j->asked)
			hear_job(j, waited_ms);
		left += j->asked;
	}
	return left;
}

bool jobs_own_answered(const struct jobs *jobs, const void *of)
{
	(void)of;
	for (size_t i = 0; i < jobs->count; i++)
		if (jobs->at[i].asked && jobs->at[i].uid == geteuid())
			return false;
	return true;
}

void jobs_ask(
	struct jobs *jobs, bool (*enough)(const struct jobs *jobs, const void *of), const void *of)
{
	struct pollfd *polls = arena_alloc(jobs->arena, jobs->count * sizeof *polls);
	int64_t began = monotonic_ms(), end = began + CTL_PATIENCE_MS, now = began;
	bool is_enough = false;

	for (size_t i = 0; i < jobs->count; i++) {
		jobs->at[i].asked = polls != NULL;
		if (polls && jobs->at[i].dir < 0)
			begin_asking(&jobs->at[i]);
	}
	while (polls && look_at_all(jobs, now - began) > 0 && now < end) {
		if (!is_enough && enough(jobs, of)) {
			is_enough = true;
			end = now + ENOUGH_MS < end ? now + ENOUGH_MS : end;
		}
		wait_for_any(jobs, polls, end - now);
		now = monotonic_ms();
	}
}
