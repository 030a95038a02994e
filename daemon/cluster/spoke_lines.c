/* spoke_lines.c - this node's lines, as it sends them to node rank 0; see hub_parts.h for the flow
 */
#include <assert.h>

#include "daemon/cluster/message.h"
#include "daemon/cluster/spoke.h"
#include "daemon/net/wire.h"

bool spoke_merges(const struct spoke *s)
{
	return s->party->config->merge_logs && s->credit.whole > 0 && !s->lines_ended &&
		s->linked && s->link->state == LINK_OPEN;
}

size_t spoke_log_room(const struct spoke *s)
{
	return spoke_merges(s) && link_is_idle(s->link) ? credit_room(&s->credit) : 0;
}

static void tell(const struct spoke *s)
{
	const struct party *p = s->party;

	if (p->on->log_room)
		p->on->log_room(p->owner);
}

static void tell_room(const struct spoke *s)
{
	if (spoke_log_room(s) > 0)
		tell(s);
}

void spoke_log(struct spoke *s, int stream, const char *at, size_t len)
{
	unsigned char bytes[1 + MESSAGE_LOG_MAX]; /* not party_send(): output must not allocate */
	struct wire_out w = wire_fixed(bytes, sizeof bytes);
	bool spent;

	assert(len <= spoke_log_room(s));
	spent = credit_spend(&s->credit, len);
	message_put(&w, &(struct message){ MESSAGE_LOG, .log = { stream, at, len } });
	if (spent)
		(void)link_send(s->link, MESSAGE_LOG, w.at, w.len);
}

void spoke_hear_log_room(struct spoke *s, const struct message *m)
{
	struct credit *c = &s->credit;

	if (c->whole > 0 && !credit_give(c, m->log_room)) {
		link_close(s->link, false, "it sent a malformed message");
		return;
	}
	if (c->whole == 0)
		*c = credit_open(m->log_room);
	tell_room(s);
}

void spoke_lines_idle(struct link *l)
{
	tell_room(l->owner);
}

void spoke_lines_start(const struct spoke *s)
{
	bool wants = s->party->config->merge_logs, offered = s->credit.whole > 0;

	if (wants && !offered)
		party_say(s->party, NOTE_WARNING,
			"node rank 0 runs without --merge-logs: the output of this node's workers "
			"is printed here");
	if (offered && !wants)
		party_say(s->party, NOTE_INFO,
			"node rank 0 runs with --merge-logs, but this node does not: the output of "
			"its workers is printed here");
}

void spoke_log_end(struct spoke *s)
{
	s->lines_ended = true;
	if (s->state == SPOKE_LASTING)
		spoke_leave(s);
}

void spoke_lines_lost(struct spoke *s)
{
	bool merged = s->credit.whole > 0 && s->party->config->merge_logs;

	s->credit = (struct credit){ 0 };
	if (s->state == SPOKE_LASTING)
		spoke_leave(s);
	else if (merged && s->state < SPOKE_LASTING)
		tell(s);
}
