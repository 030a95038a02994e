/* ask_python.c - see ask_python.h */
#include "daemon/blackbox/ask_python.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/text.h"
#include "daemon/blackbox/answer_file.h"
#include "daemon/blackbox/python_stack.h"
#include "daemon/blackbox/source.h"
#include "daemon/check/task.h"
#include "daemon/os/process.h"

static const char tool[] = "py-spy";

/* Whether a directory of PATH has it. */
static bool is_installed(void)
{
	const char *path = getenv("PATH");

	while (path && *path) {
		size_t len = strcspn(path, ":");
		char file[PATH_MAX];

		if (snprintf(file, sizeof file, "%.*s/%s", (int)len, path, tool) <
				(int)sizeof file &&
			access(file, X_OK) == 0)
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

static bool is_python(pid_t pid)
{
	char link[64], path[PATH_MAX];
	ssize_t n;

	(void)snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
	n = readlink(link, path, sizeof path - 1);
	path[n > 0 ? n : 0] = '\0';
	return strstr(path, "python") != NULL;
}

/* Its output is a file of the bundle, which it can't make longer than one may be. It ends with this
 * process, whatever it is at. */
static _Noreturn void become(pid_t pid, int out, pid_t parent)
{
	const struct rlimit most = { ANSWER_MAX, ANSWER_MAX };
	char number[16];
	const char *const argv[] = { tool, "dump", "--nonblocking", "--pid", number, NULL };
	sigset_t none;

	(void)snprintf(number, sizeof number, "%d", (int)pid);
	sigemptyset(&none);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)setrlimit(RLIMIT_FSIZE, &most);
	if (getppid() == parent && dup2(out, STDOUT_FILENO) >= 0 && dup2(out, STDERR_FILENO) >= 0)
		(void)execvp(argv[0], (char *const *)argv);
	_exit(127);
}

/* What it printed; negative errno: nothing could be asked. */
static int dump(const struct source_input *in, pid_t pid, const char *file, struct text *ret)
{
	char path[PATH_MAX], bytes[16384];
	pid_t child, parent = getpid();
	int status;
	long n;

	if (snprintf(path, sizeof path, "%s/%s", in->dir, file) >= (int)sizeof path)
		return -ENAMETOOLONG;
	autoclose fd =
		open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	child = process_fork_to_exec();
	if (child == 0)
		become(pid, fd, parent);
	if (child < 0)
		return -errno;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	while (ret->len < ANSWER_MAX && (n = fd_read_up_to(fd, bytes, sizeof bytes)) > 0)
		text_add_bytes(ret, bytes, (size_t)n);
	return 0;
}

/* Its sentence, or all that there is. */
static const char *error_in(const char *said)
{
	const char *at = strstr(said, "Error: ");

	return at ? at : *said ? said : "it said nothing";
}

void ask_py_spy(const struct source_input *in, const struct source_worker *w, struct task_answer *a)
{
	struct text all = { 0 }, line = { 0 };
	char subject[32], file[48];
	const char *said;
	int rc;

	(void)snprintf(subject, sizeof subject, "rank %u", w->rank);
	if (!is_installed() || !is_python(w->pid))
		return;
	(void)snprintf(file, sizeof file, "python.rank-%u.txt", w->rank);
	task_step(a, "%s", tool);
	rc = dump(in, w->pid, file, &all);
	said = text_string(&all);
	if (rc < 0)
		findings_add(&a->findings, HEALTH_UNKNOWN, "python", subject, "%s: %s", tool,
			strerror(-rc));
	else if (python_stack_read(said, all.len, &line))
		findings_add(&a->findings, HEALTH_GOOD, "python", subject, "%.190s (%s)",
			text_string(&line), file);
	else
		findings_add(&a->findings, HEALTH_UNKNOWN, "python", subject, "%s: %.*s", tool,
			(int)strcspn(error_in(said), "\n"), error_in(said));
	text_done(&all);
	text_done(&line);
}
