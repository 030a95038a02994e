/* hub_late.c - who comes when the job has begun; see hub.h */
#include "daemon/cluster/hub.h"

#include <errno.h>
#include <string.h>

#include "common/arena.h"
#include "common/text.h"
#include "daemon/cluster/config.h"
#include "daemon/cluster/member.h"

enum { NAMES_SHOWN = 16 };

static bool never_came(const struct hub *h, unsigned node)
{
	enum node_state state = h->job.nodes[node].state;

	if (h->late && h->late[node])
		return false;
	return state == NODE_ABSENT || (!h->started && state == NODE_AWAITED);
}

/* Its workers start. If its launcher comes again, these can't join the others' once more. */
static void note_late(struct hub *h, unsigned node)
{
	if (!h->late)
		h->late = arena_alloc(h->member->config->arena, h->job.nnodes * sizeof *h->late);
	if (h->late && node < h->job.nnodes)
		h->late[node] = true;
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

/* A node of the job, whose launcher was restarted. */
static bool comes_back(const struct hub *h, const struct caller *p)
{
	unsigned rank = p->about.node_rank;

	if (h->late && rank < h->job.nnodes && h->late[rank])
		return true;
	for (unsigned i = 0; i < h->job.nnodes; i++)
		if (strcmp(h->job.nodes[i].about.name, p->about.name) == 0)
			return true;
	return false;
}

static void add_too_many(struct text *t, const struct hub *h)
{
	unsigned nnodes = h->job.nnodes;

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
	member_say(h->member, false, text_string(&t));
	text_done(&t);
}

/* Why the workers of a node that is missed can't start; NULL: they can. */
static const char *hindrance(const struct hub *h, const struct caller *p)
{
	if (h->started && h->job.state != JOB_RUNNING)
		return ", and is ending";
	if (!has_right_ranks(h, p))
		return ": its number of workers is another than other nodes', so that it can't "
		       "know the ranks";
	return NULL;
}

/* Those who come late but know all that their workers need may start them: the others' workers wait
 * for these, and would wait in vain. */
static void turn_away_missed(struct hub *h, struct caller *p)
{
	const char *hinders = hindrance(h, p);
	struct text t = { 0 };

	say_late(h, p);
	text_add(&t, "the job has started without this node, which came after --join-timeout");
	text_add(&t, hinders ? hinders : "");
	if (!hinders)
		note_late(h, p->about.node_rank);
	hub_turn_away(p, hinders ? REFUSED_RUNNING : REFUSED_UNABLE, -ETIMEDOUT, text_string(&t));
	text_done(&t);
}

void hub_turn_away_late(struct caller *p)
{
	struct hub *h = p->hub;
	struct text t = { 0 };

	if (is_missed(h, p)) {
		turn_away_missed(h, p);
		return;
	}
	if (comes_back(h, p))
		text_add(&t,
			"the job runs already, without this node: a node can't come back to it");
	else
		add_too_many(&t, h);
	hub_turn_away(p, REFUSED_RUNNING, -ETIMEDOUT, text_string(&t));
	text_done(&t);
}
