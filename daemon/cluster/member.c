/* member.c - how this launcher finds the others, and on which side of the channel it is then; see
 * member.h */
#include "daemon/cluster/member.h"

#include <errno.h>
#include <string.h>

#include "common/failure.h"
#include "common/text.h"
#include "common/address.h"
#include "daemon/cluster/card.h"
#include "daemon/cluster/key.h"

static void fail(struct member *m, int code, const char *text)
{
	m->on->failed(m->owner, code, text);
}

/* Said once in a job, by the node that all others trust. */
static void say_unkeyed(struct member *m)
{
	m->on->say(m->owner, false,
		"the control channel is not authenticated: whoever reaches its port could end the "
		"job, and signals are not forwarded to other nodes; give all nodes the same "
		"--key-file or LAUNCHD_KEY");
}

/* Whether the socket is taken already tells which launcher of a host came first. */
static int start_hub(struct member *m, const struct sockaddr *const *bound, unsigned count,
	unsigned port, struct failure *why)
{
	int rc = hub_start(&m->hub, m, bound, count, port, why);

	if (rc == 0) {
		m->role = MEMBER_HUB;
		m->parts++;
		if (m->hub.listening && !m->auth.keyed)
			say_unkeyed(m);
	}
	return rc;
}

static void start_spoke(struct member *m, unsigned count)
{
	m->role = MEMBER_SPOKE;
	m->parts++;
	spoke_start(&m->spoke, m, m->hub_addresses, count);
}

/* A job of this node, whose ranks and sizes are as the settings say. */
static void be_alone(struct member *m)
{
	struct failure why = { 0 };

	if (start_hub(m, NULL, 0, 0, &why) < 0)
		fail(m, why.code, why.text);
}

/* What the workers of a node that is alone have to do without. */
static void say_alone(struct member *m, const char *why)
{
	const struct member_config *c = m->config;
	struct text t = { 0 };

	text_printf(&t,
		"%s: this node's workers start without; if another node fails, nobody tells this "
		"one",
		why);
	if (c->policy.max_restarts > 0)
		text_add(&t, ", and there are no restarts");
	if (c->agent_store)
		text_add(&t, "; rank 0 hosts the store");
	m->on->say(m->owner, true, text_string(&t));
	text_done(&t);
}

static void go_alone(struct member *m, const char *why)
{
	const struct member_config *c = m->config;

	if (m->role == MEMBER_SPOKE)
		spoke_close(&m->spoke);
	if (!c->node_rank_known || c->master_port == 0) {
		struct text t = { 0 };

		text_printf(&t, "%s: without the others this node can't know %s", why,
			c->node_rank_known ? "the port of worker 0: give --master_port" :
					     "its rank: give --node_rank");
		fail(m, -ETIMEDOUT, text_string(&t));
		text_done(&t);
		return;
	}
	say_alone(m, why);
	m->alone = *c;
	m->alone.way = MEET_NOBODY;
	m->alone.policy.max_restarts = 0; /* of one node only they would help nobody */
	m->alone.agent_store = false;
	m->config = &m->alone;
	be_alone(m);
}

void member_miss(struct member *m, const char *why)
{
	const struct member_config *c = m->config;
	struct text t = { 0 };

	if (c->required || (c->way == MEET_PMIX && !c->hub_addr)) {
		text_printf(&t, "%s%s", why,
			c->required ? " (--control required)" :
				      ": give --master_addr to all nodes");
		if (m->role == MEMBER_HUB)
			hub_refuse(&m->hub, REFUSED_TIMEOUT, -ETIMEDOUT, text_string(&t));
		else
			fail(m, -ETIMEDOUT, text_string(&t));
	} else if (m->role == MEMBER_HUB) {
		text_printf(&t,
			"%s; the job starts all the same, and will not know if other nodes fail",
			why);
		m->on->say(m->owner, true, text_string(&t));
		hub_begin(&m->hub);
	} else {
		go_alone(m, why);
	}
	text_done(&t);
}

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

static void on_found(struct finder *f)
{
	struct member *m = f->owner;
	const struct sockaddr *own[FINDER_ADDRESSES];
	unsigned owned = own_addresses(m, own);
	bool known = m->config->node_rank_known;
	struct failure why = { 0 };

	memcpy(m->hub_addresses, f->addresses, sizeof m->hub_addresses);
	if (known ? m->config->node_rank == 0 : owned > 0) {
		int rc = start_hub(m, own, f->numeric ? owned : 0, m->config->hub_port, &why);

		if (rc == 0)
			return;
		if (known || rc != -EADDRINUSE) {
			fail(m, why.code, why.text);
			return;
		}
	}
	start_spoke(m, f->count);
}

static void on_not_found(struct finder *f, const char *why)
{
	struct member *m = f->owner;
	struct text t = { 0 };

	text_printf(&t, "node rank 0's launcher can't be found within %llu s (--join-timeout): %s",
		(unsigned long long)(m->config->join_timeout_ms / 1000), why);
	member_miss(m, text_string(&t));
	text_done(&t);
}

static void on_searching(struct finder *f, const char *why)
{
	struct member *m = f->owner;
	struct text t = { 0 };

	text_printf(&t, "node rank 0's launcher can't be found yet: %s", why);
	m->on->say(m->owner, false, text_string(&t));
	text_done(&t);
}

static void on_finder_closed(struct finder *f)
{
	member_part_closed(f->owner);
}

static int set_key(struct member *m, const unsigned char *key, struct failure *why)
{
	int rc = m->sodium.generichash ? 0 : sodium_load(&m->sodium, why);

	if (rc < 0)
		return rc;
	m->auth.keyed = true;
	m->auth.sodium = &m->sodium;
	memcpy(m->auth.key, key, sizeof m->auth.key);
	return 0;
}

/* The key that the user gave, if any. False: it can't be used, and that is the end. */
static bool use_given_key(struct member *m)
{
	struct failure why = { 0 };

	if (!m->config->key.there || set_key(m, m->config->key.bytes, &why) == 0)
		return true;
	fail(m, why.code, why.text);
	return false;
}

static void meet_static(struct member *m)
{
	m->finder = (struct finder){ .on_found = on_found,
		.on_searching = on_searching,
		.on_failed = on_not_found,
		.on_closed = on_finder_closed,
		.owner = m };
	m->finds = true;
	m->parts++;
	finder_start(&m->finder, m->loop, m->config->hub_addr, m->config->hub_port,
		m->config->join_timeout_ms);
}

/* --- PMIx --- */

static void on_card(struct pmix_exchange *x, const void *bytes, size_t len)
{
	struct member *m = x->owner;
	struct card card;
	struct failure why = { 0 };
	unsigned count = 0;

	pmix_close(x);
	if (m->role == MEMBER_HUB) {
		hub_wait(&m->hub); /* the others dial now */
		return;
	}
	if (card_decode(bytes, len, &card, &why) < 0 || set_key(m, card.key, &why) < 0) {
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
		start_spoke(m, count);
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
	/* the same on all nodes, mostly: the address that they know will do */
	m->auth = (struct link_auth){ .keyed = false };
	if (!use_given_key(m))
		return;
	if (m->role == MEMBER_HUB)
		hub_wait(&m->hub);
	else
		meet_static(m);
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
		rc = start_hub(m, bound, c->bound ? card->count : 0, c->hub_port, why);
	if (rc == -EADDRINUSE && !c->port_given) { /* another job's; nobody knows this one yet */
		*why = (struct failure){ 0 };
		rc = start_hub(m, bound, c->bound ? card->count : 0, 0, why);
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

	if (m->config->node_rank == 0) {
		if (make_card(m, &card, &why) < 0) {
			fail(m, why.code, why.text);
			return;
		}
		len = card_encode(&card, bytes);
	}
	m->pmix = (struct pmix_exchange){
		.on_done = on_card, .on_failed = on_no_card, .owner = m, .argv = m->config->argv
	};
	if (pmix_start(&m->pmix, m->loop, bytes, len, m->config->join_timeout_ms, &why) < 0)
		member_miss(m, why.text);
}

void member_start(struct member *m, uv_loop_t *loop, const struct member_config *c,
	const struct member_events *on, void *owner, struct arena *memory)
{
	*m = (struct member){
		.config = c, .on = on, .owner = owner, .loop = loop, .memory = memory
	};
	switch (c->way) {
	case MEET_NOBODY:
		be_alone(m);
		return;
	case MEET_PMIX:
		meet_by_pmix(m);
		return;
	case MEET_STATIC:
		if (use_given_key(m))
			meet_static(m);
		return;
	}
}

void member_failed(struct member *m, const struct outcome *o)
{
	if (m->role == MEMBER_HUB)
		hub_failed(&m->hub, o);
	else
		spoke_failed(&m->spoke, o);
}

/* Nothing is met yet, nothing was started. */
static void end_search(struct member *m, const struct cause *cause)
{
	struct result r = { .cause = *cause };
	struct job_end end = { .why_not = "" };

	verdict_make(&r, &end.verdict);
	m->on->over(m->owner, &end);
}

void member_asked(struct member *m, const struct stop *s)
{
	switch (m->role) {
	case MEMBER_NONE:
		end_search(m, &s->cause);
		return;
	case MEMBER_HUB:
		hub_asked(&m->hub, s);
		return;
	case MEMBER_SPOKE:
		spoke_asked(&m->spoke, s);
		return;
	}
}

void member_forward(struct member *m, int signal)
{
	if (!m->auth.keyed)
		return; /* nor would the others take it */
	if (m->role == MEMBER_HUB)
		hub_forward(&m->hub, signal);
	if (m->role == MEMBER_SPOKE)
		spoke_forward(&m->spoke, signal);
}

void member_ended(
	struct member *m, const struct node_end *end, const struct testimony *list, size_t count)
{
	if (m->role == MEMBER_HUB)
		hub_ended(&m->hub, end, list, count);
	else
		spoke_ended(&m->spoke, end, list, count);
}

void member_waiting(struct member *m, unsigned attempt, const unsigned *ranks, size_t count)
{
	if (m->role == MEMBER_HUB)
		hub_waiting(&m->hub, m->hub.self, attempt, ranks, count);
	else
		spoke_waiting(&m->spoke, attempt, ranks, count);
}

void member_part_closed(struct member *m)
{
	if (--m->parts == 0 && m->closing)
		m->on->closed(m->owner);
}

void member_close(struct member *m)
{
	if (m->closing)
		return;
	m->closing = true;
	m->parts++; /* this call: parts may close at once */
	pmix_close(&m->pmix);
	if (m->finds)
		finder_close(&m->finder);
	if (m->role == MEMBER_HUB)
		hub_close(&m->hub);
	if (m->role == MEMBER_SPOKE)
		spoke_close(&m->spoke);
	member_part_closed(m);
}
