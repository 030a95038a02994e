/* skip_idle.c - a test with 'skip_idle' in its meson.build does not wait: where its loop would only
 * sleep until a timer is due, the clocks jump there.
 *
 * libuv finds these in the program before it finds libc's. It suits tests whose only process,
 * and only thread, is the loop's: what the kernel does by itself on loopback has been done by the
 * time that send(2) returns. Where libuv calls something else, the test takes real time. */
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 1, SIGNAL_SET_BYTES = 8 };

static uint64_t skipped_ns;

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	const uint64_t second = 1000000000;
	uint64_t ns;

	if (syscall(SYS_clock_gettime, clock, ret) < 0)
		return -1;
	ns = (uint64_t)ret->tv_nsec + skipped_ns;
	ret->tv_sec += (time_t)(ns / second);
	ret->tv_nsec = (long)(ns % second);
	return 0;
}

int epoll_pwait(int fd, struct epoll_event *ret, int max, int timeout_ms, const sigset_t *mask)
{
	int wait_ms = timeout_ms > LOOK_MS ? LOOK_MS : timeout_ms;
	int n = (int)syscall(SYS_epoll_pwait, fd, ret, max, wait_ms, mask, SIGNAL_SET_BYTES);

	if (n == 0 && timeout_ms > LOOK_MS)
		skipped_ns += (uint64_t)(timeout_ms - LOOK_MS) * 1000000;
	return n;
}

int epoll_wait(int fd, struct epoll_event *ret, int max, int timeout_ms)
{
	return epoll_pwait(fd, ret, max, timeout_ms, NULL);
}
