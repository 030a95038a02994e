/* oom.c - see oom.h */
#include "daemon/workers/oom.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/workers/cgroup_paths.h"

/* The counter's value, or -1: the file has none (before Linux 4.13). */
static int64_t read_counter(int fd)
{
	static const char name[] = "oom_kill ";
	char text[1024];
	ssize_t n = pread(fd, text, sizeof text - 1, 0);
	const char *line = text;

	if (n <= 0)
		return -1;
	text[n] = '\0';
	while (line && strncmp(line, name, sizeof name - 1) != 0) { /* not "oom_kill_disable" */
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return line ? (int64_t)strtoull(line + sizeof name - 1, NULL, 10) : -1;
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

/* A cgroup without the controller is counted by the nearest one above it that has it. */
static void start_unified(const struct cgroup_place *place, struct oom_watch *o)
{
	char path[PATH_MAX];
	int len = snprintf(path, sizeof path, "%s", place->dir);
	bool ours = true;

	while (len > 0 && len < (int)sizeof path) {
		autoclose dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		char *slash = (size_t)len > place->top ? strrchr(path, '/') : NULL;

		if (dir >= 0 && open_counter(dir, "memory.events", o)) {
			o->shared = !ours || has_cgroups(dir) || has_others(dir);
			return;
		}
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

void oom_stop(struct oom_watch *o)
{
	fd_closep(&o->fd);
	*o = (struct oom_watch)OOM_NONE;
}
