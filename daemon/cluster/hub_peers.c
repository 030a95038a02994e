/* hub_peers.c - what the hub's connections are told, and how they are refused; see hub_parts.h */
#include "daemon/cluster/hub_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/fd.h"
#include "common/sm.h"
#include "common/text.h"
#include "daemon/net/wire.h"

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

void hub_refuse(struct hub *h, int code, const char *fmt, ...)
{
	struct text t = { 0 };
	va_list ap;

	if (h->state >= HUB_OVER)
		return;
	va_start(ap, fmt);
	text_vprintf(&t, fmt, ap);
	va_end(ap);
	hub_goto(h, HUB_OVER);
	for (struct caller *p = h->all; p; p = p->next)
		if (!p->told)
			hub_turn_away(p, REFUSED_JOB, code, "%s", text_string(&t));
	party_fail(h->party, code, "%s", text_string(&t));
	text_done(&t);
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
