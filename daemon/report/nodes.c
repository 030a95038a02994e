/* nodes.c - see nodes.h */
#include "daemon/report/nodes.h"

#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/text.h"
#include "daemon/job/ending.h"
#include "daemon/job/phrases.h"
#include "daemon/plan/plan.h"
#include "daemon/report/report_input.h"

bool result_is_jobwide(const struct result *r)
{
	return r->nodes && r->node_count > 1;
}

unsigned node_rank_of(const struct report_input *in, unsigned node)
{
	return result_is_jobwide(in->result) ? node : in->plan->node_rank;
}

const char *node_name_of(const struct report_input *in, unsigned node)
{
	const struct result *r = in->result;

	if (!result_is_jobwide(r))
		return in->hostname;
	return node < r->node_count ? r->nodes[node].name : "";
}

bool node_is_silent(const struct report_input *in, unsigned node)
{
	const struct result *r = in->result;

	return result_is_jobwide(r) &&
		(node >= r->node_count || r->nodes[node].lost || !*r->nodes[node].name);
}

/* A report of one node may tell of another one, which was lost: it has no name for that. */
void node_add(const struct report_input *in, unsigned node, struct text *out)
{
	const struct cause *c = &in->result->cause;
	bool is_known = result_is_jobwide(in->result) || node == in->plan->node_rank;
	const char *name = is_known ? node_name_of(in, node) : "";

	if (*c->host && node == c->node)
		name = c->host;

	node_name_add(out, node, name);
}

void host_add(const struct report_input *in, unsigned node, struct text *out)
{
	text_add(out, " on ");
	place_add(out, node_name_of(in, node), node_rank_of(in, node));
}

unsigned cause_node_of(const struct report_input *in)
{
	const struct cause *c = &in->result->cause;

	return *c->host ? c->node : node_rank_of(in, c->node);
}

void cause_host_add(const struct report_input *in, struct text *out)
{
	const struct cause *c = &in->result->cause;

	text_add(out, " on ");
	place_add(out, *c->host ? c->host : node_name_of(in, c->node), cause_node_of(in));
}

size_t nodes_of_add(const struct report_input *in, const struct outcome *const *list, size_t count,
	struct text *out)
{
	unsigned *nodes;
	size_t n = 0;

	if (!result_is_jobwide(in->result) || count == 0)
		return 1;
	nodes = arena_alloc(in->arena, count * sizeof *nodes);
	if (!nodes) {
		out->failed = true;
		return 1;
	}
	for (size_t i = 0; i < count; i++)
		if (n == 0 || nodes[n - 1] != list[i]->node)
			nodes[n++] = list[i]->node;
	text_add(out, " (");
	numbers_add(out, "node", nodes, n);
	if (n == 1 && *node_name_of(in, nodes[0])) {
		const char *name = node_name_of(in, nodes[0]);

		text_add(out, ", ");
		text_add_shown(out, name, strnlen(name, NODE_NAME_SIZE - 1));
	}
	text_add(out, ")");
	return n;
}

size_t workers_add(const struct report_input *in, const struct outcome *const *list, size_t count,
	struct text *out)
{
	if (count > 1) {
		ranks_add(out, list, count);
		return nodes_of_add(in, list, count, out);
	}
	worker_add(out, list[0]);
	if (result_is_jobwide(in->result))
		host_add(in, list[0]->node, out);
	return 1;
}

static bool is_cause(const struct result *r, unsigned node)
{
	return r->cause.kind == CAUSE_NODE_LOST && r->cause.node == node;
}

static void add_lost(const struct result *r, const char *were, bool unsure, struct text *out)
{
	if (r->cause.asleep)
		text_printf(out, " %s gone when this node resumed\n", were);
	else
		text_printf(out, " %s lost%s%s\n", were,
			r->cause.kind == CAUSE_NODE_LOST ? ", too" : "",
			unsure ? "; launchd can't tell which was first" : "");
}

/* "nodes 2, 5 were lost"; which: those without a name, or the lost ones */
static void add_missing(const struct report_input *in, bool unnamed, struct text *out)
{
	const struct result *r = in->result;
	unsigned *list = arena_alloc(in->arena, r->node_count * sizeof *list);
	bool by_loss = r->cause.kind == CAUSE_NODE_LOST, unsure = false;
	size_t count = 0;

	if (!list) {
		out->failed = true;
		return;
	}
	for (unsigned i = 0; i < r->node_count; i++) {
		bool has_none = !*r->nodes[i].name;

		if (is_cause(r, i) || (unnamed ? !has_none : !r->nodes[i].lost || has_none))
			continue;
		list[count++] = i;
		unsure = unsure || (by_loss && r->nodes[i].lost_unsure);
	}
	if (count == 0)
		return;
	text_add(out, "launchd: note: ");
	if (count == 1)
		node_add(in, list[0], out);
	else
		numbers_add(out, "node", list, count);
	if (unnamed)
		text_add(out, " never joined\n");
	else
		add_lost(r, count == 1 ? "was" : "were", unsure, out);
}

/* The others can't all have fallen silent by chance. */
static bool is_cut_off(const struct report_input *in)
{
	const struct result *r = in->result;
	bool silent = r->cause.kind == CAUSE_NODE_LOST && !r->cause.asleep &&
		r->cause.noticed_ns > r->cause.at_ns;

	for (unsigned i = 0; i < r->node_count && silent; i++)
		silent = i == in->plan->node_rank || is_cause(r, i) || r->nodes[i].lost_unsure;
	return silent;
}

void nodes_missing_add(const struct report_input *in, struct text *out)
{
	if (!result_is_jobwide(in->result))
		return;
	add_missing(in, false, out);
	if (is_cut_off(in)) {
		text_add(out, "launchd: note: no other node is heard from: ");
		node_add(in, in->plan->node_rank, out);
		text_add(out, " may itself have been cut off\n");
	}
	add_missing(in, true, out);
}

static int by_rank(const void *rank, const void *outcome)
{
	const unsigned *a = rank;
	const struct outcome *b = outcome;

	return (*a > b->rank) - (*a < b->rank);
}

void waiting_add(const struct report_input *in, struct text *out)
{
	const struct result *r = in->result;
	const struct outcome **list;
	size_t count = 0;

	if (in->waiting_count == 0)
		return;
	list = arena_alloc(in->arena, in->waiting_count * sizeof *list);
	if (!list) {
		out->failed = true;
		return;
	}
	for (size_t i = 0; i < in->waiting_count; i++) {
		const struct outcome *o = r->count == 0 ?
			NULL :
			bsearch(&in->waiting[i], r->outcomes, r->count, sizeof *o, by_rank);

		if (o)
			list[count++] = o;
	}
	text_add(out, "launchd: note: ");
	numbers_add(out, "rank", in->waiting, in->waiting_count);
	(void)nodes_of_add(in, list, count, out);
	text_add(out, " had not joined the store\n");
}

void culprit_add(const struct report_input *in, struct text *out)
{
	const struct result *r = in->result;
	const struct outcome *o = &r->cause.culprit;

	if (in->is_local)
		text_add(out, "first failure on this node: ");
	else
		text_printf(out, "root cause: %s", r->unsure ? "possibly " : "");
	if (result_culprit(r) || in->is_local) {
		worker_add(out, o);
		cause_host_add(in, out);
		text_add(out, ": ");
	}
	if (r->cause.kind == CAUSE_TIMEOUT || (!in->is_local && !result_culprit(r))) {
		cause_add(&r->cause, 0, out);
		o = &r->cause.victim;
	} else {
		outcome_add(out, o);
	}
	if (o->pid && (o->ended_ns || !*r->cause.host)) {
		text_add(out, " after ");
		span_add(out, r->started_ns ? r->started_ns : o->started_ns, o->ended_ns);
	}
}
