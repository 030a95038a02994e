/* spoke.c - see spoke.h */
#include "daemon/cluster/spoke.h"

#include <errno.h>
#include <stdio.h>

#include "common/address.h"
#include "common/arena.h"
#include "common/failure.h"
#include "common/num.h"
#include "common/sm.h"
#include "common/text.h"
#include "daemon/cluster/message.h"

enum {
	/* until the user is told that the hub can't be reached: with a round of dialing, 10 s */
	FIRST_NOTE_MS = 7500,
	NEXT_NOTE_MS = 60000,
};

#define ENDS (SM_TO(SPOKE_OVER) | SM_TO(SPOKE_LASTING) | SM_TO(SPOKE_CLOSED))

static const struct sm_state states[SPOKE_STATES] = {
	[SPOKE_DIALING] = { "dialing",
		SM_TO(SPOKE_JOINING) | SM_TO(SPOKE_OVER) | SM_TO(SPOKE_CLOSED) },
	/* DIALING: the link was lost */
	[SPOKE_JOINING] = { "joining",
		SM_TO(SPOKE_DIALING) | SM_TO(SPOKE_READY) | SM_TO(SPOKE_OVER) |
			SM_TO(SPOKE_CLOSED) },
	[SPOKE_READY] = { "ready", SM_TO(SPOKE_RUNNING) | ENDS },
	[SPOKE_RUNNING] = { "running", SM_TO(SPOKE_ENDED) | ENDS },
	[SPOKE_ENDED] = { "ended", SM_TO(SPOKE_RUNNING) | ENDS },
	[SPOKE_OVER] = { "over", SM_TO(SPOKE_LASTING) | SM_TO(SPOKE_CLOSED) },
	[SPOKE_LASTING] = { "lasting", SM_TO(SPOKE_CLOSED) },
	[SPOKE_CLOSED] = { "closed", 0 },
};
const struct sm spoke_life = { "spoke", states, SPOKE_STATES };

static void spoke_goto(struct spoke *s, enum spoke_state next)
{
	s->state = sm_go(&spoke_life, s->state, next);
	(void)uv_timer_stop(&s->clock);
}

void spoke_tell(struct spoke *s, const struct message *m)
{
	if (s->linked)
		party_send(s->link, m);
}

static void tell_over(struct spoke *s, const struct job_end *end)
{
	spoke_goto(s, SPOKE_OVER);
	s->party->on->over(s->party->owner, end);
}

/* The job's end, as the hub told it or all nodes know it anyway. */
static void be_over(struct spoke *s, const struct verdict *v)
{
	const struct job_end end = { .verdict = *v, .why_not = "" };

	tell_over(s, &end);
}

/* There is no job. */
static void fail(struct spoke *s, int code, const char *text)
{
	spoke_goto(s, SPOKE_OVER);
	party_fail(s->party, code, "%s", text);
}

/* Why the job ends, if the hub can't tell. A stop that the hub ordered before it was lost is
 * known to all nodes that got it; otherwise this node's own workers and the loss are all that is
 * known. */
static void find_cause(const struct spoke *s, struct result *ret)
{
	const struct cause *own = &s->end.cause;
	bool asked = own->kind != CAUSE_FAILURE && own->kind != CAUSE_NODE_LOST &&
		own->kind != CAUSE_RESTART;

	*ret = (struct result){ .outcomes = s->end.outcomes, .count = s->end.count };
	if (s->told.kind != CAUSE_NONE && s->told.kind != CAUSE_RESTART)
		ret->cause = s->told;
	else
		verdict_find(ret, asked ? own : NULL, &s->lost);
}

/* The report's cause does not say that the hub was lost. */
static void say_loss(const struct spoke *s)
{
	static const char rest[] = "how the other nodes ended is unknown";

	if (s->lost.asleep)
		party_say(s->party, NOTE_WARNING,
			"this node was itself frozen or suspended: %s; %s", s->lost.detail, rest);
	else
		party_say(s->party, NOTE_WARNING, "this node lost contact with node 0 (%s): %s; %s",
			s->lost.host, s->lost.detail, rest);
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

/* There will be no channel. */
static void give_up(struct spoke *s, const char *why)
{
	dialer_stop(&s->dialer);
	spoke_goto(s, SPOKE_OVER);
	s->on_missed(s->owner, why);
}

/* --- on its way into the job --- */

/* The state has lasted too long. */
static void on_limit(uv_timer_t *timer)
{
	struct spoke *s = timer->data;
	const struct member_config *c = s->party->config;
	struct num_text seconds =
		num_seconds(s->state == SPOKE_READY ? c->node_timeout_ms : c->join_timeout_ms);
	struct text t = { 0 };

	if (s->state == SPOKE_DIALING) {
		text_printf(&t, "node rank 0's launcher %s within %s s (--join-timeout): ",
			s->link ? "was reached, but did not accept this node" : "was not reached",
			seconds.text);
		dialer_explain(&s->dialer, &t);
	} else if (s->state == SPOKE_JOINING) {
		text_printf(&t,
			"the launcher at %s was reached, but did not start the job within %s s "
			"(--join-timeout)",
			s->link->peer, seconds.text);
	} else {
		text_printf(&t,
			"all nodes had met, but node rank 0's launcher (%s) did not start the job "
			"within %s s (--node-timeout)",
			s->link->peer, seconds.text);
	}
	/* whoever has been in the job knows that workers alone would find nobody */
	if (s->state == SPOKE_READY || s->returned)
		fail(s, -ETIMEDOUT, text_string(&t));
	else
		give_up(s, text_string(&t));
	text_done(&t);
}

/* The state has until then: uv_now(). */
static void limit(struct spoke *s, uint64_t until_ms)
{
	uv_update_time(s->party->loop);
	(void)uv_timer_start(&s->clock, on_limit, party_left_ms(s->party, until_ms), 0);
}

/* A hub that decides at the end of a time-out needs a moment to tell. */
static uint64_t moment_ms(const struct spoke *s)
{
	return s->party->config->node_timeout_ms / 4;
}

/* Without given ranks the node that has the endpoint's address is node rank 0, and it may be that
 * no node has it: a load balancer's, or the outer one of a network that is translated. */
static void add_missing_host(const struct spoke *s, struct text *t)
{
	const struct member_config *c = s->party->config;
	struct address own;
	bool any = false;

	if (c->node_rank_known)
		return;
	for (unsigned i = 0; i < s->dialer.to.count; i++) {
		const struct address *a = &s->dialer.to.at[i];

		if (address_is_loopback(a) || address_find_host(&c->local, a))
			return;
	}
	text_printf(t, "; no interface of this host has that address");
	for (size_t i = 0; i < c->addresses.count; i++) {
		if (address_parse(c->addresses.at[i], 0, &own) < 0 || address_is_loopback(&own))
			continue;
		text_printf(t, "%s%s", any ? ", " : " (it has ", c->addresses.at[i]);
		any = true;
	}
	text_printf(t,
		"%s: if no node has it, give the one that should be node rank 0 "
		"--rdzv-conf is_host=1",
		any ? ")" : "");
}

static void say_waiting(struct spoke *s)
{
	uint64_t now = uv_now(s->party->loop);
	struct text t = { 0 };

	if (now < s->note_ms)
		return;
	s->note_ms = now + NEXT_NOTE_MS;
	dialer_explain(&s->dialer, &t);
	text_printf(&t, "; still trying");
	add_missing_host(s, &t);
	party_say(s->party, NOTE_INFO,
		"the job has %u nodes (%s), and node rank 0's launcher can't be reached yet: %s",
		s->party->config->nnodes, s->party->config->nnodes_from, text_string(&t));
	text_done(&t);
}

static void on_round(struct dialer *d)
{
	struct spoke *s = d->owner;

	say_waiting(s);
	s->on_round(s->owner);
}

static void on_hopeless(struct dialer *d, const char *why)
{
	struct text t = { 0 };

	text_printf(&t, "can't join node rank 0's launcher: %s", why);
	give_up(d->owner, text_string(&t));
	text_done(&t);
}

/* The time for which this node waits for the others counts from its own start, whenever it reached
 * the hub. A hub that started at the same time has decided by then. */
static void on_ready(struct dialer *d, struct link *l)
{
	struct spoke *s = d->owner;

	s->link = l;
	s->linked = true;
	spoke_goto(s, SPOKE_JOINING);
	limit(s, s->party->deadline_ms + moment_ms(s));
	if (beat_watch(&s->beat, l) < 0)
		link_close(l, false, "out of memory");
	else
		party_introduce(s->party, l);
}

/* The ends after which dialing again is hopeless. A wrong key is not one if PMIx was offered but is
 * unavailable: node rank 0 may still listen with a key of its own until it notices that, too. */
static unsigned final_ends(const struct spoke *s)
{
	unsigned keys = 1U << LINK_END_KEYED | 1U << LINK_END_KEY;

	return 1U << LINK_END_VERSION | (s->party->config->way == MEET_EXCHANGE ? 0 : keys);
}

void spoke_hear_addresses(struct spoke *s, const struct addresses *hub)
{
	dialer_use(&s->dialer, hub);
}

/* This node can't make its plan, so there is no job. */
static void tell_refusal(struct spoke *s, const struct failure *why)
{
	struct message m = { MESSAGE_REFUSED, .refused = { REFUSED_JOB, why->code, "" } };

	text_fit(m.refused.text, sizeof m.refused.text, why->text);
	spoke_tell(s, &m);
}

static void on_welcome(struct spoke *s, const struct message *m)
{
	const struct message_welcome *w = &m->welcome;
	const struct party *p = s->party;
	struct failure why = { 0 };
	struct meeting met;

	if (w->nnodes != p->config->nnodes) {
		link_close(s->link, false, "it sent a malformed message");
		return;
	}
	spoke_goto(s, SPOKE_READY);
	limit(s, uv_now(p->loop) + p->config->node_timeout_ms + moment_ms(s));
	s->node = w->node_rank;
	s->max_restarts = w->max_restarts;
	s->after_end_ms = w->after_end_ms;
	s->port_wait_ms = w->port_wait_ms;
	met = (struct meeting){
		.node_rank = w->node_rank,
		.nnodes = w->nnodes,
		.nproc_of_node = w->nproc,
		.peers = w->peers,
		.master_addr = p->config->master_addr && !w->agent_store ?
			NULL :
			arena_strdup(p->config->arena, w->master_addr),
		.master_port = w->master_port,
		.max_restarts = w->max_restarts,
		.agent_store = w->agent_store,
	};
	if (party_met(p, &met, &why) < 0) {
		tell_refusal(s, &why);
		fail(s, why.code, why.text);
	} else {
		spoke_tell(s, &(struct message){ .type = MESSAGE_READY });
	}
}

/* The next hub may listen where this one still does: the connection ends, and it is dialled on. */
static void come_again(struct spoke *s, const char *why)
{
	if (!s->returned)
		party_say(s->party, NOTE_INFO, "%s; waiting for its next start", why);
	s->returned = true;
	s->note_ms = uv_now(s->party->loop) + FIRST_NOTE_MS; /* it can be reached */
	link_close(s->link, false, why);
}

static void on_refusal(struct spoke *s, const struct message *m)
{
	switch (m->refused.why) {
	case REFUSED_UNABLE:
		give_up(s, m->refused.text);
		return;
	case REFUSED_YET:
		if (s->state == SPOKE_JOINING)
			come_again(s, m->refused.text);
		return;
	case REFUSED_JOB:
	case REFUSED_RUNNING:
		fail(s, m->refused.code, m->refused.text);
		return;
	}
	__builtin_unreachable();
}

/* --- in the job --- */

/* The job runs, on this node or on others that it waits for. */
static bool is_in(const struct spoke *s)
{
	return s->state == SPOKE_RUNNING || s->state == SPOKE_ENDED;
}

static void on_overdue(uv_timer_t *t);

static void wait_for(struct spoke *s, uint64_t ms)
{
	s->overdue_ms = party_wait(s->party, &s->clock, on_overdue, ms);
}

static bool may_restart(const struct spoke *s)
{
	if (s->told.kind == CAUSE_RESTART)
		return !s->asked;
	return (s->attempt - s->asked_restarts < s->max_restarts ||
		       s->party->config->policy.window_ms > 0) &&
		!s->asked &&
		(s->told.kind == CAUSE_NONE || s->told.kind == CAUSE_FAILURE ||
			s->told.kind == CAUSE_HANG);
}

/* The hub waits for the slowest node (limit_ms() in hub_act.c), and then no longer than the longest
 * pause before an attempt and its wait for the master port; our node timeout covers the network. */
static uint64_t limit_ms(const struct spoke *s)
{
	return s->stop_grace_ms + STOP_REST_MS + s->after_end_ms + s->link->peer_timeout_ms +
		s->party->config->node_timeout_ms +
		(may_restart(s) ? RESTART_DELAY_MAX_MS + s->port_wait_ms : 0);
}

/* The hub beats, but hangs, or is another program: it is considered lost. */
static void on_overdue(uv_timer_t *t)
{
	struct spoke *s = t->data;
	char why[160];

	if (party_overslept(s->party, s->overdue_ms)) {
		wait_for(s, s->party->config->node_timeout_ms);
		return;
	}
	(void)snprintf(why, sizeof why,
		"it still sends heartbeats, but did not say within %s s of the end of this "
		"node's workers what follows",
		num_seconds(limit_ms(s)).text);
	s->overdue = true;
	link_close(s->link, false, why);
}

/* Once the attempt is to stop and has ended on this node, the hub has a limit for what follows. */
static void await_verdict(struct spoke *s)
{
	bool stops = s->told.kind != CAUSE_NONE || s->asked || s->end.cause.kind != CAUSE_NONE;

	if (s->state == SPOKE_ENDED && s->linked && stops &&
		!uv_is_active((const uv_handle_t *)&s->clock))
		wait_for(s, limit_ms(s));
}

static uint64_t our_ns(const struct spoke *s, uint64_t hub_ns)
{
	int64_t ours = (int64_t)(hub_ns - (uint64_t)clock_offset_ns(&s->link->clock));

	return hub_ns == 0 || !s->link->clock.known || ours <= 0 ? 0 : (uint64_t)ours;
}

/* Times that can't be converted to our clock become unknown. */
static void to_our_clock(const struct spoke *s, struct cause *c)
{
	uint64_t at_ns = our_ns(s, c->at_ns);

	c->at_ns = at_ns ? at_ns : uv_hrtime();
	c->noticed_ns = our_ns(s, c->noticed_ns);
	c->culprit.started_ns = our_ns(s, c->culprit.started_ns);
	c->culprit.ended_ns = our_ns(s, c->culprit.ended_ns);
	c->culprit.asked_ns = our_ns(s, c->culprit.asked_ns);
	c->culprit.late_ns = 0;
	c->victim.started_ns = our_ns(s, c->victim.started_ns);
	c->victim.ended_ns = our_ns(s, c->victim.ended_ns);
	c->victim.asked_ns = our_ns(s, c->victim.asked_ns);
	c->victim.late_ns = 0;
}

static void on_stop(struct spoke *s, const struct message *m)
{
	struct stop stop = m->stop;

	if (stop.attempt != s->attempt)
		return;
	to_our_clock(s, &stop.cause);
	/* the first cause counts, but the hub may have learned of an earlier failure */
	if (s->told.kind == CAUSE_NONE) {
		s->stop_grace_ms = stop.grace_ms;
		(void)uv_timer_stop(&s->clock); /* it was started with another grace */
	}
	if (s->told.kind == CAUSE_NONE || s->told.kind == CAUSE_RESTART ||
		(s->told.kind == CAUSE_FAILURE && stop.cause.kind == CAUSE_FAILURE))
		s->told = stop.cause;
	await_verdict(s);
	s->party->on->stop(s->party->owner, &stop);
}

static void tell_check(const struct spoke *s, const struct message_start *start)
{
	const struct check_call c = { .phases = start->checks,
		.gate_ms = start->gate_ms,
		.together = true,
		.own = party_own_address(s->link),
		.hub = s->link->peer_address };

	if (s->party->on->check)
		s->party->on->check(s->party->owner, &c);
}

static void on_start(struct spoke *s, const struct message *m)
{
	const struct message_start *start = &m->start;

	if (s->state == SPOKE_READY && start->attempt != 0)
		return;
	spoke_goto(s, SPOKE_RUNNING);
	s->attempt = start->attempt;
	s->asked_restarts += s->told.kind == CAUSE_RESTART ? 1 : 0;
	s->asked = false;
	s->stop_grace_ms = s->party->config->grace_ms;
	s->told = (struct cause){ .kind = CAUSE_NONE };
	if (start->attempt == 0)
		spoke_lines_start(s);
	s->party->job_ms = start->job_ms;
	beat_entrust(&s->beat, s->link);
	tell_check(s, start);
	s->party->on->start(s->party->owner, start->attempt, start->master_port);
}

static void on_verdict(struct spoke *s, const struct message *m)
{
	struct verdict v = m->verdict;

	to_our_clock(s, &v.cause);
	be_over(s, &v);
}

static void on_checked(struct spoke *s, const struct message *m)
{
	if (m->checked == s->attempt && s->party->on->checked)
		s->party->on->checked(s->party->owner);
}

static void hear_check_word(struct spoke *s, const struct message *m)
{
	if (m->check.attempt == s->attempt && s->party->on->check_word)
		s->party->on->check_word(s->party->owner, 0, &m->check);
}

static void on_signal(struct spoke *s, const struct message *m)
{
	if (s->party->auth.keyed)
		s->party->on->forward(s->party->owner, m->signal);
}

static void on_query(struct spoke *s, const struct message *m)
{
	const struct party *p = s->party;

	if (p->on->query)
		p->on->query(p->owner, m->query);
}

static void on_hang(struct spoke *s, const struct message *m)
{
	const struct party *p = s->party;

	if (m->hang.attempt == s->attempt && p->on->hang)
		p->on->hang(p->owner, &m->hang);
}

static void on_waiting(struct spoke *s, const struct message *m)
{
	party_say(s->party, NOTE_INFO, "%s", m->waiting);
}

enum {
	IN_DIALING = 1 << SPOKE_DIALING,
	IN_JOINING = 1 << SPOKE_JOINING,
	IN_READY = 1 << SPOKE_READY,
	IN_RUNNING = 1 << SPOKE_RUNNING,
	IN_ENDED = 1 << SPOKE_ENDED,
	BEFORE_RUNNING = IN_DIALING | IN_JOINING | IN_READY,
	BEFORE_OVER = BEFORE_RUNNING | IN_RUNNING | IN_ENDED,
};

/* What is heard, and in which states. */
static const struct {
	void (*hear)(struct spoke *s, const struct message *m);
	unsigned states; /* a bit for each */
} heard[MESSAGE_END] = {
	[MESSAGE_WAITING] = { on_waiting, BEFORE_OVER },
	[MESSAGE_WELCOME] = { on_welcome, IN_JOINING },
	[MESSAGE_REFUSED] = { on_refusal, BEFORE_RUNNING },
	[MESSAGE_START] = { on_start, IN_READY | IN_ENDED },
	[MESSAGE_STOP] = { on_stop, IN_RUNNING | IN_ENDED },
	[MESSAGE_CHECK] = { hear_check_word, IN_RUNNING },
	[MESSAGE_CHECKED] = { on_checked, IN_RUNNING },
	[MESSAGE_SIGNAL] = { on_signal, BEFORE_OVER },
	[MESSAGE_QUERY] = { on_query, IN_READY | IN_RUNNING | IN_ENDED },
	[MESSAGE_HANG] = { on_hang, IN_RUNNING },
	[MESSAGE_VERDICT] = { on_verdict, BEFORE_OVER & ~IN_RUNNING },
	/* from the welcome on */
	[MESSAGE_LOG_ROOM] = { spoke_hear_log_room, ~0U << SPOKE_READY },
};

static void on_message(struct link *l, unsigned type, const unsigned char *at, size_t len)
{
	struct spoke *s = l->owner;
	struct message m;

	if (type >= MESSAGE_END || !(heard[type].states & 1U << s->state))
		return;
	if (message_get(type, at, len, s->party->config->arena, &m) == 0)
		heard[type].hear(s, &m);
	else if (type == MESSAGE_WELCOME || type == MESSAGE_LOG_ROOM)
		link_close(l, false, "it sent a malformed message");
}

/* A guess at what happened, as nobody can tell: a hub that considered us lost has closed the
 * connection, too. */
static const char *guess_at_loss(const struct spoke *s)
{
	if (s->link->killed_by)
		return "";
	if (s->overdue)
		return "; its launcher hangs, or another program has its port";
	if (s->link->end == LINK_END_OURS)
		return "; one of the two nodes was cut off, frozen or powered off";
	if (s->link->end == LINK_END_LOST || s->link->end == LINK_END_PEERS)
		return "; its launcher was killed, or had already considered this node lost";
	return ""; /* why is precise */
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

	if (l->killed_by == 0 && !s->overdue && party_slept(&s->beat, s->node, &own))
		return own;
	/* its name was never told */
	address_host_text(&l->peer_address, c.host);
	(void)snprintf(c.detail, sizeof c.detail, "%s%s", why, guess_at_loss(s));
	return c;
}

/* Whether the job goes on without us or not: ours is over. */
static void lose_hub(struct spoke *s, const char *why)
{
	struct stop stop = {
		.attempt = s->attempt,
		.urgency = URGENCY_STOP,
		.signal = SIGTERM,
		.grace_ms = s->party->config->grace_ms,
		.cause = cause_of_loss(s, why),
	};

	s->lost = stop.cause;
	if (s->state == SPOKE_ENDED)
		be_over_alone(s);
	else
		s->party->on->stop(s->party->owner, &stop);
}

/* The link was closed after it had been ready. */
static void on_link_lost(struct dialer *d, struct link *l, const char *why)
{
	struct spoke *s = d->owner;

	(void)l;
	s->linked = false;
	spoke_lines_lost(s);
	if (is_in(s)) {
		lose_hub(s, why);
	} else if (s->state == SPOKE_READY) {
		spoke_goto(s, SPOKE_OVER);
		party_fail(s->party, -ECONNRESET,
			"node rank 0's launcher was lost before the workers started: %s", why);
	} else if (s->state == SPOKE_JOINING) {
		spoke_goto(s, SPOKE_DIALING);
		limit(s, s->party->deadline_ms);
		dialer_again(&s->dialer, why);
	}
}

static void on_dialer_closed(struct dialer *d)
{
	party_part_closed(((struct spoke *)d->owner)->party);
}

static void on_beat_closed(struct beat *b)
{
	party_part_closed(((struct spoke *)b->owner)->party);
}

static void on_clock_closed(uv_handle_t *h)
{
	party_part_closed(((struct spoke *)h->data)->party);
}

/* --- its life, and what happens on this node --- */

void spoke_start(struct spoke *s, struct party *p, const struct addresses *hub)
{
	const uint32_t timeout_ms = (uint32_t)p->config->node_timeout_ms;

	s->party = p;
	p->parts += 3;                           /* the clock, beats, the dialer */
	(void)uv_timer_init(p->loop, &s->clock); /* can't fail */
	s->clock.data = s;
	s->beat = (struct beat){ .on_silent = beat_drop,
		.on_closed = on_beat_closed,
		.owner = s,
		.timeout_ms = timeout_ms,
		.death_notice = p->config->death_notice };
	beat_open(&s->beat, p->loop);
	s->dialer = (struct dialer){ .on_ready = on_ready,
		.on_lost = on_link_lost,
		.on_round = on_round,
		.on_hopeless = on_hopeless,
		.on_closed = on_dialer_closed,
		.on_message = on_message,
		.on_idle = spoke_lines_idle,
		.owner = s,
		.auth = &p->auth,
		.timeout_ms = timeout_ms,
		.final = final_ends(s) };
	s->note_ms = uv_now(p->loop) + FIRST_NOTE_MS;
	limit(s, p->deadline_ms);
	dialer_start(&s->dialer, p->loop, hub);
}

/* Before the job begins there is nothing to stop: this launcher leaves, and the hub, if it hears of
 * it, stops the others' waiting. */
void spoke_asked(struct spoke *s, const struct stop *stop)
{
	spoke_tell(s, &(struct message){ MESSAGE_STOP, .stop = *stop });
	if (stop->cause.kind == CAUSE_RESTART)
		return; /* the hub may have reasons against it */
	s->asked = true;
	if (s->state < SPOKE_RUNNING) {
		spoke_goto(s, SPOKE_OVER);
		party_over_unstarted(s->party, &stop->cause);
	} else {
		await_verdict(s);
	}
}

void spoke_status(struct spoke *s, const struct message_status *told)
{
	if (s->linked && link_is_idle(s->link))
		party_send(s->link, &(struct message){ MESSAGE_STATUS, .status = *told });
}

bool spoke_look(struct spoke *s, const struct message_look *told)
{
	bool possible = s->linked && link_is_idle(s->link);

	if (possible)
		party_send(s->link, &(struct message){ MESSAGE_LOOK, .look = *told });
	return possible;
}

void spoke_bundle(struct spoke *s, const struct message_bundle *told)
{
	spoke_tell(s, &(struct message){ MESSAGE_BUNDLE, .bundle = *told });
}

void spoke_step(struct spoke *s, const struct message_step *told)
{
	spoke_tell(s, &(struct message){ MESSAGE_STEP, .step = *told });
}

static void tell_outcomes(struct spoke *s, const struct node_end *end)
{
	for (size_t i = 0; i < end->count; i += OUTCOMES_MAX) {
		size_t n = end->count - i < OUTCOMES_MAX ? end->count - i : OUTCOMES_MAX;

		spoke_tell(s,
			&(struct message){ MESSAGE_OUTCOMES,
				.outcomes = { end->attempt, end->outcomes + i, n } });
	}
}

static void tell_evidence(
	struct spoke *s, unsigned attempt, const struct evidence *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct evidence *e = &list[i];

		spoke_tell(s,
			&(struct message){ MESSAGE_RECORD,
				.record = { attempt, e->rank, e->record, e->command, e->words } });
	}
}

/* A node whose workers all exited with 0 need not wait if no restart can follow. */
static void leave(struct spoke *s)
{
	struct verdict well = { .well = true, .attempt = s->attempt };

	spoke_tell(s, &(struct message){ .type = MESSAGE_LEAVE });
	be_over(s, &well);
}

void spoke_ended(
	struct spoke *s, const struct node_end *end, const struct evidence *list, size_t count)
{
	if (s->state != SPOKE_RUNNING)
		return;
	spoke_goto(s, SPOKE_ENDED);
	s->end = *end;
	tell_outcomes(s, end);
	tell_evidence(s, end->attempt, list, count);
	spoke_tell(s, &(struct message){ MESSAGE_ENDED, .ended = *end });
	if (s->lost.kind != CAUSE_NONE)
		be_over_alone(s);
	else if (end->cause.kind == CAUSE_NONE && s->max_restarts == 0 && !s->party->config->stays)
		leave(s);
	else
		await_verdict(s);
}

static void on_last_over(uv_timer_t *t)
{
	spoke_leave(t->data);
}

void spoke_close(struct spoke *s)
{
	if (s->state >= SPOKE_LASTING)
		return;
	if (!spoke_merges(s)) {
		spoke_leave(s);
		return;
	}
	spoke_goto(s, SPOKE_LASTING);
	(void)party_wait(s->party, &s->clock, on_last_over, LINES_LAST_MS);
}

void spoke_leave(struct spoke *s)
{
	spoke_goto(s, SPOKE_CLOSED);
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
