/* doubt.c - see doubt.h */
#include "daemon/cluster/doubt.h"

#include <string.h>

#include "common/address.h"
#include "common/failure.h"
#include "daemon/cluster/hub.h"
#include "daemon/cluster/message.h"
#include "daemon/cluster/spoke.h"
#include "daemon/meet/finder.h"

enum {
	RETRY_MS = 500,
	RETRY_LATER_MS = 2000, /* after the warning */
	ROUNDS = 3,          /* before the warning: both launchers may have been started at once */
	PATIENCE_MS = 10000, /* as long as launchers wait before they say which nodes are missing */
};

static void dial(struct doubt *d);

/* Once the nodes have met there is nothing left to doubt. */
static bool is_settled(const struct doubt *d)
{
	if (d->closing || d->party->closing)
		return true;
	return d->hub ? d->hub->state != HUB_MEETING : d->spoke->state != SPOKE_DIALING;
}

static void say_misplaced(const struct doubt *d)
{
	party_say(d->party, NOTE_WARNING,
		"%s is this node, which has node rank %u, but no launcher with node rank 0 runs "
		"here: were node ranks mixed up, or is the master address wrong?",
		d->name, d->party->config->node_rank);
}

static void say_loopback(const struct doubt *d)
{
	party_say(d->party, NOTE_WARNING,
		"%s is a loopback address, which launchers on other hosts can't reach: give all "
		"nodes an address of node rank 0 that the others can reach",
		d->name);
}

static void say_no_rival(struct doubt *d, const char *why)
{
	d->said = true;
	party_say(d->party, NOTE_WARNING,
		"this node has node rank 0, but %s is not one of its addresses (%s): do two nodes "
		"have node rank 0, or is the master address wrong?",
		d->name, why);
}

static void on_time(uv_timer_t *clock)
{
	struct doubt *d = clock->data;

	if (is_settled(d))
		return;
	switch (d->kind) {
	case DOUBT_NONE:
		return;
	case DOUBT_RIVAL:
		dial(d);
		return;
	case DOUBT_MISPLACED:
		say_misplaced(d);
		return;
	case DOUBT_LOOPBACK:
		say_loopback(d);
		return;
	}
}

/* Nobody answered: tries the next address, and after the last one the first again. */
static void dial_later(struct doubt *d, const char *why)
{
	bool last = ++d->next == d->addresses->count;

	if (is_settled(d))
		return;
	if (last) {
		d->next = 0;
		if (++d->rounds == ROUNDS)
			say_no_rival(d, why);
	}
	(void)uv_timer_start(&d->clock, on_time,
		!last           ? 0 :
			d->said ? RETRY_LATER_MS :
				  RETRY_MS,
		0);
}

static void handle_closed(struct doubt *d)
{
	if (--d->handles == 0)
		party_part_closed(d->party);
}

static void on_link_closed(struct link *l, const char *why)
{
	struct doubt *d = l->owner;

	d->linked = false;
	if (d->kind == DOUBT_RIVAL)
		dial_later(d, why);
	handle_closed(d);
}

/* Asks for this node's own place: a rival refuses that. */
static void on_ready(struct link *l)
{
	struct doubt *d = l->owner;

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

static void dial(struct doubt *d)
{
	const struct party *p = d->party;
	struct failure why = { 0 };

	d->link = (struct link){ .owner = d,
		.on_ready = on_ready,
		.on_message = on_message,
		.on_closed = on_link_closed,
		.timeout_ms = (uint32_t)p->config->node_timeout_ms };
	if (link_dial(&d->link, p->loop, &d->addresses->at[d->next], &p->auth, &why) < 0) {
		dial_later(d, why.text);
		return;
	}
	d->linked = true;
	d->handles++;
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

bool doubt_start(struct doubt *d, const struct finder *f, unsigned own)
{
	d->kind = kind_of(d, f, own);
	d->name = d->party->config->hub_addr;
	if (d->kind == DOUBT_NONE)
		return false;
	d->party->parts++;
	(void)uv_timer_init(d->party->loop, &d->clock); /* can't fail */
	d->clock.data = d;
	d->handles = 1;
	(void)uv_timer_start(&d->clock, on_time, d->kind == DOUBT_RIVAL ? 0 : PATIENCE_MS, 0);
	return true;
}

static void on_clock_closed(uv_handle_t *h)
{
	handle_closed(h->data);
}

void doubt_close(struct doubt *d)
{
	if (d->closing)
		return;
	d->closing = true;
	if (d->linked)
		link_close(&d->link, false, NULL);
	uv_close((uv_handle_t *)&d->clock, on_clock_closed);
}
