/* hang_ras.h - a child of node rank 0's that asks NCCL's RAS every few seconds, while the job is
 * quiet, how many collectives each rank has started: one process of NCCL's answers for all nodes.
 * Nobody waits for it: where RAS hangs, or there is none, nothing is known of that. */
#ifndef LAUNCHD_DAEMON_RUN_HANG_RAS_H
#define LAUNCHD_DAEMON_RUN_HANG_RAS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/os/helper.h"

struct ras_worker;
struct text;
struct worker;

/* Begins as { 0 }. */
struct hang_ras {
	struct helper helper; /* private, as is the rest */
	struct ras_worker *workers;
	unsigned count, ranks;
	size_t room;    /* for the text of one answer */
	unsigned taken; /* the last one that was */
	bool over;      /* there is none to ask in this attempt */
	bool stale;     /* that nothing is known any more was said */
};

/* The workers of an attempt run. */
void hang_ras_renew(struct hang_ras *r);

/* Starts the child, where none runs and there may be somebody to ask. workers: of this node,
 * `count` of them; ranks: of the job; argv as struct helper has it. */
void hang_ras_start(struct hang_ras *r, uv_loop_t *loop, const struct worker *workers,
	unsigned count, unsigned ranks, char **argv);

/* Adds what it has heard since the last call: "ops moved", where a rank has started something since
 * the answer before; "ops ras BYTES", the answer's length, or 0 where none has come for long; and
 * of each rank of which something is known a line, as ras_counts.h has it. */
void hang_ras_take(struct hang_ras *r, struct text *out);

/* Ends the child; the loop runs on until it has. */
void hang_ras_stop(struct hang_ras *r);

#endif
