/* quick_phase.h - the quick facts of each node as a phase of the check of all, and what only all of
 * them together tell: who has another driver, other GPUs or another time than the rest. */
#ifndef LAUNCHD_DAEMON_CHECK_QUICK_PHASE_H
#define LAUNCHD_DAEMON_CHECK_QUICK_PHASE_H

struct phase;

extern const struct phase quick_phase;

#endif
