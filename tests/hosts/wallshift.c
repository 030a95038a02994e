/* wallshift.c - a host whose wall clock is wrong: preloaded, it moves CLOCK_REALTIME as programs
 * see it by $LAUNCHD_TEST_WALL_SHIFT seconds (a decimal number). No other clock changes. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static double shift_s(void)
{
	const char *text = getenv("LAUNCHD_TEST_WALL_SHIFT");

	return text ? strtod(text, NULL) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	long rc = syscall(SYS_clock_gettime, clock, ret);

	if (rc == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
		double shift = shift_s();
		time_t whole = (time_t)shift;

		ret->tv_sec += whole;
		ret->tv_nsec += (long)((shift - (double)whole) * 1e9);
		if (ret->tv_nsec >= 1000000000) {
			ret->tv_sec++;
			ret->tv_nsec -= 1000000000;
		} else if (ret->tv_nsec < 0) {
			ret->tv_sec--;
			ret->tv_nsec += 1000000000;
		}
	}
	return (int)rc;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
	struct timespec t;

	(void)zone;
	(void)clock_gettime(CLOCK_REALTIME, &t);
	*ret = (struct timeval){ t.tv_sec, t.tv_nsec / 1000 };
	return 0;
}

time_t time(time_t *ret)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	if (ret)
		*ret = t.tv_sec;
	return t.tv_sec;
}
