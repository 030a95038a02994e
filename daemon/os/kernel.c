/* kernel.c - see kernel.h */
#include "daemon/os/kernel.h"

#include <assert.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"

static const struct kernel_row rows[KERNEL_FEATURES] = {
	[KERNEL_PIDFD] = { "CLONE_PIDFD", "5.3", "SIGCHLD and waitid",
		"the order of workers that end in the same moment may be unknown, which the report "
		"says" },
	[KERNEL_PIDFD_OPEN] = { "pidfd_open", "5.3", "PR_SET_PDEATHSIG and SIGCHLD",
		"where a shell starts launchd, the end of mpirun's or Slurm's process above it shows "
		"only where launchd's output has no reader any more" },
	[KERNEL_PIDFD_SIGNAL] = { "pidfd_send_signal", "5.1", "kill",
		"a pid is checked right before, so only one that changes hands within microseconds "
		"could get a signal meant for another" },
	[KERNEL_INTO_CGROUP] = { "CLONE_INTO_CGROUP", "5.7", "cgroup.procs", NULL },
	[KERNEL_CLOSE_RANGE] = { "CLOSE_RANGE_CLOEXEC", "5.11", "/proc/self/fd", NULL },
	[KERNEL_CGROUP_KILL] = { "cgroup.kill", "5.14", "SIGKILL in rounds",
		"processes that fork without end live longer" },
};

const struct kernel_row *kernel_row(enum kernel_feature f)
{
	assert(f < KERNEL_FEATURES);
	return &rows[f];
}

bool kernel_refuses(int error)
{
	return error == ENOSYS || error == EINVAL || error == EPERM || error == EACCES;
}

int kernel_pidfd_open(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0u);

	return fd < 0 ? -errno : fd;
}

/* struct clone_args of linux/sched.h, as far as Linux 5.7 knows it. */
struct clone_how {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	uint64_t set_tid, set_tid_size, cgroup;
};

#define INTO_CGROUP UINT64_C(0x200000000) /* CLONE_INTO_CGROUP */

pid_t kernel_fork_into(int dir, int *tid) // NOLINT(readability-non-const-parameter): it is written
{
	const struct clone_how how = {
		.flags = INTO_CGROUP | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID,
		.child_tid = (uint64_t)(uintptr_t)tid,
		.exit_signal = SIGCHLD,
		.cgroup = (uint64_t)(unsigned)dir,
	};

	return (pid_t)syscall(SYS_clone3, &how, sizeof how);
}

#if defined(__x86_64__) || defined(__aarch64__)
/* The child begins on a stack of its own, where there is no frame to return into: so it is the call
 * itself that goes on in entry(). glibc has this function, and keeps it to itself. */
static long call_clone3(const struct clone_how *how, int (*entry)(void *), void *arg)
{
#if defined(__x86_64__)
	long rc;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t" /* the outermost frame, for debuggers */
			 "mov %[arg], %%rdi\n\t"
			 "call *%[entry]\n\t"
			 "mov %%eax, %%edi\n\t"
			 "mov $60, %%eax\n\t" /* exit */
			 "syscall\n\t"
			 "hlt\n"
			 "1:"
			 : "=a"(rc)
			 : "0"((long)SYS_clone3), "D"(how),
			 "S"(sizeof *how), [entry] "r"(entry), [arg] "r"(arg)
			 : "rcx", "r11", "cc", "memory");
	return rc;
#else
	register long x0 __asm__("x0") = (long)how;
	register long x1 __asm__("x1") = (long)sizeof *how;
	register long x8 __asm__("x8") = SYS_clone3;

	__asm__ volatile("svc #0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, xzr\n\t"
			 "mov x0, %[arg]\n\t"
			 "blr %[entry]\n\t"
			 "mov x8, #93\n\t" /* exit */
			 "svc #0\n"
			 "1:"
			 : "+r"(x0)
			 : "r"(x1), "r"(x8), [entry] "r"(entry), [arg] "r"(arg)
			 : "cc", "memory");
	return x0;
#endif
}
#else
static long call_clone3(const struct clone_how *how, int (*entry)(void *), void *arg)
{
	(void)how, (void)entry, (void)arg;
	return -ENOSYS;
}
#endif

pid_t kernel_clone_into(const struct birth *b, int *pidfd) // NOLINT: it is written
{
	const struct clone_how how = {
		.flags = b->flags | INTO_CGROUP | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)pidfd,
		.exit_signal = SIGCHLD,
		.stack = (uint64_t)(uintptr_t)b->stack,
		.stack_size = b->stack_size,
		.cgroup = (uint64_t)(unsigned)b->cgroup,
	};
	long rc = call_clone3(&how, b->entry, b->arg);

	if (rc >= 0)
		return (pid_t)rc;
	errno = rc == -E2BIG ? ENOSYS : (int)-rc; /* before Linux 5.7 the struct is too long */
	return -1;
}

/* A child that ends at once. An older kernel takes no notice of the flag, and Linux 5.2 gives a
 * pidfd that can't be polled. */
static int ask_pidfd(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	autoclose epoll = epoll_create1(EPOLL_CLOEXEC);
	autoclose pidfd = -1;
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, NULL, &pidfd, NULL, NULL);
	int error = errno;

	if (pid == 0)
		_exit(0);
	if (pid < 0)
		return error;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (pidfd < 0)
		return ENOSYS;
	return epoll_ctl(epoll, EPOLL_CTL_ADD, pidfd, &event) < 0 ? errno : 0;
}

/* To no signal, of this process. */
static int ask_signal(void)
{
	autoclose self = kernel_pidfd_open(getpid());

	/* without one the call alone is asked: no descriptor is that */
	if (syscall(SYS_pidfd_send_signal, self, 0, NULL, 0u) == 0 || (self < 0 && errno == EBADF))
		return 0;
	return errno;
}

/* No descriptor has this number: whoever knows the call says so. Before Linux 5.7 the struct is too
 * long for it. */
static int ask_into_cgroup(void)
{
	int tid = 0;
	pid_t pid = kernel_fork_into(INT_MAX, &tid);

	if (pid == 0)
		_exit(0);
	assert(pid < 0);
	return errno == EBADF ? 0 : errno == E2BIG ? ENOSYS : errno;
}

/* It is in every cgroup of version 2 but the root; where that is all that can be seen, the kernel's
 * release tells. */
static int ask_cgroup_kill(void)
{
	unsigned major = 0, minor = 0;
	struct utsname u = { 0 };
	glob_t found;
	int rc;

	if (access("/sys/fs/cgroup/cgroup.kill", F_OK) == 0)
		return 0;
	rc = glob("/sys/fs/cgroup/*/cgroup.kill", GLOB_NOSORT, NULL, &found);
	if (rc == 0)
		globfree(&found);
	(void)uname(&u); /* can't fail */
	(void)sscanf(u.release, "%u.%u", &major, &minor);
	return rc == 0 || major > 5 || (major == 5 && minor >= 14) ? 0 : ENOENT;
}

int kernel_ask(enum kernel_feature f)
{
	int rc;

	switch (f) {
	case KERNEL_PIDFD:
		return ask_pidfd();
	case KERNEL_PIDFD_OPEN:
		rc = kernel_pidfd_open(getpid());
		if (rc < 0)
			return -rc;
		(void)close(rc);
		return 0;
	case KERNEL_PIDFD_SIGNAL:
		return ask_signal();
	case KERNEL_INTO_CGROUP:
		return ask_into_cgroup();
	case KERNEL_CLOSE_RANGE: /* numbers that none has */
		return syscall(SYS_close_range, ~0u - 1, ~0u, (unsigned)RANGE_CLOEXEC) < 0 ? errno :
											     0;
	case KERNEL_CGROUP_KILL:
		return ask_cgroup_kill();
	case KERNEL_FEATURES:
		break;
	}
	__builtin_unreachable();
}
