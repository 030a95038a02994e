/* xid_check.h - the check of Xids: in the kernel's log, and among what a child saw while the job
 * ran (xid.h). */
#ifndef LAUNCHD_DAEMON_CHECK_XID_CHECK_H
#define LAUNCHD_DAEMON_CHECK_XID_CHECK_H

#include <stdbool.h>

#include "daemon/check/xid_log.h"

struct findings;
struct quick_input;
struct tasks;

/* What is known of a GPU that NVML has. */
struct xid_gpu {
	unsigned number;
	bool placed; /* its place is known */
	struct pci_place place;
	unsigned shown; /* by so many entries of the job's CUDA_VISIBLE_DEVICES; 0: none */
	bool sound;     /* its driver answers that no recovery is needed */
};

struct xid_gpus {
	unsigned count; /* in at */
	unsigned shown; /* entries of CUDA_VISIBLE_DEVICES that are devices */
	struct xid_gpu at[64];
};

/* Adds the task that reads the kernel's log. */
void xid_check_add(const struct quick_input *in, struct tasks *all);

/* When it is done: judges what it has read, and in->xids. A fatal Xid is bad, unless its GPU is not
 * the job's, was initialised since, or needs no recovery by its driver's own word. */
void xid_check_sum_up(const struct quick_input *in, const struct tasks *all,
	const struct xid_gpus *gpus, struct findings *ret);

/* Whether it was made: there are NVIDIA GPUs, whose driver answers. */
bool xid_was_checked(const struct findings *found);

#endif
