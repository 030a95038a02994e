/* state.c - see state.h */
#include "daemon/run/state.h"

#include "common/sm.h"

static const struct sm_state states[RUN_STATES] = {
	[RUN_MEETING] = { "meeting", SM_TO(RUN_OPENING) | SM_TO(RUN_OVER) },
	/* waiting: it was stopped before a worker was started, or none could be */
	[RUN_OPENING] = { "opening",
		SM_TO(RUN_CHECKING) | SM_TO(RUN_WORKING) | SM_TO(RUN_WAITING) },
	[RUN_CHECKING] = { "checking", SM_TO(RUN_WORKING) | SM_TO(RUN_WAITING) },
	[RUN_WORKING] = { "working", SM_TO(RUN_DRAINING) | SM_TO(RUN_WAITING) },
	[RUN_DRAINING] = { "draining", SM_TO(RUN_WAITING) },
	[RUN_WAITING] = { "waiting", SM_TO(RUN_OPENING) | SM_TO(RUN_OVER) },
	[RUN_OVER] = { "over", 0 },
};

const struct sm run_life = { "run", states, RUN_STATES };

void run_goto(struct run *r, enum run_state next)
{
	r->state = sm_go(&run_life, r->state, next);
	(void)uv_timer_stop(&r->starting);
	if (next != RUN_WORKING) {
		(void)uv_timer_stop(&r->doubt);
		hang_watch_stop(&r->hang);
	}
	if (next == RUN_DRAINING)
		progress_stop(&r->progress);
	if (next == RUN_WAITING)
		(void)uv_timer_stop(&r->draining);
}
