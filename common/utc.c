/* utc.c - see utc.h */
#include "common/utc.h"

#include <stdio.h>
#include <time.h>

void utc_write(char ret[UTC_SIZE], int64_t wall_ns, unsigned digits)
{
	enum { NS = 1000000000, MOST = 9, SECONDS_LEN = 19 };
	int64_t ns = wall_ns % NS;
	time_t s = (time_t)(wall_ns / NS);
	size_t len = SECONDS_LEN;
	struct tm tm = { 0 };

	if (ns < 0) { /* before 1970 the fraction still counts forwards */
		ns += NS;
		s--;
	}
	(void)gmtime_r(&s, &tm); /* 64 bits of ns are 292 years, which fit */
	(void)strftime(ret, UTC_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
	if (digits > 0) {
		(void)snprintf(ret + len, UTC_SIZE - len, ".%09u", (unsigned)ns);
		len += 1 + (digits < MOST ? digits : MOST);
	}
	ret[len] = 'Z';
	ret[len + 1] = '\0';
}

int64_t utc_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now); /* can't fail */
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
