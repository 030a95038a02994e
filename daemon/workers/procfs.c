/* procfs.c - see procfs.h */
#include "daemon/workers/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"

/* A directory's entry that is a number, or 0. */
static pid_t number_of(const char *name)
{
	char *end;
	long n = strtol(name, &end, 10);

	return *end == '\0' && n > 0 ? (pid_t)n : 0;
}

int process_read(pid_t pid, struct process *ret)
{
	char path[64], text[1024];
	struct stat st;
	const char *open, *close;
	size_t len;
	int parent, session;
	long rc;

	(void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	rc = fd_read_file(path, text, sizeof text);
	if (rc < 0)
		return (int)rc;
	open = strchr(text, '(');
	close = strrchr(text, ')'); /* the name may hold anything, also ") R 1" */
	if (!open || !close || close < open ||
		sscanf(close + 1, " %c %d %*d %d", &ret->state, &parent, &session) != 3)
		return -EINVAL;
	len = (size_t)(close - open - 1);
	len = len < sizeof ret->command - 1 ? len : sizeof ret->command - 1;
	memcpy(ret->command, open + 1, len);
	ret->command[len] = '\0';
	ret->parent = parent;
	ret->session = session;
	(void)snprintf(path, sizeof path, "/proc/%d", (int)pid);
	if (stat(path, &st) < 0)
		return -errno;
	ret->uid = st.st_uid;
	return 0;
}

void process_command(pid_t pid, char ret[16])
{
	struct process p;

	ret[0] = '\0';
	if (pid > 0 && process_read(pid, &p) == 0)
		memcpy(ret, p.command, sizeof p.command);
}

/* One thread's list: numbers with a blank behind each. */
static int thread_children(pid_t pid, pid_t tid, void (*see)(pid_t child, void *to), void *to)
{
	char path[64], text[4096];
	size_t kept = 0;
	autoclose fd = -1;

	(void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (;;) {
		ssize_t n = read(fd, text + kept, sizeof text - kept - 1);
		char *at = text, *blank;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		text[kept + (size_t)n] = '\0';
		while ((blank = strchr(at, ' '))) {
			*blank = '\0';
			if (number_of(at))
				see(number_of(at), to);
			at = blank + 1;
		}
		kept = strlen(at); /* a number that was cut */
		memmove(text, at, kept);
	}
}

/* Without the kernel's lists: everyone is asked who its parent is. */
static int scan_children(pid_t pid, void (*see)(pid_t child, void *to), void *to)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		pid_t child = number_of(entry->d_name);
		struct process p;

		if (child && process_read(child, &p) == 0 && p.parent == pid)
			see(child, to);
	}
	(void)closedir(dir);
	return 0;
}

int process_children(pid_t pid, void (*see)(pid_t child, void *to), void *to)
{
	char path[64];
	struct dirent *entry;
	bool listed = false;
	DIR *dir;

	(void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		pid_t tid = number_of(entry->d_name);

		if (tid && thread_children(pid, tid, see, to) == 0)
			listed = true;
	}
	(void)closedir(dir);
	return listed ? 0 : scan_children(pid, see, to);
}

static void list_one(pid_t child, void *to)
{
	struct pids *list = to;

	if (list->count < PIDS_MAX)
		list->at[list->count++] = child;
}

void process_list_children(pid_t pid, struct pids *list)
{
	(void)process_children(pid, list_one, list); /* no /proc: there is nothing to list */
}

bool process_variable(pid_t pid, const char *name, char *ret, size_t size)
{
	enum { MAX_BYTES = 128 * 1024 };
	size_t name_len = strlen(name), len = 0;
	char path[64], *text;
	bool found = false;
	autoclose fd = -1;
	ssize_t n;

	(void)snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	text = fd < 0 ? NULL : malloc(MAX_BYTES + 1);
	if (!text)
		return false;
	while (len < MAX_BYTES && (n = read(fd, text + len, MAX_BYTES - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	for (size_t at = 0; at < len && !found; at += strlen(text + at) + 1) {
		found = strncmp(text + at, name, name_len) == 0 && text[at + name_len] == '=';
		if (found)
			(void)snprintf(ret, size, "%s", text + at + name_len + 1);
	}
	free(text);
	return found;
}
