/* member_meet.c - how this launcher finds the others: by PMIx, or at an address that all know; see
 * member.h */
#include "daemon/cluster/member.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/address.h"
#include "common/failure.h"
#include "common/num.h"
#include "common/text.h"
#include "daemon/meet/card.h"
#include "daemon/net/key.h"

static bool is_own(const struct member *m, const struct sockaddr *a)
{
	for (size_t i = 0; i < m->config->local.count; i++) {
		struct sockaddr_storage own;

		if (address_parse(m->config->local.at[i], 0, &own) == 0 &&
			address_same_host(a, (const struct sockaddr *)&own))
			return true;
	}
	return address_is_loopback(a);
}

/* Users know of no such port, unless they gave it. */
static void fail_to_listen(struct member *m, const struct failure *why)
{
	const struct member_config *c = m->config;
	bool needed = c->required || c->agent_store || c->policy.max_restarts > 0;
	struct failure told = { 0 };
	struct text t = { 0 };

	text_add(&t, why->text);
	if (why->code == -EADDRINUSE) {
		text_printf(&t, "; the launchers meet there (%s): give all nodes ", c->port_from);
		text_add(&t,
			c->port_by_endpoint ? "an endpoint with another port" :
					      "another --control-port");
		if (!needed && c->node_rank_known && !c->port_by_endpoint)
			text_add(&t, ", or --control off");
	}
	(void)failure_set(&told, why->code, "%s", text_string(&t));
	m->on->failed(m->owner, &told);
	text_done(&t);
}

/* --- static nodes --- */

/* Those of the found addresses that are ours; all of them only where the user gave one: a name may
 * mean 127.0.1.1 on its own host. */
static unsigned own_addresses(const struct member *m, const struct sockaddr *ret[FINDER_ADDRESSES])
{
	unsigned count = 0;

	for (unsigned i = 0; i < m->finder.count; i++) {
		const struct sockaddr *a = (const struct sockaddr *)&m->finder.addresses[i];

		if (is_own(m, a))
			ret[count++] = a;
	}
	return count;
}

/* Those of --interface or --local-addr, beside those that the name means here. */
static unsigned add_asked(const struct member *m, struct sockaddr_storage room[LISTENER_ADDRESSES],
	const struct sockaddr *ret[LISTENER_ADDRESSES], unsigned count)
{
	const struct vec *asked = &m->config->addresses;

	for (size_t i = 0; i < asked->count && count < LISTENER_ADDRESSES; i++) {
		const struct sockaddr *a = (const struct sockaddr *)&room[count];
		bool skip = address_parse(asked->at[i], 0, &room[count]) < 0;

		for (unsigned j = 0; j < count && !skip; j++)
			skip = address_same_host(ret[j], a);
		if (!skip)
			ret[count++] = a;
	}
	return count;
}

/* Whether this node is the hub, which listens at so many of the addresses (0: at all), or dials it;
 * false: it can't be either. */
static bool take_role(struct member *m, const struct finder *f, bool owns,
	const struct sockaddr *const *own, unsigned bound)
{
	bool known = m->config->node_rank_known;
	struct failure why = { 0 };

	if (known ? m->config->node_rank == 0 : owns) {
		int rc = member_start_hub(m, own, bound, m->config->hub_port, &why);

		if (rc == 0)
			return true;
		if (known || rc != -EADDRINUSE) {
			fail_to_listen(m, &why);
			return false;
		}
	}
	member_start_spoke(m, f->count);
	return true;
}

/* Addresses that the name means now. Where ranks are not given, and it means this node after all,
 * this is node rank 0, or another launcher of this node is. */
static void use_addresses(struct member *m, const struct finder *f, bool owns,
	const struct sockaddr *const *own, unsigned bound)
{
	struct failure why = { 0 };

	if (m->role != MEMBER_SPOKE)
		return;
	if (owns && !m->config->node_rank_known && m->spoke.state == SPOKE_DIALING &&
		member_start_hub(m, own, bound, m->config->hub_port, &why) == 0)
		spoke_close(&m->spoke);
	else
		spoke_hear_addresses(&m->spoke, f->addresses, f->count);
}

static void on_found(struct finder *f)
{
	struct member *m = f->owner;
	struct sockaddr_storage room[LISTENER_ADDRESSES];
	const struct sockaddr *own[LISTENER_ADDRESSES];
	unsigned owned = own_addresses(m, own), bound = owned;

	if (!f->numeric || owned == 0)
		bound = m->config->bound ? add_asked(m, room, own, owned) : 0;
	if (m->role != MEMBER_NONE) {
		use_addresses(m, f, owned > 0, own, bound);
		return;
	}
	memcpy(m->hub_addresses, f->addresses, sizeof m->hub_addresses);
	if (!take_role(m, f, owned > 0, own, bound))
		return;
	m->doubts = doubt_start(&m->doubt, m, f, owned);
	m->parts += m->doubts;
}

static void on_not_found(struct finder *f, const char *why)
{
	struct member *m = f->owner;
	char seconds[NUM_SECONDS_SIZE];
	struct text t = { 0 };

	num_print_seconds(m->config->join_timeout_ms, seconds);
	text_printf(&t, "node rank 0's launcher can't be found within %s s (--join-timeout): %s",
		seconds, why);
	member_miss(m, text_string(&t));
	text_done(&t);
}

static void on_searching(struct finder *f, const char *why)
{
	struct member *m = f->owner;
	char seconds[NUM_SECONDS_SIZE];
	struct text t = { 0 };

	num_print_seconds(m->config->join_timeout_ms, seconds);
	text_printf(&t, "%s; trying again for up to %s s (--join-timeout)", why, seconds);
	member_say(m, false, text_string(&t));
	text_done(&t);
}

static void on_finder_closed(struct finder *f)
{
	member_part_closed(f->owner);
}

static int set_key(struct member *m, const unsigned char *key, struct failure *why)
{
	int rc = key_shield(why);

	if (rc == 0 && !m->sodium.generichash)
		rc = sodium_load(&m->sodium, why);

	if (rc < 0)
		return rc;
	m->auth.keyed = true;
	m->auth.sodium = &m->sodium;
	memcpy(m->auth.key, key, sizeof m->auth.key);
	return 0;
}

/* The key that the user gave, if any. False: it can't be used, and that is the end. */
bool member_use_key(struct member *m)
{
	struct failure why = { 0 };

	if (!m->config->key.there || set_key(m, m->config->key.bytes, &why) == 0)
		return true;
	member_fail(m, why.code, why.text);
	return false;
}

/* What PMIx has taken of the time leaves at least as much as a connection may need. */
static void leave_time_to_dial(struct member *m)
{
	uint64_t most = m->config->join_timeout_ms;
	uint64_t least = uv_now(m->loop) + (most < LINK_HANDSHAKE_MS ? most : LINK_HANDSHAKE_MS);

	if (m->deadline_ms < least)
		m->deadline_ms = least;
}

void member_meet_static(struct member *m)
{
	uint64_t now = uv_now(m->loop);

	m->finder = (struct finder){ .on_found = on_found,
		.on_searching = on_searching,
		.on_failed = on_not_found,
		.on_closed = on_finder_closed,
		.owner = m };
	m->finds = true;
	m->parts++;
	finder_start(&m->finder, m->loop, m->config->hub_addr, m->config->hub_port,
		m->deadline_ms > now ? m->deadline_ms - now : 0);
}

/* --- PMIx --- */

static void on_card(struct pmix_exchange *x, const void *bytes, size_t len)
{
	struct member *m = x->owner;
	struct card card;
	struct failure why = { 0 };
	unsigned count = 0;
	int rc;

	pmix_close(x);
	leave_time_to_dial(m);
	if (m->role == MEMBER_HUB) {
		hub_wait(&m->hub); /* the others dial now */
		return;
	}
	rc = card_decode(bytes, len, &card, &why);
	if (rc == 0)
		rc = set_key(m, card.key, &why);
	explicit_bzero(card.key, sizeof card.key);
	if (rc < 0) {
		member_miss(m, why.text);
		return;
	}
	for (unsigned i = 0; i < card.count && count < FINDER_ADDRESSES; i++)
		if (address_parse(card.address[i], (uint16_t)card.port, &m->hub_addresses[count]) ==
			0)
			count++;
	if (count == 0)
		member_miss(m, "node rank 0 has no address that others could reach");
	else
		member_start_spoke(m, count);
}

/* Node rank 0 listens already, at the port that the others know unless somebody else does. */
static void listen_on(struct member *m)
{
	char text[256];

	if (hub_port(&m->hub) != m->config->hub_port) {
		(void)snprintf(text, sizeof text,
			"without PMIx launchers meet at port %u, where another program of this "
			"node listens: give all nodes another --control-port or MASTER_PORT",
			m->config->hub_port);
		hub_refuse(&m->hub, -EADDRINUSE, text);
		return;
	}
	if (!m->auth.keyed)
		member_say_unkeyed(m);
	hub_wait(&m->hub);
}

static void on_no_card(struct pmix_exchange *x, const char *why, bool unavailable)
{
	struct member *m = x->owner;

	pmix_close(x);
	if (m->role == MEMBER_HUB && (m->hub.begun || m->hub.over))
		return; /* the others have met all the same */
	if (!unavailable || !m->config->hub_addr) {
		member_miss(m, why);
		return;
	}
	leave_time_to_dial(m);
	/* the same on all nodes, mostly: the address that they know will do */
	m->auth = (struct link_auth){ .keyed = false };
	if (!member_use_key(m))
		return;
	if (m->role == MEMBER_HUB)
		listen_on(m);
	else
		member_meet_static(m);
}

/* Node rank 0 listens before it tells where. */
static int make_card(struct member *m, struct card *card, struct failure *why)
{
	const struct member_config *c = m->config;
	struct sockaddr_storage own[CARD_ADDRESSES_MAX];
	const struct sockaddr *bound[CARD_ADDRESSES_MAX];
	int rc = key_random(card->key, why);

	for (size_t i = 0; i < c->addresses.count; i++)
		(void)card_add(card, c->addresses.at[i]); /* the best ones fit */
	for (unsigned i = 0; i < card->count; i++) {
		(void)address_parse(card->address[i], 0, &own[i]); /* card_add() has looked */
		bound[i] = (const struct sockaddr *)&own[i];
	}
	if (rc == 0)
		rc = set_key(m, card->key, why);
	if (rc == 0)
		rc = member_start_hub(m, bound, c->bound ? card->count : 0, c->hub_port, why);
	if (rc == -EADDRINUSE && !c->port_given) { /* another job's; nobody knows this one yet */
		*why = (struct failure){ 0 };
		rc = member_start_hub(m, bound, c->bound ? card->count : 0, 0, why);
	}
	card->port = rc == 0 ? hub_port(&m->hub) : 0;
	return rc;
}

void member_meet_by_pmix(struct member *m)
{
	struct card card = { 0 };
	struct failure why = { 0 };
	unsigned char bytes[CARD_BYTES_MAX];
	size_t len = 0;

	if (m->config->node_rank == 0) {
		if (make_card(m, &card, &why) < 0) {
			fail_to_listen(m, &why);
			return;
		}
		len = card_encode(&card, bytes);
	}
	m->pmix = (struct pmix_exchange){
		.on_done = on_card, .on_failed = on_no_card, .owner = m, .argv = m->config->argv
	};
	if (pmix_start(&m->pmix, m->loop, bytes, len, m->config->join_timeout_ms, &why) < 0)
		member_miss(m, why.text);
	explicit_bzero(&card, sizeof card); /* PMIx's process has its copy */
	explicit_bzero(bytes, sizeof bytes);
}
