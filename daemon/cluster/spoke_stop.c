/* spoke_stop.c - a node that has ended waits for the verdict, or for the next attempt; see spoke.h
 */
#include "daemon/cluster/spoke.h"

#include <stdio.h>

#include "common/num.h"
#include "daemon/cluster/config.h"
#include "daemon/cluster/member.h"

static void on_overdue(uv_timer_t *t);

static void wait_for(struct spoke *s, uint64_t ms)
{
	s->overdue_ms = member_wait(s->member, &s->clock, on_overdue, ms);
}

static bool may_restart(const struct spoke *s)
{
	return s->attempt < s->max_restarts && !s->asked &&
		(s->told.kind == CAUSE_NONE || s->told.kind == CAUSE_FAILURE);
}

/* The hub waits for the slowest node as hub_stop.c has it, and then for no longer than the longest
 * pause before an attempt; our node timeout is for the way. */
static uint64_t limit_ms(const struct spoke *s)
{
	return s->stop_grace_ms + STOP_REST_MS + s->link->peer_timeout_ms +
		s->member->config->node_timeout_ms + (may_restart(s) ? RESTART_DELAY_MAX_MS : 0);
}

/* The hub is heard all the time, but hangs, or is another program: it counts as lost. */
static void on_overdue(uv_timer_t *t)
{
	struct spoke *s = t->data;
	char seconds[NUM_SECONDS_SIZE], why[160];

	if (member_overslept(s->member, s->overdue_ms)) {
		wait_for(s, s->member->config->node_timeout_ms);
		return;
	}
	num_print_seconds(limit_ms(s), seconds);
	(void)snprintf(why, sizeof why,
		"it is heard, but has not said within %s s of this node's end how the job goes on",
		seconds);
	s->overdue = true;
	link_close(s->link, false, why);
}

void spoke_await_verdict(struct spoke *s)
{
	bool stops = s->told.kind != CAUSE_NONE || s->asked || s->end.cause.kind != CAUSE_NONE;

	if (s->state == SPOKE_IN && s->linked && s->ended && stops &&
		!uv_is_active((const uv_handle_t *)&s->clock))
		wait_for(s, limit_ms(s));
}
