/* spawn.c - see spawn.h */
#include "daemon/workers/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "daemon/os/kernel.h"
#include "daemon/os/process.h"
#include "daemon/place/placing.h"
#include "daemon/workers/child.h"

enum { CHILD_STACK_BYTES = 64 * 1024 };

static const char *const stage_words[] = {
	[STAGE_NONE] = "",
	[STAGE_SESSION] = "setsid",
	[STAGE_PARENT_DEATH] = "prctl(PR_SET_PDEATHSIG)",
	[STAGE_PARENT_GONE] = "the launcher has ended",
	[STAGE_CGROUP] = "moving to its cgroup",
	[STAGE_FILES] = "close_range",
	[STAGE_STDIO] = "dup2",
	[STAGE_OWN_LIMITS] = "setrlimit, for --rlimit",
	[STAGE_LIMITS] = "setrlimit(RLIMIT_NOFILE)",
	[STAGE_CPUS] = "sched_setaffinity",
	[STAGE_MEMORY] = "set_mempolicy",
	[STAGE_NICE] = "setpriority, for --nice",
	[STAGE_OOM] = "/proc/self/oom_score_adj, for --oom-score-adj",
	[STAGE_SIGNALS] = "resetting signals",
	[STAGE_EXEC] = "execve",
};

/* Where the streams of a worker lie while it is started: numbers below those of the workers before,
 * so that it can leave these behind. Copying them, and closing them again in execve(2), took a
 * twelfth of the time in which 512 workers start. Between two workers they are copies of stderr,
 * which keep the numbers. -1: not reserved, or the kernel can't close a range. */
static int slots[3] = { -1, -1, -1 };

static void reserve_slots(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (slots[fd] < 0)
			slots[fd] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
}

/* The first descriptor above the slots; 0: they are not all there. */
static unsigned behind_slots(void)
{
	int highest = 2;

	for (int fd = 0; fd < 3; fd++) {
		if (slots[fd] < 0)
			return 0;
		highest = slots[fd] > highest ? slots[fd] : highest;
	}
	return (unsigned)highest + 1;
}

/* Neither can fail: both numbers are open. */
static void fill_slots(struct child *c)
{
	for (int fd = 0; fd < 3; fd++) {
		if (c->stdio[fd] < 0)
			continue;
		(void)dup3(c->stdio[fd], slots[fd], O_CLOEXEC);
		(void)close(c->stdio[fd]);
		c->stdio[fd] = slots[fd];
	}
}

static void empty_slots(struct child *c)
{
	for (int fd = 0; fd < 3; fd++) {
		if (c->stdio[fd] >= 0)
			(void)dup3(STDERR_FILENO, slots[fd], O_CLOEXEC);
		c->stdio[fd] = -1;
	}
}

int spawn_seal_descriptors(void)
{
	int rc = process_close_files(true);

	if (rc == 0) /* Linux 5.11, so CLOSE_RANGE_UNSHARE is there, too */
		reserve_slots();
	return rc < 0 ? rc : 0;
}

/* The two ends of one standard stream: *ret_child for the worker, *ret_ours for a pipe. */
static int open_stream(
	const struct stdio *io, int fd, int *ret_child, int *ret_ours, struct failure *why)
{
	int p[2];

	switch (io->how) {
	case STDIO_INHERIT:
		return 0;
	case STDIO_FILE:
		*ret_child = open(io->path,
			O_CLOEXEC | (fd == 0 ? O_RDONLY : O_WRONLY | O_CREAT | O_APPEND), 0666);
		if (*ret_child < 0)
			return failure_set(why, -EIO, "%s: %s", io->path, strerror(errno));
		return 0;
	case STDIO_OPEN:
		*ret_child = fcntl(io->fd, F_DUPFD_CLOEXEC, 3);
		return *ret_child < 0 ? failure_set(why, -errno, "fcntl: %s", strerror(errno)) : 0;
	case STDIO_PIPE:
		if (pipe2(p, O_CLOEXEC) < 0)
			return failure_set(why, -errno, "can't make a pipe: %s", strerror(errno));
		*ret_child = p[fd != 0];
		*ret_ours = p[fd == 0];
		/* our end only: the flag is of the open file, and each end is one of its own */
		if (fcntl(*ret_ours, F_SETFL, O_NONBLOCK) < 0)
			return failure_set(why, -errno, "fcntl: %s", strerror(errno));
		return 0;
	}
	return -EINVAL;
}

/* As clone(2), with a pidfd, which closes on exec: an old kernel takes no notice of the flag,
 * others refuse it. */
static pid_t start_with_pidfd(struct child *c, unsigned char *stack_end)
{
	static bool refused;
	int flags = CLONE_VM | CLONE_VFORK | SIGCHLD | (c->foreign ? CLONE_FILES : 0);
	pid_t pid = -1;

	if (!refused)
		pid = clone(child_main, stack_end, flags | CLONE_PIDFD, c, &c->pidfd);
	refused = refused || (pid < 0 && kernel_refuses(errno));
	return pid < 0 && refused ? clone(child_main, stack_end, flags, c) : pid;
}

/* The same into a cgroup, by birth: to move there takes the kernel an RCU grace period, 7 ms. Where
 * it can't be born there the child moves itself, or stays here. */
static pid_t start_in_cgroup(struct child *c, unsigned char *stack, int cgroup)
{
	static bool refused;
	const struct birth b = {
		.entry = child_main,
		.arg = c,
		.stack = stack,
		.stack_size = CHILD_STACK_BYTES,
		.flags = CLONE_VM | CLONE_VFORK | (c->foreign ? CLONE_FILES : 0),
		.cgroup = cgroup,
	};
	pid_t pid = refused ? -1 : kernel_clone_into(&b, &c->pidfd);

	if (pid >= 0)
		return pid;
	if (!refused && !kernel_refuses(errno) && c->must_go)
		return pid;
	refused = refused || kernel_refuses(errno);
	c->procs = openat(cgroup, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	if (c->procs < 0 && c->must_go)
		return -1;
	pid = start_with_pidfd(c, stack + CHILD_STACK_BYTES);
	fd_closep(&c->procs);
	return pid;
}

/* Starts the process while all signals are blocked, so that no handler of the launcher's runs in
 * its memory by the child. Returns the pid or negative errno. */
static pid_t start(struct child *c, int cgroup)
{
	static alignas(16) unsigned char stack[CHILD_STACK_BYTES];
	sigset_t all, before;
	pid_t pid;

	sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, &before) < 0)
		return -errno;
	pid = cgroup < 0 ? start_with_pidfd(c, stack + sizeof stack) :
			   start_in_cgroup(c, stack, cgroup);
	if (pid < 0)
		pid = -errno;
	(void)sigprocmask(SIG_SETMASK, &before, NULL); /* it was a valid mask a moment ago */
	return pid;
}

/* What an error of execve(2) comes from, where its name alone doesn't tell. */
static const char *hint_of(const struct child *c)
{
	bool there = access(c->program, F_OK) == 0;

	switch (c->error) {
	case ENOENT:
		return there ? "the interpreter in its #! line, or the dynamic loader it was "
			       "linked for, does not exist" :
			       NULL;
	case EACCES:
		return there ? "it, or the interpreter in its #! line, is not executable here" :
			       NULL;
	case ENOEXEC:
		return "it has no #! line, or was built for another architecture";
	case ETXTBSY:
		return "it is open for writing";
	case ELOOP:
		return "its symbolic links or #! lines form a loop";
	case E2BIG:
		return "arguments and environment exceed a quarter of the stack limit (ulimit "
		       "-s), or one of them exceeds 128 KB";
	case EAGAIN:
		return "its user has reached the process limit (ulimit -u)";
	case ELIBBAD:
	case EISDIR:
		return "the dynamic loader it was linked for is malformed, or a directory";
	case EINVAL:
		return "it names more than one dynamic loader";
	case EPERM:
		return "its file system or a security module forbids it";
	default:
		return NULL;
	}
}

/* The same of its place, which was right when it was planned. */
static const char *hint_of_place(const struct child *c)
{
	if (c->failed != STAGE_CPUS && c->failed != STAGE_MEMORY)
		return NULL;
	if (c->error != EINVAL)
		return "a sandbox or the kernel forbids it: start without placement (--bind none)";
	return c->failed == STAGE_CPUS ?
		"its CPUs have gone offline, or have left the launcher's cpuset" :
		"its NUMA nodes have gone offline, or have left the launcher's cpuset";
}

static int refused(const struct child *c, struct failure *why)
{
	const char *hint = c->failed == STAGE_EXEC ? hint_of(c) : hint_of_place(c);

	return failure_set(why, -c->error, "%s: %s: %s%s%s", c->program, stage_words[c->failed],
		strerror(c->error), hint ? ": " : "", hint ? hint : "");
}

static int run_child(struct child *c, int cgroup, struct spawned *ret, struct failure *why)
{
	pid_t pid = start(c, cgroup);

	if (pid < 0)
		return failure_not_started(why, pid, "a process");
	if (c->failed != STAGE_NONE) {
		process_undo(pid);
		fd_closep(&c->pidfd);
		ret->refused = c->failed == STAGE_EXEC;
		return refused(c, why);
	}
	ret->pid = pid;
	ret->pidfd = c->pidfd;
	ret->watched = c->watched;
	return 0;
}

static int run_from_slots(struct child *c, int cgroup, struct spawned *ret, struct failure *why)
{
	int rc;

	fill_slots(c);
	rc = run_child(c, cgroup, ret, why);
	empty_slots(c);
	return rc;
}

static void place_child(const struct worker_place *place, struct child *c)
{
	static const int policies[MEMORY_HOWS] = {
		[MEMORY_LEFT] = -1,
		[MEMORY_BIND] = MPOL_BIND,
		[MEMORY_PREFER] = MPOL_PREFERRED,
		[MEMORY_LOCAL] = MPOL_LOCAL,
		[MEMORY_INTERLEAVE] = MPOL_INTERLEAVE,
	};

	if (!place)
		return;
	c->cpus = place->cpus;
	c->nodes = place->nodes;
	c->memory = policies[place->memory];
}

int spawn_process(const struct spawn *how, struct spawned *ret, struct failure *why)
{
	struct spawned out = { .pid = -1, .pidfd = -1, .pipe = { -1, -1, -1 } };
	struct child c = {
		.program = how->program,
		.argv = how->argv,
		.env = how->env,
		.stdio = { -1, -1, -1 },
		.inherited = how->inherited,
		.attributes = how->attributes,
		.parent = getpid(),
		.foreign = how->kept_fd ? 0 : behind_slots(),
		.kept_fd = how->kept_fd,
		.epoll = how->epoll,
		.event = how->event,
		.pidfd = -1,
		.procs = -1,
		.must_go = how->must_go,
		.readable = how->readable,
		.memory = -1,
	};
	int rc = 0;

	place_child(how->place, &c);
	for (int fd = 0; fd < 3 && rc == 0; fd++)
		rc = open_stream(&how->stdio[fd], fd, &c.stdio[fd], &out.pipe[fd], why);
	if (rc == 0)
		rc = c.foreign ? run_from_slots(&c, how->cgroup, &out, why) :
				 run_child(&c, how->cgroup, &out, why);
	for (int fd = 0; fd < 3; fd++) {
		fd_closep(&c.stdio[fd]);
		if (rc < 0)
			fd_closep(&out.pipe[fd]);
	}
	if (rc == 0)
		*ret = out;
	else
		ret->refused = out.refused;
	return rc;
}
