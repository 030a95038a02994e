/* leftovers.h - what workers leave behind when they end: uploaders, loggers, data loaders.
 *
 * Orphans below the supervisor become its children. Whose they were shows in their session, or in
 * the environment that they got from their worker; what shows neither (a daemon with an emptied
 * environment) counts as left behind when the last worker has ended. Only children of this process
 * and what is below them get a signal. */
#ifndef LAUNCHD_DAEMON_WORKERS_LEFTOVERS_H
#define LAUNCHD_DAEMON_WORKERS_LEFTOVERS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/workers/worker.h"

/* One that was seen, and counts for whom it was left by. */
struct seen;

/* An orphan that has ended and was reaped. */
struct reaped {
	pid_t pid;
	struct worker *of; /* NULL: unknown */
};

enum { REAPED_KEPT = 16 };

struct leftovers {
	struct worker *workers; /* borrowed */
	unsigned count;
	/* of the error files, whose paths are in workers' environments; log_dir NULL: run_dir,
	 * which may be NULL, too */
	const char *run_dir, *log_dir;
	uint64_t grace_ns;
	struct leftover nobodys; /* of workers that can't be told apart any more */
	struct seen *seen;       /* the first `sorted` of them in order of pid */
	size_t seen_count, seen_room, sorted;
	struct reaped reaped[REAPED_KEPT]; /* the last ones, in a ring */
	unsigned reaped_count;
	bool killing; /* leftovers_kill() was called */
};

/* Looks at the orphans: what an ended worker has left gets SIGTERM at first sight, and SIGKILL when
 * its grace is over. all_ended: every orphan counts, whosever it was. Returns in how many
 * milliseconds to look again; 0: nothing is left to look for. */
uint64_t leftovers_look(struct leftovers *l, bool all_ended);

/* Ends every grace: SIGKILL to all orphans. Fast, as they may be forking without end. */
void leftovers_kill(struct leftovers *l);

/* The worker that a process is, or whose it is, by all that is known of it: the session that it is
 * in, and the child of this process that it descends from; 0: not known, or it has gone. NULL: it
 * is none of theirs. */
struct worker *leftovers_owner(const struct leftovers *l, pid_t pid, pid_t session, pid_t branch);

/* Whether one that has gone was an orphan of theirs, not long ago: it, or NULL. */
const struct reaped *leftovers_gone(const struct leftovers *l, pid_t pid);

/* A child of this process has ended and is not reaped yet: for struct reap_hook. False: it is a
 * worker, which does not count. Whoever had to be killed is counted here, and is counted as left
 * behind here if that has not been done before: so each counts once, and who was never seen alive
 * counts, too. */
bool leftovers_reaped(void *leftovers, const siginfo_t *si);

/* Gives its memory back; the numbers stay. */
void leftovers_done(struct leftovers *l);

#endif
