/* doubt.c - see doubt.h */
#include "daemon/cluster/doubt.h"

#include <string.h>

#include "common/address.h"
#include "common/failure.h"
#include "common/text.h"
#include "daemon/cluster/config.h"
#include "daemon/cluster/member.h"
#include "daemon/cluster/message.h"

enum {
	RETRY_MS = 500,
	RETRY_LATER_MS = 2000, /* once it was said */
	ROUNDS = 3,            /* until it is: both may have been started at once */
	PATIENCE_MS = 10000,   /* as long as the launchers wait before they say for whom */
};

static void dial(struct doubt *d);

/* What follows is the business of those who have met. */
static bool is_settled(const struct doubt *d)
{
	const struct member *m = d->member;

	if (d->closing || m->closing)
		return true;
	if (m->role == MEMBER_HUB)
		return m->hub.begun || m->hub.over;
	return m->spoke.state != SPOKE_DIALING;
}

static void say(struct doubt *d, struct text *t)
{
	d->said = true;
	member_say(d->member, true, text_string(t));
	text_done(t);
}

static void say_misplaced(struct doubt *d)
{
	struct text t = { 0 };

	text_printf(&t,
		"%s is this node, whose node rank is %u, and no launcher of node rank 0 is here: "
		"have nodes been given each other's ranks, or is the master address wrong?",
		d->name, d->member->config->node_rank);
	say(d, &t);
}

static void say_loopback(struct doubt *d)
{
	struct text t = { 0 };

	text_printf(&t,
		"%s means each host itself, so launchers of other hosts can't meet there: give all "
		"nodes an address of node rank 0 that the others reach",
		d->name);
	say(d, &t);
}

static void say_no_rival(struct doubt *d, const char *why)
{
	struct text t = { 0 };

	text_printf(&t,
		"node rank 0 is this node, but %s is none of its addresses (%s): have two nodes "
		"been given node rank 0, or is the master address wrong?",
		d->name, why);
	say(d, &t);
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

/* Nobody is there: the next address, and after the last one all again. */
static void dial_later(struct doubt *d, const char *why)
{
	bool last = ++d->next == d->count;

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
		member_part_closed(d->member);
}

static void on_link_closed(struct link *l, const char *why)
{
	struct doubt *d = l->owner;

	d->linked = false;
	if (d->kind == DOUBT_RIVAL)
		dial_later(d, why);
	handle_closed(d);
}

/* The address leads here, by whatever detour. */
static bool is_own_hub(const struct member *m, const struct link *l)
{
	for (const struct caller *p = m->hub.all; p; p = p->next)
		if (p->link.session == l->session)
			return true;
	return false;
}

/* Asks for the place that this node has. */
static void on_ready(struct link *l)
{
	struct doubt *d = l->owner;

	if (is_settled(d) || is_own_hub(d->member, l)) {
		d->kind = DOUBT_NONE;
		link_close(l, false, NULL);
		return;
	}
	member_introduce(d->member, l);
}

/* It tells its nodes, and this one its own. */
static void on_message(struct link *l, unsigned type, const unsigned char *at, size_t len)
{
	struct doubt *d = l->owner;
	struct message_refused r;

	if (type != MESSAGE_REFUSED || is_settled(d) || message_get_refused(at, len, &r) < 0)
		return;
	d->kind = DOUBT_NONE;
	hub_refuse(&d->member->hub, r.code, r.text);
}

static void dial(struct doubt *d)
{
	struct member *m = d->member;
	struct failure why = { 0 };

	d->link = (struct link){ .owner = d,
		.on_ready = on_ready,
		.on_message = on_message,
		.on_closed = on_link_closed,
		.timeout_ms = (uint32_t)m->config->node_timeout_ms };
	if (link_dial(&d->link, m->loop, (const struct sockaddr *)&m->hub_addresses[d->next],
		    &m->auth, &why) < 0) {
		dial_later(d, why.text);
		return;
	}
	d->linked = true;
	d->handles++;
}

static bool all_loopback(const struct finder *f)
{
	for (unsigned i = 0; i < f->count; i++)
		if (!address_is_loopback((const struct sockaddr *)&f->addresses[i]))
			return false;
	return true;
}

/* A host's own name may mean loopback there, and not elsewhere. */
static enum doubt_kind kind_of(const struct member *m, const struct finder *f, unsigned own)
{
	const struct member_config *c = m->config;

	if (all_loopback(f) && (f->numeric || strcmp(c->hub_addr, "localhost") == 0))
		return DOUBT_LOOPBACK;
	if (!c->node_rank_known)
		return DOUBT_NONE;
	if (m->role == MEMBER_HUB)
		return own == 0 ? DOUBT_RIVAL : DOUBT_NONE;
	return own > 0 ? DOUBT_MISPLACED : DOUBT_NONE;
}

bool doubt_start(struct doubt *d, struct member *m, const struct finder *f, unsigned own)
{
	*d = (struct doubt){ .member = m,
		.kind = kind_of(m, f, own),
		.name = m->config->hub_addr,
		.count = f->count };
	if (d->kind == DOUBT_NONE)
		return false;
	(void)uv_timer_init(m->loop, &d->clock); /* can't fail */
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
