/* checkup.h - the check of all nodes before a job's workers start, as the child of each launcher
 * carries it out: phase by phase, all nodes at once. They meet in a store of their own; the child
 * of node rank 0 judges what all have measured, and its launcher reads the verdict in memory that
 * both share, whatever becomes of the child.
 *
 * Nothing that hangs here holds the others for longer than the limits: a node that does not answer
 * is unknown, not bad. On each node a child of the child measures, so that the one that speaks with
 * the others never hangs in a driver, and can say what became of that. */
#ifndef LAUNCHD_DAEMON_CHECK_CHECKUP_H
#define LAUNCHD_DAEMON_CHECK_CHECKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/check/finding.h"
#include "daemon/check/phase.h"
#include "daemon/os/helper.h"

struct failure;
struct disk_space;
struct text;
struct xids;

struct checkup_input {
	const struct settings *settings;
	const char *const *env;
	const struct phase *const *phases; /* phases[], but in tests */
	unsigned wanted;                   /* a bit for each of them */
	bool stop;                         /* no phase follows one that found a node bad */
	unsigned attempt, node, nnodes;
	const struct xids *xids; /* as struct phase_input has it */
	const struct disk_space *spaces;
	const pid_t *left; /* likewise */
	unsigned left_count;
	const char *host; /* the store where nodes meet */
	unsigned port;    /* 0: none, this node is checked alone: it is node 0 of 1 */
	/* node rank 0's, by node rank */
	const char *const *hosts;
	const struct phase_clock *clocks;
	const bool *absent; /* nobody waits for its answer */
};

/* What is said of one node. */
struct checkup_node {
	enum health health;
	unsigned bad;          /* findings */
	struct finding reason; /* the first bad one */
};

/* Something unknown, of as many nodes as have it; without a subject where it is of several. */
struct checkup_doubt {
	unsigned nodes, first; /* how many, and the lowest of them */
	struct finding finding;
};

enum { DOUBTS_MAX = 32 };

/* In memory that the child shares: `judged` first says that the rest of a phase is there. On the
 * other nodes only `gpus` and the helper's part are used. */
struct checkup_answer {
	struct helper_answer helper; /* step: 1 + the phase that it is at */
	volatile unsigned gpus;      /* 1: on this node a phase has found some to watch */
	volatile unsigned judged;    /* phases */
	unsigned mute;               /* nodes that could not measure, or did not answer */
	unsigned doubts, doubts_left_out;
	struct checkup_doubt doubt[DOUBTS_MAX];
	struct checkup_node node[];
};

size_t checkup_answer_size(unsigned nnodes);

/* When a child that still runs hangs itself. */
uint64_t checkup_limit_ms(
	const struct phase *const *phases, unsigned wanted, const struct settings *s);

/* In the child. Negative errno: it could not be carried out on this node, why says what failed. */
int checkup_run(const struct checkup_input *in, struct checkup_answer *ret, struct failure *why);

/* Makes right what a child has written that may have been killed meanwhile, or overwritten. */
void checkup_trust(struct checkup_answer *a, unsigned nnodes);

/* "GPU 2: 4 uncorrectable ECC errors"; "links: it did not answer within 20 s". */
void finding_add(struct text *out, const struct finding *f);

#endif
