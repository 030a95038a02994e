/* process.h - what the launcher is as a process: its streams, limits and signals. */
#ifndef LAUNCHD_DAEMON_OS_PROCESS_H
#define LAUNCHD_DAEMON_OS_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>

struct failure;

/* What the launcher itself inherited, for workers to inherit in turn. */
struct inherited {
	sigset_t ignored;     /* signals that were ignored when the launcher started */
	struct rlimit nofile; /* RLIMIT_NOFILE before the launcher raised its own */
	bool nofile_raised;
};

/* Makes this process fit to be a launcher, and keeps what it found for the workers:
 * 0, 1 and 2 are open; CHLD is not ignored (exit codes would be lost) and PIPE is (a reader that
 * is gone must not end the job); RLIMIT_NOFILE is raised as far as it goes. Negative errno with a
 * sentence, also where RLIMIT_STACK is too low. */
int process_init(struct inherited *ret, struct failure *why);

/* The name of the process that starts the workers. */
#define SUPERVISOR_NAME "rank-supervisor"

/* Gives this process a name and a command line of its own, in the memory that argv lies in, whose
 * strings are gone then: who ends processes by name must not hit two of ours at once. */
void process_rename(char **argv, const char *name);

#endif
