/* least.c - the least that a launcher like ours can do: least COUNT PROGRAM [ARGUMENTS].
 *
 * Two processes, each a subreaper that the kernel ends or wakes with the other; each worker with a
 * session of its own, SIGKILL when its launcher dies, a pidfd, and two pipes, which are read to
 * their end. It reads no settings, watches no guard, ends nobody, and writes nothing. Workers are
 * told their $RANK: from that of the environment on, or from 0. What launchd takes more than this
 * is its own; what this takes more than bare.c is the price of the shape. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x1000
#endif

extern char **environ;

struct child {
	char **argv;
	pid_t parent;
};

/* Low descriptors in which a worker finds its streams; what lies above it leaves behind. */
static int slots[2];

/* With the launcher's memory and table of files. */
static int begin(void *arg)
{
	const struct child *c = arg;
	sigset_t none;

	sigemptyset(&none);
	if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != c->parent ||
		syscall(SYS_close_range, slots[1] + 1, ~0u, 2u /* CLOSE_RANGE_UNSHARE */) < 0 ||
		dup2(slots[0], STDOUT_FILENO) < 0 || dup2(slots[1], STDERR_FILENO) < 0 ||
		sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		_exit(127);
	(void)execve(c->argv[0], c->argv, environ);
	_exit(127);
}

static bool watch(int epoll, int fd, int pid)
{
	struct epoll_event e = { .events = EPOLLIN,
		.data.u64 = (uint64_t)(uint32_t)pid << 32 | (uint32_t)fd };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

static bool start(int epoll, long rank, char **argv)
{
	static alignas(16) unsigned char stack[64 * 1024];
	struct child c = { .argv = argv, .parent = getpid() };
	int pipes[2][2], pidfd = -1;
	sigset_t all, before;
	char text[32];
	pid_t pid;

	(void)snprintf(text, sizeof text, "%ld", rank);
	if (setenv("RANK", text, 1) < 0 || pipe2(pipes[0], O_CLOEXEC) < 0 ||
		pipe2(pipes[1], O_CLOEXEC) < 0)
		return false;
	for (int i = 0; i < 2; i++) {
		(void)dup3(pipes[i][1], slots[i], O_CLOEXEC);
		(void)close(pipes[i][1]);
	}
	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	pid = clone(begin, stack + sizeof stack,
		CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_PIDFD | SIGCHLD, &c, &pidfd);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	for (int i = 0; i < 2; i++)
		(void)dup3(STDERR_FILENO, slots[i], O_CLOEXEC);
	return pid > 0 && watch(epoll, pidfd, pid) && watch(epoll, pipes[0][0], 0) &&
		watch(epoll, pipes[1][0], 0);
}

/* Reads what there is. Whether the pipe has ended. */
static bool drain(int fd)
{
	static char text[65536];

	return read(fd, text, sizeof text) <= 0;
}

/* A worker's end, or a pipe's; 0: neither, negative: a worker has failed. */
static int hear(const struct epoll_event *e)
{
	pid_t pid = (pid_t)(e->data.u64 >> 32);
	int fd = (int)(uint32_t)e->data.u64, status = 0;

	if (pid ? waitpid(pid, &status, 0) < 0 : !drain(fd))
		return 0;
	(void)close(fd);
	return status ? -1 : 1;
}

static int supervise(long count, char **argv)
{
	const char *first = getenv("RANK");
	long rank = first ? strtol(first, NULL, 10) : 0, left = 0;
	int epoll, failed = 0;

	for (int i = 0; i < 2; i++)
		slots[i] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	for (long i = 0; i < count; i++, left += 3)
		if (!start(epoll, rank + i, argv))
			return 1;
	while (left > 0) {
		struct epoll_event got[64];
		int n = epoll_wait(epoll, got, 64, -1);

		for (int i = 0; i < n; i++) {
			int ended = hear(&got[i]);

			failed |= ended < 0;
			left -= ended != 0;
		}
	}
	return failed;
}

int main(int argc, char **argv)
{
	long count = argc > 2 ? strtol(argv[1], NULL, 10) : 0;
	pid_t guard = getpid(), pid;
	int status = 0;

	if (count <= 0) {
		(void)fputs("usage: least COUNT PROGRAM [ARGUMENTS]\n", stderr);
		return 2;
	}
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid = fork();
	if (pid == 0) {
		if (setsid() < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ||
			prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != guard)
			return 1;
		return supervise(count, argv + 2);
	}
	return pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0;
}
