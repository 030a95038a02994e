/* kernel.h - what kernels newer than Linux 4.18 do, and what launchd does where this one, or the
 * sandbox around it, does not.
 *
 * Nothing is asked beforehand: the first use that fails tells, and costs no more than itself.
 * kernel_ask() is for those who want to be told. Numbers and flags stand here, as the C library may
 * be older than the kernel. */
#ifndef LAUNCHD_DAEMON_OS_KERNEL_H
#define LAUNCHD_DAEMON_OS_KERNEL_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>

/* The same on every architecture that launchd is built for. */
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x1000
#endif

enum {
	RESOLVE_ONE_MOUNT = 1, /* RESOLVE_NO_XDEV */
	RANGE_UNSHARE = 2,     /* CLOSE_RANGE_UNSHARE */
	RANGE_CLOEXEC = 4,     /* CLOSE_RANGE_CLOEXEC */
};

enum kernel_feature {
	KERNEL_PIDFD, /* clone(2) gives one, and it can be polled */
	KERNEL_PIDFD_OPEN,
	KERNEL_PIDFD_SIGNAL,
	KERNEL_INTO_CGROUP, /* clone3(2) does */
	KERNEL_CLOSE_RANGE, /* with RANGE_CLOEXEC */
	KERNEL_CGROUP_KILL,
	KERNEL_FEATURES,
};

struct kernel_row {
	const char *name;
	const char *since;   /* the first Linux that has it: "5.3" */
	const char *instead; /* what launchd uses where it is missing */
	const char *weaker;  /* what that is worth less; NULL: it only takes longer */
};

const struct kernel_row *kernel_row(enum kernel_feature f);

/* Whether it is there: 0, or a positive errno, which is ENOSYS or EINVAL of an old kernel and EPERM
 * of a sandbox, mostly. Tries it where nothing can come of it; starts and reaps a process, so
 * SIGCHLD must not be awaited yet. */
int kernel_ask(enum kernel_feature f);

/* Whether an errno means that this kernel, or a sandbox, does not know a call or flag; of calls for
 * which it means nothing else. */
bool kernel_refuses(int error);

/* A pidfd, which closes on exec. Negative errno. */
int kernel_pidfd_open(pid_t pid);

/* fork(2) into the cgroup whose directory that is; the kernel writes the child's id to *tid. As
 * fork(2) returns. */
pid_t kernel_fork_into(int dir, int *tid);

/* What clone(2) is told, and in which cgroup the child is to be born. */
struct birth {
	int (*entry)(void *); /* returns to nowhere: its value is the exit code */
	void *arg;
	void *stack; /* its lowest byte, and its size in bytes */
	size_t stack_size;
	uint64_t flags; /* CLONE_VM | CLONE_VFORK and more; SIGCHLD comes with its end */
	int cgroup;     /* its directory */
};

/* As clone(2), with a pidfd, which closes on exec, in *pidfd. -1: errno is set; ENOSYS: this
 * kernel, a sandbox or this machine's kind of CPU can't. */
pid_t kernel_clone_into(const struct birth *b, int *pidfd);

#endif
