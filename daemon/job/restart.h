/* restart.h - whether a job that has failed is started again, and if not, why. Pure. */
#ifndef LAUNCHD_DAEMON_JOB_RESTART_H
#define LAUNCHD_DAEMON_JOB_RESTART_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/job/job.h"

/* The time to wait before the attempt that follows this one. */
uint64_t restart_delay_ms(const struct job *j);

/* Whether all nodes are there that would have to start their workers again. */
bool restart_is_possible(const struct job *j);

/* Whether the attempt that came to this result is to be followed by another; if not, why is the
 * reason, in words, "" where nobody expects a restart. */
bool restart_is_due(const struct job *j, const struct result *r, char why[WHY_NOT_SIZE]);

#endif
