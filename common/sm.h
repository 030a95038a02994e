/* sm.h - state machines: every edge of one is in a table, and one function writes the state.
 * Pure.
 *
 * The state stays an enum of the struct that it belongs to, so that compilers check each switch
 * over it. Its one writer also stops what the new state doesn't own:
 *
 *	static const struct sm_state states[WORKER_STATES] = {
 *		[WORKER_PLANNED] = { "planned", SM_TO(WORKER_RUNNING) | SM_TO(WORKER_ENDED) },
 *		...
 *	};
 *	const struct sm worker_life = { "worker", states, WORKER_STATES };
 *
 *	static void worker_goto(struct worker *w, enum worker_state next)
 *	{
 *		w->state = sm_go(&worker_life, w->state, next);
 *	}
 */
#ifndef LAUNCHD_COMMON_SM_H
#define LAUNCHD_COMMON_SM_H

#include <stdbool.h>

#define SM_TO(state) (1u << (state))

struct sm_state {
	const char *name;
	unsigned next; /* SM_TO() of each state that may follow; 0: the last one */
};

/* The life of one kind of thing; at most 32 states. */
struct sm {
	const char *name;
	const struct sm_state *states;
	unsigned count;
};

/* Whether the table has this edge. */
bool sm_may_go(const struct sm *life, unsigned from, unsigned to);

/* Returns `to`, for the caller to write. An edge that the table lacks is a bug of ours: it ends the
 * process by assert(3), with both states' names on stderr. */
unsigned sm_go(const struct sm *life, unsigned from, unsigned to);

#endif
