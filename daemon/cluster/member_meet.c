/* member_meet.c - how this launcher finds the others, by PMIx or at an address that all know, and
 * which part it takes then; see member.h */
#include "daemon/cluster/member.h"

#include <errno.h>
#include <string.h>

#include "common/address.h"
#include "common/failure.h"
#include "common/num.h"
#include "common/text.h"
#include "daemon/job/phrases.h"
#include "daemon/meet/card.h"
#include "daemon/net/key.h"
#include "daemon/os/port.h"
#include "daemon/os/secret.h"

static void miss(void *owner, const char *why);

/* --- its part --- */

/* Said once in a job, by the node that all others trust. */
static void say_unkeyed(struct member *m)
{
	party_say(&m->party, NOTE_INFO,
		"the control channel is not authenticated: anyone who can reach its port could "
		"end the job, and signals are not forwarded to other nodes; give all nodes the "
		"same --key-file or LAUNCHD_KEY");
}

/* Of two launchers on one host, the one that gets the socket is the hub. */
static int start_hub(
	struct member *m, const struct addresses *bound, unsigned port, struct failure *why)
{
	int rc = hub_start(&m->hub, &m->party, bound, port, why);

	if (rc < 0)
		return rc;
	m->role = MEMBER_HUB;
	if (hub_port(&m->hub) != 0 && !m->party.auth.keyed)
		say_unkeyed(m);
	return 0;
}

/* All addresses were dialed in vain: the name may resolve to others by now. */
static void on_round(void *owner)
{
	finder_again(&((struct member *)owner)->finder);
}

static void start_spoke(struct member *m, const struct addresses *hub)
{
	m->role = MEMBER_SPOKE;
	m->spoke = (struct spoke){ .on_missed = miss, .on_round = on_round, .owner = m };
	spoke_start(&m->spoke, &m->party, hub);
}

/* A job of this node only, with ranks and sizes from the settings. */
static void be_alone(struct member *m)
{
	const struct addresses nobody_dials = { 0 };
	struct failure why = { 0 };

	if (start_hub(m, &nobody_dials, 0, &why) < 0)
		party_fail(&m->party, why.code, "%s", why.text);
}

/* What the workers of a node have to do without when it is alone. */
static void say_alone(struct member *m, const char *why)
{
	const struct member_config *c = m->party.config;

	party_say(&m->party, NOTE_WARNING,
		"%s; this node's workers start without the others: if another node fails, this "
		"one won't be told%s%s",
		why, c->policy.max_restarts > 0 ? ", and there are no restarts" : "",
		c->agent_store ? "; rank 0 hosts the store" : "");
}

/* What only the meeting would have told, and which option replaces it; NULL: nothing. */
static const char *unknown_alone(const struct member_config *c)
{
	if (!c->node_rank_known)
		return "its rank: give --node_rank";
	if (c->master_port > 0)
		return NULL;
	/* the given port is the launchers': worker 0 gets another one */
	return c->way == MEET_STATIC ?
		"the port of worker 0: give all nodes a --control-port, which leaves the port of "
		"--rdzv-endpoint to it" :
		"the port of worker 0: give --master_port";
}

static void go_alone(struct member *m, const char *why)
{
	const struct member_config *c = m->party.config;
	const char *unknown = unknown_alone(c);

	if (m->role == MEMBER_SPOKE)
		spoke_close(&m->spoke);
	if (unknown) {
		party_fail(&m->party, -ETIMEDOUT, "%s: without the others this node can't know %s",
			why, unknown);
		return;
	}
	say_alone(m, why);
	m->alone = *c;
	m->alone.way = MEET_NOBODY;
	m->alone.policy.max_restarts = 0; /* restarting one node of several helps nobody */
	m->alone.agent_store = false;
	m->party.config = &m->alone;
	be_alone(m);
}

/* The hub can't be reached: this node's workers start without it, or not at all. */
static void miss(void *owner, const char *why)
{
	struct member *m = owner;
	const struct member_config *c = m->party.config;
	bool nowhere = c->way == MEET_EXCHANGE && !c->hub_addr;
	struct failure told = { 0 };

	if (c->required || nowhere) {
		(void)failure_set(&told, -ETIMEDOUT, nowhere ? "%s: %s" : "%s (%s)", why,
			nowhere ? "give --master_addr to all nodes" : c->required);
		if (m->role == MEMBER_HUB)
			hub_refuse(&m->hub, told.code, "%s", told.text);
		else
			party_fail(&m->party, told.code, "%s", told.text);
	} else if (m->role == MEMBER_HUB) {
		party_say(&m->party, NOTE_WARNING,
			"%s; the job starts anyway, but won't notice if other nodes fail", why);
		hub_begin(&m->hub);
	} else {
		go_alone(m, why);
	}
}

/* Users don't know of this port unless they gave it. */
static void fail_to_listen(struct member *m, const struct failure *why)
{
	const struct member_config *c = m->party.config;
	bool needed = c->required || c->agent_store || c->policy.max_restarts > 0;
	bool can_do_without = !needed && c->node_rank_known && !c->port_by_endpoint;
	bool is_ours = c->node_rank_given && strstr(why->text, ANOTHER_LAUNCHD);
	struct failure in_use = { 0 };

	if (why->code == -EADDRINUSE) {
		(void)failure_set(&in_use, why->code,
			"%s; the launchers meet there (%s): %sgive all nodes %s%s", why->text,
			c->port_from,
			is_ours ?
				"if it is of this job, give each node a different --node_rank; else " :
				"",
			c->port_by_endpoint ? "an endpoint with another port" :
					      "another --control-port",
			can_do_without ? ", or --control off" : "");
		why = &in_use;
	}
	m->party.on->failed(m->party.owner, why);
}

/* --- static nodes --- */

/* Those of the found addresses that are ours. The hub binds to them only if the user gave an
 * address: a name may mean 127.0.1.1 on its own host. */
static struct addresses own_addresses(const struct member *m)
{
	struct addresses own = { 0 };

	for (unsigned i = 0; i < m->finder.found.count; i++) {
		const struct address *a = &m->finder.found.at[i];

		if (address_is_loopback(a) || address_find_host(&m->party.config->local, a))
			addresses_add(&own, a);
	}
	return own;
}

/* Adds the addresses of --interface or --local-addr. */
static void add_asked(const struct member *m, struct addresses *to)
{
	const struct member_config *c = m->party.config;
	struct address a;

	for (size_t i = 0; i < c->addresses.count; i++)
		if (address_parse(c->addresses.at[i], (uint16_t)c->hub_port, &a) == 0)
			addresses_add(to, &a);
}

/* Makes this node the hub, which listens at these addresses (none: at any), or a spoke. False: it
 * can be neither, and that was told. */
static bool take_role(struct member *m, bool owns, const struct addresses *bound)
{
	bool known = m->party.config->node_rank_known;
	struct failure why = { 0 };

	if (known ? m->party.config->node_rank == 0 : owns) {
		int rc = start_hub(m, bound, m->party.config->hub_port, &why);

		if (rc == 0)
			return true;
		if (known || rc != -EADDRINUSE) {
			fail_to_listen(m, &why);
			return false;
		}
	}
	start_spoke(m, &m->finder.found);
	return true;
}

/* The name resolves to these addresses now. Without given ranks, if one of them is this node's
 * after all, this is node rank 0, or another launcher on this node is. */
static void use_addresses(
	struct member *m, const struct finder *f, bool owns, const struct addresses *bound)
{
	struct failure why = { 0 };

	if (m->role != MEMBER_SPOKE)
		return;
	if (owns && !m->party.config->node_rank_known && m->spoke.state == SPOKE_DIALING &&
		start_hub(m, bound, m->party.config->hub_port, &why) == 0) {
		m->doubt.hub = &m->hub;
		spoke_close(&m->spoke);
	} else {
		spoke_hear_addresses(&m->spoke, &f->found);
	}
}

static void on_found(struct finder *f)
{
	struct member *m = f->owner;
	struct addresses bound = own_addresses(m);
	unsigned owned = bound.count;

	if ((!f->numeric || owned == 0) && m->party.config->bound)
		add_asked(m, &bound);
	else if (!f->numeric)
		bound.count = 0;
	if (m->role != MEMBER_NONE) {
		use_addresses(m, f, owned > 0, &bound);
		return;
	}
	if (!take_role(m, owned > 0, &bound))
		return;
	m->doubt.party = &m->party; /* the rest is zero, and large */
	m->doubt.hub = m->role == MEMBER_HUB ? &m->hub : NULL;
	m->doubt.spoke = &m->spoke;
	m->doubts = doubt_start(&m->doubt, f, owned);
}

static void on_not_found(struct finder *f, const char *why)
{
	struct member *m = f->owner;
	const struct member_config *c = m->party.config;
	struct text t = { 0 };

	if (c->node_rank_known)
		node_name_add(&t, c->node_rank, c->name);
	else
		text_add(&t, c->name);
	text_printf(&t, " could not find node rank 0's launcher within %s s (--join-timeout): %s",
		num_seconds(c->join_timeout_ms).text, why);
	miss(m, text_string(&t));
	text_done(&t);
}

static void on_searching(struct finder *f, const char *why)
{
	struct member *m = f->owner;

	party_say(&m->party, NOTE_INFO, "%s; trying again for up to %s s (--join-timeout)", why,
		num_seconds(m->party.config->join_timeout_ms).text);
}

static void on_finder_closed(struct finder *f)
{
	party_part_closed(&((struct member *)f->owner)->party);
}

static int set_key(struct member *m, const unsigned char *key, struct failure *why)
{
	int rc = key_shield(why);

	if (rc == 0 && !m->sodium.generichash)
		rc = sodium_load(&m->sodium, why);

	if (rc < 0)
		return rc;
	m->party.auth.keyed = true;
	m->party.auth.sodium = &m->sodium;
	memcpy(m->party.auth.key, key, sizeof m->party.auth.key);
	return 0;
}

/* Uses the key that the user gave, if any. False: it is unusable, and that was told. */
static bool use_key(struct member *m)
{
	struct failure why = { 0 };

	if (!m->party.config->key.there || set_key(m, m->party.config->key.bytes, &why) == 0)
		return true;
	party_fail(&m->party, why.code, "%s", why.text);
	return false;
}

/* However long PMIx took, at least as much time is left as a connection may need. */
static void leave_time_to_dial(struct member *m)
{
	uint64_t most = m->party.config->join_timeout_ms;
	uint64_t least =
		uv_now(m->party.loop) + (most < LINK_HANDSHAKE_MS ? most : LINK_HANDSHAKE_MS);

	if (m->party.deadline_ms < least)
		m->party.deadline_ms = least;
}

static void meet_at_address(struct member *m)
{
	m->finder = (struct finder){ .on_found = on_found,
		.on_searching = on_searching,
		.on_failed = on_not_found,
		.on_closed = on_finder_closed,
		.owner = m };
	m->finds = true;
	m->party.parts++;
	finder_start(&m->finder, m->party.loop, m->party.config->hub_addr,
		m->party.config->hub_port, party_left_ms(&m->party, m->party.deadline_ms));
}

/* --- PMIx --- */

static void on_card(struct pmix_exchange *x, const void *bytes, size_t len)
{
	struct member *m = x->owner;
	struct card card;
	struct failure why = { 0 };
	struct addresses hub = { 0 };
	struct address a;
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
	secret_wipe(card.key, sizeof card.key);
	if (rc < 0) {
		miss(m, why.text);
		return;
	}
	for (unsigned i = 0; i < card.count; i++)
		if (address_parse(card.address[i], (uint16_t)card.port, &a) == 0)
			addresses_add(&hub, &a);
	if (hub.count == 0)
		miss(m, "node rank 0 has no address that others can reach");
	else
		start_spoke(m, &hub);
}

/* Node rank 0 listens already, at the port that the others know unless another program has it. */
static void listen_on(struct member *m)
{
	if (hub_port(&m->hub) != m->party.config->hub_port) {
		hub_refuse(&m->hub, -EADDRINUSE,
			"without %s launchers meet at port %u, where another program on this "
			"node is listening: give all nodes another --control-port or MASTER_PORT",
			m->party.config->pmi_fd ? "PMI" : "PMIx", m->party.config->hub_port);
		return;
	}
	if (!m->party.auth.keyed)
		say_unkeyed(m);
	hub_wait(&m->hub);
}

static void on_no_card(struct pmix_exchange *x, const char *why, bool unavailable)
{
	struct member *m = x->owner;

	pmix_close(x);
	if (m->role == MEMBER_HUB && (m->hub.state != HUB_MEETING))
		return; /* the nodes have met anyway */
	if (!unavailable || !m->party.config->hub_addr) {
		miss(m, why);
		return;
	}
	party_say(&m->party, NOTE_VERBOSE, "%s; they meet at %s, port %u instead", why,
		m->party.config->hub_addr, m->party.config->hub_port);
	leave_time_to_dial(m);
	/* PMIx is mostly missing on all nodes: the address that all know will do */
	m->party.auth = (struct link_auth){ .keyed = false };
	if (!use_key(m))
		return;
	if (m->role == MEMBER_HUB)
		listen_on(m);
	else
		meet_at_address(m);
}

/* Node rank 0 listens before it publishes its address. */
static int make_card(struct member *m, struct card *card, struct failure *why)
{
	const struct member_config *c = m->party.config;
	struct addresses bound = { 0 };
	int rc = secret_draw(card->key, sizeof card->key, why);

	for (size_t i = 0; i < c->addresses.count; i++)
		(void)card_add(card, c->addresses.at[i]); /* the best ones fit */
	if (c->bound)
		add_asked(m, &bound);
	if (rc == 0)
		rc = set_key(m, card->key, why);
	if (rc == 0)
		rc = start_hub(m, &bound, c->hub_port, why);
	if (rc == -EADDRINUSE && !c->port_given) { /* another job's; nobody knows this one yet */
		*why = (struct failure){ 0 };
		rc = start_hub(m, &bound, 0, why);
	}
	card->port = rc == 0 ? hub_port(&m->hub) : 0;
	return rc;
}

static void meet_by_pmix(struct member *m)
{
	struct card card = { 0 };
	struct failure why = { 0 };
	unsigned char bytes[CARD_BYTES_MAX];
	size_t len = 0;

	if (m->party.config->node_rank == 0) {
		if (make_card(m, &card, &why) < 0) {
			fail_to_listen(m, &why);
			return;
		}
		len = card_encode(&card, bytes);
	}
	m->pmix = (struct pmix_exchange){ .on_done = on_card,
		.on_failed = on_no_card,
		.owner = m,
		.pmi_fd = m->party.config->pmi_fd,
		.argv = m->party.config->argv };
	if (pmix_start(&m->pmix, m->party.loop, bytes, len, m->party.config->join_timeout_ms,
		    &why) < 0)
		miss(m, why.text);
	secret_wipe(&card, sizeof card); /* PMIx's process has its copy */
	secret_wipe(bytes, sizeof bytes);
}

void member_meet(struct member *m)
{
	switch (m->party.config->way) {
	case MEET_NOBODY:
		be_alone(m);
		return;
	case MEET_EXCHANGE:
		meet_by_pmix(m);
		return;
	case MEET_STATIC:
		if (use_key(m))
			meet_at_address(m);
		return;
	}
}
