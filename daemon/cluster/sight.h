/* sight.h - what this launcher sees of the other nodes and of the workers' store, for those who
 * show it. Looking costs the others nothing. */
#ifndef LAUNCHD_DAEMON_CLUSTER_SIGHT_H
#define LAUNCHD_DAEMON_CLUSTER_SIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/job/job.h"
#include "daemon/store/request.h"

struct address;
struct member;

/* A round trip to another node. */
struct trip {
	unsigned node; /* its rank */
	uint64_t ns;
};

struct sight {
	struct trip *trips; /* the owner's; the latest one to each node that there is a link to */
	size_t room, trip_count;
	bool nodes_known; /* this is node rank 0 */
	unsigned nodes[NODE_STATES];
	bool has_store; /* this launcher hosts it */
	unsigned store_clients, store_keys;
};

/* Looks; all but trips and room is overwritten. */
void sight_take(const struct member *m, struct sight *s);

/* Node rank 0: the nodes that have not come to the meeting, in ascending order, room of them at
 * most. How many were written; 0 elsewhere. */
size_t sight_awaited(const struct member *m, unsigned *ret, size_t room);

/* A node of the job, as node rank 0 knows it. */
struct node_sight {
	enum node_state state;
	const char *name; /* its host's; the member's memory; "": it has never been heard of */
};

/* Node rank 0: another node's CLOCK_MONOTONIC minus ours, and how wrong that may be. False: it is
 * not known. */
bool sight_clock(
	const struct member *m, unsigned node, int64_t *ret_offset_ns, uint64_t *ret_error_ns);

/* Node rank 0: from where another node's launcher has come. None: it is not known. */
struct address sight_address(const struct member *m, unsigned node);

/* Node rank 0: all nodes, by node rank; ret has room for those of the job. How many; 0 elsewhere.
 */
size_t sight_nodes(const struct member *m, struct node_sight *ret, size_t room);

/* How far the job has come, as node rank 0 knows it; elsewhere NULL, as where there is no job yet.
 */
const struct job_steps *sight_steps(const struct member *m);

/* How often the keys of the store have changed in this attempt, where this launcher hosts it; else
 * 0. */
uint64_t sight_store_changes(const struct member *m);

/* store_waits(), where this launcher hosts the store. */
void sight_store_waits(const struct member *m,
	void (*see)(void *to, const struct address *client, struct span key), void *to);

/* store_polls(), where this launcher hosts the store. */
void sight_store_polls(const struct member *m,
	void (*see)(void *to, const struct address *client, unsigned polls), void *to);

#endif
