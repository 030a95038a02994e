/* doubt.c - see doubt.h */
#include "daemon/cluster/doubt.h"

#include <string.h>

#include "common/address.h"
#include "common/text.h"
#include "daemon/cluster/hub.h"
#include "daemon/cluster/message.h"
#include "daemon/cluster/spoke.h"
#include "daemon/meet/finder.h"

enum {
	ROUNDS = 5,          /* before the warning: both launchers may have been started at once */
	PATIENCE_MS = 10000, /* as long as launchers wait before they say which nodes are missing */
};

/* Once the nodes have met there is nothing left to doubt, nor where node rank 0 has been reached.
 */
static bool is_settled(const struct doubt *d)
{
	if (d->closing || d->party->closing)
		return true;
	return d->hub ? d->hub->state != HUB_MEETING :
			d->spoke->state != SPOKE_DIALING || d->spoke->returned;
}

static void on_patience_over(uv_timer_t *clock)
{
	const struct doubt *d = clock->data;

	if (is_settled(d))
		return;
	if (d->kind == DOUBT_MISPLACED)
		party_say(d->party, NOTE_WARNING,
			"%s is this node, which has node rank %u, but no launcher with node rank 0 "
			"runs here: were node ranks mixed up, or is the master address wrong?",
			d->party->config->hub_addr, d->party->config->node_rank);
	else
		party_say(d->party, NOTE_WARNING,
			"%s is a loopback address, which launchers on other hosts can't reach: "
			"give all nodes an address of node rank 0 that the others can reach",
			d->party->config->hub_addr);
}

/* Nobody answered in the last round. */
static void on_round(struct dialer *dialer)
{
	struct doubt *d = dialer->owner;
	struct text why = { 0 };

	if (is_settled(d)) {
		dialer_stop(dialer);
		return;
	}
	if (++d->rounds != ROUNDS)
		return;
	dialer_explain(dialer, &why);
	party_say(d->party, NOTE_WARNING,
		"this node has node rank 0, but %s is not one of its addresses (%s): do two nodes "
		"have node rank 0, or is the master address wrong?",
		d->party->config->hub_addr, text_string(&why));
	text_done(&why);
}

static void on_lost(struct dialer *dialer, struct link *l, const char *why)
{
	struct doubt *d = dialer->owner;

	(void)l;
	d->link = NULL;
	if (d->kind == DOUBT_RIVAL && !is_settled(d))
		dialer_again(dialer, why);
}

/* Asks for this node's own place: a rival refuses that. */
static void on_ready(struct dialer *dialer, struct link *l)
{
	struct doubt *d = dialer->owner;

	d->link = l;
	/* the address may lead back to this launcher, for instance through NAT */
	if (is_settled(d) || hub_has_session(d->hub, l->session)) {
		d->kind = DOUBT_NONE;
		link_close(l, false, NULL);
		return;
	}
	party_introduce(d->party, l);
}

/* The rival tells its nodes, and this one its own. */
static void on_message(struct link *l, unsigned type, const unsigned char *at, size_t len)
{
	struct doubt *d = l->owner;
	struct message m;

	if (type != MESSAGE_REFUSED || is_settled(d) ||
		message_get(type, at, len, d->party->config->arena, &m) < 0)
		return;
	d->kind = DOUBT_NONE;
	hub_refuse(d->hub, m.refused.code, "%s", m.refused.text);
}

static bool all_loopback(const struct finder *f)
{
	for (unsigned i = 0; i < f->found.count; i++)
		if (!address_is_loopback(&f->found.at[i]))
			return false;
	return true;
}

/* A host's own name may resolve to loopback there, and not elsewhere. */
static enum doubt_kind kind_of(const struct doubt *d, const struct finder *f, unsigned own)
{
	const struct member_config *c = d->party->config;

	if (all_loopback(f) && (f->numeric || strcmp(c->hub_addr, "localhost") == 0))
		return DOUBT_LOOPBACK;
	if (!c->node_rank_known)
		return DOUBT_NONE;
	if (d->hub)
		return own == 0 ? DOUBT_RIVAL : DOUBT_NONE;
	return own > 0 ? DOUBT_MISPLACED : DOUBT_NONE;
}

static void on_dialer_closed(struct dialer *dialer)
{
	party_part_closed(((struct doubt *)dialer->owner)->party);
}

static void on_clock_closed(uv_handle_t *h)
{
	party_part_closed(((struct doubt *)h->data)->party);
}

bool doubt_start(struct doubt *d, const struct finder *f, unsigned own)
{
	struct party *p = d->party;

	d->kind = kind_of(d, f, own);
	if (d->kind == DOUBT_NONE)
		return false;
	p->parts++;
	if (d->kind == DOUBT_RIVAL) {
		d->dialer = (struct dialer){ .on_ready = on_ready,
			.on_lost = on_lost,
			.on_round = on_round,
			.on_closed = on_dialer_closed,
			.on_message = on_message,
			.owner = d,
			.auth = &p->auth,
			.timeout_ms = (uint32_t)p->config->node_timeout_ms };
		dialer_start(&d->dialer, p->loop, &f->found);
		return true;
	}
	(void)uv_timer_init(p->loop, &d->clock); /* can't fail */
	d->clock.data = d;
	(void)uv_timer_start(&d->clock, on_patience_over, PATIENCE_MS, 0);
	return true;
}

void doubt_close(struct doubt *d)
{
	if (d->closing)
		return;
	d->closing = true;
	if (d->link)
		link_close(d->link, false, NULL);
	if (d->dialer.state != DIALER_NONE)
		dialer_close(&d->dialer);
	else
		uv_close((uv_handle_t *)&d->clock, on_clock_closed);
}
