/* checkup.h - the check of all nodes before a job's workers start, phase by phase, all nodes at
 * once. Each launcher has a child measure; node rank 0's has another one judge what all have told,
 * which their launchers send it over the control channel. Both children answer in memory that their
 * launcher shares, whatever becomes of them, and are killed when their time is over.
 *
 * Nothing that hangs here holds the others for longer than the limits: a node that does not answer
 * is unknown, not bad. */
#ifndef LAUNCHD_DAEMON_CHECK_CHECKUP_H
#define LAUNCHD_DAEMON_CHECK_CHECKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/check/finding.h"
#include "daemon/check/meet.h"
#include "daemon/check/phase.h"
#include "daemon/os/helper.h"

struct failure;
struct text;

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

enum { DOUBTS_MAX = 32, TOLD_MAX = 512 << 10 };

/* What a node tells begins with one of these; behind it what it has measured, or why it could not.
 */
enum { TOLD_WELL = '=', TOLD_FAILED = '?' };

/* What the child that measures leaves. */
struct checkup_told {
	struct helper_answer helper;
	volatile unsigned gpus; /* 1: on this node a phase has found some to watch */
	struct meet_room room;
	volatile size_t len; /* of text, once it is whole; 0: it is not */
	char text[TOLD_MAX];
};

/* What the child that judges leaves: of all phases so far. */
struct checkup_verdict {
	struct helper_answer helper;
	unsigned judged; /* phases */
	unsigned mute;   /* nodes that could not measure, or did not answer */
	bool over;       /* nothing follows a phase that found a node bad */
	unsigned doubts, doubts_left_out;
	struct checkup_doubt doubt[DOUBTS_MAX];
	struct checkup_node node[];
};

/* How long each part of a phase may take, in ms from its beginning on; first: nodes begin it when
 * they have opened files. */
struct checkup_times {
	uint64_t measure; /* to measure, on each node */
	uint64_t killed;  /* until the child that measures is killed */
	uint64_t awaited; /* until nodes without a result are given up */
	uint64_t judged;  /* until the child that judges is killed */
};

struct checkup_times checkup_times(const struct phase_input *in, const struct phase *p, bool first);

size_t checkup_verdict_size(unsigned nnodes);

/* In a child: measures, and leaves the result, or why there is none. */
void checkup_measure(const struct phase_input *in, const struct phase *p, struct checkup_told *ret);

/* In a child of node rank 0's: adds this phase to what earlier ones have left in ret. told: what
 * each node has told, NULL where nothing came. absent: nobody waited for it; NULL: for all. stop:
 * none follows one that found a node bad. */
void checkup_judge(const struct phase_input *in, const struct phase *p, const char *const *told,
	const bool *absent, bool stop, struct checkup_verdict *ret);

/* Makes right what a child has written that may have been killed meanwhile, or overwritten. */
void checkup_trust(struct checkup_verdict *v, unsigned nnodes);

/* "GPU 2: 4 uncorrectable ECC errors"; "links: it did not answer within 20 s". */
void finding_add(struct text *out, const struct finding *f);

#endif
