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
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/fd.h"
#include "common/monotonic.h"
#include "common/text.h"
#include "daemon/control/ctl_place.h"
#include "daemon/os/procfs.h"

enum {
	/* another user's share */
	USER_LOOKS = 1024,    /* directories, and names in them */
	USER_SOCKETS = 128,   /* that are open at once */
	USER_BYTES = 4 << 20, /* of all that they say */
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

/* Another user, and what is left of that share. */
struct job_user {
	uid_t uid;
	unsigned looks, sockets;
	size_t bytes;
};

/* *at has room for one more than count. False: there is no memory. */
static bool jobs_grow(struct arena *a, void **at, size_t count, size_t *room, size_t size)
{
	size_t more = *room ? 2 * *room : 16;
	void *wider = count < *room ? *at : arena_alloc(a, more * size);

	if (wider && wider != *at) {
		if (count > 0)
			memcpy(wider, *at, count * size);
		*at = wider;
		*room = more;
	}
	return wider != NULL;
}

/* NULL: it is this user, whose share is all, or there is no memory. */
static struct job_user *user_of(struct jobs *jobs, uid_t uid)
{
	void *at = jobs->users;

	if (uid == geteuid())
		return NULL;
	for (size_t i = 0; i < jobs->user_count; i++)
		if (jobs->users[i].uid == uid)
			return &jobs->users[i];
	if (!jobs_grow(jobs->arena, &at, jobs->user_count, &jobs->user_room, sizeof *jobs->users))
		return NULL;
	jobs->users = at;
	jobs->users[jobs->user_count] = (struct job_user){ uid, USER_LOOKS, USER_SOCKETS, 0 };
	return &jobs->users[jobs->user_count++];
}

/* Takes one from a share. False: it was used up. */
static bool takes_one(struct jobs *jobs, unsigned *left)
{
	if (*left == 0) {
		jobs->cut = true;
		return false;
	}
	--*left;
	return true;
}

/* Whether the listener is the supervisor of the guard that the socket is named after. A guard of
 * another pid namespace has other numbers here, and one that was killed has none. */
static bool guard_fits(struct job_seen *j)
{
	struct process supervisor;

	if (j->link.supervisor <= 0)
		return true;
	if (process_read(j->link.supervisor, &supervisor) < 0)
		return j->uid == geteuid();
	if (supervisor.parent == j->guard || process_innermost_pid(supervisor.parent) == j->guard)
		j->here = supervisor.parent;
	return j->here > 0 || (kill(j->guard, 0) < 0 && errno == ESRCH);
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
	void *at = jobs->at;

	if (!jobs_grow(jobs->arena, &at, jobs->count, &jobs->room, sizeof *jobs->at))
		return NULL;
	jobs->at = at;
	return &jobs->at[jobs->count++];
}

static void forget_job(struct jobs *jobs, struct job_seen *j)
{
	jobs->cjson->free(j->root);
	j->root = NULL;
	ctl_link_close(&j->link);
	fd_closep(&j->dir);
}

static void open_socket(struct jobs *jobs, const struct socket_dir *d, const char *name)
{
	struct job_seen j = { .link.fd = -1, .uid = d->uid, .place = d->place, .dir = -1 }, *kept;
	struct job_user *user = user_of(jobs, d->uid);
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
	kept = user && !takes_one(jobs, &user->sockets) ? NULL : jobs_add(jobs);
	if (kept)
		*kept = j;
	else
		forget_job(jobs, &j);
}

static void look_into(struct jobs *jobs, struct socket_dir *d)
{
	struct job_user *user = user_of(jobs, d->uid);
	DIR *list = fdopendir(d->fd);
	const struct dirent *e;

	if (!list)
		return;
	while ((e = readdir(list)) && (!user || takes_one(jobs, &user->looks)))
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
	pid_t named;
	size_t count, room;
	struct {
		dev_t dev;
		ino_t ino;
	} * seen;
};

static bool was_seen(struct socket_scan *s, const struct stat *st)
{
	void *at = s->seen;

	for (size_t i = 0; i < s->count; i++)
		if (s->seen[i].dev == st->st_dev && s->seen[i].ino == st->st_ino)
			return true;
	if (!jobs_grow(s->jobs->arena, &at, s->count, &s->room, sizeof *s->seen))
		return false;
	s->seen = at;
	s->seen[s->count].dev = st->st_dev;
	s->seen[s->count++].ino = st->st_ino;
	return false;
}

static void on_dir(void *owner, const struct ctl_dir *dir)
{
	struct socket_scan *s = owner;
	struct socket_dir d = {
		.fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK),
		.path = dir->path,
	};
	struct job_user *user;
	struct stat st;
	char name[32];

	if (d.fd < 0)
		return;
	if (fstat(d.fd, &st) == 0 && may_look(dir, &st)) {
		d.uid = st.st_uid;
		user = user_of(s->jobs, d.uid);
		d.place = dir->service ? arena_strdup(s->jobs->arena, dir->service) : NULL;
		(void)snprintf(name, sizeof name, "%d.sock", (int)s->named);
		if ((user && !takes_one(s->jobs, &user->looks)) || was_seen(s, &st))
			fd_closep(&d.fd);
		else if (s->named > 0)
			open_socket(s->jobs, &d, name);
		else
			look_into(s->jobs, &d);
	}
	fd_closep(&d.fd);
}

/* As many as may be: the share of one user alone is more than is common. */
static void allow_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

void jobs_open(struct jobs *ret, const char *const *env, pid_t named, const struct cjson *cjson,
	struct arena *arena)
{
	struct socket_scan s = { .jobs = ret, .named = named };

	*ret = (struct jobs){ .cjson = cjson, .arena = arena };
	allow_files();
	ctl_dirs(env, geteuid() == 0, on_dir, &s);
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

/* What it has said does not go into its user's share: it is given up, and what it said with it. */
static void silence(struct jobs *jobs, struct job_seen *j)
{
	jobs->cjson->free(j->root);
	j->root = NULL;
	text_done(&j->link.in);
	(void)failure_set(&j->why, -EMSGSIZE, "it says more than is listened to");
	end_asking(j);
}

static void hear_job(struct jobs *jobs, struct job_seen *j, int64_t waited_ms)
{
	struct job_user *user = user_of(jobs, j->uid);
	size_t before = j->link.in.len;
	int rc = ctl_link_try(&j->link, waited_ms, &j->root, &j->status, &j->why);

	if (user)
		user->bytes += j->link.in.len - before;
	if (user && user->bytes > USER_BYTES)
		silence(jobs, j);
	else if (rc != 0)
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
			hear_job(jobs, j, waited_ms);
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
