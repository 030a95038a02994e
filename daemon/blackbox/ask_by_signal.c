/* ask_by_signal.c - see ask_by_signal.h */
#include "daemon/blackbox/ask_by_signal.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/monotonic.h"
#include "common/signame.h"
#include "daemon/blackbox/source.h"
#include "daemon/check/task.h"
#include "daemon/os/procfs.h"

enum { LOOK_MS = 5, HANDLED_MS = 4000, NS_PER_MS = 1000000 };

/* A line of proc(5)'s status, a mask in hexadecimal digits. */
static bool has(const char *status, const char *line, int signal)
{
	const char *at = strstr(status, line);

	return at && (strtoull(at + strlen(line), NULL, 16) >> (signal - 1) & 1);
}

static bool catches(pid_t pid, int signal)
{
	char path[64], status[8192];

	(void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	return fd_read_file(path, status, sizeof status) > 0 && has(status, "\nSigCgt:", signal);
}

/* What its threads do with a signal. A handler that runs has it blocked in its thread. */
struct handling {
	unsigned threads, blocked;
	bool pending;
};

static void look_at_thread(pid_t pid, const char *task, int signal, struct handling *ret)
{
	char path[64], status[8192];

	(void)snprintf(path, sizeof path, "/proc/%d/task/%.20s/status", (int)pid, task);
	if (fd_read_file(path, status, sizeof status) <= 0)
		return;
	ret->threads++;
	ret->blocked += has(status, "\nSigBlk:", signal);
	ret->pending |= has(status, "\nSigPnd:", signal) || has(status, "\nShdPnd:", signal);
}

/* Without threads it has ended, or can't be seen. */
static struct handling look(pid_t pid, int signal)
{
	struct handling ret = { 0 };
	const struct dirent *entry;
	struct process p;
	char path[64];
	DIR *dir;

	(void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	dir = process_read(pid, &p) == 0 && p.state != 'Z' ? opendir(path) : NULL;
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			look_at_thread(pid, entry->d_name, signal, &ret);
	if (dir)
		(void)closedir(dir);
	return ret;
}

/* Until its handler has returned. Between the kernel's taking of the signal and the handler neither
 * can be seen for a moment, so that is looked for twice. -ESRCH, -ETIME. */
static int await_handled(pid_t pid, int signal, const struct handling *before)
{
	const struct timespec pause = { .tv_nsec = LOOK_MS * NS_PER_MS };
	const int64_t until_ms = monotonic_ms() + HANDLED_MS;
	unsigned calm = 0;

	while (monotonic_left_ms(until_ms) > 0) {
		struct handling now = look(pid, signal);

		if (now.threads == 0)
			return -ESRCH;
		calm = now.pending || now.blocked > before->blocked ? 0 : calm + 1;
		if (calm == 2)
			return 0;
		(void)nanosleep(&pause, NULL);
	}
	return -ETIME;
}

/* The number may be a stranger's by now: it is taken hold of before that is looked at. The
 * supervisor is this process's grandparent. */
static int send(pid_t pid, int signal)
{
	struct process worker, asker;
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), rc;

	if (process_read(pid, &worker) < 0 || process_read(getppid(), &asker) < 0 ||
		worker.parent != asker.parent || worker.state == 'Z')
		rc = -ESRCH;
	else if (!catches(pid, signal))
		rc = -EPERM;
	else if (pidfd < 0)
		rc = kill(pid, signal) < 0 ? -errno : 0;
	else
		rc = syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) < 0 ? -errno : 0;
	if (pidfd >= 0)
		(void)close(pidfd);
	return rc;
}

bool has_stack_signal(const struct source_input *in)
{
	return in->stack_signal != 0;
}

static void add_unsent(const char *subject, int error, struct task_answer *a)
{
	findings_add(&a->findings, HEALTH_UNKNOWN, "stack_signal", subject, "%s",
		error == -EPERM         ? "it has no handler for the signal, so it was not sent" :
			error == -ESRCH ? "it had ended" :
					  strerror(-error));
}

void ask_by_signal(
	const struct source_input *in, const struct source_worker *w, struct task_answer *a)
{
	const char *name = signal_name(in->stack_signal);
	struct handling before = look(w->pid, in->stack_signal);
	char subject[32];
	int rc;

	(void)snprintf(subject, sizeof subject, "rank %u", w->rank);
	rc = send(w->pid, in->stack_signal);
	if (rc < 0) {
		add_unsent(subject, rc, a);
		return;
	}
	rc = await_handled(w->pid, in->stack_signal, &before);
	if (rc == 0)
		findings_add(&a->findings, HEALTH_GOOD, "stack_signal", subject,
			"%s was sent; what it wrote then is in its log", name);
	else
		findings_add(&a->findings, HEALTH_UNKNOWN, "stack_signal", subject,
			rc == -ESRCH ? "%s was sent, but it ended before it was seen to have "
				       "handled it" :
				       "%s was sent, but it has not handled it yet",
			name);
}
