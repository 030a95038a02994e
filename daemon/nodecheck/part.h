/* part.h - one rank's part in one step of the check, in a process of its own.
 *
 * Drivers and NCCL hang, and NCCL reads its environment once in a process. So each part is done by
 * a child, which is this program once more with --part; whatever becomes of it, a sighting does. */
#ifndef LAUNCHD_DAEMON_NODECHECK_PART_H
#define LAUNCHD_DAEMON_NODECHECK_PART_H

#include "daemon/nodecheck/check_options.h"
#include "daemon/nodecheck/check_step.h"
#include "daemon/nodecheck/sighting.h"

struct collective_ops;
struct gpu_ops;

enum {
	PART_GRACE_MS = 5000, /* what the child has beyond the step's limit to say so itself */
};

/* Runs it, for at most limit_ms and the grace. argv: main()'s. number: of the step, which makes the
 * group's keys. */
void part_run(char *const *argv, const struct step_part *p, unsigned number, struct gpu_sight *ret);

/* In the child: does what o->part says, and tells its parent. Returns the exit code. */
int part_main(const struct check_options *o, const struct check_place *place,
	const struct gpu_ops *gpu, const struct collective_ops *collective);

#endif
