/* lifeline.h - under mpirun and srun: what started launchd must live, and somebody must read its
 * output. A shell may stand between mpirun and launchd, so that mpirun's death shows only in the
 * hang-up of the pty or pipe that it gave us. */
#ifndef LAUNCHD_DAEMON_WORKERS_LIFELINE_H
#define LAUNCHD_DAEMON_WORKERS_LIFELINE_H

#include <sys/types.h>
#include <uv.h>

#include "daemon/report/ending.h"

struct failure;

struct lifeline {
	int epoll; /* of the descriptors below: libuv would make stdout and stderr non-blocking, for
		    * everyone who shares them */
	int parent; /* pidfd of what started launchd; -1: none */
	uv_poll_t poll;
	void (*on_lost)(struct lifeline *l, enum cause_kind kind); /* once */
	void *owner;
};

/* Watches `parent` (0 or 1: nobody in particular) and the hang-up of stdout and stderr. On failure
 * nothing is left open. */
int lifeline_start(struct lifeline *l, uv_loop_t *loop, pid_t parent, struct failure *why);

/* Stops watching, also where nothing was started ({ 0 }); the loop must run on until the handle is
 * closed. */
void lifeline_stop(struct lifeline *l);

#endif
