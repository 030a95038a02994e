/* spoke.c - see spoke.h */
#include "daemon/cluster/spoke.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/text.h"
#include "common/address.h"
#include "daemon/cluster/config.h"
#include "daemon/cluster/member.h"
#include "daemon/cluster/wire.h"

static void handle_closed(struct spoke *s)
{
	if (--s->handles == 0)
		member_part_closed(s->member);
}

void spoke_send(struct spoke *s, enum message_type type, struct wire_out *w)
{
	if (s->linked)
		(void)link_send(&s->link, type, w->at, w->len); /* a lost link tells by itself */
	wire_out_done(w);
}

/* The end, as this node knows it. */
static void be_over(struct spoke *s, const struct verdict *v)
{
	struct job_end end = { .verdict = *v, .why_not = "", .alone = s->lost.kind != CAUSE_NONE };

	s->state = SPOKE_OVER;
	(void)uv_timer_stop(&s->clock);
	s->member->on->over(s->member->owner, &end);
}

void spoke_fail(struct spoke *s, int code, const char *text)
{
	s->state = SPOKE_OVER;
	(void)uv_timer_stop(&s->clock);
	s->member->on->failed(s->member->owner, code, text);
}

/* The job ends here for a cause that this node found by itself. */
static void be_over_for(struct spoke *s, const struct cause *cause)
{
	struct node hub = { 0 };
	struct result r = { .cause = *cause, .nodes = &hub, .node_count = 1 };
	struct verdict v;

	if (cause->kind == CAUSE_NODE_LOST) /* node 0, whose name was never told */
		address_host_text((const struct sockaddr *)&s->addresses[s->next], hub.name);
	verdict_make(&r, &v);
	v.attempt = s->attempt;
	be_over(s, &v);
}

static void on_stop(struct spoke *s, const unsigned char *at, size_t len)
{
	struct stop stop;

	if (message_get_stop(at, len, &stop) == 0)
		s->member->on->stop(s->member->owner, &stop);
}

static void on_start(struct spoke *s, const unsigned char *at, size_t len)
{
	struct message_start m;

	if (message_get_start(at, len, &m) < 0 ||
		(s->state == SPOKE_READY ? m.attempt != 0 : s->state != SPOKE_IN || !s->ended))
		return;
	s->state = SPOKE_IN;
	s->attempt = m.attempt;
	s->ended = false;
	if (m.attempt == 0)
		spoke_logs_start(s);
	s->member->on->start(s->member->owner, m.attempt, m.master_port);
}

static void on_verdict(struct spoke *s, const unsigned char *at, size_t len)
{
	struct verdict v;

	if (message_get_verdict(at, len, &v) == 0 && (s->state != SPOKE_IN || s->ended))
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

/* The job goes on without us, or not at all: either way ours is over. */
static void lose_hub(struct spoke *s, const char *why)
{
	struct stop stop = {
		.attempt = s->attempt,
		.urgency = URGENCY_STOP,
		.signal = SIGTERM,
		.grace_ms = s->member->config->grace_ms,
		.cause = { .kind = CAUSE_NODE_LOST,
			.at_ns = s->link.heard_ns,
			.node = 0,
			.noticed_ns = uv_hrtime() },
	};

	(void)snprintf(stop.cause.detail, sizeof stop.cause.detail, "%s", why);
	s->lost = stop.cause;
	if (s->ended)
		be_over_for(s, &s->lost);
	else
		s->member->on->stop(s->member->owner, &stop);
}

/* Whether dialling again would end so again. Where PMIx is offered and not to be had, node rank 0
 * may listen with a key of its own until it has noticed, too. */
static bool is_final(const struct spoke *s, enum link_end end)
{
	bool may_change = s->member->config->way == MEET_PMIX;

	return end == LINK_END_VERSION ||
		(!may_change && (end == LINK_END_KEYED || end == LINK_END_KEY));
}

static void on_link_closed(struct link *l, const char *why)
{
	struct spoke *s = l->owner;
	enum link_end end = l->end;
	struct text t = { 0 };

	s->linked = false;
	spoke_logs_lost(s);
	if (s->state == SPOKE_IN) {
		lose_hub(s, why);
	} else if (s->state == SPOKE_READY) {
		text_printf(
			&t, "node rank 0's launcher was lost before the workers started: %s", why);
		spoke_fail(s, -ECONNRESET, text_string(&t));
	} else if (s->state != SPOKE_OVER && is_final(s, end)) {
		text_printf(&t, "node rank 0's launcher can't be joined: %s", why);
		spoke_give_up(s, text_string(&t));
	} else if (s->state != SPOKE_OVER) {
		spoke_dial_later(s, why);
	}
	text_done(&t);
	handle_closed(s);
}

void spoke_dial(struct spoke *s)
{
	struct failure why = { 0 };

	s->link = (struct link){ .owner = s,
		.on_ready = spoke_introduce,
		.on_message = on_message,
		.on_closed = on_link_closed,
		.on_idle = spoke_logs_idle,
		.timeout_ms = (uint32_t)s->member->config->node_timeout_ms };
	s->state = SPOKE_DIALING;
	if (link_dial(&s->link, s->member->loop, (const struct sockaddr *)&s->addresses[s->next],
		    &s->member->auth, &why) < 0) {
		spoke_dial_later(s, why.text);
		return;
	}
	s->linked = true;
	s->handles++;
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
	*s = (struct spoke){ .member = m, .addresses = addresses, .count = count };
	(void)uv_timer_init(m->loop, &s->clock); /* can't fail */
	s->clock.data = s;
	s->beat = (struct beat){ .on_silent = beat_drop,
		.on_closed = on_beat_closed,
		.owner = s,
		.timeout_ms = (uint32_t)m->config->node_timeout_ms };
	beat_open(&s->beat, m->loop);
	s->handles = 2;
	s->deadline_ms = uv_now(m->loop) + m->config->join_timeout_ms;
	s->note_ms = uv_now(m->loop) + SPOKE_FIRST_NOTE_MS;
	spoke_dial(s);
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
	if (s->state != SPOKE_IN)
		be_over_for(s, &stop->cause);
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

static void tell_testimonies(
	struct spoke *s, unsigned attempt, const struct testimony *list, size_t count)
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
	struct spoke *s, const struct node_end *end, const struct testimony *list, size_t count)
{
	struct wire_out w = { 0 };

	s->ended = true;
	tell_outcomes(s, end);
	tell_testimonies(s, end->attempt, list, count);
	message_put_ended(&w, end);
	spoke_send(s, MESSAGE_ENDED, &w);
	if (s->lost.kind != CAUSE_NONE)
		be_over_for(s, &s->lost);
	else if (end->cause.kind == CAUSE_NONE && s->max_restarts == 0)
		leave(s);
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
	s->state = SPOKE_OVER;
	if (!spoke_logs_last(s))
		spoke_leave(s);
}

void spoke_leave(struct spoke *s)
{
	if (s->linked)
		link_close(&s->link, true, NULL);
	beat_close(&s->beat);
	uv_close((uv_handle_t *)&s->clock, on_clock_closed);
}

void spoke_hurry(struct spoke *s)
{
	if (s->linked)
		link_close(&s->link, false, NULL);
}
