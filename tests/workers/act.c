/* act.c - dies as $ACT or $ACT_<rank> says, and leaves the time of its death in the file $PAGE.
 *
 * exit:7@2500       with exit code 7, 2.5 ms after the start that the test gives in the page
 * signal:11@2500    by signal 11
 * exit:7~3+200      0.2 ms after it has seen, by a pidfd, that the worker of rank 3 is dead; where
 *                   there are none, by a look at it each 0.02 ms
 * never
 *
 * $ON_TERM or $ON_TERM_<rank>: "ignore", or "exit:5". */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "worker.h"

enum { WORKERS_MAX = 1024 };

struct page {
	_Atomic int64_t start_ns; /* CLOCK_MONOTONIC; 0: not yet */
	_Atomic int64_t ready;    /* workers that wait for it */
	struct {
		_Atomic int64_t pid, died_ns;
	} workers[WORKERS_MAX];
};

static int64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sleep_until(int64_t ns)
{
	const struct timespec t = { ns / 1000000000, ns % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
		;
}

static void on_term_exit(int number)
{
	(void)number;
	_exit(atoi(mine("ON_TERM", "") + strlen("exit:")));
}

static int is_dead(pid_t pid)
{
	char path[64], text[256] = "";
	int fd;

	(void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
		return 1;
	(void)close(fd);
	return strstr(text, ") Z ") != NULL;
}

static void wait_for_death(pid_t pid)
{
	struct pollfd dead = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };

	if (dead.fd >= 0)
		while (poll(&dead, 1, -1) != 1)
			;
	else
		while (!is_dead(pid))
			sleep_until(now_ns() + 20000);
}

int main(void)
{
	const char *act = mine("ACT", "never"), *on_term = mine("ON_TERM", "");
	const struct sched_param soon = { .sched_priority = 1 };
	int fd = open(mine("PAGE", ""), O_RDWR | O_CLOEXEC);
	int me = atoi(mine("RANK", "0")), value, other;
	char how[8] = "", when;
	long us, more_us = 0;
	struct page *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (fd < 0 || page == MAP_FAILED || me >= WORKERS_MAX)
		return 99;
	if (*on_term)
		(void)signal(SIGTERM, strcmp(on_term, "ignore") == 0 ? SIG_IGN : on_term_exit);
	page->workers[me].pid = getpid();
	(void)atomic_fetch_add(&page->ready, 1);
	while (!page->start_ns)
		sleep_until(now_ns() + 200000);
	if (strcmp(act, "never") == 0)
		for (;;)
			(void)pause();
	if (sscanf(act, "%7[a-z]:%d%c%ld+%ld", how, &value, &when, &us, &more_us) < 4)
		return 99;
	other = (int)us % WORKERS_MAX;
	/* so that nothing comes between the time it notes and its death, where that is allowed */
	(void)sched_setscheduler(0, SCHED_FIFO, &soon);
	if (when == '~') {
		wait_for_death((pid_t)page->workers[other].pid);
		sleep_until(now_ns() + more_us * 1000);
	} else {
		sleep_until(page->start_ns + us * 1000);
	}
	page->workers[me].died_ns = now_ns();
	if (strcmp(how, "exit") == 0)
		_exit(value);
	(void)signal(value, SIG_DFL);
	(void)kill(getpid(), value);
	for (;;)
		(void)pause();
}
