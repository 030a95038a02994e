/* cgroup_sweep.c - cgroups that launchers left: see cgroup_leaf_sweep() */
#include "daemon/workers/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/num.h"
#include "daemon/os/procfs.h"

#define PREFIX "launchd-"
#define LOBBY  "-guard"

/* The pid in "launchd-PID" or "launchd-PID-guard"; 0: another name. */
static pid_t sweep_pid(const char *name)
{
	char digits[16] = "";
	uint64_t pid;
	size_t len;

	if (strncmp(name, PREFIX, sizeof PREFIX - 1) != 0)
		return 0;
	name += sizeof PREFIX - 1;
	len = strspn(name, "0123456789");
	if (len >= sizeof digits || (name[len] && strcmp(name + len, LOBBY) != 0))
		return 0;
	memcpy(digits, name, len);
	return num_parse(digits, 1, INT32_MAX, &pid) == 0 ? (pid_t)pid : 0;
}

/* Whether a process in OURS is, or may be, a guard with that pid in its own pid namespace: one that
 * starts has no process in its leaf yet. */
static bool may_start(int home, pid_t guard)
{
	char line[32];
	FILE *list;
	bool may = false;
	int fd = openat(home, "cgroup.procs", O_RDONLY | O_CLOEXEC);

	list = fd < 0 ? NULL : fdopen(fd, "r");
	if (!list) {
		fd_closep(&fd);
		return true;
	}
	while (!may && fgets(line, sizeof line, list)) {
		pid_t pid = (pid_t)strtol(line, NULL, 10);
		pid_t inner = pid > 0 ? process_innermost_pid(pid) : 0;

		may = inner == guard || (inner == 0 && (pid == 0 || kill(pid, 0) == 0));
	}
	(void)fclose(list);
	return may;
}

static bool has_processes(int home, const char *name)
{
	char text[128] = "";
	autoclose dir = openat(home, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	autoclose events = dir < 0 ? -1 : openat(dir, "cgroup.events", O_RDONLY | O_CLOEXEC);

	return events < 0 || read(events, text, sizeof text - 1) <= 0 ||
		!strstr(text, "populated 0");
}

/* The lobby first: while a guard is in it, the leaf may be empty. */
static void sweep_one(const struct cgroup_leaf *leaf, pid_t guard)
{
	size_t home_len = (size_t)(strrchr(leaf->path, '/') - leaf->path);
	char name[NAME_MAX + 1], path[PATH_MAX];

	if (guard == getpid() || kill(guard, 0) == 0 || errno != ESRCH ||
		may_start(leaf->home, guard))
		return;
	(void)snprintf(name, sizeof name, PREFIX "%d" LOBBY, (int)guard);
	if (unlinkat(leaf->home, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return;
	(void)snprintf(name, sizeof name, PREFIX "%d", (int)guard);
	if (!has_processes(leaf->home, name) &&
		snprintf(path, sizeof path, "%.*s/%s", (int)home_len, leaf->path, name) <
			(int)sizeof path)
		(void)cgroup_remove(path);
}

void cgroup_leaf_sweep(const struct cgroup_leaf *leaf)
{
	int fd = leaf->path ? openat(leaf->home, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	pid_t pid;

	if (!list) {
		fd_closep(&fd);
		return;
	}
	while ((e = readdir(list)))
		if (e->d_type == DT_DIR && (pid = sweep_pid(e->d_name)) > 0)
			sweep_one(leaf, pid);
	(void)closedir(list);
}
