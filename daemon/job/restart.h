/* restart.h - whether a job that has failed is started again, and if not, why. Pure. */
#ifndef LAUNCHD_DAEMON_JOB_RESTART_H
#define LAUNCHD_DAEMON_JOB_RESTART_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/job/job.h"

/* The time to wait before the attempt that follows this one. */
uint64_t restart_delay_ms(const struct job *j, uint64_t now_ns);

/* From when on restarts count, where only those of --restart-window do. */
uint64_t restart_window_ns(const struct job *j, uint64_t now_ns);

/* How many restarts that count there were before now: all, or those of --restart-window. */
unsigned restarts_counted(const struct job *j, uint64_t now_ns);

/* Whether all nodes are there that would have to start their workers again. */
bool restart_is_possible(const struct job *j);

/* Whether the attempt that came to this result is to be followed by another; if not, why is the
 * reason, in words, "" where nobody expects a restart. */
bool restart_is_due(
	const struct job *j, const struct result *r, uint64_t now_ns, char why[WHY_NOT_SIZE]);

/* Why the restart that is due is: "restart 1 of at most 3", "it was requested". */
void restart_reason(const struct job *j, uint64_t now_ns, char ret[WHY_NOT_SIZE]);

/* How many failed attempts in a row without a new step, this one included, are why none follows:
 * --no-progress-restarts. 0: they are not. */
unsigned restart_is_futile(const struct job *j, const struct result *r);

#endif
