/* actor.c - act.c for several hosts: what each worker of a job does, and when each thing happened,
 * in the file $BOARD that all of them share. All times are of CLOCK_REALTIME, which time namespaces
 * leave alone, and read past any preloaded library.
 *
 * $ACT or $ACT_<rank> says how the worker ends; for each attempt one, with ";" between them, of
 * which the last one is for all that follow.
 *
 *   exit:7@2500     with exit code 7, 2.5 ms after the attempt's start
 *   signal:6@2500   by signal 6
 *   reset:1@2500    with exit code 1 and an error file (as @record writes it) that says that a
 *                   peer has closed the connection
 *   raise:1@2500    the same with an exception of its own
 *   text:1@2500     with exit code 1, and the words about the peer on stderr only
 *   obey            as the test says: how and when stand in the board
 *   never
 *
 * An attempt starts when the test says so, or with $START=auto 20 ms after its last worker came.
 * $ON_TERM or $ON_TERM_<rank>: "ignore", "exit:5", "ms:200" (dies of it so much later); else the
 * worker dies of it. $CHILD: it has a child in a session of its own that ignores SIGTERM. */
#include <linux/futex.h>
#include <limits.h>
#include <signal.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "worker.h"

enum { ATTEMPTS = 16, WORKERS = 512 };

struct part {
	_Atomic int64_t pid, born_ns, term_ns, died_ns;
	_Atomic int64_t overlap; /* 1: it found something alive of the attempt before */
	_Atomic int64_t unused;
};

struct board {
	_Atomic int64_t start_ns[ATTEMPTS]; /* 0: not yet */
	_Atomic int64_t ready[ATTEMPTS];    /* workers that have come */
	_Atomic uint32_t word, unused;      /* the futex: the test counts it up with each order */
	char orders[WORKERS][32];           /* what ACT would say, for those that obey */
	struct part parts[ATTEMPTS][WORKERS];
};

static struct part *me;
static long term_after_ms;

static int64_t now_ns(void)
{
	struct timespec t;

	(void)syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sleep_until(int64_t ns)
{
	const struct timespec t = { ns / 1000000000, ns % 1000000000 };

	while (syscall(SYS_clock_nanosleep, CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL) != 0)
		;
}

/* Either of the signals by which a job is ended in good order. */
static void on_term(int number)
{
	const char *how = mine("ON_TERM", "");

	if (!me->term_ns)
		me->term_ns = now_ns();
	if (strcmp(how, "ignore") == 0)
		return;
	if (strncmp(how, "exit:", 5) == 0)
		_exit(atoi(how + 5));
	if (term_after_ms > 0)
		sleep_until(now_ns() + term_after_ms * 1000000);
	(void)signal(number, SIG_DFL);
	(void)raise(number);
}

/* Every process of an attempt holds a lock until it is gone; whether somebody has one on the file
 * of the attempt before is asked without taking it. */
static bool hold_and_look(const char *path, int attempt)
{
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	char name[4096];
	int fd;

	(void)snprintf(name, sizeof name, "%s.lock%d", path, attempt);
	fd = open(name, O_RDWR | O_CREAT, 0666); /* children that exec keep it */
	if (fd < 0 || fcntl(fd, F_OFD_SETLK, &lock) < 0)
		exit(99);
	if (attempt == 0)
		return false;
	(void)snprintf(name, sizeof name, "%s.lock%d", path, attempt - 1);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	lock.l_type = F_WRLCK;
	if (fd < 0 || fcntl(fd, F_OFD_GETLK, &lock) < 0)
		exit(99);
	(void)close(fd);
	return lock.l_type != F_UNLCK;
}

static void clinging_child(void)
{
	if (!getenv("CHILD"))
		return;
	(void)signal(SIGTERM, SIG_IGN); /* before it exists */
	if (fork() != 0) {
		(void)signal(SIGTERM, on_term);
		return;
	}
	(void)setsid();
	(void)alarm(600);
	for (;;)
		(void)pause();
}

/* The act of this attempt. */
static const char *act_of(int attempt)
{
	static char copy[1024];
	char *rest = NULL, *one;
	const char *found = "never";

	(void)snprintf(copy, sizeof copy, "%s", mine("ACT", "never"));
	for (one = strtok_r(copy, ";", &rest); one && attempt >= 0; attempt--) {
		found = one;
		one = strtok_r(NULL, ";", &rest);
	}
	return found;
}

static void write_error_file(const char *message, int64_t at_ns)
{
	const char *path = getenv("TORCHELASTIC_ERROR_FILE");
	FILE *f = path ? fopen(path, "we") : NULL;

	if (!f)
		return;
	(void)fprintf(f,
		"{\"message\": {\"message\": \"%s\", \"extraInfo\": {\"py_callstack\": "
		"\"Traceback (most recent call last):\\n  File \\\"train.py\\\", line 12\\n\", "
		"\"timestamp\": \"%lld\"}}}",
		message, (long long)(at_ns / 1000000000));
	(void)fclose(f);
}

static const char closed_by_peer[] =
	"RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:589] Connection closed by "
	"peer [10.77.0.1]:21111";

static _Noreturn void end(const char *how, int value, int64_t at_ns)
{
	const struct sched_param soon = { .sched_priority = 1 };

	/* so that nothing comes between the time it notes and its death, where that is allowed */
	(void)sched_setscheduler(0, SCHED_FIFO, &soon);
	if (strcmp(how, "reset") == 0 || strcmp(how, "raise") == 0) {
		sleep_until(at_ns - 500000); /* an exception is written before the process ends */
		write_error_file(
			how[1] == 'e' ? closed_by_peer : "ValueError: the teapot is empty", at_ns);
	}
	sleep_until(at_ns);
	if (strcmp(how, "text") == 0)
		(void)fprintf(stderr, "%s\n", closed_by_peer);
	me->died_ns = now_ns();
	if (strcmp(how, "signal") != 0)
		_exit(value);
	(void)signal(value, SIG_DFL);
	(void)kill(getpid(), value);
	for (;;)
		(void)pause();
}

static void wait_for_word(struct board *s, uint32_t seen)
{
	(void)syscall(SYS_futex, &s->word, FUTEX_WAIT, seen, NULL, NULL, 0);
}

/* What the test wants of this rank, as soon as it wants something. */
static const char *order(struct board *s, int rank)
{
	uint32_t seen;

	while (seen = atomic_load(&s->word), !s->orders[rank][0])
		wait_for_word(s, seen);
	return s->orders[rank];
}

static int64_t wait_for_start(struct board *s, int attempt)
{
	const char *auto_start = getenv("START"), *world = getenv("WORLD_SIZE");
	int64_t there = atomic_fetch_add(&s->ready[attempt], 1) + 1;
	uint32_t seen;

	if (auto_start && world && there == atoi(world)) {
		s->start_ns[attempt] = now_ns() + 20000000;
		(void)atomic_fetch_add(&s->word, 1);
		(void)syscall(SYS_futex, &s->word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	}
	while (seen = atomic_load(&s->word), !s->start_ns[attempt])
		wait_for_word(s, seen);
	return s->start_ns[attempt];
}

int main(void)
{
	const char *path = mine("BOARD", ""), *count = getenv("TORCHELASTIC_RESTART_COUNT");
	int fd = open(path, O_RDWR | O_CLOEXEC);
	int rank = atoi(mine("RANK", "-1")), attempt = count ? atoi(count) : 0, value = 0;
	struct board *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	const char *act, *on = mine("ON_TERM", "");
	char how[8] = "";
	long us = 0;
	int64_t start_ns;

	if (fd < 0 || s == MAP_FAILED || rank < 0 || rank >= WORKERS || attempt >= ATTEMPTS)
		return 99;
	me = &s->parts[attempt][rank];
	term_after_ms = strncmp(on, "ms:", 3) == 0 ? atol(on + 3) : 0;
	(void)signal(SIGTERM, on_term);
	(void)signal(SIGINT, on_term);
	me->overlap = hold_and_look(path, attempt);
	me->pid = getpid();
	me->born_ns = now_ns();
	clinging_child();
	act = act_of(attempt);
	start_ns = wait_for_start(s, attempt);
	if (strcmp(act, "obey") == 0) {
		act = order(s, rank);
		start_ns = s->start_ns[attempt];
	}
	if (strcmp(act, "never") == 0)
		for (;;)
			(void)pause();
	if (sscanf(act, "%7[a-z]:%d@%ld", how, &value, &us) != 3)
		return 99;
	end(how, value, start_ns + us * 1000);
}
