/* child.h - a worker's process between its birth and execve(2).
 *
 * It shares the launcher's memory (CLONE_VM) while the launcher waits (CLONE_VFORK), so it makes
 * only async-signal-safe calls, and everything it needs was prepared before. */
#ifndef LAUNCHD_DAEMON_WORKERS_CHILD_H
#define LAUNCHD_DAEMON_WORKERS_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/types.h>

#include "common/bits.h"

struct attributes;
struct inherited;

enum stage {
	STAGE_NONE,
	STAGE_SESSION,
	STAGE_PARENT_DEATH,
	STAGE_PARENT_GONE,
	STAGE_CGROUP,
	STAGE_FILES,
	STAGE_STDIO,
	STAGE_OWN_LIMITS,
	STAGE_LIMITS,
	STAGE_CPUS,
	STAGE_MEMORY,
	STAGE_NICE,
	STAGE_OOM,
	STAGE_SIGNALS,
	STAGE_EXEC,
};

struct child {
	const char *program;
	char *const *argv, *const *env;
	int stdio[3]; /* descriptors to put at 0, 1, 2; -1: what is there stays */
	const struct inherited *inherited;
	const struct attributes *attributes; /* NULL: the launcher's */
	pid_t parent;
	/* 0: the table of open files is a copy. Else it is the launcher's (CLONE_FILES), and from
	 * this number on there is nothing for the worker. */
	unsigned foreign;
	int kept_fd; /* stays open; the table is a copy then; 0: none */
	/* An epoll that is to learn of this process's end, 0: none, and as what. The child adds
	 * itself, as it may be dead before the launcher runs again, and others with it. It can
	 * where the table is the launcher's, which has its pidfd. */
	int epoll;
	struct epoll_event event;
	int pidfd; /* -1: this kernel, or a sandbox, gives none */
	volatile bool watched;
	int procs;     /* cgroup.procs of where it is to go; -1: it was born there, or stays */
	bool readable; /* by its parent and all of its parent's children: see child.c */
	bool must_go;  /* else it starts all the same where it can't */
	/* the CPUs that it may use, and the policy of set_mempolicy(2) with its nodes; no words: as
	 * the launcher has it, and for the nodes: none */
	struct bits cpus, nodes;
	int memory; /* -1: as the launcher has it */

	/* the child's answer: where it failed, and errno; STAGE_NONE: it executed its program */
	volatile enum stage failed;
	volatile int error;
};

/* Entry of clone(2); arg is a struct child *. Returns only after a failure. */
int child_main(void *arg);

#endif
