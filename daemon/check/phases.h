/* phases.h - the phases of the check of all nodes, in their order, and which of them are wanted.
 * Pure but for what they do. */
#ifndef LAUNCHD_DAEMON_CHECK_PHASES_H
#define LAUNCHD_DAEMON_CHECK_PHASES_H

#include <stdbool.h>

struct phase;
struct text;

/* Their numbers are known to the launchers of all nodes: a new one comes at the end, and the order
 * is that of phases[]. */
enum phase_id { PHASE_QUICK, PHASE_LINKS, PHASE_GPU, PHASE_GATE, PHASE_IDS };

/* --preflight, as its row has the choices. */
enum preflight_mode {
	PREFLIGHT_NONE,
	PREFLIGHT_QUICK,
	PREFLIGHT_LINKS,
	PREFLIGHT_GPU,
	PREFLIGHT_FULL,
	PREFLIGHT_MODES,
};

/* By enum phase_id. */
extern const struct phase *const phases[PHASE_IDS];

/* A bit for each phase, 1 << its number, before the first attempt. */
unsigned phases_first(enum preflight_mode mode);

/* Before another one, which is not to wait for long. gate: --restart-gate. */
unsigned phases_again(enum preflight_mode mode, bool gate);

/* The first of them; 0: also where there are none. */
unsigned phases_lowest(unsigned wanted);

/* "quick", "quick, links" */
void phases_add(struct text *out, unsigned wanted);

#endif
