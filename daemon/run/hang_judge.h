/* hang_judge.h - node rank 0's part of --on-hang: it hears how quiet all nodes are and what they
 * see of their workers, says what it thinks of that, and acts on it in the end. */
#ifndef LAUNCHD_DAEMON_RUN_HANG_JUDGE_H
#define LAUNCHD_DAEMON_RUN_HANG_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/run/hang_recorder.h"
#include "daemon/witness/detector.h"

struct bus;
struct member;
struct message_hang;
struct message_look;
struct output;
struct plan;

struct polled {
	unsigned count; /* so often in all, as was seen at at_ms for the first time */
	uint64_t at_ms;
};

/* Begins as { 0 }. */
struct hang_judge {
	/* the owner's, before hang_judge_start(); all are borrowed */
	const struct plan *plan;
	const struct bus *bus;
	const struct member *member;
	/* To all nodes, this one too. */
	void (*order)(void *owner, const struct message_hang *m);
	/* The attempt is to end: why. */
	void (*end)(void *owner, const char *why);
	void *owner;
	struct output *output; /* for --hang-trace */

	/* private */
	struct detector detector; /* its memory is made once; no ranks: not yet */
	bool *quiet;              /* by node rank */
	unsigned *node_of;        /* by rank */
	struct polled *polled;    /* by rank: when it asked the store for exception_dump */
	unsigned attempt;
	uint64_t store_changes;
	bool looks;      /* all nodes were told to look once a second */
	bool heard;      /* a look, since the last judgement */
	unsigned looked; /* ticks since they were */
	bool said_blind; /* that GPUs can't be seen */
	bool spoke;      /* of what is certain, in the modest form */
	uint64_t lag_ms; /* before now; something has moved since then, if a node isn't quiet */
	struct hang_recorder recorder;
};

/* The workers of an attempt run. Without memory there is no judgement. lag_ms: the time from a
 * node's last sign of life to its report that it is quiet, less a tick. */
void hang_judge_start(struct hang_judge *j, unsigned attempt, uint64_t lag_ms);

/* They end. */
void hang_judge_stop(struct hang_judge *j);

/* Once a second; in the modest form every 10 s. */
void hang_judge_tick(struct hang_judge *j);

/* A node has told: from another host, so anything. */
void hang_judge_look(struct hang_judge *j, unsigned node, const struct message_look *told);

/* Frees. */
void hang_judge_done(struct hang_judge *j);

#endif
