/* quick_look.c - see quick_look.h */
#include "daemon/blackbox/quick_look.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/fd.h"

/* Those in which workers are found; another is named by its number. */
static const struct {
	long number;
	const char *name;
} calls[] = {
	{ SYS_read, "read" },
	{ SYS_write, "write" },
	{ SYS_futex, "futex" },
	{ SYS_ppoll, "ppoll" },
	{ SYS_pselect6, "pselect6" },
	{ SYS_epoll_pwait, "epoll_pwait" },
#ifdef SYS_poll
	{ SYS_poll, "poll" },
#endif
#ifdef SYS_select
	{ SYS_select, "select" },
#endif
#ifdef SYS_epoll_wait
	{ SYS_epoll_wait, "epoll_wait" },
#endif
	{ SYS_nanosleep, "nanosleep" },
	{ SYS_clock_nanosleep, "clock_nanosleep" },
	{ SYS_ioctl, "ioctl" },
	{ SYS_connect, "connect" },
	{ SYS_accept, "accept" },
	{ SYS_accept4, "accept4" },
	{ SYS_recvfrom, "recvfrom" },
	{ SYS_recvmsg, "recvmsg" },
	{ SYS_sendto, "sendto" },
	{ SYS_sendmsg, "sendmsg" },
	{ SYS_wait4, "wait4" },
	{ SYS_waitid, "waitid" },
	{ SYS_openat, "openat" },
	{ SYS_fsync, "fsync" },
	{ SYS_flock, "flock" },
	{ SYS_pread64, "pread64" },
	{ SYS_pwrite64, "pwrite64" },
	{ SYS_mmap, "mmap" },
	{ SYS_munmap, "munmap" },
	{ SYS_exit_group, "exit_group" },
	{ SYS_rt_sigtimedwait, "rt_sigtimedwait" },
	{ SYS_rt_sigsuspend, "rt_sigsuspend" },
#ifdef SYS_pause
	{ SYS_pause, "pause" },
#endif
};

void quick_look_call(const char *text, char *ret, size_t room)
{
	char *end;
	long number = strtol(text, &end, 10);

	*ret = '\0';
	if (end == text || number < 0)
		return; /* "running", "-1 ..." */
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (calls[i].number == number) {
			(void)snprintf(ret, room, "%s", calls[i].name);
			return;
		}
	(void)snprintf(ret, room, "system call %ld", number);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* can't fail */
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Its length, and the text ends with NUL; 0: nothing. */
static size_t read_of(pid_t pid, const char *file, char *ret, size_t room)
{
	char path[64];
	long n;

	(void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
	n = fd_read_file(path, ret, room);
	if (n < 0)
		*ret = '\0';
	return n < 0 ? 0 : (size_t)n;
}

static bool read_stat(struct quick_look *l)
{
	const char *after;
	char text[1024];
	uint64_t user, system, threads;
	uint64_t tick = (uint64_t)sysconf(_SC_CLK_TCK);
	char state;

	if (read_of(l->pid, "stat", text, sizeof text) == 0)
		return false;
	after = strrchr(text, ')'); /* the name may hold anything */
	if (!after ||
		sscanf(after + 1,
			" %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
			" %*d %*d %*d %*d %" SCNu64,
			&state, &user, &system, &threads) != 4)
		return false;
	l->state = state;
	l->cpu_ms = (user + system) * 1000 / tick;
	l->threads = threads;
	return true;
}

static uint64_t number_behind(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static void look_at(struct quick_look *l)
{
	char text[512];

	l->at_ns = now_ns();
	l->known = read_stat(l);
	if (!l->known)
		return;
	(void)read_of(l->pid, "wchan", l->wait, sizeof l->wait);
	if (strcmp(l->wait, "0") == 0)
		*l->wait = '\0';
	(void)read_of(l->pid, "syscall", text, sizeof text);
	quick_look_call(text, l->call, sizeof l->call);
	if (read_of(l->pid, "io", text, sizeof text) > 0)
		l->io_bytes = number_behind(text, "rchar: ") + number_behind(text, "wchar: ");
}

size_t quick_look(struct quick_look *all, size_t count, uint64_t limit_ns)
{
	uint64_t until_ns = now_ns() + limit_ns;
	size_t looked = 0;

	for (size_t i = 0; i < count && now_ns() < until_ns; i++) {
		if (all[i].pid <= 0)
			continue;
		look_at(&all[i]);
		looked += all[i].known;
	}
	return looked;
}
