/* restart.h - whether a job that has failed is started again, and if not, why. Pure. */
#ifndef LAUNCHD_DAEMON_CLUSTER_RESTART_H
#define LAUNCHD_DAEMON_CLUSTER_RESTART_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/cluster/job.h"

struct ending;

/* Whether a list as --restart-on has it ("1,70-79,SIGKILL") names this ending. A signal is known by
 * its number above 128, too, as shells say it: "137" and "SIGKILL" are the same, as a worker that a
 * shell started ends with 137. Words that are neither name nothing. */
bool restart_list_has(const char *list, const struct ending *e);

/* Whether a list is one: codes 1 to 255, ranges of them, names of signals, with commas between. */
bool restart_list_is_valid(const char *list);

/* The time to wait before the attempt after `attempt`. */
uint64_t restart_delay_ms(const struct restart_policy *policy, unsigned attempt);

/* Whether the attempt that came to this result is to be followed by another; if not, why is the
 * reason, in words, "" where nobody expects a restart. */
bool restart_is_due(const struct job *j, const struct result *r, char why[WHY_NOT_SIZE]);

#endif
