/* hub_peers.c - what the hub's connections are told, and how they are refused; see hub_parts.h */
#include "daemon/cluster/hub_parts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/fd.h"
#include "common/sm.h"
#include "common/text.h"
#include "daemon/net/wire.h"

enum { REFUSED_MS = 15000 };

static const struct sm_state states[HUB_STATES] = {
	[HUB_MEETING] = { "meeting", SM_TO(HUB_PREPARING) | SM_TO(HUB_OVER) | SM_TO(HUB_CLOSED) },
	[HUB_PREPARING] = { "preparing", SM_TO(HUB_RUNNING) | SM_TO(HUB_OVER) | SM_TO(HUB_CLOSED) },
	[HUB_RUNNING] = { "running", SM_TO(HUB_OVER) | SM_TO(HUB_CLOSED) },
	[HUB_OVER] = { "over", SM_TO(HUB_CLOSED) },
	[HUB_CLOSED] = { "closed", 0 },
};
const struct sm hub_life = { "hub", states, HUB_STATES };

void hub_goto(struct hub *h, enum hub_state next)
{
	h->state = sm_go(&hub_life, h->state, next);
	(void)uv_timer_stop(&h->clock);
}

void hub_handle_closed(struct hub *h)
{
	if (--h->handles > 0)
		return;
	fd_closep(&h->port_fd);
	party_part_closed(h->party);
}

void hub_tell(struct hub *h, const struct message *m, const struct caller *except)
{
	struct wire_out w = { 0 };

	message_put(&w, m); /* once for all */
	for (struct caller *p = h->all, *next; p; p = next) {
		next = p->next; /* a link that fails is closed later, not now */
		if (p->joined && p != except && !p->told)
			(void)link_send(&p->link, m->type, w.at, w.len);
	}
	wire_out_done(&w);
}

void hub_turn_away(struct caller *p, enum refusal why, int code, const char *fmt, ...)
{
	struct message m = { MESSAGE_REFUSED, .refused = { .why = why, .code = code } };
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(m.refused.text, sizeof m.refused.text, fmt, ap);
	va_end(ap);
	p->told = true;
	party_send(&p->link, &m);
	link_close(&p->link, true, NULL);
}

void hub_refuse_no_more(struct hub *h)
{
	struct failure why = h->refusal;

	if (!why.code)
		return;
	h->refusal = (struct failure){ 0 };
	(void)uv_timer_stop(&h->clock);
	party_fail(h->party, why.code, "%s", why.text);
}

static void on_refused(uv_timer_t *t)
{
	hub_refuse_no_more(t->data);
}

bool hub_is_first(struct hub *h, const struct caller *p)
{
	unsigned rank = p->about.node_rank;
	bool first = p->about.nnodes > 0 && rank < h->job.nnodes && !h->late[rank];

	if (first)
		h->late[rank] = true;
	return first;
}

void hub_refuse(struct hub *h, int code, const char *fmt, ...)
{
	bool meeting = h->state == HUB_MEETING;
	unsigned nnodes = h->job.nnodes, told = 1, unknown = 0;
	struct text t = { 0 };
	va_list ap;

	if (h->state >= HUB_OVER)
		return;
	va_start(ap, fmt);
	text_vprintf(&t, fmt, ap);
	va_end(ap);
	(void)failure_set(&h->refusal, code, "%s", text_string(&t));
	text_done(&t);
	hub_goto(h, HUB_OVER);
	h->late[h->self] = true;
	for (struct caller *p = h->all; p; p = p->next) {
		if (p->told)
			continue;
		nnodes = p->about.nnodes > nnodes ? p->about.nnodes : nnodes;
		told += hub_is_first(h, p);
		unknown += p->about.nnodes > 0 && p->about.node_rank >= h->job.nnodes;
		hub_turn_away(p, REFUSED_JOB, code, "%s", h->refusal.text);
	}
	if (code != -EINVAL || !meeting || told + unknown >= nnodes) {
		hub_refuse_no_more(h);
		return;
	}
	party_say(h->party, NOTE_WARNING,
		"there is no job: %s; nodes that have not come yet are told so, too, for up to %u s",
		h->refusal.text, REFUSED_MS / 1000);
	h->awaited = nnodes - told - unknown;
	(void)uv_timer_start(&h->clock, on_refused, REFUSED_MS, 0); /* has a callback */
}

struct peer_name hub_peer(const struct caller *p)
{
	struct peer_name ret;
	struct text t = { 0 };

	text_add_shown(&t, p->about.name, strlen(p->about.name));
	(void)snprintf(ret.text, sizeof ret.text, "%s (%s)", text_string(&t), p->link.peer);
	text_done(&t);
	return ret;
}
