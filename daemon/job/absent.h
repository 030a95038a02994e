/* absent.h - finds the worker that others waited for until they timed out. Pure. */
#ifndef LAUNCHD_DAEMON_JOB_ABSENT_H
#define LAUNCHD_DAEMON_JOB_ABSENT_H

#include <stdbool.h>

struct result;

/* Sets the cause of a job where every failed worker is a victim to CAUSE_TIMEOUT. The culprit is
 * the worker that did not come, if it is known: the victims name it, it never joined the store,
 * --on-hang saw it elsewhere, or it had exited. Returns false and changes nothing if no worker
 * timed out. */
bool absent_blame(struct result *r);

#endif
