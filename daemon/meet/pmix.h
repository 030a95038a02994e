/* pmix.h - the launchers of a job meet by PMIx, or by PMI-1 (pmi.h), as who has started them
 * offers: what the one of rank 0 has to say gets to all.
 *
 * PMIx hangs where a launcher does not come, crashes where its server has gone, and has a thread
 * and a socket of its own. So it runs in a child process (see helper.h); the event loop never
 * waits. */
#ifndef LAUNCHD_DAEMON_MEET_PMIX_H
#define LAUNCHD_DAEMON_MEET_PMIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/os/helper.h"

struct dlib;
struct failure;

extern const struct dlib pmix_library;

enum { PMIX_BYTES_MAX = 4096 };

struct pmix_exchange {
	/* the caller's, set before pmix_start(); each callback may call pmix_close(), and may use
	 * the bytes until it returns to the loop */
	void (*on_done)(struct pmix_exchange *x, const void *of_rank0, size_t len);
	/* unavailable: this process never took part, so nobody waits for it; PMIx may be missing,
	 * or its variables, as PMI's descriptor, be left over from another job */
	void (*on_failed)(struct pmix_exchange *x, const char *why, bool unavailable);
	void *owner;
	int pmi_fd;  /* the descriptor of PMI-1; 0: by PMIx */
	char **argv; /* main()'s, for a command line of the child's own; NULL: it keeps ours */

	/* private */
	struct helper helper;
	const void *mine;
	size_t len;
	uint64_t timeout_ms;
	bool unfinished; /* PMI-1 was left while others had not come */
};

/* Starts to meet: gives len bytes of `mine` (at most PMIX_BYTES_MAX, copied by the fork) to the
 * others and waits for those of rank 0, timeout_ms at most, and 2 s more for PMIx to end. All
 * processes that the server started in this job must do the same. Exactly one callback follows,
 * none after pmix_close(). On failure nothing is left. */
int pmix_start(struct pmix_exchange *x, uv_loop_t *loop, const void *mine, size_t len,
	uint64_t timeout_ms, struct failure *why);

/* This launcher leaves the job: what an exchange has left unsaid is said. */
void pmix_finish(struct pmix_exchange *x);

/* Ends it; see helper_close(). */
void pmix_close(struct pmix_exchange *x);

#endif
