/* links.c - see links.h */
#include "daemon/check/links.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/text.h"
#include "daemon/check/links_judge.h"
#include "daemon/check/links_talk.h"
#include "daemon/check/links_tcp.h"
#include "daemon/check/meet.h"
#include "daemon/check/phase.h"
#include "daemon/os/secret.h"

enum {
	/* For all to be there. All are started at once; what comes later is not tried. */
	MEET_MS = 3000,
	/* Before the end of its time, to tell of it. */
	SPARE_MS = 300,
	LIMIT_MS = MEET_MS + LINKS_TALK_MS + 2 * SPARE_MS,
};

#define HERE "-"

/* --- where the others are --- */

/* Says where this node listens: "10.0.0.4 41234 8f3a...", or HERE for node rank 0's host; then
 * what the others say. */
static int meet_partners(const struct phase_input *in, const struct address *at, uint64_t token)
{
	char line[MEET_LINE_MAX], host[ADDRESS_TEXT];

	address_host_text(at, host);
	if (address_is_loopback(at))
		(void)strcpy(host, HERE);
	(void)snprintf(line, sizeof line, "%s %u %" PRIx64, host, address_port(at), token);
	return meet_others(in->meet, line, in->until_ms - LINKS_TALK_MS - 2 * SPARE_MS);
}

/* own: has the scope that a link-local address of another host has here. hub: node rank 0's. */
static int parse(const char *text, const struct address *own, const struct address *hub,
	struct links_partner *ret)
{
	char host[ADDRESS_TEXT];
	unsigned port;
	uint64_t token;
	struct address at = *hub;

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
	char line[MEET_LINE_MAX];

	meet_line(in->meet, ret->node, line);
	if (!*line || parse(line, own, &in->hub, ret) == 0)
		return 0;
	return failure_set(
		why, -EPROTO, "node %u has told no address, but \"%.80s\"", ret->node, line);
}

static int find_partners(const struct phase_input *in, const struct address *own,
	struct links_talk *talk, bool *ret_met, struct failure *why)
{
	bool came = meet_partners(in, own, talk->token) == 0;
	char line[MEET_LINE_MAX];
	int rc = 0;

	*ret_met = came;
	for (unsigned i = 0; came && i < in->nnodes; i++) {
		meet_line(in->meet, i, line);
		*ret_met = *ret_met && *line;
	}
	for (unsigned round = 0; rc == 0 && round < links_rounds(in->nnodes); round++) {
		struct links_partner *p = &talk->partners[talk->count];
		int node = links_partner(in->nnodes, round, in->node);

		if (node < 0)
			continue;
		p->node = (unsigned)node;
		talk->count++;
		rc = came ? find_partner(in, own, p, why) : 0;
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

	if (in->meet && in->nnodes > 1) {
		rc = links_tcp_listen(&in->own, &listener, &own, &told.mtu, why);
		talk.listener = listener;
		if (rc == 0)
			rc = secret_draw(&talk.token, sizeof talk.token, why);
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
	.meet_ms = MEET_MS,
	.measure = measure,
	.judge = judge,
};
