/* deaths.c - see deaths.h */
#include "daemon/workers/deaths.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "common/failure.h"
#include "daemon/workers/worker.h"

/* How long this thread has waited for a CPU: the second number of "/proc/self/schedstat". */
static uint64_t waited_ns(const struct deaths *d)
{
	unsigned long long ran, waited;
	char text[96];
	ssize_t n = d->schedstat < 0 ? -1 : pread(d->schedstat, text, sizeof text - 1, 0);

	if (n < 0)
		return 0;
	text[n] = '\0';
	return sscanf(text, "%llu %llu", &ran, &waited) == 2 ? waited : 0;
}

/* For how long it has not slept. The file's first number is as old as the last tick. */
static uint64_t awake_ns(const struct deaths *d)
{
	struct timespec cpu = { 0 };

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu); /* every Linux has it */
	return (uint64_t)cpu.tv_sec * 1000000000 + (uint64_t)cpu.tv_nsec + waited_ns(d);
}

/* Who dies while the callbacks of one turn run is seen in the next one: two turns count. */
static void on_turn(uv_prepare_t *h)
{
	struct deaths *d = (void *)((char *)h - offsetof(struct deaths, turn));

	d->awake_ns = d->next_ns;
	d->next_ns = awake_ns(d);
}

static void on_watch(uv_poll_t *h, int status, int events)
{
	struct deaths *d = (void *)((char *)h - offsetof(struct deaths, watch));

	(void)status, (void)events;
	d->on_readable(d->owner);
}

void deaths_init(struct deaths *d, struct worker *workers, unsigned count)
{
	*d = (struct deaths){ .workers = workers, .count = count, .epoll = -1, .schedstat = -1 };
}

static void begin_turns(struct deaths *d, uv_loop_t *loop)
{
	d->schedstat = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
	d->awake_ns = d->next_ns = awake_ns(d);
	(void)uv_prepare_init(loop, &d->turn); /* can't fail, nor can its start */
	(void)uv_prepare_start(&d->turn, on_turn);
	d->turn.data = d->owner;
	d->dated = true;
}

int deaths_open(struct deaths *d, uv_loop_t *loop, bool dated, void (*on_readable)(void *owner),
	void *owner, struct failure *why)
{
	int rc;

	d->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (d->epoll < 0)
		return failure_set(why, -errno, "epoll_create1: %s", strerror(errno));
	rc = uv_poll_init(loop, &d->watch, d->epoll);
	if (rc < 0) {
		deaths_done(d);
		return failure_set(why, rc, "can't watch workers: %s", uv_strerror(rc));
	}
	(void)uv_poll_start(&d->watch, UV_READABLE, on_watch); /* has a callback */
	d->on_readable = on_readable;
	d->owner = d->watch.data = owner;
	if (dated)
		begin_turns(d, loop);
	return 0;
}

static void note(struct deaths *d, struct worker *w, void (*tell)(void *owner, struct worker *w))
{
	if (d->dated)
		w->outcome.late_ns = awake_ns(d) - d->awake_ns;
	tell(d->owner, w);
}

static bool note_readable(struct deaths *d, void (*tell)(void *owner, struct worker *w))
{
	struct epoll_event dead[64];
	bool died = false;
	int n;

	do {
		n = epoll_wait(d->epoll, dead, (int)(sizeof dead / sizeof *dead), 0);
		for (int i = 0; i < n; i++) {
			struct worker *w = dead[i].data.ptr;

			if (!worker_reap(w))
				continue;
			note(d, w, tell);
			died = true;
		}
	} while (n > 0);
	return died;
}

/* The first one, if it is a worker that has no pidfd and is not reaped yet. */
static bool note_first(struct deaths *d, pid_t first, void (*tell)(void *owner, struct worker *w))
{
	for (unsigned i = 0; first > 0 && i < d->count; i++) {
		struct worker *w = &d->workers[i];

		if (w->outcome.pid != first || !worker_is_alive(w) || w->pidfd >= 0 ||
			!worker_reap(w))
			continue;
		note(d, w, tell);
		return true;
	}
	return false;
}

/* Of the living: until none is found, so that whoever is found later has died later. */
static bool note_others(struct deaths *d, void (*tell)(void *owner, struct worker *w))
{
	uint64_t now_ns = uv_hrtime();
	bool died = false, found;

	do {
		found = false;
		for (unsigned i = 0; i < d->count; i++) {
			struct worker *w = &d->workers[i];

			if (!worker_is_alive(w) || w->pidfd >= 0 || !worker_reap(w))
				continue;
			w->outcome.ended_ns = now_ns;
			note(d, w, tell);
			died = found = true;
		}
	} while (found);
	return died;
}

pid_t deaths_first(int code, pid_t pid)
{
	return code == CLD_EXITED || code == CLD_KILLED || code == CLD_DUMPED ? pid : -1;
}

/* Whom the one that is waiting names, as `first` of deaths_note(). Another one, which names nobody,
 * waits in its place: children that are no workers have died behind it, too. */
static pid_t take_signal(void)
{
	const struct timespec now = { 0 };
	siginfo_t si;
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	if (sigtimedwait(&chld, &si, &now) < 0)
		return 0;
	(void)kill(getpid(), SIGCHLD);
	return deaths_first(si.si_code, si.si_pid);
}

bool deaths_note(struct deaths *d, pid_t first, void (*tell)(void *owner, struct worker *w))
{
	bool died = note_readable(d, tell);

	if (!d->by_signal)
		return died;
	died |= note_first(d, first ? first : take_signal(), tell);
	return note_others(d, tell) || died;
}

unsigned deaths_close(struct deaths *d, uv_close_cb on_closed)
{
	uv_close((uv_handle_t *)&d->watch, on_closed);
	if (!d->dated)
		return 1;
	uv_close((uv_handle_t *)&d->turn, on_closed);
	return 2;
}

void deaths_done(struct deaths *d)
{
	if (d->epoll >= 0)
		(void)close(d->epoll);
	if (d->schedstat >= 0)
		(void)close(d->schedstat);
	d->epoll = d->schedstat = -1;
}
