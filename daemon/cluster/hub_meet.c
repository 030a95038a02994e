/* hub_meet.c - the meeting: for whom the job waits, which ranks they have, and how the job begins;
 * see hub_parts.h */
#include "daemon/cluster/hub_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/address.h"
#include "common/arena.h"
#include "common/failure.h"
#include "common/natural.h"
#include "common/num.h"
#include "common/text.h"
#include "common/vec.h"
#include "daemon/job/phrases.h"

enum {
	FIRST_NOTE_MS = 10000, /* until those who wait are told which nodes are missing */
	NEXT_NOTE_MS = 60000,
	NAMES_SHOWN = 16,
	MISSING_BYTES = 200, /* of the names of missing nodes: half of what a message holds */
};

/* --- ranks --- */

void hub_leave_place(struct caller *p, const char *why)
{
	struct hub *h = p->hub;

	if (!p->joined)
		return;
	p->joined = false;
	h->joined--;
	if (p->node == NODE_RANK_UNKNOWN)
		return;
	party_tell_node(h->party, p->node, p->about.name, why);
	h->peers[p->node] = NULL;
	job_unjoined(&h->job, p->node);
}

/* What a message says is the attempt's. */
static struct peer kept(const struct peer *told, struct arena *arena)
{
	size_t size = told->port_count * sizeof *told->ports;
	unsigned *ports = size > 0 ? arena_alloc(arena, size) : NULL;
	struct peer ret = *told;

	if (ports)
		memcpy(ports, told->ports, size);
	ret.ports = ports;
	ret.port_count = ports ? told->port_count : 0;
	ret.addr = told->addr ? arena_strdup(arena, told->addr) : NULL;
	return ret;
}

void hub_take_place(struct hub *h, struct caller *p, unsigned node)
{
	p->node = node;
	h->peers[node] = p;
	h->nproc[node] = p->about.nproc;
	h->told[node] = kept(&p->about.peer, h->party->config->arena);
	job_joined(&h->job, node, p->about.nproc, p->about.name);
	party_tell_node(h->party, node, p->about.name, NULL);
}

/* Nodes without a rank get the free ones in the natural order of their names: node2 before
 * node10. */
static int by_name(const void *a, const void *b)
{
	const struct caller *x = *(struct caller *const *)a, *y = *(struct caller *const *)b;
	int rc = natural_compare(x->about.name, y->about.name);

	return rc ? rc : strcmp(x->link.peer, y->link.peer);
}

/* Nodes that have joined without a rank, in the order in which they will get one. NULL: out of
 * memory. */
static struct caller **unranked_of(const struct hub *h, struct arena *arena, unsigned *ret_count)
{
	struct caller **list = arena_alloc(arena, h->job.nnodes * sizeof(struct caller *));
	unsigned count = 0;

	for (struct caller *p = h->all; p && list; p = p->next)
		if (p->joined && p->node == NODE_RANK_UNKNOWN)
			list[count++] = p;
	if (count > 0)
		qsort(list, count, sizeof *list, by_name);
	*ret_count = count;
	return list;
}

int hub_rank_rest(struct hub *h)
{
	unsigned count, node = 0;
	struct caller **list = unranked_of(h, h->party->config->arena, &count);

	for (unsigned i = 0; i < count; i++) {
		while (node == h->self || h->peers[node])
			node++;
		hub_take_place(h, list[i], node);
	}
	return list ? 0 : -ENOMEM;
}

/* A failure on one node ends the job on all. */
static void end_for(struct caller *p, int code, const char *text)
{
	hub_refuse(p->hub, code, "node %u, %s: %s", p->node, hub_peer(p).text, text);
}

/* --- the beginning --- */

/* The position of an address among our own, in the order in which others try them, from 1 on. 0:
 * not our own, but one that leads here. */
static size_t place_of(const struct vec *own, const char *address)
{
	for (size_t i = 0; i < own->count; i++)
		if (strcmp(own->at[i], address) == 0)
			return i + 1;
	return 0;
}

const char *hub_asked_addr(const struct hub *h)
{
	const struct member_config *c = h->party->config;
	struct address a;

	if (!c->bound)
		return NULL;
	if (c->own_addr && address_parse(c->own_addr, 0, &a) == 0)
		return c->own_addr;
	return c->addresses.count > 0 ? c->addresses.at[0] : NULL;
}

/* Where the others can reach worker 0. What is given stays as it is, except for a name where our
 * store may listen at one address only, which the name may not mean on this host. A node that came
 * by an address could not come by those before it, so of those by which nodes came the last one is
 * chosen, even if most came by another. */
static const char *find_master(struct hub *h)
{
	const struct member_config *c = h->party->config;
	const char *best = c->master_addr ? c->master_addr : c->own_addr;
	const char *asked = h->agent_store ? hub_asked_addr(h) : NULL;
	struct address parsed;
	size_t last = 0;

	if (best && asked && address_parse(best, 0, &parsed) < 0)
		best = asked;

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

/* A node without a launcher in the job can't restart its workers, so then there are no restarts. */
static unsigned restarts_of(const struct hub *h)
{
	return h->joined == h->job.nnodes ? h->job.policy.max_restarts : 0;
}

static void welcome(struct hub *h)
{
	struct message m = {
		.type = MESSAGE_WELCOME,
		.welcome = {
			.nnodes = h->job.nnodes,
			.master_port = h->master_port,
			.agent_store = h->agent_store,
			.max_restarts = restarts_of(h),
			.after_end_ms = (uint32_t)h->after_end_ms,
			.port_wait_ms = (uint32_t)h->party->config->port_wait_ms,
			.nproc = h->nproc,
			.peers = h->told,
		},
	};
	struct message_welcome *w = &m.welcome;

	(void)strncpy(w->master_addr, h->master_addr, sizeof w->master_addr - 1);
	for (w->node_rank = 0; w->node_rank < w->nnodes; w->node_rank++)
		if (h->peers[w->node_rank])
			party_send(&h->peers[w->node_rank]->link, &m);
}

/* This node's plan is made before the others are asked for theirs. */
static int plan_own(struct hub *h, struct failure *why)
{
	const struct member_config *c = h->party->config;
	const char *given = c->master_addr;
	bool alone = c->way == MEET_NOBODY;
	const struct meeting met = {
		.node_rank = alone ? c->node_rank : h->self,
		.nnodes = c->nnodes,
		.nproc_of_node = h->nproc,
		.peers = alone && c->nnodes > 1 ? NULL : h->told,
		.master_addr = given && strcmp(given, h->master_addr) == 0 ? NULL : h->master_addr,
		.master_port = h->master_port,
		.max_restarts = restarts_of(h),
		.agent_store = h->agent_store,
		.alone = alone,
	};

	return party_met(h->party, &met, why);
}

/* It beats, but does not answer: its launcher hangs, or is another program. */
static void on_unready(uv_timer_t *t)
{
	struct hub *h = t->data;
	struct failure why = { 0 };

	(void)failure_set(&why, -ETIMEDOUT,
		"it had joined, but was not ready to start its workers within %s s "
		"(--node-timeout)",
		num_seconds(h->party->config->node_timeout_ms).text);
	for (struct caller *p = h->all; p && h->state < HUB_OVER; p = p->next)
		if (p->joined && !p->ready)
			end_for(p, why.code, why.text);
}

/* What a node needs for --blackbox and --post-attempt, which need not be given on all. */
static uint64_t longest_after_end_ms(const struct hub *h)
{
	uint64_t longest = h->party->config->after_end_ms;

	for (const struct caller *p = h->all; p; p = p->next)
		if (p->joined && p->about.after_end_ms > longest)
			longest = p->about.after_end_ms;
	return longest;
}

void hub_begin(struct hub *h)
{
	const struct member_config *c = h->party->config;
	struct failure why = { 0 };

	if (h->state != HUB_MEETING)
		return;
	hub_goto(h, HUB_PREPARING);
	if (hub_rank_rest(h) < 0)
		(void)failure_oom(&why);
	h->unready = h->joined - 1;
	h->after_end_ms = longest_after_end_ms(h);
	h->agent_store = c->agent_store && h->joined == h->job.nnodes;
	for (unsigned i = 0; i < c->nnodes; i++)
		h->nproc[i] = h->nproc[i] ? h->nproc[i] : c->nproc;
	h->master_addr = find_master(h);
	if (why.code != 0 || hub_find_port(h, &why) < 0 || plan_own(h, &why) < 0) {
		hub_refuse(h, why.code, "%s", why.text);
		return;
	}
	welcome(h);
	hub_lines_offer(h);
	if (h->unready == 0)
		hub_start_first(h);
	else
		(void)party_wait(h->party, &h->clock, on_unready, c->node_timeout_ms);
}

void hub_hear_ready(struct caller *p, const struct message *m)
{
	(void)m;
	if (p->ready)
		return;
	p->ready = true;
	if (--p->hub->unready == 0)
		hub_start_first(p->hub);
}

void hub_hear_refusal(struct caller *p, const struct message *m)
{
	p->told = true; /* by itself */
	end_for(p, m->refused.code, m->refused.text);
}

/* Who doesn't resume a broken connection is lost soon, or was started again and joins again: the
 * job must not begin with a launcher that is gone. */
void hub_begin_if_complete(struct hub *h)
{
	if (h->state != HUB_MEETING || h->joined < h->job.nnodes)
		return;
	for (const struct caller *p = h->all; p; p = p->next)
		if (p->joined && p->link.broke_ns != 0)
			return;
	hub_begin(h);
}

void hub_lose_early(struct caller *p, const char *why)
{
	if (p->hub->state == HUB_MEETING) {
		hub_leave_place(p, why);
		return;
	}
	party_tell_node(p->hub->party, p->node, p->about.name, why);
	end_for(p, -ECONNRESET, why);
}

/* --- waiting --- */

/* Which nodes have joined, and which have not. */
struct presence {
	struct arena scratch;
	const char *
		*names; /* of those that have joined, by rank; the ones without a rank come last */
	unsigned *awaited; /* ranks that no node has yet */
	unsigned here, missing, awaited_count;
	bool ranked; /* all have ranks, so the awaited ones are the missing nodes' */
};

/* -ENOMEM; the scratch arena of ret needs arena_done() either way. */
static int look(const struct hub *h, struct presence *ret)
{
	unsigned nnodes = h->job.nnodes, unranked = 0;
	struct presence p = { .missing = nnodes - h->joined };
	struct caller **list = unranked_of(h, &p.scratch, &unranked);

	p.names = arena_alloc(&p.scratch, nnodes * sizeof *p.names);
	p.awaited = arena_alloc(&p.scratch, nnodes * sizeof *p.awaited);
	p.ranked = unranked == 0 && h->party->config->node_rank_known;
	for (unsigned i = 0; i < nnodes && p.names && p.awaited; i++) {
		if (h->job.nodes[i].state == NODE_JOINED)
			p.names[p.here++] = h->job.nodes[i].about.name;
		else
			p.awaited[p.awaited_count++] = i;
	}
	for (unsigned i = 0; i < unranked && p.names; i++)
		p.names[p.here++] = list[i]->about.name;
	*ret = p;
	return arena_failed(&p.scratch) ? -ENOMEM : 0;
}

static void add_here(struct text *t, const struct presence *p)
{
	text_add(t, "; joined: ");
	for (unsigned i = 0; i < p->here; i++) {
		text_add(t, i > 0 ? ", " : "");
		if (i == NAMES_SHOWN) {
			text_printf(t, "... (%u in all)", p->here);
			return;
		}
		text_add_shown(t, p->names[i], strlen(p->names[i]));
	}
}

static void add_awaited(struct text *t, const struct presence *p, const struct hub *h)
{
	nodes_add(t, p->awaited, p->awaited_count, h->party->config->node_names, MISSING_BYTES);
}

static void add_missing(struct text *t, const struct presence *p, const struct hub *h)
{
	text_printf(t, "%u of %u nodes (%s) %s missing", p->missing, h->job.nnodes,
		h->party->config->nnodes_from, p->missing == 1 ? "is" : "are");
	if (p->ranked) {
		text_add(t, ": ");
		add_awaited(t, p, h);
	}
	add_here(t, p);
}

static void add_late(struct text *t, const struct presence *p, const struct hub *h)
{
	if (p->ranked)
		add_awaited(t, p, h);
	else
		text_printf(t, "%u of %u nodes", p->missing, h->job.nnodes);
	text_printf(t, " did not join within %s s (--join-timeout)",
		num_seconds(h->party->config->join_timeout_ms).text);
	add_here(t, p);
}

static void tell_missing(struct hub *h, const struct presence *p)
{
	struct text line = { 0 };
	struct message m;

	add_missing(&line, p, h);
	party_say(h->party, NOTE_INFO, "%s", text_string(&line));
	m = message_waiting(text_string(&line));
	hub_tell(h, &m, NULL);
	text_done(&line);
}

/* The join timeout is over. */
static void stop_waiting(struct hub *h, const struct presence *p)
{
	struct text line = { 0 };

	add_late(&line, p, h);
	if (h->party->config->required) {
		text_printf(&line, "; this launcher listened on %s, port %u (%s)",
			h->party->config->name, h->listener.port, h->party->config->required);
		hub_refuse(h, -ETIMEDOUT, "%s", text_string(&line));
	} else {
		party_say(h->party, NOTE_WARNING,
			"%s; the job starts anyway, but won't notice if %s", text_string(&line),
			p->missing == 1 ? "it fails" : "they fail");
		hub_begin(h);
	}
	text_done(&line);
}

static void on_waiting(uv_timer_t *t)
{
	struct hub *h = t->data;
	uint64_t left = party_left_ms(h->party, h->party->deadline_ms);
	struct presence p;

	if (look(h, &p) < 0) {
		hub_refuse(h, -ENOMEM, "out of memory");
	} else if (left > 0) {
		if (p.missing > 0)
			tell_missing(h, &p);
		(void)uv_timer_start(t, on_waiting, left < NEXT_NOTE_MS ? left : NEXT_NOTE_MS, 0);
	} else if (p.missing > 0) {
		stop_waiting(h, &p);
	} else {
		hub_begin(h);
	}
	arena_done(&p.scratch);
}

void hub_wait(struct hub *h)
{
	uint64_t left = party_left_ms(h->party, h->party->deadline_ms);

	if (h->state == HUB_MEETING)
		(void)uv_timer_start(
			&h->clock, on_waiting, left < FIRST_NOTE_MS ? left : FIRST_NOTE_MS, 0);
}
