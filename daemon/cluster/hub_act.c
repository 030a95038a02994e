/* hub_act.c - what the job decides, carried out on all nodes; see hub_parts.h */
#include "daemon/cluster/hub_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "common/num.h"
#include "common/text.h"
#include "common/utc.h"
#include "daemon/job/phrases.h"
#include "daemon/os/port.h"
#include "daemon/store/store.h"

enum { STORE_MEMORY_MAX = 1 << 30, PORT_POLL_MS = 100 };

/* --- who has not joined the store --- */

static unsigned first_rank(const struct hub *h, unsigned node)
{
	unsigned first = 0;

	for (unsigned i = 0; i < node; i++)
		first += h->nproc[i];
	return first;
}

static unsigned world_size(const struct hub *h)
{
	return first_rank(h, h->party->config->nnodes);
}

/* A wrapper's connections are not the worker's own, and some workers join after they were looked
 * for. A store that nobody asked for may be one that nobody needs. */
static bool all_joined(const struct hub *h)
{
	unsigned clients = h->store ? store_clients(h->store) : 0;

	return clients >= world_size(h) ||
		(clients == 0 && h->party->config->store_wish != STORE_WISH_AGENT);
}

static void say_waiting(struct hub *h, unsigned node, const unsigned *ranks, size_t count)
{
	const struct node *about = &h->job.nodes[node].about;
	struct text t = { 0 };

	text_add(&t, "waiting for ");
	numbers_add(&t, "rank", ranks, count);
	text_printf(&t, " (node %u, ", node);
	text_add_shown(&t, about->name, strlen(about->name));
	text_printf(&t, ") to join the store, %.0f s after the start",
		(double)(uv_hrtime() - h->job.started_ns) / 1e9);
	party_say(h->party, NOTE_INFO, "%s", text_string(&t));
	text_done(&t);
}

void hub_waiting(struct hub *h, unsigned node, const struct message_ranks *m)
{
	unsigned first = first_rank(h, node), nproc = h->nproc[node];
	size_t count = all_joined(h) ? 0 : m->count;

	if (h->state >= HUB_OVER || m->attempt != h->job.attempt || count > nproc)
		return;
	for (size_t i = 0; i < count; i++)
		if (m->list[i] < first || m->list[i] >= first + nproc)
			return;
	if (!h->unjoined)
		h->unjoined = arena_alloc(h->party->memory, world_size(h) * sizeof *h->unjoined);
	if (!h->unjoined)
		return;
	memset(h->unjoined + first, 0, nproc * sizeof *h->unjoined);
	for (size_t i = 0; i < count; i++)
		h->unjoined[m->list[i]] = true;
	if (count > 0)
		say_waiting(h, node, m->list, count);
}

/* The ranks of all nodes that have not joined, in order, in the attempt's memory. */
static const unsigned *all_waiting(const struct hub *h, size_t *ret_count)
{
	unsigned world = world_size(h), *list = NULL;
	size_t count = 0;

	if (h->unjoined && !all_joined(h))
		list = arena_alloc(h->party->memory, world * sizeof *list);
	for (unsigned i = 0; list && i < world; i++)
		if (h->unjoined[i])
			list[count++] = i;
	*ret_count = count;
	return list;
}

/* --- what failed workers say --- */

void hub_remember(struct hub *h, const struct evidence *said)
{
	struct remembered *r = arena_alloc(h->party->memory, sizeof *r);

	if (!r)
		return;
	*r = (struct remembered){ *said, h->said };
	h->said = r;
}

static const struct evidence *evidence_of_rank(const struct hub *h, unsigned rank)
{
	const struct evidence *ret = NULL;

	for (const struct remembered *it = h->said; it; it = it->next)
		if (it->said.rank == rank)
			ret = &it->said; /* of several the first that came */
	return ret;
}

static const struct evidence *evidence_of(const struct hub *h, const struct result *r)
{
	const struct outcome *culprit = result_culprit(r), *failed = cause_failed(&r->cause);

	/* without a culprit, the victim's own words are all the evidence */
	culprit = culprit ? culprit : failed;
	return culprit ? evidence_of_rank(h, culprit->rank) : NULL;
}

void hub_find_site(void *owner, unsigned rank, struct crash_site *ret)
{
	const struct evidence *said = evidence_of_rank(owner, rank);

	if (said)
		crash_site_find(said, ret);
}

static void forget_attempt(struct hub *h)
{
	h->said = NULL;
	h->unjoined = NULL;
	for (struct caller *p = h->all; p; p = p->next) {
		p->outcomes = NULL;
		p->count = p->kept_bytes = 0;
	}
}

/* --- the store, and the port of an attempt --- */

static void on_store_note(void *owner, const char *text)
{
	party_say(((struct hub *)owner)->party, NOTE_WARNING, "%s", text);
}

/* What is wrong with the master port, and what to do about it. */
static int say_port_in_use(
	const struct member_config *c, const struct failure *without, struct failure *why)
{
	return failure_set(why, without->code,
		"%s; it is the master port (%s): give another one, or on one node --master_port 0, a free one",
		without->text, c->master_port_from);
}

/* The master address may be a name, which each node looks up, or lead here by a service's address
 * or NAT: then all of this host's are bound, or the one that --local-addr or --interface asks for.
 * A store that is ours by default takes whoever comes, as torch's does: workers may come by another
 * way than their launcher. */
static int open_store(struct hub *h, struct failure *why)
{
	const struct member_config *c = h->party->config;
	struct address master;
	bool is_address = address_parse(h->master_addr, 0, &master) == 0;
	struct failure failed = { 0 };
	struct store_config config = {
		.addr = is_address ? h->master_addr : NULL,
		.open = c->store_wish != STORE_WISH_AGENT &&
			!(is_address && address_is_loopback(&master)),
		.port = c->master_port,
		.old = c->store_dialect,
		.memory_max = STORE_MEMORY_MAX,
		.on_note = on_store_note,
		.owner = h,
	};
	struct store *store = arena_alloc(c->arena, sizeof *store);

	if (!store)
		return failure_oom(why);
	if (store_open(store, h->party->loop, &config, &failed) == -EADDRNOTAVAIL && config.addr) {
		config.addr = hub_asked_addr(h);
		failed = (struct failure){ 0 };
		(void)store_open(store, h->party->loop, &config, &failed);
	}
	if (failed.code == -EADDRINUSE)
		return say_port_in_use(c, &failed, why);
	if (failed.code < 0)
		return failure_copy(why, &failed);
	h->store = store;
	h->handles++;
	h->master_port = store_port(store);
	for (struct caller *p = h->all; p; p = p->next)
		if (p->joined)
			(void)store_allow(store, &p->link.peer_address);
	return 0;
}

/* The port of the next attempt; 0: none is free, why says so. */
static unsigned next_port(struct hub *h, struct failure *why)
{
	unsigned port = h->store ? h->master_port : h->party->config->master_port;

	if (port > 0)
		return port;
	fd_closep(&h->port_fd);
	return port_reserve(&h->port_fd, &port, why) < 0 ? 0 : port;
}

/* Whether worker 0 can listen at the master port that was given. -EADDRINUSE, with the sentence. */
static int try_port(const struct hub *h, struct failure *why)
{
	unsigned port = h->party->config->master_port;
	struct failure failed = { 0 };
	int rc = h->store || port == 0 ? 0 : port_try((uint16_t)port);

	if (rc != -EADDRINUSE)
		return 0; /* what else there may be, worker 0 says */
	(void)port_explain("worker 0 ", NULL, (uint16_t)port, rc, &failed);
	return say_port_in_use(h->party->config, &failed, why);
}

int hub_find_port(struct hub *h, struct failure *why)
{
	struct failure busy = { 0 };

	if (h->agent_store)
		return open_store(h, why);
	h->master_port = next_port(h, why);
	if (why->code == 0 && try_port(h, &busy) < 0) {
		if (h->party->config->torch)
			return failure_copy(why, &busy);
		party_say(h->party, NOTE_WARNING, "%s", busy.text);
	}
	return why->code;
}

/* --- orders --- */

static void on_overdue(uv_timer_t *t);

static void wait_for_ends(struct hub *h, uint64_t ms)
{
	h->overdue_ms = party_wait(h->party, &h->clock, on_overdue, ms);
}

static uint64_t limit_ms(const struct hub *h)
{
	return h->stop_grace_ms + STOP_REST_MS + h->after_end_ms +
		h->party->config->node_timeout_ms;
}

/* Told at once, as the report may name another cause only. */
static void give_up(struct hub *h, struct caller *p, const char *why)
{
	party_say(h->party, NOTE_WARNING, "node %u, %s, is considered lost: %s", p->node,
		hub_peer(p).text, why);
	link_close(&p->link, false, why);
}

/* A node that beats, but hangs, or is another program, is considered lost. */
static void on_overdue(uv_timer_t *t)
{
	struct hub *h = t->data;
	char why[160];

	if (party_overslept(h->party, h->overdue_ms)) {
		wait_for_ends(h, h->party->config->node_timeout_ms);
		return;
	}
	(void)snprintf(why, sizeof why,
		"it still sends heartbeats, but did not report within %s s of being told to stop "
		"that its workers have ended",
		num_seconds(limit_ms(h)).text);
	for (unsigned i = 0; i < h->job.nnodes; i++)
		if (h->peers[i] && h->job.nodes[i].state == NODE_JOINED)
			give_up(h, h->peers[i], why);
}

void hub_tell_stop(struct hub *h)
{
	hub_tell(h, &(struct message){ MESSAGE_STOP, .stop = h->job.stop }, NULL);
	/* the first order starts the limit: later ones only shorten the stop */
	if (h->joined == 1 || uv_is_active((const uv_handle_t *)&h->clock))
		return;
	h->stop_grace_ms = h->job.stop.grace_ms;
	wait_for_ends(h, limit_ms(h));
}

static void start_next(struct hub *h)
{
	const struct member_config *c = h->party->config;
	struct message_start start = { .attempt = h->job.attempt, .master_port = h->master_port };

	if (start.attempt == 0)
		h->party->job_ms = (uint64_t)utc_now_ns() / 1000000;
	start.job_ms = h->party->job_ms;
	start.checks = start.attempt == 0 ? c->check_first : c->check_again;
	start.gate_ms = (uint32_t)(c->port_wait_ms > h->port_waited_ms ?
			c->port_wait_ms - h->port_waited_ms :
			0);
	h->port_waited_ms = 0;
	hub_check_call(h, &start);
	hub_tell(h, &(struct message){ MESSAGE_START, .start = start }, NULL);
	h->party->on->start(h->party->owner, start.attempt, start.master_port);
}

static void on_pause_over(uv_timer_t *t)
{
	struct hub *h = t->data;
	struct failure why = { 0 };
	unsigned port = next_port(h, &why);
	const struct member_config *c = h->party->config;

	/* what held it may be a leftover of the last attempt, which is about to go */
	if (port > 0 && try_port(h, &why) < 0 && h->port_waited_ms < c->port_wait_ms) {
		if (h->port_waited_ms == 0)
			party_say(h->party, NOTE_INFO,
				"the restart waits up to %s s (--restart-gate-timeout) for the master port: %s",
				num_seconds(c->port_wait_ms).text, why.text);
		h->port_waited_ms += PORT_POLL_MS;
		(void)uv_timer_start(&h->clock, on_pause_over, PORT_POLL_MS, 0);
		return;
	}
	if (port == 0 || (why.code < 0 && c->torch)) {
		party_say(h->party, NOTE_WARNING, "%s", why.text);
		hub_obey(h,
			job_give_up(&h->job,
				port == 0 ? "no port is free" : "the master port is in use",
				uv_hrtime()));
		return;
	}
	forget_attempt(h);
	h->master_port = port;
	if (h->store)
		store_next_attempt(h->store);
	job_resume(&h->job, uv_hrtime());
	start_next(h);
}

static struct job_end end_of(const struct hub *h)
{
	const struct job *j = &h->job;
	struct job_end end = {
		.result = &j->result,
		.evidence = evidence_of(h, &j->result),
		.restarts = h->restarts,
		.asked_restarts = h->job.asked_restarts,
		.restart_asked = j->restart.kind != CAUSE_NONE,
		/* it outlives the hub */
		.why_not = arena_strdup(h->party->config->arena, j->why_not),
		.past = j->past,
		.goodput = j->goodput,
	};

	end.waiting = all_waiting(h, &end.waiting_count);
	verdict_make(&j->result, &end.verdict);
	end.verdict.attempt = j->attempt;
	return end;
}

/* Closes all connections after it, except those whose last lines may still come. */
static void tell_verdict(struct hub *h, struct verdict told)
{
	if (!told.well)
		job_name_host(&h->job, &told.cause);
	hub_tell(h, &(struct message){ MESSAGE_VERDICT, .verdict = told }, NULL);
	hub_lines_last(h);
	for (struct caller *p = h->all; p; p = p->next) {
		if (!p->told && !hub_lines_await(p))
			link_close(&p->link, true, NULL);
		p->told = true;
	}
}

void hub_obey(struct hub *h, enum order what)
{
	const struct party *p = h->party;
	struct job_end end;

	switch (what) {
	case ORDER_NONE:
		return;
	case ORDER_STOP:
		hub_tell_stop(h);
		p->on->stop(p->owner, &h->job.stop);
		return;
	case ORDER_RESTART:
		end = end_of(h);
		h->restarts++;
		p->on->pause(p->owner, &end, h->job.delay_ms);
		(void)uv_timer_start(&h->clock, on_pause_over, h->job.delay_ms, 0);
		return;
	case ORDER_OVER:
		hub_goto(h, HUB_OVER);
		end = end_of(h);
		tell_verdict(h, end.verdict);
		p->on->over(p->owner, &end);
		return;
	}
}

void hub_start_first(struct hub *h)
{
	hub_goto(h, HUB_RUNNING);
	job_begin(&h->job, uv_hrtime());
	for (struct caller *p = h->all; p; p = p->next)
		if (p->joined)
			beat_entrust(&h->beat, &p->link);
	start_next(h);
}
