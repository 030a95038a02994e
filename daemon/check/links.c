/* links.c - see links.h */
#include "daemon/check/links.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/monotonic.h"
#include "common/text.h"
#include "daemon/check/links_judge.h"
#include "daemon/check/links_talk.h"
#include "daemon/check/links_tcp.h"
#include "daemon/check/phase.h"
#include "daemon/os/secret.h"
#include "daemon/store/visit.h"

enum {
	/* For all to be there. All are started at once; what comes later is not tried. */
	MEET_MS = 3000,
	/* Before the end of its time, to tell of it. */
	SPARE_MS = 300,
	LIMIT_MS = MEET_MS + LINKS_TALK_MS + 2 * SPARE_MS,
	KEY_MAX = 128,
};

#define HERE "-"

/* --- where the others are --- */

static const char *key_of(const struct phase_input *in, const char *what, char ret[KEY_MAX])
{
	(void)snprintf(ret, KEY_MAX, "%s%s", in->keys, what);
	return ret;
}

static const char *key_of_node(const struct phase_input *in, unsigned node, char ret[KEY_MAX])
{
	(void)snprintf(ret, KEY_MAX, "%s%u", in->keys, node);
	return ret;
}

/* Says where this node listens: "10.0.0.4 41234 8f3a...", or HERE for the host of the store. */
static int publish(
	const struct phase_input *in, const struct address *at, uint64_t token, struct failure *why)
{
	char key[KEY_MAX], value[ADDRESS_TEXT + 64], host[ADDRESS_TEXT];
	int64_t there = 0;
	int rc;

	address_host_text(at, host);
	if (address_is_loopback(at))
		(void)strcpy(host, HERE);
	(void)snprintf(value, sizeof value, "%s %u %" PRIx64, host, address_port(at), token);
	rc = visit_set(in->visit, key_of_node(in, in->node, key), value, strlen(value), why);
	if (rc == 0)
		rc = visit_add(in->visit, key_of(in, "count", key), 1, &there, why);
	if (rc == 0 && there >= (int64_t)in->nnodes)
		rc = visit_set(in->visit, key_of(in, "all", key), "", 0, why);
	return rc;
}

/* own: has the scope that a link-local address of another host has here. store: its address. */
static int parse(const char *text, const struct address *own, const struct address *store,
	struct links_partner *ret)
{
	char host[ADDRESS_TEXT];
	unsigned port;
	uint64_t token;
	struct address at = *store;

	if (sscanf(text, "%63s %u %" SCNx64, host, &port, &token) != 3 || port > UINT16_MAX)
		return -EPROTO;
	if (strcmp(host, HERE) == 0)
		address_set_port(&at, (uint16_t)port);
	else if (address_parse(host, (uint16_t)port, &at) < 0)
		return -EPROTO;
	if (at.any.sa_family == AF_INET6 && address_is_link_local(&at))
		at.v6.sin6_scope_id = own->v6.sin6_scope_id;
	ret->at = at;
	ret->token = token;
	return 0;
}

/* One that isn't there has no address. */
static int find_partner(const struct phase_input *in, const struct address *own,
	struct links_partner *ret, struct failure *why)
{
	struct text value = { 0 };
	struct address store = { 0 };
	socklen_t size = sizeof store.v6;
	char key[KEY_MAX];
	int rc = getpeername(in->visit->fd, &store.any, &size) < 0 ?
		failure_set(why, -errno, "the store has gone: %s", strerror(errno)) :
		visit_get(in->visit, key_of_node(in, ret->node, key), 0, &value, why);

	if (rc == 0 && parse(text_string(&value), own, &store, ret) < 0)
		rc = failure_set(why, -EPROTO, "the store's key %s is no address: \"%.80s\"", key,
			text_string(&value));
	text_done(&value);
	return rc == -ETIMEDOUT && !why->code ? 0 : rc;
}

static int find_partners(const struct phase_input *in, const struct address *own,
	struct links_talk *talk, bool *ret_met, struct failure *why)
{
	char key[KEY_MAX];
	int left_ms = monotonic_left_ms(in->until_ms - LINKS_TALK_MS - 2 * SPARE_MS);
	int rc = visit_wait(
		in->visit, key_of(in, "all", key), left_ms < MEET_MS ? left_ms : MEET_MS, why);

	*ret_met = rc == 0;
	for (unsigned round = 0; rc == 0 || (rc == -ETIMEDOUT && !why->code); round++) {
		struct links_partner *p = &talk->partners[talk->count];
		int node = round < links_rounds(in->nnodes) ?
			links_partner(in->nnodes, round, in->node) :
			-1;

		if (round == links_rounds(in->nnodes))
			return 0;
		rc = 0;
		if (node < 0)
			continue;
		p->node = (unsigned)node;
		talk->count++;
		rc = find_partner(in, own, p, why);
	}
	return rc;
}

/* --- the phase --- */

static int measure(const struct phase_input *in, struct text *ret, struct failure *why)
{
	struct links_talk talk = { .node = in->node, .until_ms = in->until_ms - SPARE_MS };
	struct links_told told = { 0 };
	struct address own = { 0 };
	autoclose listener = -1;
	int rc = 0;

	if (in->visit && in->nnodes > 1) {
		rc = links_tcp_listen(in->visit->fd, &listener, &own, &told.mtu, why);
		talk.listener = listener;
		if (rc == 0)
			rc = secret_draw(&talk.token, sizeof talk.token, why);
		if (rc == 0)
			rc = publish(in, &own, talk.token, why);
		if (rc == 0)
			rc = find_partners(in, &own, &talk, &told.met, why);
		if (rc == 0)
			rc = links_talk(&talk, &told, why);
	}
	if (rc == 0)
		links_told_write(&told, ret);
	return rc;
}

/* One node's text; false: it makes no sense, which is said. */
static bool read_told(
	const char *json, unsigned node, struct links_told *ret, struct charges *charges)
{
	struct finding f = { .health = HEALTH_UNKNOWN, .check = "links" };
	struct failure why = { 0 };

	if (links_told_read(json, ret, &why) == 0)
		return true;
	text_fit(f.text, sizeof f.text, why.text);
	charges_add(charges, node, &f);
	return false;
}

static int judge(const struct phase_input *in, const char *const *told, struct charges *ret,
	struct failure *why)
{
	struct links_told *all = calloc(in->nnodes + 1UL, sizeof *all);
	const struct links_told **known = calloc(in->nnodes + 1UL, sizeof *known);
	int rc = all && known ? 0 : -ENOMEM;

	for (unsigned i = 0; rc == 0 && i < in->nnodes; i++)
		if (told[i] && read_told(told[i], i, &all[i], ret))
			known[i] = &all[i];
	if (rc == 0)
		rc = links_judge(in->nnodes, known, ret);
	free(known);
	free(all);
	return rc == -ENOMEM ? failure_oom(why) : rc;
}

const struct phase links_phase = {
	.name = "links",
	.limit_ms = LIMIT_MS,
	.measure = measure,
	.judge = judge,
};
