/* run.h - the supervisor's event loop: from the meeting of the nodes to the verdict. */
#ifndef LAUNCHD_DAEMON_RUN_RUN_H
#define LAUNCHD_DAEMON_RUN_RUN_H

#include <stddef.h>

#include "daemon/cluster/member.h"

struct bus;
struct failure;
struct guard;
struct inherited;
struct output;
struct plan;

struct run_input {
	/* where nodes have yet to meet, ranks and addresses in it are not for good */
	const struct plan *plan;
	const struct member_config *member;
	const struct inherited *inherited;
	struct guard *guard; /* as guard_fork() left it in the supervisor; its pipe is taken over */
	struct output *output; /* its thread writes what workers write */
	bool status; /* a line on the terminal tells how far workers are, while they start */
	const char *run_dir;
	struct arena *arena;
	struct bus *bus; /* what happens is told there */
	/* The nodes have met: the final plan. NULL: there is none, why says so. */
	const struct plan *(*bind)(void *owner, const struct meeting *m, struct failure *why);
	void *owner;
};

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
