/* spoke_join.c - a node on its way into the job: it dials until it is heard, and is taken or not;
 * see spoke.h */
#include "daemon/cluster/spoke.h"

#include <stdio.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/text.h"
#include "daemon/cluster/config.h"
#include "daemon/cluster/member.h"
#include "daemon/cluster/wire.h"

enum {
	RETRY_FIRST_MS = 50, /* doubled up to the next one */
	RETRY_MAX_MS = 2000,
	NEXT_NOTE_MS = 60000,
};

/* There is no channel to be had. */
void spoke_give_up(struct spoke *s, const char *why)
{
	s->state = SPOKE_OVER;
	(void)uv_timer_stop(&s->clock);
	member_miss(s->member, why);
}

static void on_time(uv_timer_t *timer)
{
	struct spoke *s = timer->data;
	struct text t = { 0 };

	if (uv_now(s->member->loop) < s->deadline_ms) {
		spoke_dial(s);
		return;
	}
	text_printf(&t, "node rank 0's launcher was not reached within %llu s (--join-timeout): %s",
		(unsigned long long)(s->member->config->join_timeout_ms / 1000), s->last);
	spoke_give_up(s, text_string(&t));
	text_done(&t);
}

static void say_waiting(struct spoke *s, uint64_t now)
{
	struct text t = { 0 };

	if (now < s->note_ms)
		return;
	s->note_ms = now + NEXT_NOTE_MS;
	text_printf(&t, "node rank 0's launcher is not there yet: %s; trying on", s->last);
	member_say(s->member, false, text_string(&t));
	text_done(&t);
}

/* Dials the next address; after the last one all again, after a pause that grows. */
void spoke_dial_later(struct spoke *s, const char *why)
{
	uint64_t now = uv_now(s->member->loop), pause = RETRY_FIRST_MS;

	(void)snprintf(s->last, sizeof s->last, "%s", why);
	s->state = SPOKE_DIALING;
	if (++s->next < s->count) {
		spoke_dial(s);
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
		link_close(&s->link, false, "what it said is no message of this protocol");
		return;
	}
	s->state = SPOKE_READY;
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

void spoke_introduce(struct link *l)
{
	struct spoke *s = l->owner;

	s->state = SPOKE_JOINING;
	s->tries = 0;
	(void)beat_watch(&s->beat, l);
	member_introduce(s->member, l);
}
