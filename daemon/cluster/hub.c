/* hub.c - what the job decides, carried out on all nodes; see hub.h */
#include "daemon/cluster/hub.h"

#include <errno.h>
#include <string.h>

#include "common/address.h"
#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "common/text.h"
#include "common/vec.h"
#include "daemon/cluster/config.h"
#include "daemon/cluster/hub_store.h"
#include "daemon/cluster/member.h"
#include "daemon/net/wire.h"
#include "daemon/os/port.h"

/* What the culprit says of itself. */
static const struct evidence *evidence_of(const struct hub *h, const struct result *r)
{
	const struct outcome *culprit = result_culprit(r);

	for (size_t i = 0; culprit && i < h->said_count; i++)
		if (h->said[i].rank == culprit->rank)
			return &h->said[i];
	return NULL;
}

static struct job_end end_of(const struct hub *h, const struct orders *orders)
{
	struct job_end end = {
		.result = &orders->result,
		.evidence = evidence_of(h, &orders->result),
		.restarts = h->restarts,
		/* it is read when the orders have gone */
		.why_not = arena_strdup(h->member->config->arena, orders->why_not),
	};

	end.waiting = hub_all_waiting(h, &end.waiting_count);
	verdict_make(&orders->result, &end.verdict);
	end.verdict.attempt = h->job.attempt;
	return end;
}

static void tell_verdict(struct hub *h, const struct verdict *v)
{
	struct verdict told = *v;
	struct wire_out w = { 0 };

	if (!told.well)
		job_name_host(&h->job, &told.cause);
	message_put_verdict(&w, &told);
	hub_logs_last(h);
	hub_dismiss(h, MESSAGE_VERDICT, w.at, w.len);
	wire_out_done(&w);
}

/* The port of the next attempt. 0: there is none, why says so. */
static unsigned next_port(struct hub *h, struct failure *why)
{
	unsigned port = h->store ? h->master_port : h->member->config->master_port;

	if (port > 0)
		return port;
	fd_closep(&h->port_fd);
	return port_reserve(&h->port_fd, &port, why) < 0 ? 0 : port;
}

static void start_next(struct hub *h)
{
	struct message_start m = { .attempt = h->job.attempt, .master_port = h->master_port };
	struct wire_out w = { 0 };

	message_put_start(&w, &m);
	hub_tell(h, MESSAGE_START, w.at, w.len, NULL);
	wire_out_done(&w);
	h->member->on->start(h->member->owner, m.attempt, m.master_port);
}

/* There can be no next attempt after all: the job ends as a launcher's failure. */
static void fail_here(struct hub *h, const char *text)
{
	struct stop s = { .attempt = h->job.attempt,
		.urgency = URGENCY_STOP,
		.cause = { .kind = CAUSE_NODE_LOST, .at_ns = uv_hrtime(), .node = h->self } };

	member_say(h->member, true, text);
	(void)strncpy(s.cause.detail, "it found no free port", sizeof s.cause.detail - 1);
	hub_asked(h, &s);
}

static void on_pause_over(uv_timer_t *t)
{
	struct hub *h = t->data;
	struct failure why = { 0 };
	unsigned port = next_port(h, &why);

	if (port == 0) {
		fail_here(h, why.text);
		return;
	}
	h->said = NULL;
	h->unjoined = NULL;
	h->said_count = h->said_room = 0;
	for (struct caller *p = h->all; p; p = p->next) {
		p->outcomes = NULL;
		p->count = p->kept_bytes = 0;
	}
	h->master_port = port;
	hub_store_renew(h);
	job_resume(&h->job, uv_hrtime());
	start_next(h);
}

void hub_obey(struct hub *h, enum order what, const struct orders *orders)
{
	struct member *m = h->member;
	struct job_end end;

	switch (what) {
	case ORDER_NONE:
		return;
	case ORDER_STOP:
		hub_tell_stop(h);
		m->on->stop(m->owner, &h->job.stop);
		return;
	case ORDER_RESTART:
		end = end_of(h, orders);
		h->restarts++;
		m->on->pause(m->owner, &end, orders->delay_ms);
		(void)uv_timer_start(&h->clock, on_pause_over, orders->delay_ms, 0);
		return;
	case ORDER_OVER:
		(void)uv_timer_stop(&h->clock);
		h->over = true;
		end = end_of(h, orders);
		tell_verdict(h, &end.verdict);
		m->on->over(m->owner, &end);
		return;
	}
}

/* The place of an address among our own, from 1 on, in the order in which the others try them. 0:
 * it is none of them, but one that leads here. */
static size_t place_of(const struct vec *own, const char *address)
{
	for (size_t i = 0; i < own->count; i++)
		if (strcmp(own->at[i], address) == 0)
			return i + 1;
	return 0;
}

/* What the settings say of it. A store listens on an address, which the workers are told: a name
 * may mean another one to each of them. */
static const char *given_master(const struct hub *h)
{
	const struct member_config *c = h->member->config;
	const char *first = h->agent_store ? c->own_addr : c->master_addr;
	const char *second = h->agent_store ? c->master_addr : c->own_addr;
	struct sockaddr_storage parsed;

	if (first && (!h->agent_store || address_parse(first, 0, &parsed) == 0))
		return first;
	if (second && (!h->agent_store || address_parse(second, 0, &parsed) == 0))
		return second;
	return NULL;
}

/* Where the others reach worker 0. Who came by an address has not come by those before it: of those
 * by which nodes came the last one is left, even where most came by another. */
static const char *find_master(struct hub *h)
{
	const struct member_config *c = h->member->config;
	const char *best = given_master(h);
	size_t last = 0;

	if (best)
		return best;
	for (struct caller *p = h->all; p; p = p->next) {
		size_t place = p->joined ? place_of(&c->addresses, p->about.reached) : 0;

		if (p->joined && (!best || place > last)) {
			last = place;
			best = p->about.reached;
		}
	}
	if (!best && c->addresses.count > 0)
		best = c->addresses.at[0];
	return best ? best : "127.0.0.1";
}

/* Where a node has no launcher that could start its workers again, none is. */
static unsigned restarts_of(const struct hub *h)
{
	return h->joined == h->job.nnodes ? h->job.policy.max_restarts : 0;
}

static void welcome(struct hub *h)
{
	struct message_welcome m = {
		.nnodes = h->job.nnodes,
		.master_port = h->master_port,
		.agent_store = h->agent_store,
		.max_restarts = restarts_of(h),
		.nproc = h->nproc,
	};

	(void)strncpy(m.master_addr, h->master_addr, sizeof m.master_addr - 1);
	for (unsigned i = 0; i < h->job.nnodes; i++) {
		struct wire_out w = { 0 };

		if (!h->peers[i])
			continue;
		m.node_rank = i;
		message_put_welcome(&w, &m);
		(void)link_send(&h->peers[i]->link, MESSAGE_WELCOME, w.at, w.len);
		wire_out_done(&w);
	}
}

/* Where worker 0 listens: the store's port, where this launcher hosts it. */
static void find_port(struct hub *h, struct failure *why)
{
	if (h->agent_store)
		(void)hub_store_open(h, why);
	else
		h->master_port = next_port(h, why);
}

/* The plan of this node, made before the others are asked for theirs. */
static int plan_own(struct hub *h, struct failure *why)
{
	struct member *m = h->member;
	const char *given = m->config->master_addr;
	bool alone = m->config->way == MEET_NOBODY;
	const struct meeting met = {
		.node_rank = alone ? m->config->node_rank : h->self,
		.nnodes = m->config->nnodes,
		.nproc_of_node = h->nproc,
		.master_addr = given && strcmp(given, h->master_addr) == 0 ? NULL : h->master_addr,
		.master_port = h->master_port,
		.max_restarts = restarts_of(h),
		.agent_store = h->agent_store,
		.alone = alone,
	};

	return member_met(m, &met, why);
}

void hub_begin(struct hub *h)
{
	const struct member_config *c = h->member->config;
	struct failure why = { 0 };

	if (h->begun || h->over)
		return;
	(void)uv_timer_stop(&h->clock);
	h->begun = true;
	if (hub_rank_rest(h) < 0)
		(void)failure_oom(&why);
	h->unready = h->joined - 1;
	h->agent_store = c->agent_store && h->joined == h->job.nnodes;
	for (unsigned i = 0; i < c->nnodes; i++)
		h->nproc[i] = h->nproc[i] ? h->nproc[i] : c->nproc;
	h->master_addr = find_master(h);
	find_port(h, &why);
	if (why.code != 0 || plan_own(h, &why) < 0) {
		hub_refuse(h, why.code, why.text);
		return;
	}
	welcome(h);
	hub_logs_offer(h);
	if (h->unready == 0)
		hub_start_first(h);
	else
		hub_await_ready(h);
}

void hub_start_first(struct hub *h)
{
	(void)uv_timer_stop(&h->clock);
	h->started = true;
	job_begin(&h->job, uv_hrtime());
	for (struct caller *p = h->all; p; p = p->next)
		if (p->joined)
			beat_bequeath(&h->beat, &p->link);
	start_next(h);
}

static void on_alone(uv_timer_t *t)
{
	hub_begin(t->data);
}

int hub_start(struct hub *h, struct member *m, const struct sockaddr *const *bound,
	unsigned bound_count, unsigned port, struct failure *why)
{
	const struct member_config *c = m->config;
	unsigned nnodes = c->way == MEET_NOBODY ? 1 : c->nnodes;

	*h = (struct hub){ .member = m, .port_fd = -1 };
	h->peers = arena_alloc(c->arena, nnodes * sizeof(struct caller *));
	h->nproc = arena_alloc(c->arena, c->nnodes * sizeof *h->nproc);
	if (!h->peers || !h->nproc ||
		job_init(&h->job, nnodes, &c->policy, c->grace_ms, c->arena) < 0)
		return failure_oom(why);
	if (nnodes > 1 && hub_listen(h, bound, bound_count, port, why) < 0)
		return why->code;
	(void)uv_timer_init(m->loop, &h->clock); /* can't fail */
	h->clock.data = h;
	h->handles++;
	h->nproc[c->way == MEET_NOBODY ? c->node_rank : h->self] = c->nproc;
	h->joined = 1;
	job_joined(&h->job, h->self, c->nproc, c->name);
	if (nnodes == 1)
		(void)uv_timer_start(&h->clock, on_alone, 0, 0);
	else if (c->way == MEET_STATIC)
		hub_wait(h);
	return 0;
}

unsigned hub_port(const struct hub *h)
{
	return h->listener.port;
}

void hub_failed(struct hub *h, const struct outcome *o)
{
	/* this node's workers are being ended already: the pool waits for nobody's order */
	if (job_failed(&h->job, h->self, o, uv_hrtime()) == ORDER_STOP)
		hub_tell_stop(h);
}

void hub_asked(struct hub *h, const struct stop *s)
{
	struct orders orders = { 0 };

	if (!h->over)
		hub_obey(h, job_asked(&h->job, h->self, s, &orders), &orders);
}

void hub_forward(struct hub *h, int signal)
{
	struct wire_out w = { 0 };

	message_put_signal(&w, signal);
	hub_tell(h, MESSAGE_SIGNAL, w.at, w.len, NULL);
	wire_out_done(&w);
}

void hub_ended(struct hub *h, const struct node_end *end, const struct evidence *list, size_t count)
{
	struct orders orders = { 0 };

	for (size_t i = 0; i < count; i++)
		hub_remember(h, &list[i]);
	hub_obey(h,
		job_ended(&h->job, h->self, end, uv_hrtime(), h->member->config->arena, &orders),
		&orders);
}

void hub_handle_closed(struct hub *h)
{
	if (--h->handles > 0)
		return;
	fd_closep(&h->port_fd);
	member_part_closed(h->member);
}

static void on_clock_closed(uv_handle_t *handle)
{
	hub_handle_closed(handle->data);
}

void hub_close(struct hub *h)
{
	if (h->closing)
		return;
	h->closing = h->over = true; /* what ends now is no news */
	uv_close((uv_handle_t *)&h->clock, on_clock_closed);
	hub_store_close(h);
	hub_hang_up(h);
}
