/* node_order.c - see node_order.h */
#include "daemon/plan/node_order.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/natural.h"

static int compare(const void *one, const void *other)
{
	const struct node_claim *a = *(const struct node_claim *const *)one;
	const struct node_claim *b = *(const struct node_claim *const *)other;
	int order = natural_compare(a->name, b->name);

	if (order == 0)
		order = natural_compare(a->addr, b->addr);
	/* two launchers on one host, which nothing tells apart but the place */
	return order == 0 ? (a > b) - (a < b) : order;
}

static const struct node_claim *first_node(
	const struct node_claim *nodes, unsigned count, unsigned hub)
{
	const struct node_claim *owner = NULL;

	for (unsigned i = 0; i < count; i++) {
		if (!nodes[i].owns_endpoint)
			continue;
		if (owner)
			return &nodes[hub];
		owner = &nodes[i];
	}
	return owner ? owner : &nodes[hub];
}

/* taken[rank] is the node that has it. */
static int take_asked(const struct node_claim *nodes, unsigned count,
	const struct node_claim *first, const struct node_claim **taken, struct failure *why)
{
	taken[0] = first;
	for (unsigned i = 0; i < count; i++) {
		const struct node_claim *n = &nodes[i];
		unsigned rank = n->asked_rank;

		if (!n->asks)
			continue;
		if (rank >= count)
			return failure_set(why, -EINVAL,
				"%s (%s) asks for node rank %u, but the job has %u nodes", n->name,
				n->addr, rank, count);
		if (n == first && rank != 0)
			return failure_set(why, -EINVAL,
				"%s (%s) asks for node rank %u, but owns the address at which the "
				"nodes meet, which is node rank 0's",
				n->name, n->addr, rank);
		if (taken[rank] && taken[rank]->asks && taken[rank] != n)
			return failure_set(why, -EINVAL,
				"%s (%s) and %s (%s) both ask for node rank %u", taken[rank]->name,
				taken[rank]->addr, n->name, n->addr, rank);
		if (taken[rank] && taken[rank] != n)
			return failure_set(why, -EINVAL,
				"%s (%s) asks for node rank 0, but that is %s (%s), which owns the "
				"address at which the nodes meet",
				n->name, n->addr, first->name, first->addr);
		taken[rank] = n;
	}
	return 0;
}

int node_order(const struct node_claim *nodes, unsigned count, unsigned hub, struct arena *arena,
	unsigned *ret_ranks, struct failure *why)
{
	const struct node_claim **taken = arena_alloc(arena, count * sizeof *taken);
	const struct node_claim **rest = arena_alloc(arena, count * sizeof *rest);
	const struct node_claim *first;
	unsigned left = 0, next = 0;
	int rc;

	assert(hub < count);
	if (!taken || !rest)
		return failure_oom(why);
	first = first_node(nodes, count, hub);
	rc = take_asked(nodes, count, first, taken, why);
	if (rc < 0)
		return rc;
	for (unsigned i = 0; i < count; i++)
		if (!nodes[i].asks && &nodes[i] != first)
			rest[left++] = &nodes[i];
	qsort(rest, left, sizeof *rest, compare);
	for (unsigned rank = 0; rank < count; rank++) {
		const struct node_claim *n = taken[rank] ? taken[rank] : rest[next++];

		ret_ranks[n - nodes] = rank;
	}
	return 0;
}
