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

<<<<<<< HEAD
enum {
	RETRY_FIRST_MS = 50, /* doubled up to the next one */
	RETRY_MAX_MS = 2000,
	FIRST_NOTE_MS = 10000, /* until it is said that it can't be reached */
	NEXT_NOTE_MS = 60000,
};

#define CANT " can't be reached: " /* link.h's */

static void dial(struct spoke *s);

=======
>>>>>>> hub
static void handle_closed(struct spoke *s)
{
	if (--s->handles == 0)
		member_part_closed(s->member);
}

static void say(struct spoke *s, bool warning, const char *text)
{
	s->member->on->say(s->member->owner, warning, text);
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
	struct job_end end = { .verdict = *v, .why_not = "" };

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
	struct result r = { .cause = *cause };
	struct verdict v;

	verdict_make(&r, &v);
	v.attempt = s->attempt;
	be_over(s, &v);
}

<<<<<<< HEAD
/* There is no channel to be had. */
static void give_up(struct spoke *s, const char *why)
{
	s->state = SPOKE_OVER;
	(void)uv_timer_stop(&s->clock);
	member_miss(s->member, why);
}

/* The reason names an address, too, which need not be said twice. */
static void add_hub(const struct spoke *s, const char *what, const char *why, struct text *t)
{
	char at[ADDRESS_TEXT];
	size_t len;

	address_text((const struct sockaddr *)&s->addresses[0], at);
	len = strlen(at);
	text_printf(t, "node rank 0's launcher at %s%s: ", at, what);
	if (strncmp(why, at, len) == 0 && strncmp(why + len, CANT, sizeof CANT - 1) == 0)
		why += len + sizeof CANT - 1;
	text_add(t, why);
}

static void on_time(uv_timer_t *timer)
{
	struct spoke *s = timer->data;
	struct text t = { 0 };
	char what[80];

	if (uv_now(s->member->loop) < s->deadline_ms) {
		dial(s);
		return;
	}
	(void)snprintf(what, sizeof what, " can't be reached within %llu s (--join-timeout)",
		(unsigned long long)(s->member->config->join_timeout_ms / 1000));
	add_hub(s, what, s->last, &t);
	give_up(s, text_string(&t));
	text_done(&t);
}

static void say_waiting(struct spoke *s, uint64_t now)
{
	struct text t = { 0 };

	if (now < s->note_ms)
		return;
	s->note_ms = now + NEXT_NOTE_MS;
	add_hub(s, " can't be reached yet", s->last, &t);
	say(s, false, text_string(&t));
	text_done(&t);
}

/* Dials the next address; after the last one all again, after a pause that grows. */
static void dial_later(struct spoke *s, const char *why)
{
	uint64_t now = uv_now(s->member->loop), pause = RETRY_FIRST_MS;

	(void)snprintf(s->last, sizeof s->last, "%s", why);
	s->state = SPOKE_DIALING;
	if (++s->next < s->count) {
		dial(s);
		return;
	}
	s->next = 0;
	for (unsigned i = 0; i < s->tries && pause < RETRY_MAX_MS; i++)
		pause *= 2;
	s->tries++;
	say_waiting(s, now);
	if (pause > RETRY_MAX_MS)
		pause = RETRY_MAX_MS;
	if (now + pause > s->note_ms)
		pause = s->note_ms - now;
	if (now + pause > s->deadline_ms)
		pause = s->deadline_ms > now ? s->deadline_ms - now : 0;
	(void)uv_timer_start(&s->clock, on_time, pause, 0);
}

/* This node can't take part after all, so there is no job. */
static void tell_refusal(struct spoke *s, const char *text)
{
	struct message_refused m = { .why = REFUSED_CONTRADICTION };
	struct wire_out w = { 0 };

	(void)snprintf(m.text, sizeof m.text, "%.*s", (int)sizeof m.text - 1, text);
	message_put_refused(&w, &m);
	send_message(s, MESSAGE_REFUSED, &w);
}

static void on_welcome(struct spoke *s, const unsigned char *at, size_t len)
{
	struct member *m = s->member;
	struct message_welcome w;
	struct wire_out ready = { 0 };
	struct failure why = { 0 };
	struct meeting met;

	if (message_get_welcome(at, len, m->config->arena, &w) < 0 ||
		w.nnodes != m->config->nnodes) {
		link_close(&s->link, false, "what it said is no message of this protocol");
		return;
	}
	s->state = SPOKE_READY;
	s->max_restarts = w.max_restarts;
	met = (struct meeting){
		.node_rank = w.node_rank,
		.nnodes = w.nnodes,
		.nproc_of_node = w.nproc,
		.master_addr = m->config->master_addr ?
			NULL :
			arena_strdup(m->config->arena, w.master_addr),
		.master_port = w.master_port,
		.max_restarts = w.max_restarts,
		.agent_store = w.agent_store,
	};
	if (m->on->met(m->owner, &met, &why) < 0) {
		tell_refusal(s, why.text);
		fail(s, why.code, why.text);
	} else {
		send_message(s, MESSAGE_READY, &ready);
	}
}

static void on_refused(struct spoke *s, const unsigned char *at, size_t len)
{
	struct message_refused r;

	if (message_get_refused(at, len, &r) < 0)
		return;
	switch (r.why) {
	case REFUSED_CONTRADICTION:
		fail(s, -EINVAL, r.text);
		return;
	case REFUSED_UNABLE:
		give_up(s, r.text);
		return;
	case REFUSED_RUNNING:
	case REFUSED_TIMEOUT:
		fail(s, -ETIMEDOUT, r.text);
		return;
	}
}

=======
>>>>>>> hub
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

	if (s->state == SPOKE_OVER)
		return;
	switch (type) {
	case MESSAGE_WAITING:
		if (message_get_text(at, len, text) == 0)
			say(s, false, text);
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

/* Whether it is of no use to come again. Where PMIx failed here first, node rank 0 may still have
 * the key that it made for it. */
static bool is_final(const struct spoke *s, enum link_end end)
{
	return end == LINK_END_VERSION || end == LINK_END_KEY ||
		(end == LINK_END_KEYED && s->member->config->way != MEET_PMIX);
}

static void on_link_closed(struct link *l, const char *why)
{
	struct spoke *s = l->owner;
	enum link_end end = l->end;
	struct text t = { 0 };

	s->linked = false;
	if (s->state == SPOKE_IN) {
		lose_hub(s, why);
	} else if (s->state == SPOKE_READY) {
		text_printf(
			&t, "node rank 0's launcher was lost before the workers started: %s", why);
<<<<<<< HEAD
		fail(s, -ECONNRESET, text_string(&t));
	} else if (s->state != SPOKE_OVER && is_final(s, end)) {
		add_hub(s, "", why, &t);
		give_up(s, text_string(&t));
=======
		spoke_fail(s, -ECONNRESET, text_string(&t));
	} else if (s->state != SPOKE_OVER &&
		(end == LINK_END_VERSION || end == LINK_END_KEYED || end == LINK_END_KEY)) {
		text_printf(&t, "node rank 0's launcher can't be joined: %s", why);
		spoke_give_up(s, text_string(&t));
>>>>>>> hub
	} else if (s->state != SPOKE_OVER) {
		spoke_dial_later(s, why);
	}
	text_done(&t);
	handle_closed(s);
}

static void on_silent(struct beat *b, struct link *l, uint64_t silent_ms)
{
	char why[64];

	(void)b;
	(void)snprintf(
		why, sizeof why, "nothing was heard of it for %.1f s", (double)silent_ms / 1000);
	link_close(l, false, why);
}

void spoke_dial(struct spoke *s)
{
	struct failure why = { 0 };

	s->link = (struct link){ .owner = s,
		.on_ready = spoke_introduce,
		.on_message = on_message,
		.on_closed = on_link_closed,
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
	s->beat = (struct beat){ .on_silent = on_silent,
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
		struct message_record r = { attempt, list[i].rank, list[i].record,
			list[i].command };
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
	if (s->linked)
		link_close(&s->link, true, NULL);
	beat_close(&s->beat);
	uv_close((uv_handle_t *)&s->clock, on_clock_closed);
}
