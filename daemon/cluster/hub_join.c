/* hub_join.c - who takes part in the job, and whom it waits for; see hub.h */
#include "daemon/cluster/hub.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/natural.h"
#include "common/text.h"
#include "daemon/cluster/config.h"
#include "daemon/cluster/member.h"
#include "daemon/cluster/wire.h"

enum {
	FIRST_NOTE_MS = 10000, /* until those who wait are told for whom */
	NEXT_NOTE_MS = 60000,
	BROUGHT_BACK_MS = 2000, /* least silence after which a node may join anew under its rank */
	NS_PER_MS = 1000000,
	NPROC_MAX = 1 << 20, /* far above what a node can have */
};

static void say(struct hub *h, bool warning, const struct text *t)
{
	h->member->on->say(h->member->owner, warning, text_string(t));
}

static void refuse_one(struct caller *p, enum refusal why, const char *text)
{
	struct message_refused m = { .why = why };
	struct wire_out w = { 0 };

	(void)strncpy(m.text, text, sizeof m.text - 1);
	message_put_refused(&w, &m);
	p->told = true;
	(void)link_send(&p->link, MESSAGE_REFUSED, w.at, w.len);
	link_close(&p->link, true, NULL);
	wire_out_done(&w);
}

void hub_refuse(struct hub *h, enum refusal why, int code, const char *text)
{
	struct member *m = h->member;

	if (h->over)
		return;
	h->over = true;
	(void)uv_timer_stop(&h->clock);
	for (struct caller *p = h->all; p; p = p->next)
		if (!p->told)
			refuse_one(p, why, text);
	m->on->failed(m->owner, code, text);
}

/* The name by which users know a peer: its host's, and where it comes from. */
static void add_peer(struct text *t, const struct caller *p)
{
	text_add_shown(t, p->about.name, strlen(p->about.name));
	text_printf(t, " (%s)", link_peer_text(&p->link));
}

/* A node under a rank that is taken: its own launcher again, whose first connection has not ended
 * yet, or a second one. */
static bool replaces(const struct caller *p, const struct caller *old)
{
	uint64_t quarter_ms = p->hub->member->config->node_timeout_ms / 4; /* three beats */
	uint64_t least_ms = quarter_ms > BROUGHT_BACK_MS ? quarter_ms : BROUGHT_BACK_MS;

	return strcmp(p->about.name, old->about.name) == 0 &&
		uv_hrtime() - old->link.heard_ns > least_ms * NS_PER_MS;
}

static void leave_place(struct hub *h, struct caller *p)
{
	if (!p->joined)
		return;
	p->joined = false;
	h->joined--;
	if (p->node == NODE_RANK_UNKNOWN)
		return;
	h->peers[p->node] = NULL;
	job_unjoined(&h->job, p->node);
}

static void add_self(struct text *t, const struct hub *h)
{
	const char *name = h->member->config->name;

	text_add_shown(t, name, strlen(name));
	text_printf(t, " (node %u)", h->self);
}

/* False, and nothing added: there is none. */
static bool add_contradiction(const struct hub *h, const struct caller *p, struct text *t)
{
	unsigned rank = p->about.node_rank, nnodes = h->job.nnodes;
	const struct caller *old = rank < nnodes ? h->peers[rank] : NULL;
	bool taken = rank == h->self || (old && !replaces(p, old));

	if (p->about.nnodes != nnodes) {
		add_peer(t, p);
		text_printf(t, " says that the job has %u nodes, but ", p->about.nnodes);
		add_self(t, h);
		text_printf(t, " says %u: give all nodes the same --nnodes", nnodes);
	} else if (rank >= nnodes && rank != NODE_RANK_UNKNOWN) {
		add_peer(t, p);
		text_printf(t, " has node rank %u, but the job has %u nodes", rank, nnodes);
	} else if (taken) {
		text_printf(t, "two launchers have node rank %u: ", rank);
		if (old)
			add_peer(t, old);
		else
			add_self(t, h);
		text_add(t, " and ");
		add_peer(t, p);
		text_add(t, ": give every node a --node_rank of its own");
	} else {
		return false;
	}
	return true;
}

static bool is_contradiction(struct hub *h, const struct caller *p)
{
	struct text t = { 0 };
	bool bad = add_contradiction(h, p, &t);

	if (bad)
		hub_refuse(h, REFUSED_CONTRADICTION, -EINVAL, text_string(&t));
	text_done(&t);
	return bad;
}

static void take_place(struct hub *h, struct caller *p, unsigned node)
{
	p->node = node;
	h->peers[node] = p;
	h->nproc[node] = p->about.nproc;
	job_joined(&h->job, node, p->about.nproc, p->about.name);
}

/* Those without a rank get what is left, in the natural order of their names: node2 before node10.
 */
static int by_name(const void *a, const void *b)
{
	const struct caller *x = *(struct caller *const *)a, *y = *(struct caller *const *)b;
	int rc = natural_compare(x->about.name, y->about.name);

	return rc ? rc : strcmp(link_peer_text(&x->link), link_peer_text(&y->link));
}

int hub_rank_rest(struct hub *h)
{
	struct caller **list =
		arena_alloc(h->member->config->arena, h->job.nnodes * sizeof(struct caller *));
	unsigned count = 0, node = 0;

	for (struct caller *p = h->all; p && list; p = p->next)
		if (p->joined && p->node == NODE_RANK_UNKNOWN)
			list[count++] = p;
	if (count > 0)
		qsort(list, count, sizeof *list, by_name);
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
	add_peer(&t, p);
	text_add(&t, " runs launchd ");
	text_add_shown(&t, p->about.version, strlen(p->about.version));
	text_add(&t, ", this node " LAUNCHD_VERSION);
	say(h, true, &t);
	text_done(&t);
}

static void check_restarts(struct hub *h, const struct caller *p)
{
	unsigned ours = h->member->config->policy.max_restarts;
	struct text t = { 0 };

	if (p->about.max_restarts == ours)
		return;
	add_peer(&t, p);
	text_printf(&t, " has --max-restarts %u, which has no effect: node rank 0's %u counts",
		p->about.max_restarts, ours);
	say(h, true, &t);
	text_done(&t);
}

/* Its launcher was started anew before we knew that the old one is gone. */
static void replace(struct hub *h, struct caller *old)
{
	leave_place(h, old);
	link_close(&old->link, false, "its node has joined anew");
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
	if (h->begun) {
		refuse_one(p, REFUSED_RUNNING,
			"the job runs already, without this node: a node can't come back to it");
		return;
	}
	if (is_contradiction(h, p))
		return;
	rank = p->about.node_rank;
	if (rank != NODE_RANK_UNKNOWN && h->peers[rank])
		replace(h, h->peers[rank]);
	check_version(h, p);
	check_restarts(h, p);
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
static void end_for(struct caller *p, int code, enum refusal refusal, const char *text)
{
	struct text t = { 0 };

	text_printf(&t, "node %u, ", p->node);
	add_peer(&t, p);
	text_add(&t, ": ");
	text_add(&t, text);
	hub_refuse(p->hub, refusal, code, text_string(&t));
	text_done(&t);
}

void hub_hear_refusal(struct caller *p, const unsigned char *at, size_t len)
{
	struct message_refused m;

	if (message_get_refused(at, len, &m) < 0)
		return;
	p->told = true; /* by itself */
	end_for(p, -EINVAL, REFUSED_CONTRADICTION, m.text);
}

void hub_lose_early(struct caller *p, const char *why)
{
	if (p->hub->begun)
		end_for(p, -ECONNRESET, REFUSED_TIMEOUT, why);
	else
		leave_place(p->hub, p);
}

/* Whom the job waits for; after the join timeout it does not any more. */
static void on_waiting(uv_timer_t *t)
{
	struct hub *h = t->data;
	const struct member_config *c = h->member->config;
	uint64_t now = uv_now(h->member->loop), left;
	struct text line = { 0 };
	struct wire_out w = { 0 };

	text_printf(&line, "%u of %u nodes are here: ", h->joined, h->job.nnodes);
	job_missing(&h->job, &line);
	left = h->deadline_ms > now ? h->deadline_ms - now : 0;
	if (left > 0) {
		text_add(&line, h->joined + 1 == h->job.nnodes ? " is missing" : " are missing");
		say(h, false, &line);
		message_put_text(&w, text_string(&line));
		hub_tell(h, MESSAGE_WAITING, w.at, w.len, NULL);
		wire_out_done(&w);
		(void)uv_timer_start(t, on_waiting, left < NEXT_NOTE_MS ? left : NEXT_NOTE_MS, 0);
	} else {
		text_printf(&line, " did not come within %llu s (--join-timeout)",
			(unsigned long long)(c->join_timeout_ms / 1000));
		if (c->required) {
			hub_refuse(h, REFUSED_TIMEOUT, -ETIMEDOUT, text_string(&line));
		} else {
			text_printf(&line, "; the job starts all the same, and will not know if %s",
				h->joined + 1 == h->job.nnodes ? "it fails" : "they fail");
			say(h, true, &line);
			hub_begin(h);
		}
	}
	text_done(&line);
}

void hub_wait(struct hub *h)
{
	uint64_t timeout = h->member->config->join_timeout_ms;

	if (h->begun || h->over)
		return;
	h->deadline_ms = uv_now(h->member->loop) + timeout;
	(void)uv_timer_start(
		&h->clock, on_waiting, timeout < FIRST_NOTE_MS ? timeout : FIRST_NOTE_MS, 0);
}
