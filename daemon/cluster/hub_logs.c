/* hub_logs.c - other nodes' lines, as node rank 0 takes them; see merged_lines.h */
#include "daemon/cluster/merged_lines.h"

#include "daemon/cluster/config.h"
#include "daemon/cluster/hub.h"
#include "daemon/cluster/member.h"
#include "daemon/net/wire.h"

static void give(struct caller *p, size_t bytes)
{
	struct wire_out w = { 0 };

	message_put_log_room(&w, bytes);
	(void)link_send(&p->link, MESSAGE_LOG_ROOM, w.at, w.len); /* a lost link tells by itself */
	wire_out_done(&w);
}

void hub_logs_offer(struct hub *h)
{
	if (!h->member->config->merge_logs)
		return;
	for (unsigned i = 0; i < h->job.nnodes; i++) {
		struct caller *p = h->peers[i];

		if (!p)
			continue;
		p->credit = credit_open(credit_for(h->job.nnodes - 1));
		give(p, p->credit.whole);
	}
}

void hub_hear_log(struct caller *p, const unsigned char *at, size_t len)
{
	struct member *m = p->hub->member;
	const char *bytes;
	size_t count;
	int stream;

	if (message_get_log(at, len, &stream, &bytes, &count) < 0)
		link_close(&p->link, false, "what it said is no message of this protocol");
	else if (p->credit.whole == 0)
		link_close(&p->link, false, "it sent its workers' lines without being asked");
	else if (!credit_spend(&p->credit, count))
		link_close(&p->link, false, "it sent more of its workers' lines than it may");
	else if (m->on->log)
		m->on->log(m->owner, p->node, stream, bytes, count);
	else
		hub_logs_taken(p->hub, p->node, count);
}

void hub_logs_taken(struct hub *h, unsigned node, size_t len)
{
	struct caller *p = node < h->job.nnodes ? h->peers[node] : NULL;
	size_t back;

	if (!p)
		return;
	back = credit_take(&p->credit, len);
	if (back > 0)
		give(p, back);
}

bool hub_logs_awaits(const struct caller *p)
{
	return p->hub->logs.lasting && p->credit.whole > 0;
}

static bool awaits_any(const struct hub *h)
{
	for (const struct caller *p = h->all; p; p = p->next)
		if (hub_logs_awaits(p))
			return true;
	return false;
}

static void on_clock_closed(uv_handle_t *handle)
{
	hub_handle_closed(handle->data);
}

/* Whoever has not left until now does not want to, or can't. */
static void end_last(struct hub *h)
{
	h->logs.lasting = false;
	uv_close((uv_handle_t *)&h->logs.clock, on_clock_closed);
	for (struct caller *p = h->all; p; p = p->next)
		link_close(&p->link, true, NULL);
}

static void on_last_over(uv_timer_t *t)
{
	end_last(t->data);
}

void hub_logs_last(struct hub *h)
{
	h->logs.lasting = true;
	h->logs.lasting = awaits_any(h);
	if (!h->logs.lasting)
		return;
	uv_update_time(h->member->loop);
	(void)uv_timer_init(h->member->loop, &h->logs.clock); /* can't fail */
	h->logs.clock.data = h;
	h->handles++;
	(void)uv_timer_start(&h->logs.clock, on_last_over, LOGS_LAST_MS, 0);
}

void hub_logs_lost(struct hub *h)
{
	if (h->logs.lasting && !awaits_any(h))
		end_last(h);
}
