/* procfs.h - what /proc tells of a process. Never trusted for more than its moment. */
#ifndef LAUNCHD_DAEMON_WORKERS_PROCFS_H
#define LAUNCHD_DAEMON_WORKERS_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct process {
	pid_t parent, session;
	uid_t uid;
	char state;       /* as proc(5) has it */
	char command[16]; /* comm */
};

/* Reads /proc/PID/stat. -ENOENT, -ESRCH: there is no such process (any more). */
int process_read(pid_t pid, struct process *ret);

/* The name of a process alone; "" where it has gone. */
void process_command(pid_t pid, char ret[16]);

/* Calls see() for each child of a process, of all its threads; children that come and go meanwhile
 * may be missed. Reads the kernel's lists of children; where it has none (CONFIG_PROC_CHILDREN)
 * all of /proc. 0 or negative errno. */
int process_children(pid_t pid, void (*see)(pid_t child, void *to), void *to);

/* Processes, of fixed room: memory may be out when they are looked for. */
enum { PIDS_MAX = 4096 };

struct pids {
	pid_t at[PIDS_MAX];
	size_t count;
};

/* Adds the children of a process, as far as there is room. */
void process_list_children(pid_t pid, struct pids *list);

/* The value of a variable in the environment that a process was executed with, cut to fit. False:
 * it is not there, may not be read, or stands behind the first 128 KiB. */
bool process_variable(pid_t pid, const char *name, char *ret, size_t size);

#endif
