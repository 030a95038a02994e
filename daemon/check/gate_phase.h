/* gate_phase.h - whether another attempt is worth starting (--restart-gate), as a phase of the
 * check of all nodes: what the attempt before has left on them. */
#ifndef LAUNCHD_DAEMON_CHECK_GATE_PHASE_H
#define LAUNCHD_DAEMON_CHECK_GATE_PHASE_H

struct phase;

/* It waits, --restart-gate-timeout at most, until GPUs hold no more memory than before the first
 * attempt and processes that could not be ended are gone; then these are bad, as are file systems
 * that are full or don't answer. It runs --check-command where no other phase does. What can't be
 * looked at is unknown, and where there is no driver there is nothing to look at. */
extern const struct phase gate_phase;

#endif
