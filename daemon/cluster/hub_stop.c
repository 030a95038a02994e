/* hub_stop.c - the order to stop, and how long a node may take to carry it out; see hub.h */
#include "daemon/cluster/hub.h"

#include <stdio.h>

#include "common/num.h"
#include "common/text.h"
#include "daemon/cluster/config.h"
#include "daemon/cluster/member.h"
#include "daemon/net/wire.h"

static void on_overdue(uv_timer_t *t);

static void wait_for(struct hub *h, uint64_t ms)
{
	h->overdue_ms = member_wait(h->member, &h->clock, on_overdue, ms);
}

static uint64_t limit_ms(const struct hub *h)
{
	return h->stop_grace_ms + STOP_REST_MS + h->member->config->node_timeout_ms;
}

/* The report may have another cause, and no room for this one. */
static void give_up(struct hub *h, struct caller *p, const char *why)
{
	struct text t = { 0 };

	text_printf(&t, "node %u, ", p->node);
	hub_add_peer(&t, p);
	text_printf(&t, ", counts as lost: %s", why);
	member_say(h->member, true, text_string(&t));
	text_done(&t);
	link_close(&p->link, false, why);
}

/* A node that is heard all the time, but hangs, or is another program: it counts as lost. */
static void on_overdue(uv_timer_t *t)
{
	struct hub *h = t->data;
	char seconds[NUM_SECONDS_SIZE], why[160];

	if (member_overslept(h->member, h->overdue_ms)) {
		wait_for(h, h->member->config->node_timeout_ms);
		return;
	}
	num_print_seconds(limit_ms(h), seconds);
	(void)snprintf(why, sizeof why,
		"it is heard, but has not said within %s s of the order to stop that its workers "
		"have ended",
		seconds);
	for (unsigned i = 0; i < h->job.nnodes; i++)
		if (h->peers[i] && h->job.nodes[i].state == NODE_JOINED)
			give_up(h, h->peers[i], why);
}

void hub_tell_stop(struct hub *h)
{
	struct wire_out w = { 0 };

	message_put_stop(&w, &h->job.stop);
	hub_tell(h, MESSAGE_STOP, w.at, w.len, NULL);
	wire_out_done(&w);
	/* of several orders the first one counts: the others only hurry */
	if (h->joined == 1 || uv_is_active((const uv_handle_t *)&h->clock))
		return;
	h->stop_grace_ms = h->job.stop.grace_ms;
	wait_for(h, limit_ms(h));
}
