/* hub_refuse.c - who can't take part, and the job that can't be; see hub.h */
#include "daemon/cluster/hub.h"

#include <errno.h>
#include <string.h>

#include "common/text.h"
#include "daemon/cluster/config.h"
#include "daemon/cluster/member.h"
#include "daemon/net/wire.h"

enum {
	ID_SHOWN = 40,          /* characters of a run's id */
	BROUGHT_BACK_MS = 2000, /* least silence after which a node may join anew under its rank */
	NS_PER_MS = 1000000,
};

void hub_turn_away(struct caller *p, enum refusal why, int code, const char *text)
{
	struct message_refused m = { .why = why, .code = code };
	struct wire_out w = { 0 };

	(void)strncpy(m.text, text, sizeof m.text - 1);
	message_put_refused(&w, &m);
	p->told = true;
	(void)link_send(&p->link, MESSAGE_REFUSED, w.at, w.len);
	link_close(&p->link, true, NULL);
	wire_out_done(&w);
}

void hub_refuse(struct hub *h, int code, const char *text)
{
	struct member *m = h->member;

	if (h->over)
		return;
	h->over = true;
	(void)uv_timer_stop(&h->clock);
	for (struct caller *p = h->all; p; p = p->next)
		if (!p->told)
			hub_turn_away(p, REFUSED_JOB, code, text);
	member_fail(m, code, text);
}

void hub_add_peer(struct text *t, const struct caller *p)
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
		hub_add_peer(t, p);
		text_printf(t, " says that the job has %u nodes, but ", p->about.nnodes);
		add_self(t, h);
		text_printf(t, " says %u: give all nodes the same --nnodes", nnodes);
	} else if (rank >= nnodes && rank != NODE_RANK_UNKNOWN) {
		hub_add_peer(t, p);
		text_printf(t, " has node rank %u, but the job has %u nodes", rank, nnodes);
	} else if (taken) {
		text_printf(t, "two launchers have node rank %u: ", rank);
		if (old)
			hub_add_peer(t, old);
		else
			add_self(t, h);
		text_add(t, " and ");
		hub_add_peer(t, p);
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
		hub_refuse(h, -EINVAL, text_string(&t));
	text_done(&t);
	return bad;
}

static void add_job(struct text *t, const char *run_id)
{
	size_t len = strlen(run_id);

	text_add(t, "job \"");
	text_add_shown(t, run_id, len < ID_SHOWN ? len : ID_SHOWN);
	text_add(t, len > ID_SHOWN ? "...\"" : "\"");
}

/* Whose port this is, as a launcher of another job needs to know. */
static void add_owner(struct text *t, const struct caller *p)
{
	const char *own = p->hub->member->config->run_id;
	bool has_own = p->about.run_hash != 0;

	text_add(t, "this port belongs to ");
	if (own) {
		add_job(t, own);
		text_add(t, " (--rdzv-id)");
	} else {
		text_add(t, "a job without --rdzv-id");
	}
	if (own && !has_own) {
		text_add(t,
			", and this launcher has none: give it the same one or, if it is of "
			"another job, another --rdzv-endpoint or --control-port");
	} else {
		text_add(t, ": give ");
		add_job(t, p->about.run_id);
		text_add(t, " another --rdzv-endpoint or --control-port");
	}
}

static void say_another_job(struct hub *h, const struct caller *p)
{
	struct text t = { 0 };

	if (h->met_another_job)
		return;
	h->met_another_job = true;
	text_add(&t, "a launcher of ");
	if (p->about.run_hash != 0)
		add_job(&t, p->about.run_id);
	else
		text_add(&t, "a job without --rdzv-id");
	text_add(&t, " was turned away: ");
	hub_add_peer(&t, p);
	member_say(h->member, true, text_string(&t));
	text_done(&t);
}

/* Those whom PMIx brings together are one job: a variable may be set on one of its nodes only. */
static bool is_of_another_job(const struct hub *h, const struct caller *p)
{
	uint64_t ours = message_run_hash(h->member->config->run_id), theirs = p->about.run_hash;

	return ours != theirs &&
		(h->member->config->way != MEET_PMIX || (ours != 0 && theirs != 0));
}

/* The job that has this port must not end by it. */
static void turn_away_another_job(struct hub *h, struct caller *p)
{
	struct text t = { 0 };

	say_another_job(h, p);
	add_owner(&t, p);
	hub_turn_away(p, REFUSED_JOB, -EINVAL, text_string(&t));
	text_done(&t);
}

bool hub_turns_away(struct caller *p)
{
	struct hub *h = p->hub;

	if (is_of_another_job(h, p)) {
		turn_away_another_job(h, p);
		return true;
	}

	if (h->begun) {
		hub_turn_away_late(p);
		return true;
	}
	return is_contradiction(h, p);
}
