/* child.c - see child.h. Nothing here may allocate, lock, or call what is not in
 * signal-safety(7); a test lists the symbols this file uses. */
#include "daemon/workers/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/os/kernel.h"
#include "daemon/os/process.h"
#include "daemon/plan/attributes.h"

static int failed(struct child *c, enum stage stage)
{
	c->error = errno;
	c->failed = stage;
	return 127;
}

/* From here on the order of deaths is known. */
static void be_watched(struct child *c)
{
	if (c->foreign && c->epoll > 0 && c->pidfd >= 0)
		c->watched =
			syscall(SYS_epoll_ctl, c->epoll, EPOLL_CTL_ADD, c->pidfd, &c->event) == 0;
}

/* A table of our own, with a copy of what is below that number only. */
static int leave_table(unsigned foreign)
{
	return foreign ? (int)syscall(SYS_close_range, foreign, ~0u, (unsigned)RANGE_UNSHARE) : 0;
}

/* A variable may name what isn't open. */
static int keep_descriptor(int fd)
{
	return fd == 0 || fcntl(fd, F_SETFD, 0) == 0 || errno == EBADF ? 0 : -1;
}

/* Puts the descriptors at 0, 1, 2. The launcher's numbers are all above 2. */
static int place_stdio(const struct child *c)
{
	for (int fd = 0; fd < 3; fd++)
		if (c->stdio[fd] >= 0 && dup2(c->stdio[fd], fd) < 0)
			return -1;
	return 0;
}

/* Both are the thread's, and stay over execve(2). */
static int bind_cpus(const struct bits *cpus)
{
	return cpus->words ?
		(int)syscall(SYS_sched_setaffinity, 0, cpus->words * sizeof *cpus->at, cpus->at) :
		0;
}

/* The kernel counts one bit less than it is told. */
static int bind_memory(int policy, const struct bits *nodes)
{
	return policy < 0 ?
		0 :
		(int)syscall(SYS_set_mempolicy, policy, nodes->at,
			nodes->words ? nodes->words * CHAR_BIT * sizeof *nodes->at + 1 : 0);
}

/* execve(2) makes caught signals default and leaves ignored ones ignored, which is right for what
 * the launcher found ignored (nohup's HUP). Not for what it ignores itself, PIPE; nor for CHLD,
 * which would lose exit codes, and TERM, which would make every stop a kill. */
static int reset_signals(const struct child *c)
{
	const struct sigaction by_default = { .sa_handler = SIG_DFL };
	sigset_t none;

	if (sigismember(&c->inherited->ignored, SIGPIPE) != 1 &&
		sigaction(SIGPIPE, &by_default, NULL) < 0)
		return -1;
	if (sigaction(SIGCHLD, &by_default, NULL) < 0 || sigaction(SIGTERM, &by_default, NULL) < 0)
		return -1;
	sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The launcher's own limit on files is higher than what it was started with. */
static int restore_limits(const struct inherited *inherited)
{
	return inherited->nofile_raised ? setrlimit(RLIMIT_NOFILE, &inherited->nofile) : 0;
}

static int set_limits(const struct rlimits *limits)
{
	for (size_t i = 0; i < limits->count; i++)
		if (setrlimit(limits->at[i].resource, &limits->at[i].value) < 0)
			return -1;
	return 0;
}

/* The kernel has a score for each process, although this one shares the launcher's memory still:
 * it makes an exception for what vfork(2) has made. */
static int set_oom_score_adj(const char *text)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, text, strlen(text));
	return close(fd) < 0 || n < 0 ? -1 : 0;
}

/* STAGE_NONE: it has them all. */
static enum stage set_attributes(const struct attributes *a)
{
	if (a->oom_score_adj && set_oom_score_adj(a->oom_score_adj) < 0)
		return STAGE_OOM;
	if (a->has_nice && setpriority(PRIO_PROCESS, 0, a->nice) < 0)
		return STAGE_NICE;
	return set_limits(&a->limits) < 0 ? STAGE_OWN_LIMITS : STAGE_NONE;
}

/* Where Yama's ptrace_scope is 1, only an ancestor may look into a process: the supervisor may, but
 * not what it starts for that, unless a worker says so. It stands over execve(2) until the worker
 * ends, and names a process with all that is below it. A kernel without Yama knows no such call. */
static void let_parent_read(const struct child *c)
{
	if (c->readable)
		(void)prctl(PR_SET_PTRACER, (unsigned long)c->parent);
}

__attribute__((no_sanitize("address", "undefined"))) int child_main(void *arg)
{
	struct child *c = arg;
	enum stage stage = STAGE_NONE;

	be_watched(c);
	if (setsid() < 0)
		return failed(c, STAGE_SESSION);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return failed(c, STAGE_PARENT_DEATH);
	if (getppid() != c->parent) /* the launcher died before the call above */
		return failed(c, STAGE_PARENT_GONE);
	let_parent_read(c);
	if (c->procs >= 0 && write(c->procs, "0", 1) != 1 && c->must_go)
		return failed(c, STAGE_CGROUP);
	if (leave_table(c->foreign) < 0 || keep_descriptor(c->kept_fd) < 0)
		return failed(c, STAGE_FILES);
	if (place_stdio(c) < 0)
		return failed(c, STAGE_STDIO);
	if (restore_limits(c->inherited) < 0)
		return failed(c, STAGE_LIMITS);
	if (bind_cpus(&c->cpus) < 0)
		return failed(c, STAGE_CPUS);
	if (bind_memory(c->memory, &c->nodes) < 0)
		return failed(c, STAGE_MEMORY);
	if (c->attributes)
		stage = set_attributes(c->attributes);
	if (stage != STAGE_NONE)
		return failed(c, stage);
	if (reset_signals(c) < 0)
		return failed(c, STAGE_SIGNALS);
	execve(c->program, c->argv, c->env);
	return failed(c, STAGE_EXEC);
}
