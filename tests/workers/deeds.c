/* deeds.c - see deeds.h */
#include "deeds.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIFE_S = 60, FORKING_LIFE_MS = 10000 };

static int64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void nap_ms(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	(void)nanosleep(&t, NULL);
}

/* By a timer of the kernel that sends SIGKILL, as alarm() can't end a stopped process. */
void limit_life(void)
{
	struct sigevent by_kill = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
	const struct itimerspec life = { .it_value.tv_sec = LIFE_S };
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &by_kill, &timer) < 0 ||
		timer_settime(timer, 0, &life, NULL) < 0)
		_exit(99);
}

/* The first process of a PID namespace is not ended by a timer. */
_Noreturn void live_on(void)
{
	const int64_t end = now_ms() + (int64_t)LIFE_S * 1000;

	while (now_ms() < end)
		nap_ms(end - now_ms());
	_exit(0);
}

static void deed_ignore(void)
{
	for (int number = 1; number < NSIG; number++)
		if (number != SIGCHLD)
			(void)signal(number, SIG_IGN);
}

static void deed_block(void)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
}

static _Noreturn void *doze(void *unused)
{
	(void)unused;
	for (;;)
		(void)pause();
}

static void deed_threads(void)
{
	pthread_t thread;

	for (int i = 0; i < 32; i++)
		(void)pthread_create(&thread, NULL, doze, NULL);
}

/* It looks like another program of ours. */
static void deed_rename(void)
{
	(void)prctl(PR_SET_NAME, "rank-supervisor");
}

static void deed_nodump(void)
{
	(void)prctl(PR_SET_DUMPABLE, 0);
}

static void deed_nodeathsig(void)
{
	(void)prctl(PR_SET_PDEATHSIG, 0);
}

static void child_that_dozes(void)
{
	if (fork() != 0)
		return;
	limit_life();
	doze(NULL);
}

/* Orphans below it become its children, not ours. */
static void deed_subreaper(void)
{
	pid_t middle;

	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	middle = fork();
	if (middle == 0) {
		child_that_dozes();
		_exit(0);
	}
	(void)waitpid(middle, NULL, 0);
}

/* The two of them hang in write(), each in the pipe that the other one holds open. */
static void deed_pipes(void)
{
	static char much[1 << 20];
	int a[2], b[2];

	if (pipe(a) < 0 || pipe(b) < 0)
		_exit(99);
	if (fork() != 0)
		return;
	limit_life();
	while (write(a[1], much, sizeof much) >= 0)
		;
}

static void deed_tracer(void)
{
	pid_t traced = fork();

	if (traced == 0) {
		limit_life();
		doze(NULL);
	}
	if (ptrace(PTRACE_SEIZE, traced, NULL, NULL) == 0)
		(void)ptrace(PTRACE_INTERRUPT, traced, NULL, NULL);
}

/* As a debugger that hangs: the kernel shows the parent's end to nobody but it. */
static void deed_trace_parent(void)
{
	(void)ptrace(PTRACE_SEIZE, getppid(), NULL, NULL);
}

/* Another user's process: its death signal is lost, and only root can end it. */
static void deed_nobody(void)
{
	if (getuid() == 0 && setresuid(65534, 65534, 65534) < 0)
		_exit(99);
}

static void deed_stop(void)
{
	(void)raise(SIGSTOP);
}

/* A family that forks without end, with so many forks a second in all and 200 ms for each process:
 * hard to catch, and no danger to the machine. */
static void family(int rate, bool sessions)
{
	const int64_t start = now_ms();
	_Atomic int64_t *forks = mmap(
		NULL, sizeof *forks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int64_t born = start, now;

	if (forks == MAP_FAILED)
		_exit(99);
	(void)signal(SIGCHLD, SIG_IGN);
	while ((now = now_ms()) < start + FORKING_LIFE_MS) {
		if (atomic_fetch_add(forks, 1) > (now - start) * rate / 1000 + 20) {
			(void)atomic_fetch_sub(forks, 1);
			if (now - born > 200 && *forks > 40)
				_exit(0);
			nap_ms(5 + getpid() % 8);
		} else if (fork() == 0) {
			born = now_ms();
			limit_life();
			if (sessions)
				(void)setsid();
		}
	}
	_exit(0);
}

static void deed_bomb(void)
{
	family(250, false);
}

static void deed_sessions(void)
{
	family(250, true);
}

/* Twice as many, each in a session of its own. */
static void deed_storm(void)
{
	family(500, true);
}

/* One at a time, each a new process: whoever looks at a pid looks at one that is gone. */
static void deed_chain(void)
{
	const int64_t end = now_ms() + FORKING_LIFE_MS;

	while (now_ms() < end)
		if (fork() > 0)
			_exit(0);
	_exit(0);
}

static const struct {
	const char *name;
	void (*deed)(void);
	bool late;
} deeds[] = {
	{ "ignore", deed_ignore, false },
	{ "block", deed_block, false },
	{ "threads", deed_threads, false },
	{ "rename", deed_rename, false },
	{ "nodump", deed_nodump, false },
	{ "nodeathsig", deed_nodeathsig, false },
	{ "subreaper", deed_subreaper, false },
	{ "pipes", deed_pipes, false },
	{ "tracer", deed_tracer, false },
	{ "trace-parent", deed_trace_parent, false },
	{ "nobody", deed_nobody, false },
	{ "stop", deed_stop, true },
	{ "bomb", deed_bomb, true },
	{ "sessions", deed_sessions, true },
	{ "storm", deed_storm, true },
	{ "chain", deed_chain, true },
};

int deed(const char *name, bool late)
{
	for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++) {
		if (strcmp(deeds[i].name, name) != 0)
			continue;
		if (deeds[i].late == late)
			deeds[i].deed();
		return 0;
	}
	return -1;
}
