/* faults.c - preloaded into launchd: the n-th call of one function fails.
 *
 * FAULT=fork:2:11 makes the second fork() of launchd's processes together fail with errno 11.
 * FAULT_MARK names a file of two 64-bit numbers: how many calls there were, and how many failed.
 * All of it is taken out of the environment, so that no worker gets any of it.
 *
 * One wrapper fits all functions: their arguments are integers and pointers in registers, at most
 * seven, on every ABI of Linux that we know. Its name in C differs from the one that is linked. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef long function(long, long, long, long, long, long, long);

static struct {
	char name[32];
	int64_t at;
	int error;
	struct {
		_Atomic int64_t calls, failed;
	} * mark;
} fault;

/* An eventfd can be read whatever happens, and libuv aborts where its own can't. */
static bool can_fail(const char *name, long fd)
{
	char path[32], what[32] = "";

	if (strcmp(name, "read") != 0)
		return true;
	(void)snprintf(path, sizeof path, "/proc/self/fd/%ld", fd);
	return readlink(path, what, sizeof what - 1) < 0 ||
		strcmp(what, "anon_inode:[eventfd]") != 0;
}

static bool strikes(const char *name, long first)
{
	if (!fault.mark || strcmp(fault.name, name) != 0 || !can_fail(name, first) ||
		atomic_fetch_add(&fault.mark->calls, 1) + 1 != fault.at)
		return false;
	(void)atomic_fetch_add(&fault.mark->failed, 1);
	errno = fault.error;
	return true;
}

static function *find(function **known, const char *name)
{
	if (!*known) {
		void *found = dlsym(RTLD_NEXT, name);

		memcpy(known, &found, sizeof found); /* ISO C has no cast for that */
	}
	return *known;
}

#define FAKE(name, failure) FAKE_OF(name, NULL, failure)
#define FAKE_OF(name, real, failure) \
	long fake_##name(long a, long b, long c, long d, long e, long f, long g) __asm__(#name); \
	long fake_##name(long a, long b, long c, long d, long e, long f, long g) \
	{ \
		static function *known = real; \
\
		if (strikes(#name, a)) \
			return failure; \
		return find(&known, #name)(a, b, c, d, e, f, g); \
	}

/* dlsym() allocates, so these three can't be found by it */
function real_malloc __asm__("__libc_malloc");
function real_calloc __asm__("__libc_calloc");
function real_realloc __asm__("__libc_realloc");

FAKE_OF(malloc, real_malloc, 0)
FAKE_OF(calloc, real_calloc, 0)
FAKE_OF(realloc, real_realloc, 0)
FAKE(access, -1)
FAKE(bind, -1)
FAKE(clone, -1)
FAKE(epoll_create1, -1)
FAKE(epoll_ctl, -1)
FAKE(epoll_pwait, -1)
FAKE(epoll_wait, -1)
FAKE(eventfd, -1)
FAKE(fcntl64, -1)
FAKE(fork, -1)
FAKE(fstat64, -1)
FAKE(fsync, -1)
FAKE(gethostname, -1)
FAKE(getpriority, -1)
FAKE(getrlimit64, -1)
FAKE(getsockname, -1)
FAKE(kill, -1)
FAKE(mkdir, -1)
FAKE(mkdtemp, 0)
FAKE(nftw64, -1)
FAKE(open64, -1)
FAKE(openat64, -1)
FAKE(opendir, 0)
FAKE(pipe2, -1)
FAKE(poll, -1)
FAKE(prctl, -1)
FAKE(pread64, -1)
FAKE(read, -1)
FAKE(readdir64, 0)
FAKE(remove, -1)
FAKE(rename, -1)
FAKE(rmdir, -1)
FAKE(sched_getaffinity, -1)
FAKE(setpriority, -1)
FAKE(setrlimit64, -1)
FAKE(setsid, -1)
FAKE(sigaction, -1)
FAKE(signalfd, -1)
FAKE(sigprocmask, -1)
FAKE(sigtimedwait, -1)
FAKE(sigwaitinfo, -1)
FAKE(socket, -1)
FAKE(stat64, -1)
FAKE(syscall, -1)
FAKE(write, -1)

__attribute__((constructor)) static void arm(void)
{
	const char *what = getenv("FAULT"), *path = getenv("FAULT_MARK");
	long long at;
	void *mark;
	int fd;

	if (!what || !path || sscanf(what, "%31[^:]:%lld:%d", fault.name, &at, &fault.error) != 3)
		return;
	fault.at = at;
	fd = open(path, O_RDWR | O_CLOEXEC);
	mark = mmap(NULL, sizeof *fault.mark, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	(void)unsetenv("FAULT");
	(void)unsetenv("FAULT_MARK");
	(void)unsetenv("LD_PRELOAD");
	if (mark != MAP_FAILED)
		fault.mark = mark; /* from now on */
}
