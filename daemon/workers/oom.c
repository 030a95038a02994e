/* oom.c - see oom.h */
#include "daemon/workers/oom.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/workers/cells.h"
#include "daemon/os/cgroup_paths.h"

/* The value of a counter ("oom_kill "), or -1: the file has none (before Linux 4.13). */
static int64_t read_value(int fd, const char *name)
{
	char text[1024];
	ssize_t n = pread(fd, text, sizeof text - 1, 0);
	size_t len = strlen(name);
	const char *line = text;

	if (n <= 0)
		return -1;
	text[n] = '\0';
	while (line && strncmp(line, name, len) != 0) { /* not "oom_kill_disable" */
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return line ? (int64_t)strtoull(line + len, NULL, 10) : -1;
}

static int64_t read_counter(int fd)
{
	return read_value(fd, "oom_kill ");
}

static int64_t read_at(int dir, const char *file, const char *name)
{
	autoclose fd = openat(dir, file, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : read_value(fd, name);
}

/* How often the limit of this cgroup itself was reached and no memory could be had; -1: it has
 * none, as nothing counts here. Before Linux 5.2 those below are counted, too. */
static int64_t read_reached(int dir)
{
	int64_t n = read_at(dir, "memory.events.local", "oom ");

	return n < 0 ? read_at(dir, "memory.events", "oom ") : n;
}

/* memory.max: 0: "max", or not known. */
static uint64_t read_limit(int dir)
{
	char text[32];
	autoclose fd = openat(dir, "memory.max", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

	text[n > 0 ? n : 0] = '\0';
	return strtoull(text, NULL, 10);
}

/* Whether a process that is neither this one nor its parent is in the cgroup. */
static bool has_others(int dir)
{
	char pids[64], *at = pids, *end;
	autoclose fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, pids, sizeof pids - 1);

	if (n < 0 || n == (ssize_t)sizeof pids - 1)
		return true;
	for (pids[n] = '\0'; *at; at = end) {
		long pid = strtol(at, &end, 10);

		if (end == at || (pid != getpid() && pid != getppid()))
			return true;
		end += *end == '\n';
	}
	return false;
}

static bool has_cgroups(int dir)
{
	struct stat st;

	return fstat(dir, &st) < 0 || st.st_nlink != 2; /* each is a link to its parent */
}

static bool open_counter(int dir, const char *name, struct oom_watch *o)
{
	autoclose fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	int64_t counted = fd < 0 ? -1 : read_counter(fd);

	if (counted < 0)
		return false;
	o->fd = fd_take(&fd);
	o->counted = (uint64_t)counted;
	return true;
}

/* True: it was the last there can be. */
static bool add_above(struct oom_watch *o, int *dir)
{
	int64_t reached = read_reached(*dir);

	if (reached < 0) {
		o->to_root = o->above_count > 0; /* the root of all has no such file */
		return o->to_root;
	}
	o->above[o->above_count].reached = (uint64_t)reached;
	o->above[o->above_count++].dir = fd_take(dir);
	return o->above_count == OOM_ABOVE_MAX;
}

/* A cgroup without the controller is counted by the nearest one above it that has it. */
static void start_unified(const struct cgroup_place *place, struct oom_watch *o)
{
	char path[PATH_MAX];
	int len = snprintf(path, sizeof path, "%s", place->dir);
	bool ours = true;

	while (len > 0 && len < (int)sizeof path) {
		autoclose dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		char *slash = (size_t)len > place->top ? strrchr(path, '/') : NULL;

		if (dir >= 0 && o->fd < 0 && open_counter(dir, "memory.events", o))
			o->shared = !ours || has_cgroups(dir) || has_others(dir);
		if (dir >= 0 && add_above(o, &dir))
			return;
		ours = false;
		len = slash ? (int)(slash - path) : 0;
		path[len] = '\0';
	}
}

static void start_version_1(const struct cgroup_place *place, struct oom_watch *o)
{
	autoclose dir = open(place->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir >= 0 && open_counter(dir, "memory.oom_control", o))
		o->shared = has_others(dir);
}

void oom_start(const struct cgroup_paths *paths, struct oom_watch *ret)
{
	*ret = (struct oom_watch)OOM_NONE;
	if (paths->memory.dir)
		start_version_1(&paths->memory, ret);
	else if (paths->unified.dir)
		start_unified(&paths->unified, ret);
}

enum oom oom_look(struct oom_watch *o)
{
	int64_t now = o->fd < 0 ? -1 : read_counter(o->fd);
	uint64_t risen = now > (int64_t)o->counted ? (uint64_t)now - o->counted : 0;
	bool fresh = risen > 0;

	o->counted += risen;
	o->unclaimed += risen;
	if (o->unclaimed == 0)
		return OOM_NO;
	o->unclaimed--;
	return fresh && !o->shared ? OOM_YES : OOM_LIKELY;
}

/* Whose limit it was, of those in which launchd was started. */
static void find_limit(const struct oom_watch *o, struct outcome *w)
{
	for (unsigned i = 0; i < o->above_count; i++) {
		int64_t reached = read_reached(o->above[i].dir);

		if (reached > (int64_t)o->above[i].reached) {
			w->oom_limit = OOM_LIMIT_ABOVE;
			w->oom_bytes = read_limit(o->above[i].dir);
			return;
		}
	}
	w->oom_limit = o->to_root ? OOM_LIMIT_NONE : OOM_LIMIT_UNKNOWN;
}

void oom_judge(struct oom_watch *o, const struct cells *cells, struct outcome *w)
{
	bool killed = w->end.how == ENDED_SIGNAL && w->end.value == SIGKILL;
	autoclose dir = cells_find(cells, w->rank);
	int64_t kills = dir < 0 ? -1 : read_at(dir, "memory.events", "oom_kill ");

	if (kills < 0) {
		w->oom = killed ? oom_look(o) : OOM_NO;
		return;
	}
	if (kills == 0)
		return;
	w->oom = killed ? OOM_YES : OOM_CHILD;
	if (read_at(dir, "memory.events", "oom ") > 0) {
		w->oom_limit = OOM_LIMIT_OWN;
		w->oom_bytes = read_limit(dir);
	} else {
		find_limit(o, w);
	}
}

void oom_stop(struct oom_watch *o)
{
	for (unsigned i = 0; i < o->above_count; i++)
		fd_closep(&o->above[i].dir);
	fd_closep(&o->fd);
	*o = (struct oom_watch)OOM_NONE;
}
