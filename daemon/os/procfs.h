/* procfs.h - what /proc says about processes. It may be out of date as soon as it is read.
 *
 * A container may have no /proc, or one of another pid namespace (unshare --pid without
 * --mount-proc, nsenter --pid), whose pids belong to strangers: then /proc is not used, and this
 * process knows of its own children only what waitid(2) tells.
 */
#ifndef LAUNCHD_DAEMON_OS_PROCFS_H
#define LAUNCHD_DAEMON_OS_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
	pid_t parent, session;
	uid_t uid;
	char state;   /* as proc(5) has it */
	bool exiting; /* its main thread is: it closes its files soon, unless other threads go on */
	char command[16]; /* comm */
	uint64_t started; /* clock ticks since boot; with the pid it identifies the process */
};

enum proc {
	PROC_OURS,
	PROC_FOREIGN, /* of another pid namespace */
	PROC_NONE,    /* not mounted */
};

/* Whose processes /proc shows. Each process looks it up once. */
enum proc proc_look(void);

/* Reads /proc/PID/stat. -ENOENT, -ESRCH: no such process (any more), or it can't be seen. Without
 * /proc only children of this process can be seen: their state is 'Z' or '?', their name "?", their
 * user this process's or (uid_t)-1, exiting is true only for 'Z', and started is 0. */
int process_read(pid_t pid, struct process *ret);

/* A process's pid in its own, innermost pid namespace; 0: unknown (before Linux 4.1, too). */
pid_t process_innermost_pid(pid_t pid);

struct usage {
	uint64_t cpu_ms;       /* of all its threads, since it began */
	uint64_t memory_bytes; /* resident */
};

/* What a process has used. Errors of process_read(); -ENOSYS: without /proc. */
int process_usage(pid_t pid, struct usage *ret);

/* Only the name of a process; "" if it has gone or can't be seen. */
void process_command(pid_t pid, char ret[16]);

/* A list of processes of fixed size, as there may be no memory when it is needed. Pages that are
 * not used cost nothing; children beyond PIDS_MAX are found when these have ended. */
enum { PIDS_MAX = 65536 };

struct pids {
	pid_t at[PIDS_MAX];
	size_t count;
};

/* Adds the children of a process, of all its threads; those that come and go meanwhile may be
 * missed. Reads the kernel's lists of children, or all of /proc if the kernel has no lists
 * (CONFIG_PROC_CHILDREN). If neither can be read (no /proc, or no descriptor is left) this
 * process's own children are still found, by trying pids: up to the newest one and, if none of
 * these is a child, all 4 million, which takes half a second. 0 or negative errno: the process
 * can't be seen; who asks for what is below it need not care. */
int process_children(pid_t pid, struct pids *list);

/* The value of a variable in the environment that a process was executed with, cut to fit. False:
 * it is not set, or the environment may not be read. */
bool process_variable(pid_t pid, const char *name, char *ret, size_t size);

#endif
