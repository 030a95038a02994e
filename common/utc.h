/* utc.h - moments of the wall clock, as nanoseconds and as RFC 3339 has them. */
#ifndef LAUNCHD_COMMON_UTC_H
#define LAUNCHD_COMMON_UTC_H

#include <stdint.h>

enum { UTC_SIZE = 31 };

/* "2026-11-21T07:00:12.345678Z": CLOCK_REALTIME nanoseconds with that many digits of the second's
 * fraction, 0 to 9, cut, not rounded: a moment is never later than it was. */
void utc_write(char ret[UTC_SIZE], int64_t wall_ns, unsigned digits);

/* CLOCK_REALTIME now. */
int64_t utc_now_ns(void);

#endif
