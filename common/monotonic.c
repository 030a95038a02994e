/* monotonic.c - see monotonic.h */
#include "common/monotonic.h"

#include <limits.h>
#include <time.h>

int64_t monotonic_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int monotonic_left_ms(int64_t until_ms)
{
	int64_t left = until_ms - monotonic_ms();

	if (left < 0)
		return 0;
	return left < INT_MAX ? (int)left : INT_MAX;
}
