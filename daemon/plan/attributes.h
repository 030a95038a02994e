/* attributes.h - what each worker's process has besides its command and environment, by --rlimit,
 * --nice and --oom-score-adj. Pure. */
#ifndef LAUNCHD_DAEMON_PLAN_ATTRIBUTES_H
#define LAUNCHD_DAEMON_PLAN_ATTRIBUTES_H

#include <stdbool.h>

#include "config/rlimits.h"

struct attributes {
	struct rlimits limits;
	bool has_nice;
	int nice;
	const char *oom_score_adj; /* as text, which is how the kernel takes it; NULL: not given */
};

#endif
