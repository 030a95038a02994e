/* leftovers.h - what workers leave behind when they end: uploaders, loggers, data loaders.
 *
 * Orphans below the supervisor become its children. Whose they were shows in their session, or in
 * the environment that they got from their worker; what shows neither (a daemon with an emptied
 * environment) counts as left behind when the last worker has ended. Only children of this process
 * and what is below them get a signal. */
#ifndef LAUNCHD_DAEMON_WORKERS_LEFTOVERS_H
#define LAUNCHD_DAEMON_WORKERS_LEFTOVERS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/workers/worker.h"

struct leftovers {
	struct worker *workers; /* borrowed */
	unsigned count;
	/* of the error files, whose paths are in workers' environments; log_dir NULL: run_dir */
	const char *run_dir, *log_dir;
	uint64_t grace_ns;
	struct leftover nobodys; /* of workers that can't be told apart any more */
};

/* Looks at the orphans: what an ended worker has left gets SIGTERM at first sight, and SIGKILL when
 * its grace is over. all_ended: every orphan counts, whosever it was. Returns in how many
 * milliseconds to look again; 0: nothing is left to look for. */
uint64_t leftovers_look(struct leftovers *l, bool all_ended);

/* Ends every grace: SIGKILL to all orphans. Fast, as they may be forking without end: whose they
 * were is told by their session alone. */
void leftovers_kill(struct leftovers *l);

#endif
