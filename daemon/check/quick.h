/* quick.h - the quick check of this node: about a dozen facts in under a second, none of which
 * costs a job anything. What can't be looked at is unknown, and never bad.
 *
 * The checks, by the names in the findings:
 *   gpu_driver      the driver answers, each GPU does, and NVML shows what the PCI bus has
 *   driver_version  its text is the version alone, for nodes to be compared by
 *   gpu_count, gpu_uuid, gpu_model      what there is, held against what was expected
 *   gpu_recovery, gpu_ecc, gpu_remap, nvlink, gpu_fabric, gpu_pcie, gpu_use      of each GPU
 *   gpu_xid         Xids since boot or since launchd has watched
 *   infiniband, shm, memlock, disk, mount, clock, command */
#ifndef LAUNCHD_DAEMON_CHECK_QUICK_H
#define LAUNCHD_DAEMON_CHECK_QUICK_H

#include "daemon/check/quick_input.h"
#include "daemon/check/task.h"

struct findings;

/* How long quick_check() takes at most, well under a second on a good node: the driver and then a
 * GPU may each need all of their time, and be killed. A command has its own time besides. */
enum { QUICK_LIMIT_MS = DRIVER_LIMIT_MS + GPU_LIMIT_MS + 3 * TASK_KILL_MS };

/* Looks, and waits for it; see task.h for what that means for this process. *ret begins as { 0 }.
 * Negative errno: there is no memory. */
int quick_check(const struct quick_input *in, struct findings *ret);

#endif
