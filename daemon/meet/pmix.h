/* pmix.h - the launchers of a job meet by PMIx, which mpirun and srun offer: what the one of rank 0
 * has to say gets to all.
 *
 * PMIx hangs where a launcher does not come, crashes where its server has gone, and has a thread
 * and a socket of its own. So it runs in a child process, which is killed when its time is over;
 * the event loop never waits. What it prints is kept from the user's terminal, as it repeats for
 * each node what one sentence says: the first line of it stands in that sentence. */
#ifndef LAUNCHD_DAEMON_MEET_PMIX_H
#define LAUNCHD_DAEMON_MEET_PMIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "common/text.h"
#include "daemon/meet/pmix_child.h"

struct failure;

struct pmix_exchange {
	/* the caller's, set before pmix_start(); each callback may call pmix_close() */
	void (*on_done)(struct pmix_exchange *x, const void *of_rank0, size_t len);
	/* unavailable: this process never took part, so nobody waits for it; PMIx may be missing,
	 * or its variables be left over from another job */
	void (*on_failed)(struct pmix_exchange *x, const char *why, bool unavailable);
	void *owner;
	char **argv; /* main()'s, for a command line of the child's own; NULL: it keeps ours */

	/* what PMIx says of the job, from the callback on; size 0: it did not say */
	unsigned rank, size;

	/* pmix.c's */
	struct pmix_answer *answer;
	uint64_t timeout_ms;
	pid_t child; /* 0: reaped, or never born */
	int pidfd, chatter;
	uv_poll_t gone;
	uv_timer_t limit;
	struct text sentence;
	unsigned handles; /* of the two above, not closed yet */
	bool killed, closing;
};

/* Starts to meet: gives len bytes of `mine` (at most PMIX_BYTES_MAX, copied by the fork) to the
 * others and waits for those of rank 0, timeout_ms at most, and 2 s more for PMIx to end. All
 * processes that the server started in this job must do the same. Exactly one callback follows,
 * none after pmix_close().
 *
 * The child is forked and executes nothing, but allocates: no other thread of this process may hold
 * a lock meanwhile. Not every allocator can be forked beside a thread that uses it, as glibc's can.
 * SIGCHLD may be blocked or not; nobody else may reap the child. On failure nothing is left. */
int pmix_start(struct pmix_exchange *x, uv_loop_t *loop, const void *mine, size_t len,
	uint64_t timeout_ms, struct failure *why);

/* Ends it, and the child if it is there; may be called again, and where nothing was started ({ 0
 * }). The loop must run on until `handles` is 0; only then the memory is free. */
void pmix_close(struct pmix_exchange *x);

#endif
