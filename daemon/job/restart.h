/* restart.h - whether a job that has failed is started again, and if not, why. Pure. */
#ifndef LAUNCHD_DAEMON_JOB_RESTART_H
#define LAUNCHD_DAEMON_JOB_RESTART_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/job/job.h"

/* The time to wait before the attempt after `attempt`. */
uint64_t restart_delay_ms(const struct restart_policy *policy, unsigned attempt);

/* Whether the attempt that came to this result is to be followed by another; if not, why is the
 * reason, in words, "" where nobody expects a restart. */
bool restart_is_due(const struct job *j, const struct result *r, char why[WHY_NOT_SIZE]);

#endif
