/* look_at_worker.h - one look at a worker and at what it has started, by /proc. Blocks where /proc
 * does: to be called in a process that may hang. stat, wchan, io and status of a process that is
 * stuck in a file system can be read; its memory can't. */
#ifndef LAUNCHD_DAEMON_WITNESS_LOOK_AT_WORKER_H
#define LAUNCHD_DAEMON_WITNESS_LOOK_AT_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/witness/sample.h"

enum { KIDS_LOOKED_AT = 512 };

/* To walk through a worker's memory is dear, and tells only from one walk to the next what it
 * touches. */
enum memory_look {
	MEMORY_LEFT,
	MEMORY_TRIED,  /* busy or not: the second such look in a row tells */
	MEMORY_WATCHED /* while it is busy: each look from the second on tells */
};

/* A process that a worker has started, at the last look. */
struct kid_seen {
	pid_t pid;
	unsigned cpu_ms;
};

/* A worker that is looked at once a second. */
struct looked {
	pid_t pid; /* the owner's, as are: */
	unsigned rank;
	unsigned wary_looks; /* that read only what never blocks: the look before did not finish */

	/* private */
	uint64_t at_ms;     /* of the last look; 0: there was none */
	uint64_t cpu_ms;    /* its own, then */
	uint64_t net_bytes; /* so far, by talks.h */
	bool cleared;       /* the marks of the memory that it touches were, in the look before */
	unsigned kid_count;
	struct kid_seen kids[KIDS_LOOKED_AT]; /* pages that are not used cost nothing */
};

/* now_ms: on this node's clock. What it can't see stays as it is in a sample of nothing, as
 * what GPUs do. */
void look_at_worker(
	struct looked *w, uint64_t now_ms, enum memory_look memory, struct worker_sample *ret);

#endif
