/* hub_lines.c - other nodes' lines, as node rank 0 takes them; see hub_parts.h */
#include "daemon/cluster/hub_parts.h"

static void give(struct caller *p, size_t bytes)
{
	party_send(&p->link, &(struct message){ MESSAGE_LOG_ROOM, .log_room = bytes });
}

void hub_lines_offer(struct hub *h)
{
	if (!h->party->config->merge_logs)
		return;
	for (unsigned i = 0; i < h->job.nnodes; i++) {
		struct caller *p = h->peers[i];

		if (!p)
			continue;
		p->credit = credit_open(credit_for(h->job.nnodes - 1));
		give(p, p->credit.whole);
	}
}

void hub_lines_hear(struct caller *p, const struct message *m)
{
	const struct party *party = p->hub->party;
	const struct message_log *log = &m->log;

	if (p->credit.whole == 0)
		link_close(&p->link, false, "it sent its workers' output without being asked");
	else if (!credit_spend(&p->credit, log->len))
		link_close(&p->link, false,
			"it sent more of its workers' output than it was allowed to");
	else if (party->on->log)
		party->on->log(party->owner, p->node, log->stream, log->at, log->len);
	else
		hub_lines_taken(p->hub, p->node, log->len);
}

void hub_lines_taken(struct hub *h, unsigned node, size_t len)
{
	struct caller *p = node < h->job.nnodes ? h->peers[node] : NULL;
	size_t back = p ? credit_take(&p->credit, len) : 0;

	if (back > 0)
		give(p, back);
}

bool hub_lines_await(const struct caller *p)
{
	return p->hub->lines.lasting && p->credit.whole > 0;
}

static bool awaits_any(const struct hub *h)
{
	for (const struct caller *p = h->all; p; p = p->next)
		if (hub_lines_await(p))
			return true;
	return false;
}

static void on_clock_closed(uv_handle_t *handle)
{
	hub_handle_closed(handle->data);
}

/* Nodes that have not left by now don't want to, or can't. */
static void end_last(struct hub *h)
{
	h->lines.lasting = false;
	uv_close((uv_handle_t *)&h->lines.clock, on_clock_closed);
	for (struct caller *p = h->all; p; p = p->next)
		link_close(&p->link, true, NULL);
}

static void on_last_over(uv_timer_t *t)
{
	end_last(t->data);
}

void hub_lines_last(struct hub *h)
{
	h->lines.lasting = true;
	h->lines.lasting = awaits_any(h);
	if (!h->lines.lasting)
		return;
	(void)uv_timer_init(h->party->loop, &h->lines.clock); /* can't fail */
	h->lines.clock.data = h;
	h->handles++;
	(void)party_wait(h->party, &h->lines.clock, on_last_over, LINES_LAST_MS);
}

void hub_lines_lost(struct hub *h)
{
	if (h->lines.lasting && !awaits_any(h))
		end_last(h);
}
