/* monotonic.h - CLOCK_MONOTONIC for those who wait without a loop: clock_gettime(2), which can't
 * fail with it. */
#ifndef LAUNCHD_COMMON_MONOTONIC_H
#define LAUNCHD_COMMON_MONOTONIC_H

#include <stdint.h>

int64_t monotonic_ms(void);

/* How long it is until then, for poll(2): 0 once it is over, at most INT_MAX. */
int monotonic_left_ms(int64_t until_ms);

#endif
