/* spoke_logs.c - this node's lines, as it sends them to node rank 0; see merged_lines.h */
#include "daemon/cluster/merged_lines.h"

#include <assert.h>

#include "daemon/cluster/config.h"
#include "daemon/cluster/member.h"
#include "daemon/cluster/message.h"
#include "daemon/cluster/spoke.h"
#include "daemon/net/wire.h"

bool spoke_merges(const struct spoke *s)
{
	return s->member->config->merge_logs && s->logs.credit.whole > 0 && !s->logs.ended &&
		s->linked && s->link->state == LINK_OPEN;
}

size_t spoke_log_room(const struct spoke *s)
{
	return spoke_merges(s) && link_is_idle(s->link) ? credit_room(&s->logs.credit) : 0;
}

static void tell(const struct spoke *s)
{
	const struct member *m = s->member;

	if (m->on->log_room)
		m->on->log_room(m->owner);
}

static void tell_room(const struct spoke *s)
{
	if (spoke_log_room(s) > 0)
		tell(s);
}

void spoke_log(struct spoke *s, int stream, const char *at, size_t len)
{
	unsigned char bytes[1 + MESSAGE_LOG_MAX];
	struct wire_out w = wire_fixed(bytes, sizeof bytes);
	bool spent;

	assert(len <= spoke_log_room(s));
	spent = credit_spend(&s->logs.credit, len);
	message_put_log(&w, stream, at, len);
	if (spent)
		(void)link_send(s->link, MESSAGE_LOG, w.at, w.len);
}

void spoke_hear_log_room(struct spoke *s, const unsigned char *at, size_t len)
{
	struct credit *c = &s->logs.credit;
	size_t bytes;

	if (s->state == SPOKE_JOINING)
		return; /* it was not welcomed yet */
	if (message_get_log_room(at, len, &bytes) < 0 || (c->whole > 0 && !credit_give(c, bytes))) {
		link_close(s->link, false, "what it said is no message of this protocol");
		return;
	}
	if (c->whole == 0)
		*c = credit_open(bytes);
	tell_room(s);
}

void spoke_logs_idle(struct link *l)
{
	tell_room(l->owner);
}

void spoke_logs_start(const struct spoke *s)
{
	bool wants = s->member->config->merge_logs, offered = s->logs.credit.whole > 0;

	if (wants && !offered)
		member_say(s->member, true,
			"node rank 0 has no --merge-logs: the lines of this node's workers stay "
			"here");
	if (offered && !wants)
		member_say(s->member, false,
			"node rank 0 has --merge-logs, but this node has not: the lines of its "
			"workers stay here");
}

static void end_last(struct spoke *s)
{
	s->logs.lasting = false;
	spoke_leave(s);
}

static void on_last_over(uv_timer_t *t)
{
	end_last(t->data);
}

bool spoke_logs_last(struct spoke *s)
{
	if (!spoke_merges(s))
		return false;
	s->logs.lasting = true;
	uv_update_time(s->member->loop);
	(void)uv_timer_start(&s->clock, on_last_over, LOGS_LAST_MS, 0);
	return true;
}

void spoke_log_end(struct spoke *s)
{
	s->logs.ended = true;
	if (s->logs.lasting)
		end_last(s);
}

void spoke_logs_lost(struct spoke *s)
{
	bool merged = s->logs.credit.whole > 0 && s->member->config->merge_logs;

	s->logs.credit = (struct credit){ 0 };
	if (s->logs.lasting)
		end_last(s);
	else if (merged && !s->closing)
		tell(s);
}
