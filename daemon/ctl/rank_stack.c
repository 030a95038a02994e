/* rank_stack.c - see rank_stack.h */
#include "daemon/ctl/rank_stack.h"

#include <dirent.h>
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/text.h"
#include "daemon/ctl/ctl_command.h"
#include "daemon/ctl/ctl_link.h"
#include "daemon/ctl/print.h"

enum { TASKS_MAX = 256, FILE_MAX = 8192 };

/* /proc/PID/task/TID/NAME without its last newline; -1: it can't be read. */
static long read_of(pid_t pid, const char *task, const char *name, char ret[FILE_MAX])
{
	char path[96];
	long n;

	(void)snprintf(path, sizeof path, "/proc/%d/task/%s/%s", (int)pid, task, name);
	n = fd_read_file(path, ret, FILE_MAX);
	while (n > 0 && ret[n - 1] == '\n')
		ret[--n] = '\0';
	return n;
}

/* "S (sleeping)" of /proc/PID/status. */
static void add_state(char *status, struct text *out)
{
	char *line = strstr(status, "\nState:"), *end;

	if (!line)
		return;
	line += strlen("\nState:");
	line += strspn(line, " \t");
	end = strchr(line, '\n');
	text_add_bytes(out, line, end ? (size_t)(end - line) : strlen(line));
}

static void add_task(pid_t pid, const char *task, struct text *out)
{
	char of[FILE_MAX];
	long n = read_of(pid, task, "comm", of);

	text_printf(out, "thread %s ", task);
	if (n > 0)
		text_add_shown(out, of, (size_t)n);
	text_add(out, ": ");
	if (read_of(pid, task, "status", of) > 0)
		add_state(of, out);
	n = read_of(pid, task, "wchan", of);
	if (n > 0 && strcmp(of, "0") != 0)
		text_printf(out, ", waits in %s", of);
	n = read_of(pid, task, "syscall", of);
	if (n > 0)
		text_printf(out, ", system call %.*s", (int)strcspn(of, " "), of);
	text_add(out, "\n");
	n = read_of(pid, task, "stack", of);
	for (char *line = n > 0 ? strtok(of, "\n") : NULL; line; line = strtok(NULL, "\n"))
		text_printf(out, "    %s\n", line);
}

static int add_tasks(pid_t pid, struct text *out, struct failure *why)
{
	char path[64];
	const struct dirent *entry;
	unsigned count = 0;
	DIR *dir;

	(void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return failure_set(why, -errno, "%s: %s", path, strerror(errno));
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && ++count <= TASKS_MAX)
			add_task(pid, entry->d_name, out);
	(void)closedir(dir);
	if (count > TASKS_MAX)
		text_printf(out, "%u threads more\n", count - TASKS_MAX);
	return 0;
}

/* False: it is not installed. What it says goes to our own output. */
static bool run_tool(const char *const *argv)
{
	pid_t child;
	int status;

	if (posix_spawnp(&child, argv[0], NULL, NULL, (char *const *)argv, environ) != 0)
		return false;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return true;
}

static void run_tools(pid_t pid)
{
	static const char none[] =
		"for stacks of Python and C install py-spy or gdb where launchctl runs\n";
	char number[16];
	const char *const py_spy[] = { "py-spy", "dump", "--pid", number, NULL };
	const char *const gdb[] = { "gdb", "--batch", "-nx", "-ex", "thread apply all backtrace",
		"-p", number, NULL };

	(void)snprintf(number, sizeof number, "%d", (int)pid);
	if (!run_tool(py_spy) && !run_tool(gdb))
		(void)fd_write_all(STDOUT_FILENO, none, sizeof none - 1);
}

/* 0: it does not run here. */
static pid_t find_pid(const struct cjson *c, const cJSON *status, unsigned rank)
{
	const cJSON *workers = member_object(c, status, "workers");

	for (const cJSON *w = workers ? workers->child : NULL; w; w = w->next) {
		double number, pid, ended;

		if (!member_number(c, w, "rank", &number) || number != rank)
			continue;
		return member_number(c, w, "pid", &pid) &&
				!member_number(c, w, "ended_at", &ended) ?
			(pid_t)pid :
			0;
	}
	return 0;
}

int rank_stack(struct ctl_link *l, const struct ctl_command *c, struct failure *why)
{
	struct text out = { 0 };
	const cJSON *status;
	cJSON *root;
	pid_t pid;
	int rc = ctl_link_ask(l, "status", "", &root, &status, why);

	if (rc < 0)
		return rc;
	pid = find_pid(l->cjson, status, c->ranks[0]);
	l->cjson->free(root);
	if (pid == 0)
		return failure_set(
			why, -EREMOTEIO, "rank %u does not run on this node", c->ranks[0]);
	text_printf(&out, "rank %u, pid %d\n", c->ranks[0], (int)pid);
	rc = add_tasks(pid, &out, why);
	if (rc < 0) {
		text_done(&out);
		return rc;
	}
	rc = print_done(&out, why);
	if (rc == 0)
		run_tools(pid);
	return rc;
}
