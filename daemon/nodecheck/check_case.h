/* check_case.h - the whole check as rank 0 sees it: which step comes next, and what all that was
 *seen says of which node. Pure: rank 0 writes the steps into the store and reads there what ranks
 *saw.
 *
 *	case_begin()
 *	while (case_next(c, &step))
 *		case_seen(c, what each rank saw in it)
 *
 * Stages, each of one step or more; what is slow is seen a second time before it counts:
 *	gpu         memory and compute of each GPU
 *	node        all-reduce inside each node
 *	            where that is bad: pairs of its GPUs, to name one GPU or link
 *	nics        the same, carried by network cards
 *	pairs       all-reduce of two nodes each, in rounds with different partners
 *	job         all-reduce of all nodes
 * A node with a GPU that failed its own test takes no part in what follows, nor does a bad node in
 * what nodes do together. */
#ifndef LAUNCHD_DAEMON_NODECHECK_CHECK_CASE_H
#define LAUNCHD_DAEMON_NODECHECK_CHECK_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/check/finding.h"
#include "daemon/nodecheck/check_step.h"
#include "daemon/nodecheck/pairing.h"
#include "daemon/nodecheck/sighting.h"
#include "daemon/nodecheck/trial.h"

struct arena;

enum check_stage {
	STAGE_GPU,
	STAGE_NODE,
	STAGE_NODE_PAIRS,
	STAGE_NICS,
	STAGE_NICS_PAIRS,
	STAGE_PAIRS,
	STAGE_JOB,
	STAGE_OVER,
	STAGES = STAGE_OVER,
};

/* What is demanded, where the user says so: MB/s, and MFLOP/s; 0: what gpu_speed.h says, and peers.
 */
enum demand_kind {
	DEMAND_MEMORY,
	DEMAND_COMPUTE,
	DEMAND_NODE,
	DEMAND_NICS,
	DEMAND_PAIRS,
	DEMAND_JOB,
	DEMANDS,
};

struct check_demands {
	uint64_t least[DEMANDS];
	unsigned percent;    /* of the peers' median */
	uint64_t limit_ms;   /* of each step */
	bool stages[STAGES]; /* which are wanted; those of pairs inside a node go with their stage
			      */
};

/* Given, in the order of ranks, one for each node. */
struct case_node {
	unsigned number;       /* its node rank */
	unsigned first, count; /* its ranks */
	const char *host;
	const char *missing; /* a rank of it has not come: a sentence's end, and it has no part; or
				NULL */
	/* the case's own */
	enum health health;
	bool out; /* has no part in the steps to come */
	bool reached[STAGES];
	uint64_t rates[RATES], nics,
		pairs; /* the slowest GPU's, its own all-reduce's and best pair's */
	char gpu[64];
};

struct case_finding {
	unsigned node; /* index */
	struct finding finding;
};

struct check_case {
	struct case_node *nodes;
	unsigned node_count, ranks;
	struct check_demands demands;
	struct case_finding *findings;
	size_t finding_count, finding_room;
	unsigned unplaced; /* bad links, and all-reduces of all, that no node can be blamed for */
	unsigned no_gpu;   /* ranks without a GPU or a driver */
	char no_gpu_text[160]; /* what the first of them says */
	bool failed;           /* out of memory */
	/* private */
	struct arena *arena;
	enum check_stage stage;
	unsigned round;
	struct trials trials; /* of this stage */
	struct trial **asked; /* in the present step */
	struct rank_group *groups;
	size_t asked_count;
	unsigned *kinds; /* of each rank's GPU */
	const char **buses;
	const char **models; /* by kind */
	unsigned kind_count;
	unsigned *inside, inside_count;    /* nodes whose GPUs are paired */
	unsigned *partners, partner_count; /* nodes that are paired */
	struct pair *pairs, *fresh;
	enum member_state *states;
	bool *busy;
};

/* All memory is the arena's. -ENOMEM. */
int case_begin(struct check_case *c, struct arena *arena, struct case_node *nodes,
	unsigned node_count, unsigned ranks, const struct check_demands *d);

/* The next step; false: it is over. The step is valid until the next call. */
bool case_next(struct check_case *c, struct check_step *ret);

/* What each rank saw in that step; who had no part in it is not looked at. */
void case_seen(struct check_case *c, const struct gpu_sight *by_rank);

/* --- for accuse.c --- */

/* What a trial of two says. */
enum pair_result case_pair(struct check_case *c, const struct trial *t);

/* Writes the pairs that were tried in a place (a node's index; 0 between nodes) into c->pairs;
 * returns how many. base: the first rank there, as members are numbered from 0. */
size_t case_pairs(struct check_case *c, unsigned within, unsigned base);

/* The member that a trial's a or b is. */
unsigned case_member(const struct check_case *c, unsigned who, unsigned base);

/* --- */

/* All findings of one node; the room is a struct findings that may be large. */
void case_findings(const struct check_case *c, unsigned node, struct findings *ret);

#endif
