/* leaf_fixture.c - see leaf_fixture.h */
#include "tests/unit/daemon/workers/leaf_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"

static struct arena arena;
struct cgroup_leaf leaf = CGROUP_LEAF_NONE;

int leaf_make(void)
{
	struct cgroup_paths paths;
	int rc = cgroup_paths_read("", &arena, &paths);

	return rc < 0 ? rc : cgroup_leaf_make(&paths, &arena, &leaf);
}

void delegated_make(void)
{
	trial_make(TREE_UNIFIED);
	needs(access(trial_path("cgroup.kill"), F_OK) == 0, "cgroup.kill (Linux 5.14)");
	trial_give(NOBODY, true);
}

bool is_in(pid_t pid, const char *end)
{
	char path[64], text[4096];
	size_t len = strlen(end);
	char *line;

	(void)snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
	if (fd_read_file(path, text, sizeof text) < 0)
		return false;
	line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
	if (!line)
		return false;
	line[1 + strcspn(line + 1, "\n")] = '\0';
	return strlen(line) >= len && strcmp(line + strlen(line) - len, end) == 0;
}

const char *leaf_name(void)
{
	static char name[64];

	(void)snprintf(name, sizeof name, "%s/supervisor", strrchr(leaf.path, '/'));
	return name;
}

pid_t leaf_fork(void (*act)(int tell))
{
	int ready[2];
	pid_t pid;
	char byte;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return -1;
	pid = cgroup_fork(&leaf);
	if (pid == 0) {
		act(ready[1]);
		_exit(99);
	}
	(void)close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		pid = -1;
	(void)close(ready[0]);
	return pid;
}

void act_idle(int tell)
{
	(void)!write(tell, "x", 1);
	for (;;)
		(void)pause();
}
