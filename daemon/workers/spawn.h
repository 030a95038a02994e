/* spawn.h - starts one worker's process. */
#ifndef LAUNCHD_DAEMON_WORKERS_SPAWN_H
#define LAUNCHD_DAEMON_WORKERS_SPAWN_H

#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/types.h>

#include "daemon/plan/plan.h"

struct attributes;
struct failure;
struct inherited;
struct worker_place;

struct spawn {
	const char *program;
	char *const *argv, *const *env;
	const struct stdio *stdio; /* of 0, 1, 2 */
	const struct inherited *inherited;
	const struct attributes *attributes; /* NULL: the launcher's */
	int cgroup;    /* the directory of the one that it is to be in; -1: ours */
	bool must_go;  /* there, or the start fails; else it is started here then */
	bool readable; /* by our other children, where Yama restricts who may look at whom */
	int epoll;     /* learns of its end, in the order of all deaths; 0: none */
	struct epoll_event event;         /* as which it is added there */
	int kept_fd;                      /* stays open in it, besides 0, 1 and 2; 0: none */
	const struct worker_place *place; /* CPUs and memory; NULL: ours */
};

struct spawned {
	pid_t pid; /* not reaped yet, so its number is its own */
	/* readable once the process has ended, and closes on exec; the caller closes it. -1: this
	 * kernel, or a sandbox, gives none */
	int pidfd;
	bool watched; /* by the epoll; else that is the caller's to do */
	int pipe[3];  /* our ends of STDIO_PIPE streams, non-blocking; -1: none; the caller's */
	bool refused; /* of a failure: execve(2)'s */
};

/* Starts a process in a session of its own, with default signals, no descriptor but 0, 1, 2 and
 * kept_fd, and SIGKILL when the calling thread ends. Returns once the program runs. On failure
 * nothing is left of it, and of *ret only `refused` is set: the errno is execve(2)'s answer. */
int spawn_process(const struct spawn *how, struct spawned *ret, struct failure *why);

/* Every descriptor above 2 closes on exec, also what the launcher inherited or a library opened.
 * 0 or negative errno. */
int spawn_seal_descriptors(void);

#endif
