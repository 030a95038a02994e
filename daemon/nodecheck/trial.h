/* trial.h - what a group of ranks saw together, and whether that is as fast as it has to be. Pure.
 */
#ifndef LAUNCHD_DAEMON_NODECHECK_TRIAL_H
#define LAUNCHD_DAEMON_NODECHECK_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/nodecheck/check_step.h"
#include "daemon/nodecheck/sighting.h"

struct text;

struct trial {
	struct rank_group group;
	struct rank_range own[2]; /* for the group's parts */
	unsigned a, b;            /* who is tried: members of a pair; else b is a */
	unsigned
		within; /* trials of different places judge nobody of another one: a node's index */
	unsigned kind;  /* only those of one kind are alike enough to be compared */
	unsigned times; /* how often it was seen */
	unsigned said_by;      /* the rank whose text stands in seen */
	struct gpu_sight seen; /* the worst of what the ranks say; the best of the rates */
	uint64_t least[RATES]; /* what is demanded; 0: nothing */
};

/* Adds what its ranks saw; by_rank: of all ranks. Of one time the rate of the slowest rank counts,
 * of several times the best, so that only what is slow each time is slow. A result that is wrong or
 * missing is not made good by another time. */
void trial_add(struct trial *t, const struct gpu_sight *by_rank);

/* All trials that may be compared, and which percentage of their peers' rate is demanded. */
struct trials {
	struct trial *at;
	size_t count, room;
	unsigned percent;
	uint64_t *scratch; /* room for as many rates as there are members */
	size_t members;
	struct {
		bool known;
		unsigned kind;
		uint64_t value;
	} median[RATES]; /* the last one that was asked for: thousands of trials are of one kind */
};

/* Trials were added to, or have seen more. */
void trials_changed(struct trials *all);

/* What a kind of trials reaches: the median over those who are tried of each one's best rate, so
 * that one slow member of many pairs moves nothing. 0: fewer than three have any. */
uint64_t trials_median(struct trials *all, unsigned kind, enum rate rate);

/* Whether a rate of a trial that was right is too low, by what is demanded or by its peers. */
bool trial_is_slow(struct trials *all, const struct trial *t, enum rate rate);
bool trial_is_slow_at_all(struct trials *all, const struct trial *t);

/* "120 GB/s, where 396 GB/s are demanded", "where its peers have 450 GB/s". */
void trial_add_rate(struct trials *all, const struct trial *t, enum rate rate, struct text *out);

/* "452 GB/s", "1.25 GB/s", "38.1 TFLOP/s". */
void rate_add(enum rate rate, uint64_t value, struct text *out);

#endif
