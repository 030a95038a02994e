/* spoke.c - see spoke.h */
#include "daemon/cluster/spoke.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/address.h"
#include "common/arena.h"
#include "common/failure.h"
#include "common/text.h"
#include "daemon/cluster/config.h"
#include "daemon/cluster/member.h"
#include "daemon/net/wire.h"

static void handle_closed(struct spoke *s)
{
	if (--s->handles == 0)
		member_part_closed(s->member);
}

void spoke_send(struct spoke *s, enum message_type type, struct wire_out *w)
{
	if (s->linked)
		(void)link_send(s->link, type, w->at, w->len); /* a lost link tells by itself */
	wire_out_done(w);
}

static void tell_over(struct spoke *s, const struct job_end *end)
{
	spoke_enter(s, SPOKE_OVER, 0);
	s->member->on->over(s->member->owner, end);
}

/* The end, as the hub has told it or all have agreed on. */
static void be_over(struct spoke *s, const struct verdict *v)
{
	const struct job_end end = { .verdict = *v, .why_not = "" };

	tell_over(s, &end);
}

void spoke_fail(struct spoke *s, int code, const char *text)
{
	spoke_enter(s, SPOKE_OVER, 0);
	member_fail(s->member, code, text);
}

/* The job is asked to end here before it has begun. */
static void be_over_for(struct spoke *s, const struct cause *cause)
{
	const struct result r = { .cause = *cause };
	struct verdict v;

	verdict_make(&r, &v);
	v.attempt = s->attempt;
	be_over(s, &v);
}

/* Why the job ends, without the hub. What the hub told came before it was lost, and all nodes that
 * heard it know the same; else this node's own workers and the loss are all that is known. */
static void find_cause(const struct spoke *s, struct result *ret)
{
	const struct cause *own = &s->end.cause;
	bool asked = own->kind != CAUSE_FAILURE && own->kind != CAUSE_NODE_LOST;

	*ret = (struct result){ .outcomes = s->end.outcomes, .count = s->end.count };
	if (s->told.kind != CAUSE_NONE)
		ret->cause = s->told;
	else
		verdict_find(ret, asked ? own : NULL, &s->lost);
}

/* What the report tells of the cause leaves this open. */
static void say_loss(const struct spoke *s)
{
	struct text t = { 0 };

	if (s->lost.asleep)
		text_printf(&t, "this node was itself frozen or suspended: %s", s->lost.detail);
	else
		text_printf(&t, "this node lost contact with node 0 (%s): %s", s->lost.host,
			s->lost.detail);
	text_add(&t, "; how the other nodes ended is not known");
	member_say(s->member, true, text_string(&t));
	text_done(&t);
}

static void be_over_alone(struct spoke *s)
{
	struct job_end end = { .why_not = "", .alone = true };
	struct result known;

	find_cause(s, &known);
	if (known.cause.kind != CAUSE_NODE_LOST || known.cause.node != s->lost.node)
		say_loss(s);
	verdict_make(&known, &end.verdict);
	end.verdict.attempt = s->attempt;
	tell_over(s, &end);
}

static uint64_t our_ns(const struct spoke *s, uint64_t hub_ns)
{
	int64_t ours = (int64_t)(hub_ns - (uint64_t)clock_offset_ns(&s->link->clock));

	return hub_ns == 0 || !s->link->clock.known || ours <= 0 ? 0 : (uint64_t)ours;
}

/* Times that can't be brought to our clock are not known. */
static void to_our_clock(const struct spoke *s, struct cause *c)
{
	uint64_t at_ns = our_ns(s, c->at_ns);

	c->at_ns = at_ns ? at_ns : uv_hrtime();
	c->noticed_ns = our_ns(s, c->noticed_ns);
	c->culprit.started_ns = our_ns(s, c->culprit.started_ns);
	c->culprit.ended_ns = our_ns(s, c->culprit.ended_ns);
	c->culprit.asked_ns = our_ns(s, c->culprit.asked_ns);
	c->culprit.late_ns = 0;
}

static void on_stop(struct spoke *s, const unsigned char *at, size_t len)
{
	struct stop stop;

	if (message_get_stop(at, len, &stop) < 0 || stop.attempt != s->attempt)
		return;
	to_our_clock(s, &stop.cause);
	/* the first cause counts, but of failures the hub may have heard of an earlier one */
	if (s->told.kind == CAUSE_NONE) {
		s->stop_grace_ms = stop.grace_ms;
		(void)uv_timer_stop(&s->clock); /* begun with another grace */
	}
	if (s->told.kind == CAUSE_NONE ||
		(s->told.kind == CAUSE_FAILURE && stop.cause.kind == CAUSE_FAILURE))
		s->told = stop.cause;
	spoke_await_verdict(s);
	s->member->on->stop(s->member->owner, &stop);
}

static void on_start(struct spoke *s, const unsigned char *at, size_t len)
{
	struct message_start m;

	if (message_get_start(at, len, &m) < 0 ||
		(s->state == SPOKE_READY ? m.attempt != 0 : s->state != SPOKE_IN || !s->ended))
		return;
	spoke_enter(s, SPOKE_IN, 0);
	s->attempt = m.attempt;
	s->ended = s->asked = false;
	s->stop_grace_ms = s->member->config->grace_ms;
	s->told = (struct cause){ .kind = CAUSE_NONE };
	if (m.attempt == 0)
		spoke_logs_start(s);
	beat_bequeath(&s->beat, s->link);
	s->member->on->start(s->member->owner, m.attempt, m.master_port);
}

static void on_verdict(struct spoke *s, const unsigned char *at, size_t len)
{
	struct verdict v;

	if (message_get_verdict(at, len, &v) < 0 || (s->state == SPOKE_IN && !s->ended))
		return;
	to_our_clock(s, &v.cause);
	be_over(s, &v);
}

static void on_message(struct link *l, unsigned type, const unsigned char *at, size_t len)
{
	struct spoke *s = l->owner;
	char text[MESSAGE_TEXT_SIZE];
	int signal;

	if (s->state == SPOKE_OVER && type != MESSAGE_LOG_ROOM)
		return;
	switch (type) {
	case MESSAGE_LOG_ROOM:
		spoke_hear_log_room(s, at, len);
		return;
	case MESSAGE_WAITING:
		if (message_get_text(at, len, text) == 0)
			member_say(s->member, false, text);
		return;
	case MESSAGE_WELCOME:
		if (s->state == SPOKE_JOINING)
			spoke_hear_welcome(s, at, len);
		return;
	case MESSAGE_REFUSED:
		if (s->state != SPOKE_IN)
			spoke_hear_refusal(s, at, len);
		return;
	case MESSAGE_STOP:
		if (s->state == SPOKE_IN)
			on_stop(s, at, len);
		return;
	case MESSAGE_SIGNAL:
		if (s->member->auth.keyed && message_get_signal(at, len, &signal) == 0)
			s->member->on->forward(s->member->owner, signal);
		return;
	case MESSAGE_START:
		on_start(s, at, len);
		return;
	case MESSAGE_VERDICT:
		on_verdict(s, at, len);
		return;
	default:
		return;
	}
}

/* What may be behind it, where nobody is there who could tell: a hub that missed us has closed the
 * connection, too. */
static const char *guess_at_loss(const struct spoke *s)
{
	if (s->link->killed_by)
		return "";
	if (s->overdue)
		return "; its launcher hangs, or another program has its port";
	if (s->link->end == LINK_END_OURS)
		return "; one of the two was cut off, frozen or powered off";
	if (s->link->end == LINK_END_LOST || s->link->end == LINK_END_PEERS)
		return "; its launcher was killed, or missed this node first";
	return ""; /* why says it all */
}

static struct cause cause_of_loss(const struct spoke *s, const char *why)
{
	const struct link *l = s->link;
	struct cause c = {
		.kind = CAUSE_NODE_LOST,
		.signal = l->agreed ? l->killed_by : 0,
		.at_ns = l->eof ? l->broke_ns : l->heard_ns,
		.node = 0,
		.noticed_ns = uv_hrtime(),
		.contact = l->killed_by == 0,
	};
	struct cause own;

	if (l->killed_by == 0 && !s->overdue && member_slept(&s->beat, s->node, &own))
		return own;
	/* its name was never told */
	address_host_text((const struct sockaddr *)&l->peer_address, c.host);
	(void)snprintf(c.detail, sizeof c.detail, "%s%s", why, guess_at_loss(s));
	return c;
}

/* The job goes on without us, or not at all: either way ours is over. */
static void lose_hub(struct spoke *s, const char *why)
{
	struct stop stop = {
		.attempt = s->attempt,
		.urgency = URGENCY_STOP,
		.signal = SIGTERM,
		.grace_ms = s->member->config->grace_ms,
		.cause = cause_of_loss(s, why),
	};

	s->lost = stop.cause;
	if (s->ended)
		be_over_alone(s);
	else
		s->member->on->stop(s->member->owner, &stop);
}

/* The link that was ready is closed. */
static void on_link_lost(struct dialer *d, struct link *l, const char *why)
{
	struct spoke *s = d->owner;
	struct text t = { 0 };

	(void)l;
	s->linked = false;
	spoke_logs_lost(s);
	if (s->state == SPOKE_IN) {
		lose_hub(s, why);
	} else if (s->state == SPOKE_READY) {
		text_printf(
			&t, "node rank 0's launcher was lost before the workers started: %s", why);
		spoke_fail(s, -ECONNRESET, text_string(&t));
	} else if (s->state != SPOKE_OVER) {
		spoke_dial_again(s, why);
	}
	text_done(&t);
}

static void on_dialer_closed(struct dialer *d)
{
	handle_closed(d->owner);
}

static void on_beat_closed(struct beat *b)
{
	handle_closed(b->owner);
}

static void on_clock_closed(uv_handle_t *h)
{
	handle_closed(h->data);
}

void spoke_start(
	struct spoke *s, struct member *m, const struct sockaddr_storage *addresses, unsigned count)
{
	*s = (struct spoke){ .member = m,
		.dialer = { .on_lost = on_link_lost,
			.on_closed = on_dialer_closed,
			.on_message = on_message,
			.on_idle = spoke_logs_idle,
			.owner = s } };
	(void)uv_timer_init(m->loop, &s->clock); /* can't fail */
	s->clock.data = s;
	s->beat = (struct beat){ .on_silent = beat_drop,
		.on_closed = on_beat_closed,
		.owner = s,
		.timeout_ms = (uint32_t)m->config->node_timeout_ms,
		.obituary = m->config->obituary };
	beat_open(&s->beat, m->loop);
	s->handles = 3;
	spoke_dial(s, addresses, count);
}

void spoke_failed(struct spoke *s, const struct outcome *o)
{
	struct wire_out w = { 0 };

	message_put_failed(&w, o);
	spoke_send(s, MESSAGE_FAILED, &w);
}

/* Before the job has begun there is nothing to stop: this launcher leaves, and the hub, which may
 * have heard of it, ends the others' waiting. */
void spoke_asked(struct spoke *s, const struct stop *stop)
{
	struct wire_out w = { 0 };

	message_put_stop(&w, stop);
	spoke_send(s, MESSAGE_STOP, &w);
	s->asked = true;
	if (s->state != SPOKE_IN)
		be_over_for(s, &stop->cause);
	else
		spoke_await_verdict(s);
}

void spoke_forward(struct spoke *s, int signal)
{
	struct wire_out w = { 0 };

	message_put_signal(&w, signal);
	spoke_send(s, MESSAGE_SIGNAL, &w);
}

static void tell_outcomes(struct spoke *s, const struct node_end *end)
{
	for (size_t i = 0; i < end->count; i += OUTCOMES_MAX) {
		size_t n = end->count - i < OUTCOMES_MAX ? end->count - i : OUTCOMES_MAX;
		struct wire_out w = { 0 };

		message_put_outcomes(&w, end->attempt, end->outcomes + i, n);
		spoke_send(s, MESSAGE_OUTCOMES, &w);
	}
}

static void tell_evidence(
	struct spoke *s, unsigned attempt, const struct evidence *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct message_record r = { attempt, list[i].rank, list[i].record, list[i].command,
			list[i].words };
		struct wire_out w = { 0 };

		message_put_record(&w, &r);
		spoke_send(s, MESSAGE_RECORD, &w);
	}
}

/* A node whose workers have all ended with 0 waits for nobody, where no restart can need it. */
static void leave(struct spoke *s)
{
	struct verdict well = { .well = true, .attempt = s->attempt };
	struct wire_out w = { 0 };

	spoke_send(s, MESSAGE_LEAVE, &w);
	be_over(s, &well);
}

void spoke_ended(
	struct spoke *s, const struct node_end *end, const struct evidence *list, size_t count)
{
	struct wire_out w = { 0 };

	s->ended = true;
	s->end = *end;
	tell_outcomes(s, end);
	tell_evidence(s, end->attempt, list, count);
	message_put_ended(&w, end);
	spoke_send(s, MESSAGE_ENDED, &w);
	if (s->lost.kind != CAUSE_NONE)
		be_over_alone(s);
	else if (end->cause.kind == CAUSE_NONE && s->max_restarts == 0)
		leave(s);
	else
		spoke_await_verdict(s);
}

void spoke_waiting(struct spoke *s, unsigned attempt, const unsigned *ranks, size_t count)
{
	struct wire_out w = { 0 };

	message_put_ranks(&w, attempt, ranks, count);
	spoke_send(s, MESSAGE_JOINED, &w);
}

void spoke_close(struct spoke *s)
{
	if (s->closing)
		return;
	s->closing = true;
	spoke_enter(s, SPOKE_OVER, 0);
	if (!spoke_logs_last(s))
		spoke_leave(s);
}

void spoke_leave(struct spoke *s)
{
	if (s->linked)
		link_close(s->link, true, NULL);
	dialer_close(&s->dialer);
	beat_close(&s->beat);
	uv_close((uv_handle_t *)&s->clock, on_clock_closed);
}

void spoke_hurry(struct spoke *s)
{
	if (s->linked)
		link_close(s->link, false, NULL);
}
