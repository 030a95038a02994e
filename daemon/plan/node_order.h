/* node_order.h - the ranks of nodes that have none, from what each says of itself when they meet.
 * Pure. */
#ifndef LAUNCHD_DAEMON_PLAN_NODE_ORDER_H
#define LAUNCHD_DAEMON_PLAN_NODE_ORDER_H

#include <stdbool.h>

struct arena;
struct failure;

struct node_claim {
	const char *name, *addr; /* the host's name; the address under which it is reached */
	bool owns_endpoint;      /* the address of the c10d endpoint is one of its own */
	bool asks;               /* for asked_rank, by --node_rank */
	unsigned asked_rank;
};

/* Gives ret_ranks[i] to nodes[i], count of both. Rank 0 is the one node that owns the endpoint;
 * where none does, or several say so, it is nodes[hub], to which all others have come. Then come
 * ranks that are asked for; the rest follows by the natural order of names, then of addresses.
 * Claims that differ in name or address give the same ranks in whatever order they stand.
 *
 * -EINVAL: two nodes ask for one rank, or for rank 0 without being it, or for one that the job does
 * not have; -ENOMEM. arena: for memory of the call; the caller may rewind it. */
int node_order(const struct node_claim *nodes, unsigned count, unsigned hub, struct arena *arena,
	unsigned *ret_ranks, struct failure *why);

#endif
