/* waits.h - the words of a worker that timed out because another one did not come: torch's, gloo's,
 * NCCL's watchdog's and JAX's. Pure. */
#ifndef LAUNCHD_DAEMON_JOB_WAITS_H
#define LAUNCHD_DAEMON_JOB_WAITS_H

#include <stdbool.h>

struct waited;

/* Whether an exception's message says that. */
bool waits_says(const char *message);

/* Whether it says that in words that no other library has. */
bool waits_says_clearly(const char *message);

/* Reads which ranks it names; lines: its traceback, or all that it wrote last. Names count only
 * where they are surely the job's ranks: torch numbers the ranks of each group from 0. own_rank:
 * the worker's. master_port: where rank 0 hosts the store; NULL: the launcher does. */
void waits_read(const char *message, const char *lines, unsigned own_rank, const char *master_port,
	struct waited *ret);

#endif
