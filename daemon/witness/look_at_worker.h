/* look_at_worker.h - one look at a worker and at what it has started, by /proc. Blocks where /proc
 * does: to be called in a process that may hang. stat, wchan, io and status of a process that is
 * stuck in a file system can be read; its memory can't. */
#ifndef LAUNCHD_DAEMON_WITNESS_LOOK_AT_WORKER_H
#define LAUNCHD_DAEMON_WITNESS_LOOK_AT_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/witness/sample.h"

/* A worker that is looked at once a second. */
struct looked {
	pid_t pid; /* the owner's, as is: */
	unsigned rank;

	/* private */
	uint64_t cpu_ms; /* at the last look */
	bool looked;     /* there was one */
	bool cleared;    /* the marks of the memory that it touches were, when it was busy last */
};

/* now_ms: on this node's clock. What it can't see stays as it is in a sample of nothing, as
 * what GPUs do. */
void look_at_worker(struct looked *w, uint64_t now_ms, struct worker_sample *ret);

#endif
