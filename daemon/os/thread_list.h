/* thread_list.h - the threads of a process, as /proc shows them: name, state, where in the kernel
 * each waits, and its stack there where that may be read (root's, mostly). Reads nothing that needs
 * a lock of the process' memory, so that one that hangs can be looked at. */
#ifndef LAUNCHD_DAEMON_OS_THREAD_LIST_H
#define LAUNCHD_DAEMON_OS_THREAD_LIST_H

#include <sys/types.h>

struct text;

enum { THREADS_SHOWN = 256, WAITS_COUNTED = 16 };

/* Where the threads are. Begins as { 0 }. */
struct thread_waits {
	unsigned threads; /* all, also those that are not shown */
	unsigned running; /* of those shown: in state R */
	unsigned stuck;   /* in state D */
	unsigned kinds;
	struct {
		char where[40]; /* "futex_wait_queue" */
		unsigned threads;
	} at[WAITS_COUNTED];
};

/* Adds a line for each, and indented ones for its stack. waits may be NULL. Negative errno: the
 * process has gone, or can't be seen. */
int thread_list_add(pid_t pid, struct text *out, struct thread_waits *waits);

#endif
