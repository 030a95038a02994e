/* test_deaths.c - the order of deaths where no pidfd tells it; with them: tests/process. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/workers/deaths.h"
#include "daemon/workers/worker.h"

enum { WORKERS = 3 };

static sigset_t only_chld(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	return set;
}

/* Children that wait for a signal, and whom the owner has been told of. */
static struct bench {
	struct deaths deaths;
	struct worker workers[WORKERS];
	unsigned told;
} bench;

static void tell(void *owner, struct worker *w)
{
	(void)owner;
	assert_int_equal(w->state, WORKER_ENDED);
	bench.told++;
}

static void strike(unsigned i, int signal)
{
	siginfo_t si;

	assert_int_equal(kill(bench.workers[i].outcome.pid, signal), 0);
	assert_int_equal(waitid(P_PID, (id_t)bench.workers[i].outcome.pid, &si,
				 WEXITED | WSTOPPED | WNOWAIT),
		0);
}

static int bench_make(void **state)
{
	const sigset_t chld = only_chld();

	(void)state;
	(void)sigprocmask(SIG_BLOCK, &chld, NULL);
	bench = (struct bench){ .told = 0 };
	deaths_init(&bench.deaths, bench.workers, WORKERS);
	bench.deaths.by_signal = true;
	for (unsigned i = 0; i < WORKERS; i++) {
		worker_init(&bench.workers[i]);
		bench.workers[i].state = WORKER_RUNNING;
		bench.workers[i].outcome.pid = fork();
		if (bench.workers[i].outcome.pid == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				(void)pause();
		}
	}
	return 0;
}

static int bench_done(void **state)
{
	const struct timespec now = { 0 };
	const sigset_t chld = only_chld();

	(void)state;
	for (unsigned i = 0; i < WORKERS; i++)
		if (worker_is_alive(&bench.workers[i])) {
			(void)kill(bench.workers[i].outcome.pid, SIGKILL);
			(void)waitpid(bench.workers[i].outcome.pid, NULL, 0);
		}
	(void)sigtimedwait(&chld, NULL, &now);
	(void)sigprocmask(SIG_UNBLOCK, &chld, NULL);
	return 0;
}

/* What the loop would read, without waiting for it. */
static siginfo_t take(void)
{
	const struct timespec now = { 0 };
	siginfo_t si = { 0 };
	const sigset_t chld = only_chld();

	assert_int_equal(sigtimedwait(&chld, &si, &now), SIGCHLD);
	return si;
}

/* It may be that a helper or an orphan has died behind it: whoever reaps these is to hear of it. */
static void test_signal_stays(void **state)
{
	siginfo_t si;

	(void)state;
	strike(1, SIGKILL);
	strike(0, SIGKILL);
	assert_true(deaths_note(&bench.deaths, 0, tell));
	assert_int_equal(bench.told, 2);
	assert_true(bench.workers[1].outcome.ended_ns < bench.workers[0].outcome.ended_ns);
	si = take();
	assert_int_equal(deaths_first(si.si_code, si.si_pid), -1);
	assert_false(deaths_note(&bench.deaths, -1, tell));
}

/* Rank 0 dies behind the stop of rank 1; the next signal names rank 2, who dies after that. */
static void test_behind_a_stop(void **state)
{
	siginfo_t si;

	(void)state;
	strike(1, SIGSTOP);
	strike(0, SIGKILL);
	si = take();
	strike(2, SIGKILL);
	assert_true(deaths_note(&bench.deaths, deaths_first(si.si_code, si.si_pid), tell));
	assert_int_equal(bench.told, 2);
	assert_int_equal(bench.workers[0].outcome.ended_ns, bench.workers[2].outcome.ended_ns);
}

TESTS(deaths)
{
	static struct suite s;

	suite_add(&s, "a signal that is taken in between is still told to the loop",
		test_signal_stays, bench_make, bench_done);
	suite_add(&s, "who died behind a stop is before whom the next signal names",
		test_behind_a_stop, bench_make, bench_done);
	return suite_run(&s);
}
