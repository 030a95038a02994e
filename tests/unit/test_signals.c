/* test_signals.c - what the launcher does with each signal. */
#include "tests/unit/unit.h"

#include <unistd.h>

#include "daemon/workers/signals.h"

static const struct action_row {
	const char *says;
	int signal;
	enum signal_action action;
} rows[] = {
	{ "TERM ends the job", SIGTERM, SIGNAL_END },
	{ "INT ends the job", SIGINT, SIGNAL_END },
	{ "HUP ends the job", SIGHUP, SIGNAL_END },
	{ "QUIT ends the job", SIGQUIT, SIGNAL_END },
	{ "USR1 is forwarded", SIGUSR1, SIGNAL_FORWARD },
	{ "USR2 is forwarded", SIGUSR2, SIGNAL_FORWARD },
	{ "CHLD is not the job's", SIGCHLD, SIGNAL_NONE },
	{ "PIPE is not the job's", SIGPIPE, SIGNAL_NONE },
	{ "SEGV is the launcher's own", SIGSEGV, SIGNAL_NONE },
};

static void test_action(void **state)
{
	const struct action_row *row = *state;

	assert_int_equal(signal_action(row->signal), row->action);
}

/* A loop that notes what comes. */
struct bench {
	uv_loop_t loop;
	struct signals signals;
	sigset_t mask;
	struct failure why;
	unsigned seen, ended;
	pid_t sender;
};

static void on_signal(struct signals *s, int signal, enum signal_action action, pid_t sender)
{
	struct bench *b = s->owner;

	b->seen |= 1u << signal;
	b->sender = sender;
	if (action == SIGNAL_END) {
		b->ended++;
		signals_stop(s);
	}
}

static int bench_make(void **state)
{
	static struct bench b;

	b = (struct bench){ .signals.on_signal = on_signal, .signals.owner = &b };
	*state = &b;
	(void)sigprocmask(SIG_BLOCK, NULL, &b.mask);
	return uv_loop_init(&b.loop);
}

static int bench_done(void **state)
{
	struct bench *b = *state;

	(void)sigprocmask(SIG_SETMASK, &b->mask, NULL);
	return uv_loop_close(&b->loop);
}

static void test_loop(void **state)
{
	struct bench *b = *state;
	sigset_t none;

	sigemptyset(&none);
	assert_int_equal(signals_start(&b->signals, &b->loop, &none, &b->why), 0);
	(void)kill(getpid(), SIGUSR1); /* pending: the loop does not run yet */
	(void)kill(getpid(), SIGTERM);
	(void)uv_run(&b->loop, UV_RUN_DEFAULT);
	assert_true(b->seen & 1u << SIGUSR1);
	assert_true(b->seen & 1u << SIGTERM);
	assert_int_equal(b->ended, 1);
	assert_int_equal(b->sender, getpid());
	assert_int_equal(b->signals.fd, -1);
}

static void test_ignored(void **state)
{
	struct bench *b = *state;
	sigset_t ignored, blocked;

	sigemptyset(&ignored);
	sigaddset(&ignored, SIGHUP);
	sigaddset(&ignored, SIGTERM);
	assert_int_equal(signals_start(&b->signals, &b->loop, &ignored, &b->why), 0);
	signals_stop(&b->signals);
	signals_stop(&b->signals); /* twice is once */
	(void)uv_run(&b->loop, UV_RUN_DEFAULT);
	(void)sigprocmask(SIG_BLOCK, NULL, &blocked);
	assert_int_equal(sigismember(&blocked, SIGHUP), 0);
	assert_int_equal(sigismember(&blocked, SIGTERM), 1);
	assert_int_equal(sigismember(&blocked, SIGINT), 1);
}

static void test_release(void **state)
{
	struct bench *b = *state;
	sigset_t none, blocked;

	sigemptyset(&none);
	assert_int_equal(signals_start(&b->signals, &b->loop, &none, &b->why), 0);
	signals_stop(&b->signals);
	(void)uv_run(&b->loop, UV_RUN_DEFAULT);
	(void)kill(getpid(), SIGTERM); /* forgotten, or it would end this test */
	(void)kill(getpid(), SIGUSR1);
	signals_release();
	(void)sigprocmask(SIG_BLOCK, NULL, &blocked);
	assert_int_equal(sigismember(&blocked, SIGTERM), 0);
	assert_int_equal(sigismember(&blocked, SIGUSR1), 0);
	assert_int_equal(b->seen, 0);
}

int main(void)
{
	static struct suite s;

	SUITE_ROWS(&s, test_action, rows);
	suite_add(&s, "signals come as events, also those from before the loop", test_loop,
		bench_make, bench_done);
	suite_add(&s, "what was ignored on entry is not taken, but TERM is", test_ignored,
		bench_make, bench_done);
	suite_add(&s, "what comes when all is done is forgotten", test_release, bench_make,
		bench_done);
	return suite_run(&s);
}
