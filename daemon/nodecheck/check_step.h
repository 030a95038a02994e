/* check_step.h - one step of the check: what is done, and which ranks do it together; as a line of
 * text that rank 0 writes into the store and every rank reads. Pure. */
#ifndef LAUNCHD_DAEMON_NODECHECK_CHECK_STEP_H
#define LAUNCHD_DAEMON_NODECHECK_CHECK_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text;

enum step_kind {
	STEP_GPU,    /* each rank by itself: memory and compute */
	STEP_REDUCE, /* all-reduce in each group, as NCCL chooses to carry it */
	STEP_NICS,   /* the same with peer-to-peer and shared memory off: network cards carry it */
	STEP_END,    /* there are no more steps */
	STEP_KINDS,
};

/* Ranks first, first + 1, ... */
struct rank_range {
	unsigned first, count;
};

/* Two nodes need not have neighbouring ranks, nor all that are good. */
struct rank_group {
	const struct rank_range *parts;
	unsigned count;
};

struct check_step {
	enum step_kind kind;
	uint64_t limit_ms;
	size_t count;
	const struct rank_group *groups;
};

/* One line, without its end. */
void check_step_write(const struct check_step *s, struct text *out);

/* Where a rank is in a step; -ENOENT: it has no part in it. -EPROTO: not such a line. *ret_group
 * has the group's number, which names it, *ret_rank and *ret_ranks are within the group. kind and
 * limit_ms are set in both of the first cases. */
struct step_part {
	enum step_kind kind;
	uint64_t limit_ms;
	unsigned group, rank, ranks;
};
int check_step_read(const char *line, unsigned rank, struct step_part *ret);

/* "GPU", "all-reduce", ... for sentences. */
const char *step_name(enum step_kind kind);

/* How many ranks, and the i-th of them. */
unsigned rank_group_size(const struct rank_group *g);
unsigned rank_group_at(const struct rank_group *g, unsigned i);

#endif
