/* hub_join.c - who takes part in the job; see hub.h */
#include "daemon/cluster/hub.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/natural.h"
#include "common/num.h"
#include "common/text.h"
#include "daemon/cluster/config.h"
#include "daemon/cluster/member.h"
#include "daemon/net/wire.h"

enum { NPROC_MAX = 1 << 20 }; /* far above what a node can have */

static void leave_place(struct hub *h, struct caller *p, const char *why)
{
	if (!p->joined)
		return;
	p->joined = false;
	h->joined--;
	if (p->node == NODE_RANK_UNKNOWN)
		return;
	member_tell_node(h->member, p->node, p->about.name, why);
	h->peers[p->node] = NULL;
	job_unjoined(&h->job, p->node);
}

static void take_place(struct hub *h, struct caller *p, unsigned node)
{
	p->node = node;
	h->peers[node] = p;
	h->nproc[node] = p->about.nproc;
	job_joined(&h->job, node, p->about.nproc, p->about.name);
	member_tell_node(h->member, node, p->about.name, NULL);
}

/* Those without a rank get what is left, in the natural order of their names: node2 before node10.
 */
static int by_name(const void *a, const void *b)
{
	const struct caller *x = *(struct caller *const *)a, *y = *(struct caller *const *)b;
	int rc = natural_compare(x->about.name, y->about.name);

	return rc ? rc : strcmp(link_peer_text(&x->link), link_peer_text(&y->link));
}

struct caller **hub_unranked(const struct hub *h, struct arena *arena, unsigned *ret_count)
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
	struct caller **list = hub_unranked(h, h->member->config->arena, &count);

	for (unsigned i = 0; i < count; i++) {
		while (node == h->self || h->peers[node])
			node++;
		take_place(h, list[i], node);
	}
	return list ? 0 : -ENOMEM;
}

static void check_version(struct hub *h, const struct caller *p)
{
	struct text t = { 0 };

	if (strcmp(p->about.version, LAUNCHD_VERSION) == 0)
		return;
	hub_add_peer(&t, p);
	text_add(&t, " runs launchd ");
	text_add_shown(&t, p->about.version, strlen(p->about.version));
	text_add(&t, ", this node " LAUNCHD_VERSION);
	member_say(h->member, true, text_string(&t));
	text_done(&t);
}

static const char *store_name(bool agent)
{
	return agent ? "agent" : "rank0";
}

/* What counts for the whole job is node rank 0's. Said once here, and to each node that has other
 * wishes. */
static void check_wishes(struct hub *h, struct caller *p)
{
	const struct member_config *c = h->member->config;
	bool restarts = p->about.max_restarts != c->policy.max_restarts;
	bool is_agent = p->about.store == STORE_WISH_AGENT;
	bool store = p->about.store != STORE_WISH_NONE && is_agent != c->agent_store;
	struct text t = { 0 };
	struct wire_out w = { 0 };

	if (!restarts && !store)
		return;
	hub_add_peer(&t, p);
	text_add(&t, " has ");
	if (restarts)
		text_printf(&t, "--max-restarts %u%s", p->about.max_restarts, store ? " and " : "");
	if (store)
		text_printf(&t, "--store %s", store_name(is_agent));
	text_printf(&t, ", but %s of node rank 0 %s: ", restarts && store ? "those" : "that",
		restarts && store ? "count" : "counts");
	if (restarts)
		text_printf(&t, "%u%s", c->policy.max_restarts, store ? ", " : "");
	if (store)
		text_add(&t, store_name(c->agent_store));
	if (!h->met_other_wishes)
		member_say(h->member, true, text_string(&t));
	h->met_other_wishes = true;
	message_put_text(&w, text_string(&t));
	(void)link_send(&p->link, MESSAGE_WAITING, w.at, w.len);
	wire_out_done(&w);
	text_done(&t);
}

/* Its launcher was started anew before we knew that the old one is gone. */
static void replace(struct hub *h, struct caller *old)
{
	static const char why[] = "its node has joined anew";

	leave_place(h, old, why);
	link_close(&old->link, false, why);
}

void hub_hear_join(struct caller *p, const unsigned char *at, size_t len)
{
	struct hub *h = p->hub;
	unsigned rank;

	if (p->joined || message_get_join(at, len, &p->about) < 0 || p->about.nproc == 0 ||
		p->about.nproc > NPROC_MAX) {
		link_close(&p->link, false, "what it said is no message of this protocol");
		return;
	}
	if (hub_turns_away(p))
		return;
	rank = p->about.node_rank;
	if (rank != NODE_RANK_UNKNOWN && h->peers[rank])
		replace(h, h->peers[rank]);
	check_version(h, p);
	check_wishes(h, p);
	h->strangers--;
	p->stranger = false;
	p->joined = true;
	p->node = NODE_RANK_UNKNOWN;
	h->joined++;
	if (rank != NODE_RANK_UNKNOWN)
		take_place(h, p, rank);
	if (h->joined == h->job.nnodes)
		hub_begin(h);
}

void hub_hear_ready(struct caller *p)
{
	if (p->ready)
		return;
	p->ready = true;
	if (--p->hub->unready == 0)
		hub_start_first(p->hub);
}

/* What was found wrong on one node is the end on all. */
static void end_for(struct caller *p, int code, const char *text)
{
	struct text t = { 0 };

	text_printf(&t, "node %u, ", p->node);
	hub_add_peer(&t, p);
	text_add(&t, ": ");
	text_add(&t, text);
	hub_refuse(p->hub, code, text_string(&t));
	text_done(&t);
}

/* It beats, but does not answer: its launcher is none, or hangs. */
static void on_unready(uv_timer_t *t)
{
	struct hub *h = t->data;
	char seconds[NUM_SECONDS_SIZE];
	struct text why = { 0 };

	num_print_seconds(h->member->config->node_timeout_ms, seconds);
	for (struct caller *p = h->all; p && !h->over; p = p->next) {
		if (!p->joined || p->ready)
			continue;
		text_printf(&why,
			"it had joined, but was not ready to start its workers within %s s "
			"(--node-timeout)",
			seconds);
		end_for(p, -ETIMEDOUT, text_string(&why));
	}
	text_done(&why);
}

void hub_await_ready(struct hub *h)
{
	uv_update_time(h->member->loop);
	(void)uv_timer_start(&h->clock, on_unready, h->member->config->node_timeout_ms, 0);
}

void hub_hear_refusal(struct caller *p, const unsigned char *at, size_t len)
{
	struct message_refused m;

	if (message_get_refused(at, len, &m) < 0)
		return;
	p->told = true; /* by itself */
	end_for(p, m.code, m.text);
}

void hub_lose_early(struct caller *p, const char *why)
{
	if (!p->hub->begun) {
		leave_place(p->hub, p, why);
		return;
	}
	member_tell_node(p->hub->member, p->node, p->about.name, why);
	end_for(p, -ECONNRESET, why);
}
