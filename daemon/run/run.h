/* run.h - the supervisor's event loop: from the meeting of the nodes to the verdict. */
#ifndef LAUNCHD_DAEMON_RUN_RUN_H
#define LAUNCHD_DAEMON_RUN_RUN_H

#include "daemon/run/input.h"

struct run_end;

/* How many files a run has open at the most. */
unsigned run_descriptors(const struct plan *plan);

/* Whether so many may be open. -EMFILE with a sentence. To be asked before the first of them is:
 * libuv aborts where it gets no descriptor for its loop. */
int run_check_descriptors(const struct plan *plan, struct failure *why);

/* Runs the job to its end; blocks as long. When it returns nothing that was started is left, but
 * for the survivors that it names. *ret is empty at first.
 * Negative errno: nothing was started, why says what failed; else 0 and *ret. Why may hold a
 * sentence also then: why a worker could not be started. */
int run_job(const struct run_input *in, struct run_end *ret, struct failure *why);

void run_end_done(struct run_end *end);

#endif
