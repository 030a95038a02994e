/* spoke_join.c - a node on its way into the job: it dials until it is heard, and is taken or not;
 * see spoke.h */
#include "daemon/cluster/spoke.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/num.h"
#include "common/text.h"
#include "daemon/cluster/config.h"
#include "daemon/cluster/member.h"
#include "daemon/net/wire.h"

enum {
	FIRST_NOTE_MS = 10000, /* until it is said that the hub is not reached */
	NEXT_NOTE_MS = 60000,
};

/* There is no channel to be had. */
void spoke_give_up(struct spoke *s, const char *why)
{
	dialer_stop(&s->dialer);
	spoke_enter(s, SPOKE_OVER, 0);
	member_miss(s->member, why);
}

/* What the state waits for has not come. */
static void on_limit(uv_timer_t *timer)
{
	struct spoke *s = timer->data;
	const struct member_config *c = s->member->config;
	char seconds[NUM_SECONDS_SIZE];
	struct text t = { 0 };

	num_print_seconds(
		s->state == SPOKE_READY ? c->node_timeout_ms : c->join_timeout_ms, seconds);
	switch (s->state) {
	case SPOKE_DIALING:
		text_printf(&t, "node rank 0's launcher %s within %s s (--join-timeout): ",
			s->link ? "was reached, but did not take this node" : "was not reached",
			seconds);
		dialer_explain(&s->dialer, &t);
		spoke_give_up(s, text_string(&t));
		break;
	case SPOKE_JOINING:
		text_printf(&t,
			"the launcher at %s was reached, but did not say within %s s "
			"(--join-timeout) that the job begins",
			link_peer_text(s->link), seconds);
		spoke_give_up(s, text_string(&t));
		break;
	case SPOKE_READY:
		text_printf(&t,
			"all nodes had met, but node rank 0's launcher (%s) did not start the job "
			"within %s s (--node-timeout)",
			link_peer_text(s->link), seconds);
		spoke_fail(s, -ETIMEDOUT, text_string(&t));
		break;
	case SPOKE_IN:
	case SPOKE_OVER:
		break;
	}
	text_done(&t);
}

void spoke_enter(struct spoke *s, enum spoke_state state, uint64_t until_ms)
{
	uint64_t now;

	s->state = state;
	(void)uv_timer_stop(&s->clock);
	if (until_ms == 0)
		return;
	uv_update_time(s->member->loop);
	now = uv_now(s->member->loop);
	(void)uv_timer_start(&s->clock, on_limit, until_ms > now ? until_ms - now : 0, 0);
}

/* A hub that decides at the end of a time-out has a moment to tell. */
static uint64_t moment_ms(const struct spoke *s)
{
	return s->member->config->node_timeout_ms / 4;
}

static void say_waiting(struct spoke *s)
{
	uint64_t now = uv_now(s->member->loop);
	struct text t = { 0 };

	if (now < s->note_ms)
		return;
	s->note_ms = now + NEXT_NOTE_MS;
	text_add(&t, "node rank 0's launcher is not there yet: ");
	dialer_explain(&s->dialer, &t);
	text_add(&t, "; trying on");
	member_say(s->member, false, text_string(&t));
	text_done(&t);
}

static void on_round(struct dialer *d)
{
	struct spoke *s = d->owner;

	say_waiting(s);
	finder_again(&s->member->finder);
}

static void on_hopeless(struct dialer *d, const char *why)
{
	struct text t = { 0 };

	text_printf(&t, "node rank 0's launcher can't be joined: %s", why);
	spoke_give_up(d->owner, text_string(&t));
	text_done(&t);
}

/* What this node waits for the others counts from its own start, whenever it reached the hub. One
 * that began at the same time has decided by then. */
static void on_ready(struct dialer *d, struct link *l)
{
	struct spoke *s = d->owner;

	s->link = l;
	s->linked = true;
	spoke_enter(s, SPOKE_JOINING, s->member->deadline_ms + moment_ms(s));
	if (beat_watch(&s->beat, l) < 0)
		link_close(l, false, "out of memory");
	else
		member_introduce(s->member, l);
}

/* The ends after which dialling again would end so again. Where PMIx is offered and not to be had,
 * node rank 0 may listen with a key of its own until it has noticed, too. */
static unsigned final_ends(const struct spoke *s)
{
	unsigned keys = 1U << LINK_END_KEYED | 1U << LINK_END_KEY;

	return 1U << LINK_END_VERSION | (s->member->config->way == MEET_PMIX ? 0 : keys);
}

void spoke_dial(struct spoke *s, const struct sockaddr_storage *addresses, unsigned count)
{
	struct member *m = s->member;

	s->dialer.on_ready = on_ready;
	s->dialer.on_round = on_round;
	s->dialer.on_hopeless = on_hopeless;
	s->dialer.auth = &m->auth;
	s->dialer.timeout_ms = (uint32_t)m->config->node_timeout_ms;
	s->dialer.final = final_ends(s);
	s->note_ms = uv_now(m->loop) + FIRST_NOTE_MS;
	spoke_enter(s, SPOKE_DIALING, m->deadline_ms);
	dialer_start(&s->dialer, m->loop, addresses, count);
}

void spoke_dial_again(struct spoke *s, const char *why)
{
	spoke_enter(s, SPOKE_DIALING, s->member->deadline_ms);
	dialer_again(&s->dialer, why);
}

void spoke_hear_addresses(struct spoke *s, const struct sockaddr_storage *addresses, unsigned count)
{
	dialer_use(&s->dialer, addresses, count);
}

/* This node can't take part after all, so there is no job. */
static void tell_refusal(struct spoke *s, int code, const char *text)
{
	struct message_refused m = { .why = REFUSED_JOB, .code = code };
	struct wire_out w = { 0 };

	(void)snprintf(m.text, sizeof m.text, "%.*s", (int)sizeof m.text - 1, text);
	message_put_refused(&w, &m);
	spoke_send(s, MESSAGE_REFUSED, &w);
}

void spoke_hear_welcome(struct spoke *s, const unsigned char *at, size_t len)
{
	struct member *m = s->member;
	struct message_welcome w;
	struct wire_out ready = { 0 };
	struct failure why = { 0 };
	struct meeting met;

	if (message_get_welcome(at, len, m->config->arena, &w) < 0 ||
		w.nnodes != m->config->nnodes) {
		link_close(s->link, false, "what it said is no message of this protocol");
		return;
	}
	spoke_enter(s, SPOKE_READY, uv_now(m->loop) + m->config->node_timeout_ms + moment_ms(s));
	s->node = w.node_rank;
	s->max_restarts = w.max_restarts;
	met = (struct meeting){
		.node_rank = w.node_rank,
		.nnodes = w.nnodes,
		.nproc_of_node = w.nproc,
		.master_addr = m->config->master_addr && !w.agent_store ?
			NULL :
			arena_strdup(m->config->arena, w.master_addr),
		.master_port = w.master_port,
		.max_restarts = w.max_restarts,
		.agent_store = w.agent_store,
	};
	if (member_met(m, &met, &why) < 0) {
		tell_refusal(s, why.code, why.text);
		spoke_fail(s, why.code, why.text);
	} else {
		spoke_send(s, MESSAGE_READY, &ready);
	}
}

void spoke_hear_refusal(struct spoke *s, const unsigned char *at, size_t len)
{
	struct message_refused r;

	if (message_get_refused(at, len, &r) < 0)
		return;
	switch (r.why) {
	case REFUSED_JOB:
	case REFUSED_RUNNING:
		spoke_fail(s, r.code, r.text);
		return;
	case REFUSED_UNABLE:
		spoke_give_up(s, r.text);
		return;
	}
}
