/* gpu_power.h - what a GPU does, told by the power that it draws against what it has drawn in this
 * job so far. Pure.
 *
 * Whether kernels run tells less: one of NCCL's that waits for another rank runs, and is all that a
 * GPU's utilisation counts, 100 % of it. But it draws far less than one that computes. So what is
 * known is the median of a GPU's power while kernels ran on it and the job moved. */
#ifndef LAUNCHD_DAEMON_WITNESS_GPU_POWER_H
#define LAUNCHD_DAEMON_WITNESS_GPU_POWER_H

#include <stdbool.h>

#include "daemon/witness/sample.h"

enum {
	POWER_STEP_MW = 5000,
	POWER_STEPS = 400,    /* up to 2 kW */
	POWER_LOOKS = 3,      /* the latest, which together tell what it does now */
	POWER_ENOUGH = 10,    /* looks at a GPU that works make a median */
	POWER_WAITS_PCT = 70, /* of the median, and less: its kernel waits */
	POWER_WORKS_PCT = 85, /* and more: it works */
};

/* { 0 } at first. */
struct gpu_power {
	unsigned counted[POWER_STEPS];   /* looks while the job moved, by power */
	unsigned doubtful[POWER_STEPS];  /* since it has moved last */
	unsigned count;                  /* of the first */
	unsigned latest_mw[POWER_LOOKS]; /* 0: no kernel ran */
	unsigned looks;
	bool used; /* some kernel has run */
};

/* A look at it, one a second. busy: a kernel ran. */
void gpu_power_see(struct gpu_power *p, unsigned mw, bool busy);

/* The job has moved: what was seen until now was no hang. */
void gpu_power_moved(struct gpu_power *p);

enum gpu_activity gpu_power_tells(const struct gpu_power *p);

/* Of two GPUs of one worker: a worker works where one of them does, and nothing is known of it
 * where nothing is of one. */
enum gpu_activity gpu_activity_of_both(enum gpu_activity a, enum gpu_activity b);

#endif
