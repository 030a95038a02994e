/* gpu_work.h - what a GPU does, told by the power that it draws and by the work of its tensor units
 * against what both were in this job so far. Pure.
 *
 * Whether kernels run tells less: one of NCCL's that waits for another rank runs, and is all that a
 * GPU's utilisation counts, 100 % of it. But it draws far less than one that computes, and uses no
 * tensor unit. So what is known is the median of each while kernels ran and the job moved. */
#ifndef LAUNCHD_DAEMON_WITNESS_GPU_WORK_H
#define LAUNCHD_DAEMON_WITNESS_GPU_WORK_H

#include <stdbool.h>

#include "daemon/witness/sample.h"

enum {
	WORK_STEPS = 400,
	POWER_STEP_MW = 5000,     /* up to 2 kW */
	TENSOR_STEP_PERMILLE = 5, /* the units are at work, of the time */
	WORK_LOOKS = 3,           /* the latest, which together tell what it does now */
	WORK_ENOUGH = 10,         /* looks at a GPU that works make a median */
	POWER_WAITS_PCT = 70,     /* of the median, and less: its kernel waits */
	POWER_WORKS_PCT = 85,     /* and more: it works */
	TENSOR_WAITS_PCT = 10,
	TENSOR_WORKS_PCT = 50,
	TENSOR_LEAST_PERMILLE = 20, /* a job whose median is less has no use for them */
	TENSOR_UNKNOWN = -1,        /* before Hopper, in a part of a GPU, with an old driver */
};

/* What was seen of a number while a kernel ran, in WORK_STEPS steps. */
struct gpu_usual {
	unsigned counted[WORK_STEPS];  /* looks while the job moved */
	unsigned doubtful[WORK_STEPS]; /* since it has moved last */
	unsigned count;                /* of the first */
	unsigned latest[WORK_LOOKS];   /* 0: no kernel ran, or it was not seen */
};

/* { 0 } at first. */
struct gpu_work {
	struct gpu_usual power, tensor;
	unsigned looks;
	unsigned tensor_looks; /* in a row, the latest of all */
	bool used;             /* some kernel has run */
};

/* A look at it, one a second. busy: a kernel ran; tensor_permille: or TENSOR_UNKNOWN. */
void gpu_work_see(struct gpu_work *w, unsigned mw, bool busy, int tensor_permille);

/* The job has moved: what was seen until now was no hang. */
void gpu_work_moved(struct gpu_work *w);

enum gpu_activity gpu_work_tells(const struct gpu_work *w);

/* Of two GPUs of one worker: a worker works where one of them does, and nothing is known of it
 * where nothing is of one. */
enum gpu_activity gpu_activity_of_both(enum gpu_activity a, enum gpu_activity b);

#endif
