/* member.c - on which side of the channel this launcher is, and what it does without one; see
 * member.h */
#include "daemon/cluster/member.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/address.h"
#include "common/failure.h"
#include "common/text.h"
#include "daemon/cluster/message.h"
#include "daemon/net/wire.h"
#include "daemon/observe/bus.h"

void member_fail(struct member *m, int code, const char *text)
{
	struct failure why = { 0 };

	message_failure(code, text, &why);
	m->on->failed(m->owner, &why);
}

void member_say(const struct member *m, bool warning, const char *text)
{
	bus_note(m->bus, warning ? NOTE_WARNING : NOTE_INFO, text);
}

void member_tell_node(const struct member *m, unsigned node, const char *name, const char *why)
{
	bus_emit(m->bus,
		&(struct event){
			.kind = why ? EVENT_NODE_LOST : EVENT_NODE_JOINED,
			.other = { node, name, why },
		});
}

void member_say_unkeyed(struct member *m)
{
	member_say(m, false,
		"the control channel is not authenticated: whoever reaches its port could end the "
		"job, and signals are not forwarded to other nodes; give all nodes the same "
		"--key-file or LAUNCHD_KEY");
}

/* Whether the socket is taken already tells which launcher of a host came first. */
int member_start_hub(struct member *m, const struct sockaddr *const *bound, unsigned count,
	unsigned port, struct failure *why)
{
	int rc = hub_start(&m->hub, m, bound, count, port, why);

	if (rc == 0) {
		m->role = MEMBER_HUB;
		m->parts++;
		if (m->hub.listening && !m->auth.keyed)
			member_say_unkeyed(m);
	}
	return rc;
}

void member_start_spoke(struct member *m, unsigned count)
{
	m->role = MEMBER_SPOKE;
	m->parts++;
	spoke_start(&m->spoke, m, m->hub_addresses, count);
}

/* A job of this node, whose ranks and sizes are as the settings say. */
static void be_alone(struct member *m)
{
	struct failure why = { 0 };

	if (member_start_hub(m, NULL, 0, 0, &why) < 0)
		member_fail(m, why.code, why.text);
}

/* What the workers of a node that is alone have to do without. */
static void say_alone(struct member *m, const char *why)
{
	const struct member_config *c = m->config;
	struct text t = { 0 };

	text_printf(&t,
		"%s; this node's workers start without the others: if another node fails, nobody "
		"tells this one",
		why);
	if (c->policy.max_restarts > 0)
		text_add(&t, ", and there are no restarts");
	if (c->agent_store)
		text_add(&t, "; rank 0 hosts the store");
	member_say(m, true, text_string(&t));
	text_done(&t);
}

/* What only the meeting would have told, and how to do without; NULL: nothing. */
static const char *unknown_alone(const struct member_config *c)
{
	if (!c->node_rank_known)
		return "its rank: give --node_rank";
	if (c->master_port > 0)
		return NULL;
	/* the launchers have the port that is given: worker 0 gets another one */
	return c->way == MEET_STATIC ?
		"the port of worker 0: give all nodes a --control-port, which leaves that of "
		"--rdzv-endpoint to it" :
		"the port of worker 0: give --master_port";
}

static void go_alone(struct member *m, const char *why)
{
	const struct member_config *c = m->config;
	const char *unknown = unknown_alone(c);

	if (m->role == MEMBER_SPOKE)
		spoke_close(&m->spoke);
	if (unknown) {
		struct text t = { 0 };

		text_printf(&t, "%s: without the others this node can't know %s", why, unknown);
		member_fail(m, -ETIMEDOUT, text_string(&t));
		text_done(&t);
		return;
	}
	say_alone(m, why);
	m->alone = *c;
	m->alone.way = MEET_NOBODY;
	m->alone.policy.max_restarts = 0; /* of one node only they would help nobody */
	m->alone.agent_store = false;
	m->config = &m->alone;
	be_alone(m);
}

void member_miss(struct member *m, const char *why)
{
	const struct member_config *c = m->config;
	struct text t = { 0 };

	if (c->required || (c->way == MEET_PMIX && !c->hub_addr)) {
		text_add(&t, why);
		if (c->required)
			text_printf(&t, " (%s)", c->required);
		else
			text_add(&t, ": give --master_addr to all nodes");
		if (m->role == MEMBER_HUB)
			hub_refuse(&m->hub, -ETIMEDOUT, text_string(&t));
		else
			member_fail(m, -ETIMEDOUT, text_string(&t));
	} else if (m->role == MEMBER_HUB) {
		text_printf(&t,
			"%s; the job starts all the same, and will not know if other nodes fail",
			why);
		member_say(m, true, text_string(&t));
		hub_begin(&m->hub);
	} else {
		go_alone(m, why);
	}
	text_done(&t);
}

bool member_slept(const struct beat *b, unsigned node, struct cause *ret)
{
	uint64_t slept_ms = beat_slept_ms(b), now = uv_hrtime();

	if (slept_ms == 0)
		return false;
	*ret = (struct cause){
		.kind = CAUSE_NODE_LOST,
		.at_ns = now > slept_ms * 1000000 ? now - slept_ms * 1000000 : 1,
		.noticed_ns = now,
		.node = node,
		.asleep = true,
	};
	(void)snprintf(ret->detail, sizeof ret->detail,
		"its launcher did not run for %.1f s, and the other nodes missed it",
		(double)slept_ms / 1000);
	return true;
}

uint64_t member_wait(const struct member *m, uv_timer_t *t, uv_timer_cb on_overdue, uint64_t ms)
{
	uv_update_time(m->loop);
	(void)uv_timer_start(t, on_overdue, ms, 0);
	return uv_now(m->loop) + ms;
}

bool member_overslept(const struct member *m, uint64_t overdue_ms)
{
	return uv_now(m->loop) > overdue_ms + m->config->node_timeout_ms / 4;
}

void member_introduce(const struct member *m, struct link *hub)
{
	const struct member_config *c = m->config;
	struct message_join j = {
		.node_rank = c->node_rank_known ? c->node_rank : NODE_RANK_UNKNOWN,
		.nnodes = c->nnodes,
		.nproc = c->nproc,
		.max_restarts = c->policy.max_restarts,
		.store = c->store_wish,
		.run_hash = message_run_hash(c->run_id),
	};
	struct wire_out w = { 0 };

	(void)strncpy(j.run_id, c->run_id ? c->run_id : "", sizeof j.run_id - 1);
	(void)strncpy(j.name, c->name, sizeof j.name - 1);
	(void)strncpy(j.version, LAUNCHD_VERSION, sizeof j.version - 1);
	address_host_text((const struct sockaddr *)&hub->peer_address, j.reached);
	message_put_join(&w, &j);
	(void)link_send(hub, MESSAGE_JOIN, w.at, w.len); /* a lost link tells by itself */
	wire_out_done(&w);
}

/* For --verbose. */
static void say_way(struct member *m)
{
	const struct member_config *c = m->config;
	struct text t = { 0 };

	if (!c->verbose || c->way == MEET_NOBODY)
		return;
	text_printf(&t, "the launchers of %u nodes meet ", c->nnodes);
	if (c->way == MEET_PMIX)
		text_add(&t, "by PMIx");
	else
		text_printf(&t, "at %s, port %u (%s)", c->hub_addr, c->hub_port, c->port_from);
	member_say(m, false, text_string(&t));
	text_done(&t);
}

int member_met(struct member *m, const struct meeting *met, struct failure *why)
{
	struct text t = { 0 };

	if (m->config->verbose && !met->alone) {
		text_printf(&t, "the launchers have met after %.2f s; this is node rank %u",
			(double)(uv_hrtime() - m->began_ns) / 1e9, met->node_rank);
		member_say(m, false, text_string(&t));
		text_done(&t);
	}
	return m->on->met(m->owner, met, why);
}

void member_start(struct member *m, uv_loop_t *loop, const struct member_config *c,
	const struct member_events *on, void *owner, const struct bus *bus, struct arena *memory)
{
	*m = (struct member){
		.config = c,
		.on = on,
		.owner = owner,
		.bus = bus,
		.loop = loop,
		.memory = memory,
	};
	m->began_ns = uv_hrtime();
	uv_update_time(loop);
	m->deadline_ms = uv_now(loop) + c->join_timeout_ms;
	say_way(m);
	switch (c->way) {
	case MEET_NOBODY:
		be_alone(m);
		return;
	case MEET_PMIX:
		member_meet_by_pmix(m);
		return;
	case MEET_STATIC:
		if (member_use_key(m))
			member_meet_static(m);
		return;
	}
}

void member_failed(struct member *m, const struct outcome *o)
{
	if (m->role == MEMBER_HUB)
		hub_failed(&m->hub, o);
	else
		spoke_failed(&m->spoke, o);
}

/* Nothing is met yet, nothing was started. */
static void end_search(struct member *m, const struct cause *cause)
{
	struct result r = { .cause = *cause };
	struct job_end end = { .why_not = "" };

	verdict_make(&r, &end.verdict);
	m->on->over(m->owner, &end);
}

void member_asked(struct member *m, const struct stop *s)
{
	switch (m->role) {
	case MEMBER_NONE:
		end_search(m, &s->cause);
		return;
	case MEMBER_HUB:
		hub_asked(&m->hub, s);
		return;
	case MEMBER_SPOKE:
		spoke_asked(&m->spoke, s);
		return;
	}
}

void member_forward(struct member *m, int signal)
{
	if (!m->auth.keyed)
		return; /* nor would the others take it */
	if (m->role == MEMBER_HUB)
		hub_forward(&m->hub, signal);
	if (m->role == MEMBER_SPOKE)
		spoke_forward(&m->spoke, signal);
}

void member_ended(
	struct member *m, const struct node_end *end, const struct evidence *list, size_t count)
{
	if (m->role == MEMBER_HUB)
		hub_ended(&m->hub, end, list, count);
	else
		spoke_ended(&m->spoke, end, list, count);
}

void member_waiting(struct member *m, unsigned attempt, const unsigned *ranks, size_t count)
{
	if (m->role == MEMBER_HUB)
		hub_waiting(&m->hub, m->hub.self, attempt, ranks, count);
	else
		spoke_waiting(&m->spoke, attempt, ranks, count);
}

void member_part_closed(struct member *m)
{
	if (--m->parts == 0 && m->closing)
		m->on->closed(m->owner);
}

void member_close(struct member *m)
{
	if (m->closing)
		return;
	m->closing = true;
	m->parts++; /* this call: parts may close at once */
	pmix_close(&m->pmix);
	if (m->finds)
		finder_close(&m->finder);
	if (m->doubts)
		doubt_close(&m->doubt);
	if (m->role == MEMBER_HUB)
		hub_close(&m->hub);
	if (m->role == MEMBER_SPOKE)
		spoke_close(&m->spoke);
	member_part_closed(m);
}

void member_hurry(struct member *m)
{
	if (m->role == MEMBER_HUB)
		hub_hurry(&m->hub);
	if (m->role == MEMBER_SPOKE)
		spoke_hurry(&m->spoke);
}
