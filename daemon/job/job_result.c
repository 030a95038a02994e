/* job_result.c - see job_result.h */
#include "daemon/job/job_result.h"

#include <stdio.h>
#include <string.h>

#include "common/arena.h"
#include "daemon/job/job.h"
#include "daemon/job/verdict.h"

/* Memory for count outcomes, which all attempts share. NULL: there is none. */
static struct outcome *outcomes_for(
	struct outcome *old, size_t *room, size_t count, struct arena *arena)
{
	struct outcome *ret = old;

	if (count <= *room)
		return old;
	ret = arena_alloc(arena, count * sizeof *ret);
	*room = ret ? count : 0;
	return ret;
}

void job_keep_end(struct job *j, unsigned node, const struct node_end *end, struct arena *arena)
{
	struct job_node *n = &j->nodes[node];
	struct outcome *to = outcomes_for(n->end.outcomes, &n->room, end->count, arena);

	n->end = *end;
	n->end.outcomes = to;
	n->end.count = to ? end->count : 0;
	if (n->end.count > 0)
		memcpy(to, end->outcomes, n->end.count * sizeof *to);
	n->has_ended = true;
}

bool job_end_is_well(const struct node_end *end)
{
	for (size_t i = 0; i < end->count; i++)
		if (!ending_is_success(&end->outcomes[i].end))
			return false;
	return end->cause.kind == CAUSE_NONE;
}

uint64_t job_our_ns(const struct job *j, unsigned node, uint64_t node_ns)
{
	int64_t ours = (int64_t)(node_ns - (uint64_t)j->nodes[node].offset_ns);

	if (node_ns == 0)
		return 0;
	return ours > 0 ? (uint64_t)ours : 1; /* 0 means never */
}

struct outcome job_our_outcome(const struct job *j, unsigned node, const struct outcome *o)
{
	struct outcome ours = *o;

	ours.node = node;
	ours.attempt = j->attempt;
	ours.started_ns = job_our_ns(j, node, o->started_ns);
	ours.ended_ns = job_our_ns(j, node, o->ended_ns);
	ours.asked_ns = job_our_ns(j, node, o->asked_ns);
	return ours;
}

static void add_outcome(struct job *j, unsigned node, const struct outcome *o)
{
	j->outcomes[j->result.count++] = job_our_outcome(j, node, o);
}

/* A worker that could not be started has no end of its own: it failed when its node knew. */
static void add_ended(struct job *j, unsigned node)
{
	const struct node_end *e = &j->nodes[node].end;

	for (size_t i = 0; i < e->count; i++) {
		struct outcome o = e->outcomes[i];

		if (ending_is_unstarted(&o.end) && o.ended_ns == 0)
			o.ended_ns = e->cause.at_ns;
		add_outcome(j, node, &o);
	}
}

/* Its ranks follow those of the nodes before. A node without launchd tells no number of workers: it
 * has as many, as without control numbers must be equal. */
static unsigned first_rank(const struct job *j, unsigned node)
{
	unsigned rank = 0;

	for (unsigned i = 0; i < node; i++)
		rank += j->nodes[i].state == NODE_ABSENT ? j->nodes[node].nproc : j->nodes[i].nproc;
	return rank;
}

/* Of the workers of a lost node nothing is known, but for the one that it told of before. */
static void add_lost(struct job *j, unsigned node)
{
	const struct job_node *n = &j->nodes[node];
	unsigned first = first_rank(j, node);

	for (unsigned i = 0; i < n->nproc; i++) {
		struct outcome o = { .rank = first + i, .local_rank = i };

		if (n->has_failed && n->failed.local_rank == i)
			o = n->failed;
		add_outcome(j, node, &o);
	}
}

static size_t count_outcomes(const struct job *j)
{
	size_t count = 0;

	for (unsigned i = 0; i < j->nnodes; i++)
		if (j->nodes[i].has_ended)
			count += j->nodes[i].end.count;
		else if (j->nodes[i].state == NODE_LOST)
			count += j->nodes[i].nproc;
	return count;
}

static void add_all(struct job *j)
{
	for (unsigned i = 0; i < j->nnodes; i++)
		if (j->nodes[i].has_ended)
			add_ended(j, i);
		else if (j->nodes[i].state == NODE_LOST)
			add_lost(j, i);
}

static void add_survivors(struct result *r, unsigned node, const struct node_end *e)
{
	for (unsigned i = 0; i < e->survivor_count; i++) {
		if (r->survivor_count < SURVIVORS_MAX && i < SURVIVORS_MAX) {
			r->survivors[r->survivor_count] = e->survivors[i];
			r->survivors[r->survivor_count].node = node;
		}
		r->survivor_count++;
	}
}

/* Whether it may have been lost before the one that counts: one of them was heard after the other's
 * last word, and then not any more. */
static bool is_rival_loss(const struct job *j, const struct job_node *n)
{
	return n->state == NODE_LOST && !n->has_ended && n->lost.node != j->lost.node &&
		n->lost.at_ns <= j->lost.noticed_ns;
}

static void add_nodes(struct job *j)
{
	struct result *r = &j->result;

	for (unsigned i = 0; i < j->nnodes; i++) {
		const struct job_node *n = &j->nodes[i];
		uint64_t started = job_our_ns(j, i, n->end.started_ns);

		j->told[i] = n->about;
		j->told[i].lost = n->state == NODE_LOST;
		j->told[i].lost_unsure = is_rival_loss(j, n);
		if (!n->has_ended)
			continue;
		if (started > 0 && (r->started_ns == 0 || started < r->started_ns))
			r->started_ns = started;
		r->left += n->end.left;
		r->left_killed += n->end.left_killed;
		r->left_unknown |= n->end.left_unknown;
		add_survivors(r, i, &n->end);
	}
}

/* A node looks who has died before it obeys a request, and so knows their order better than two
 * times that are close to each other tell. */
static struct cause asked_in_order(const struct job *j)
{
	enum { CLOSE_NS = 1000000 };
	const struct job_node *n = &j->nodes[j->asked.node];
	struct cause asked = j->asked;
	uint64_t failed_ns = job_our_ns(j, asked.node, n->end.cause.at_ns);

	if (n->has_ended && n->end.cause.kind == CAUSE_FAILURE &&
		failed_ns < asked.at_ns + CLOSE_NS && asked.at_ns < failed_ns + CLOSE_NS)
		asked.at_ns = failed_ns + CLOSE_NS;
	return asked;
}

/* A node may end for a reason that it did not tell before, or for one that its outcomes do not
 * show. */
static void find_untold(struct job *j)
{
	struct result *r = &j->result;

	for (unsigned i = 0; i < j->nnodes && r->cause.kind == CAUSE_NONE; i++) {
		const struct job_node *n = &j->nodes[i];

		if (!n->has_ended || job_end_is_well(&n->end))
			continue;
		r->cause = n->end.cause;
		r->cause.node = i;
		r->cause.at_ns = job_our_ns(j, i, n->end.cause.at_ns);
		if (r->cause.kind == CAUSE_FAILURE)
			r->cause.culprit = job_our_outcome(j, i, &n->end.cause.culprit);
		if (r->cause.kind != CAUSE_NONE)
			continue;
		r->cause.kind = CAUSE_NODE_LOST;
		(void)snprintf(r->cause.detail, sizeof r->cause.detail,
			"its workers failed, but it could not tell which");
	}
}

void job_make_result(struct job *j, uint64_t now_ns, struct arena *arena)
{
	struct result *r = &j->result;
	struct cause asked = asked_in_order(j);

	*r = (struct result){ .nodes = j->told, .node_count = j->nnodes, .ended_ns = now_ns };
	j->outcomes = outcomes_for(j->outcomes, &j->room, count_outcomes(j), arena);
	if (j->outcomes)
		add_all(j);
	r->outcomes = j->outcomes;
	add_nodes(j);
	if (r->started_ns == 0)
		r->started_ns = j->started_ns;
	verdict_find(r, &asked, &j->lost);
	if (r->cause.kind == CAUSE_NONE)
		find_untold(j);
}
