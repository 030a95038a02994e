/* process.h - the launcher's own process: its streams, limits, signals and name. */
#ifndef LAUNCHD_DAEMON_OS_PROCESS_H
#define LAUNCHD_DAEMON_OS_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

struct failure;

/* What the launcher itself inherited, for workers to inherit in turn. */
struct inherited {
	sigset_t ignored;     /* signals that were ignored when the launcher started */
	struct rlimit nofile; /* RLIMIT_NOFILE before the launcher raised its own */
	bool nofile_raised;
};

/* Prepares this process to be a launcher, and saves what it inherited for the workers: opens 0, 1
 * and 2 if they are closed; resets CHLD (ignored, it loses exit codes); ignores PIPE (a reader that
 * has gone must not end the job); raises RLIMIT_NOFILE to its hard limit. Negative errno with a
 * sentence, also if RLIMIT_STACK is too low. */
int process_init(struct inherited *ret, struct failure *why);

/* Undoes what process_init() has changed, for a program that this process becomes; but CHLD stays
 * reset, as whoever has children needs it. */
void process_restore(const struct inherited *inherited);

/* The name of the process that starts the workers. */
#define SUPERVISOR_NAME "rank-supervisor"

/* Gives this process a name and a command line of its own, so that killing by name doesn't hit both
 * of ours at once. The command line is written over the strings of argv. */
void process_rename(char **argv, const char *name);

/* Every descriptor above 2 closes, also what was inherited or a library opened: now, or when this
 * process executes a program. 1: one by one, as this kernel closes no range; negative errno. */
int process_close_files(bool on_exec);

/* In a child that was forked for something that may hang, crash or print, and executes nothing:
 * makes it a process like any other, which finds neither the launcher's signal mask and handlers
 * nor a file of the job's. It ends with `parent`; its input is that descriptor (0: /dev/null), its
 * output goes to the other one, and it leaves no core. Negative errno: *ret_what could not be done.
 */
int process_set_apart(pid_t parent, int input, int output, const char **ret_what);

/* fork(2), but without the handlers of pthread_atfork(3), for a child that executes a program at
 * once. libuv's close what its pipe for signals was in the launcher: by its numbers, which are
 * other files once process_set_apart() has closed it. */
pid_t process_fork_to_exec(void);

/* Kills and reaps a child that can't be used. */
void process_undo(pid_t child);

#endif
