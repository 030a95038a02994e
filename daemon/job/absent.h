/* absent.h - for which worker others waited until they timed out. Pure. */
#ifndef LAUNCHD_DAEMON_JOB_ABSENT_H
#define LAUNCHD_DAEMON_JOB_ABSENT_H

#include <stdbool.h>

struct result;

/* Makes the cause of a job in which nothing is left but victims: CAUSE_TIMEOUT, with the worker
 * that did not come as its culprit, where it is known: because they name it, because it never
 * joined the store, because --on-hang saw it elsewhere, or because it had ended. False, and nothing
 * is changed: nobody timed out. */
bool absent_blame(struct result *r);

#endif
