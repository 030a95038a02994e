/* rank_work.h - what a worker does from one look to the next, and whether that is work. Pure.
 *
 * A hung main thread does nothing at all, but threads and children beside it may go on: monitors
 * do. So the main thread is judged alone, and the rest of its tree against its habit: the most that
 * it did while the job moved. Only more than that counts as work. */
#ifndef LAUNCHD_DAEMON_WITNESS_RANK_WORK_H
#define LAUNCHD_DAEMON_WITNESS_RANK_WORK_H

#include <stdbool.h>
#include <stdint.h>

struct rank_sight;

/* What the rest of a tree does: of these a habit is known. Big bytes are moved by calls of 8 KB and
 * more, as data are and /proc is not. */
enum habit {
	HABIT_CPU,
	HABIT_KID_CPU,
	HABIT_BYTES,
	HABIT_WRITTEN,
	HABIT_BIG,
	HABIT_BIG_WRITTEN,
	HABIT_NET, /* with what it has talked with workers of other nodes */
	HABITS,
};

/* From one look to the next, a second. */
struct rank_rates {
	unsigned main_cpu_ms, main_bytes, main_faults;
	unsigned net_bytes; /* 0 where it has talked with other workers */
	unsigned rest[HABITS];
	unsigned kid_busiest_ms;
	int64_t working_set;
};

enum {
	RATES_KEPT = 5,
	HABIT_LOOKS = 60,
	HABIT_LAG = 2, /* of these, that are no habit yet */
	TOUCHED_KEPT = 3,
};

struct rank_work {
	struct rank_rates rates[RATES_KEPT]; /* the latest first */
	unsigned rated;                      /* of these */
	unsigned worked;                     /* looks in a row that have shown work */

	/* while the job moved: the latest looks, and the memory that was touched: the latest, too,
	 * as a job that starts touches much; in rings */
	unsigned habits[HABIT_LOOKS][HABITS];
	unsigned learnt; /* looks so far */
	int64_t touched[TOUCHED_KEPT];
	unsigned touched_count; /* so far */
};

enum acting {
	ACTING_UNSEEN, /* there were no two looks at it yet since something moved */
	ACTING_IDLE,
	ACTING_NET,  /* it only hears or sends, and not to workers */
	ACTING_RUNS, /* its main thread uses CPU time, and what it touches is not known yet */
	ACTING_SPIN, /* its main thread uses CPU time, and touches next to no memory */
	ACTING_WORK,
};

/* What it did between its two looks; after ranks_connect(). Once for each look. */
void rank_rate(struct rank_sight *r);

/* The job moved meanwhile: that is its habit. */
void rank_learn(struct rank_sight *r);

enum acting rank_acting(const struct rank_sight *r);

#endif
