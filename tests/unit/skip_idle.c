/* skip_idle.c - a test with 'skip_idle' in its meson.build has clocks of its own, which only go
 * on where its loop would sleep, and then leap to when a timer is due. It waits for nothing, and
 * takes as long by these clocks on a slow machine as on a fast one.
 *
 * libuv finds these in the program before it finds libc's. It suits tests whose only process, and
 * only thread, is the loop's. What the kernel does by itself on loopback has mostly been done by
 * the time that send(2) returns; on a busy machine a kernel thread does it later, but in order, so
 * a datagram to ourselves comes after all that was sent before it by the same CPU. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	LOOK_MS = 1,    /* for what comes back neither by loopback nor at once */
	READ_NS = 1000, /* what reading a clock takes: no two readings are alike */
	ROUNDS = 4,     /* what was sent, what answers it, what answers that, and one more */
	SIGNAL_SET_BYTES = 8,
};

static struct timespec starts[CLOCK_BOOTTIME + 1]; /* what each clock showed at first */
static uint64_t elapsed_ns;
static int echo;

/* While there is one thread. What can't be had ends the test. */
__attribute__((constructor)) static void open_echo(void)
{
	struct sockaddr_in self = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof self;
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET((size_t)sched_getcpu(), &cpu);
	echo = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (echo < 0 || bind(echo, (struct sockaddr *)&self, len) < 0 ||
		getsockname(echo, (struct sockaddr *)&self, &len) < 0 ||
		connect(echo, (struct sockaddr *)&self, len) < 0 ||
		sched_setaffinity(0, sizeof cpu, &cpu) < 0)
		abort();
}

static void await_loopback(void)
{
	char byte = 0;

	for (int i = 0; i < ROUNDS; i++)
		if (send(echo, &byte, 1, 0) != 1 || recv(echo, &byte, 1, 0) != 1)
			abort();
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	const uint64_t second = 1000000000;
	struct timespec *start = &starts[clock];
	uint64_t ns;

	if (start->tv_sec == 0 && syscall(SYS_clock_gettime, clock, start) < 0)
		return -1;
	elapsed_ns += READ_NS;
	ns = (uint64_t)start->tv_nsec + elapsed_ns;
	ret->tv_sec = start->tv_sec + (time_t)(ns / second);
	ret->tv_nsec = (long)(ns % second);
	return 0;
}

int epoll_pwait(int fd, struct epoll_event *ret, int max, int timeout_ms, const sigset_t *mask)
{
	int wait_ms = timeout_ms > LOOK_MS ? LOOK_MS : timeout_ms;
	int n;

	if (wait_ms > 0)
		await_loopback();
	n = (int)syscall(SYS_epoll_pwait, fd, ret, max, wait_ms, mask, SIGNAL_SET_BYTES);
	if (n == 0)
		elapsed_ns += (uint64_t)timeout_ms * 1000000;
	return n;
}

int epoll_wait(int fd, struct epoll_event *ret, int max, int timeout_ms)
{
	return epoll_pwait(fd, ret, max, timeout_ms, NULL);
}
