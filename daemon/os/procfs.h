/* procfs.h - what /proc tells of a process. Never trusted for more than its moment.
 *
 * A container may have no /proc, or one of another pid namespace (unshare --pid without
 * --mount-proc, nsenter --pid), whose numbers are those of strangers: then nothing of it is
 * believed, and of this process's own children the kernel tells what it tells who waits for them.
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
	char state;       /* as proc(5) has it */
	char command[16]; /* comm */
	uint64_t started; /* in clock ticks since the machine's start: with the pid, who it is */
};

enum proc {
	PROC_OURS,
	PROC_FOREIGN, /* of another pid namespace */
	PROC_NONE,    /* not mounted */
};

/* Whose processes /proc shows. Looked up once by each process. */
enum proc proc_look(void);

/* Reads /proc/PID/stat. -ENOENT, -ESRCH: there is no such process (any more), or it can't be seen.
 * Without /proc a child of this process can be: its state is 'Z' or '?', its name "?", its user
 * this process's or (uid_t)-1, and started is 0. */
int process_read(pid_t pid, struct process *ret);

/* The name of a process alone; "" where it has gone, or can't be seen. */
void process_command(pid_t pid, char ret[16]);

/* Calls see() for each child of a process, of all its threads; children that come and go meanwhile
 * may be missed. Reads the kernel's lists of children; where it has none (CONFIG_PROC_CHILDREN)
 * all of /proc. Where that can't be read (there is none, or no descriptor is left) this process's
 * own children are found all the same, by trying out numbers: up to the newest one, or, where
 * nobody has one of these, all 4 million, which takes half a second. 0 or negative errno. */
int process_children(pid_t pid, void (*see)(pid_t child, void *to), void *to);

/* Processes, of fixed room: memory may be out when they are looked for. What is not used is no
 * memory; of more than that the rest is found when these have ended. */
enum { PIDS_MAX = 65536 };

struct pids {
	pid_t at[PIDS_MAX];
	size_t count;
};

/* Adds the children of a process, as far as there is room. */
void process_list_children(pid_t pid, struct pids *list);

/* The value of a variable in the environment that a process was executed with, cut to fit. False:
 * it is not there, or may not be read. */
bool process_variable(pid_t pid, const char *name, char *ret, size_t size);

#endif
