/* logs.h - the output of one attempt's workers: its files, streams and last words. For the output
 * thread; what is said of the main thread is before logs_start(). */
#ifndef LAUNCHD_DAEMON_OUTPUT_LOGS_H
#define LAUNCHD_DAEMON_OUTPUT_LOGS_H

#include <stdbool.h>

#include "common/arena.h"
#include "daemon/job/evidence.h"
#include "daemon/output/stream.h"
#include "daemon/output/tail.h"
#include "daemon/plan/plan.h"

struct failure;

/* One worker's; index 0 is its stdout, 1 its stderr. */
struct worker_logs {
	struct stream_plan how[2];
	struct stream stream[2]; /* STREAM_PIPE only */
	int direct[2];           /* STREAM_DIRECT: the file for the worker; -1 */
	int pipe[2];             /* our end, from the main thread; -1: it was not started */
	struct tail tail;
	pid_t pid;               /* likewise; 0 */
	struct left_words words; /* once collected; what it points to is the memory's */
};

struct logs {
	struct logs *next;
	const struct plan *plan;
	const struct stream_host *host;
	const char *hostname;
	const char *dir; /* of the attempt; NULL: no files */
	unsigned attempt;
	struct arena memory;
	struct worker_logs *of; /* plan->start_count */
	struct filter filters[2];
	unsigned going; /* streams that have not ended */
	unsigned open;  /* and that are not where they go to */
	bool done;      /* the main thread has no more to do with it */
	bool collected; /* logs_collect() was here */
	void (*on_ended)(struct logs *l);
	void *owner;
};

/* Makes the directories and opens the files; run_dir NULL: none are wanted. The consoles are those
 * of stdout and stderr; where the plan has it, both are the journal's. */
int logs_new(const struct plan *plan, unsigned attempt, const char *run_dir, const char *hostname,
	const struct stream_host *host, struct console *const consoles[2], struct logs **ret,
	struct failure *why);

/* Reads the pipes that were taken over. */
void logs_start(struct logs *l);

/* All processes have ended: what is in the pipes is read, and then ended where it is not already.
 */
void logs_drain(struct logs *l);
void logs_end(struct logs *l);

/* Every worker's last words. */
void logs_collect(struct logs *l);

/* What every worker has written so far, at most so many lines of each. NULL: there is no memory. */
struct tails *logs_tails(struct logs *l, unsigned lines);

/* Opens the files again by their names. */
void logs_reopen(struct logs *l);

/* Shows what their progress bars show now. */
void logs_show_bars(struct logs *l);

/* Nobody follows their lines any more. */
void logs_unfollow(struct logs *l);

/* Closes and frees; nothing of it is in the loop. NULL is allowed. */
void logs_free(struct logs *l);

#endif
