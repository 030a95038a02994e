/* hub_late.c - who comes when the job has begun; see hub.h */
#include "daemon/cluster/hub.h"

#include <string.h>

#include "common/text.h"
#include "daemon/cluster/config.h"
#include "daemon/cluster/member.h"

enum { NAMES_SHOWN = 16 };

static bool never_came(const struct hub *h, unsigned node)
{
	enum node_state state = h->job.nodes[node].state;

	return state == NODE_ABSENT || (!h->started && state == NODE_AWAITED);
}

/* Whether one of the nodes that the job started without can be this one. */
static bool is_missed(const struct hub *h, const struct caller *p)
{
	unsigned rank = p->about.node_rank;

	if (p->about.nnodes != h->job.nnodes)
		return false;
	if (rank != NODE_RANK_UNKNOWN)
		return rank < h->job.nnodes && never_came(h, rank);
	for (unsigned i = 0; i < h->job.nnodes; i++)
		if (never_came(h, i))
			return true;
	return false;
}

/* Whether the ranks of all nodes are as one reckons that knows its own number of workers only. */
static bool has_right_ranks(const struct hub *h, const struct caller *p)
{
	for (unsigned i = 0; i < h->job.nnodes; i++)
		if (h->nproc[i] != p->about.nproc)
			return false;
	return true;
}

static bool is_ending(const struct hub *h)
{
	return h->started && h->job.state != JOB_RUNNING;
}

static bool has_name(const struct hub *h, const char *name)
{
	for (unsigned i = 0; i < h->job.nnodes; i++)
		if (strcmp(h->job.nodes[i].about.name, name) == 0)
			return true;
	return false;
}

/* One launcher more than the job has nodes, or a node of the job whose launcher was restarted. */
static void add_too_many(struct text *t, const struct hub *h, const struct caller *p)
{
	unsigned nnodes = h->job.nnodes;

	if (has_name(h, p->about.name)) {
		text_add(
			t, "the job runs already, without this node: a node can't come back to it");
		return;
	}
	text_printf(t, "the job has its %u nodes already (", nnodes);
	for (unsigned i = 0; i < nnodes && i < NAMES_SHOWN; i++) {
		const char *name = h->job.nodes[i].about.name;

		text_add(t, i > 0 ? ", " : "");
		if (*name)
			text_add_shown(t, name, strlen(name));
		else
			text_add(t, "one that never came");
	}
	text_add(t, nnodes > NAMES_SHOWN ? ", ...)" : ")");
}

static void say_late(struct hub *h, const struct caller *p)
{
	struct text t = { 0 };

	if (p->about.node_rank == NODE_RANK_UNKNOWN)
		text_add(&t, "a node");
	else
		text_printf(&t, "node %u", p->about.node_rank);
	text_add(&t, " came after --join-timeout: ");
	hub_add_peer(&t, p);
	h->member->on->say(h->member->owner, false, text_string(&t));
	text_done(&t);
}

/* Those who come late but know all that their workers need may start them: the others' workers wait
 * for these, and would wait in vain. */
void hub_turn_away_late(struct caller *p)
{
	struct hub *h = p->hub;
	enum refusal why = REFUSED_RUNNING;
	struct text t = { 0 };

	if (!is_missed(h, p)) {
		add_too_many(&t, h, p);
	} else {
		say_late(h, p);
		text_add(&t,
			"the job has started without this node, which came after --join-timeout");
		if (is_ending(h))
			text_add(&t, ", and is ending");
		else if (!has_right_ranks(h, p))
			text_add(&t,
				": its number of workers is another than other nodes', so that it "
				"can't know the ranks");
		else
			why = REFUSED_UNABLE;
	}
	hub_turn_away(p, why, text_string(&t));
	text_done(&t);
}
