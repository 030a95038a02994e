/* rank_stack.c - see rank_stack.h */
#include "daemon/ctl/rank_stack.h"

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
#include "daemon/os/thread_list.h"

static int add_threads(pid_t pid, struct text *out, struct failure *why)
{
	int rc = thread_list_add(pid, out, NULL);

	return rc < 0 ? failure_set(why, rc, "/proc/%d/task: %s", (int)pid, strerror(-rc)) : 0;
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
	rc = add_threads(pid, &out, why);
	if (rc < 0) {
		text_done(&out);
		return rc;
	}
	rc = print_done(&out, why);
	if (rc == 0)
		run_tools(pid);
	return rc;
}
