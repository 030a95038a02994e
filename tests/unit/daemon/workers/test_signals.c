/* test_signals.c - the ways by which signals come to the supervisor. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/arena.h"
#include "config/reaction.h"
#include "config/settings.h"
#include "daemon/workers/signals.h"

/* A loop that notes what comes. */
struct bench {
	uv_loop_t loop;
	struct signals signals;
	struct reactions reactions;
	sigset_t before, taken;
	struct failure why;
	int writer; /* the guard's end */
	struct relayed last;
	unsigned direct, relayed, children, gone;
};

static void on_signal(struct signals *s, const struct relayed *got, enum signal_way way)
{
	struct bench *b = s->owner;

	b->last = *got;
	if (way == WAY_GUARD)
		b->relayed++;
	else
		b->direct++;
	signals_stop(s);
}

static void on_child(struct signals *s, pid_t first)
{
	struct bench *b = s->owner;

	(void)first;
	b->children++;
	signals_stop(s);
}

static void on_guard_gone(struct signals *s)
{
	struct bench *b = s->owner;

	b->gone++;
	signals_stop(s);
}

static int bench_make(void **state)
{
	static struct bench b;
	struct settings settings;
	struct arena arena = { 0 };
	sigset_t none;
	int p[2];

	b = (struct bench){ .signals = { .on_signal = on_signal,
				    .on_child = on_child,
				    .on_guard_gone = on_guard_gone,
				    .owner = &b } };
	*state = &b;
	sigemptyset(&none);
	settings_init(&settings, &arena, false);
	if (reactions_make(&settings, &b.reactions, &b.why) < 0 || pipe2(p, O_CLOEXEC) < 0)
		return -1;
	arena_done(&arena);
	signals_taken(&b.reactions, &none, &b.taken);
	(void)sigprocmask(SIG_BLOCK, &b.taken, &b.before);
	b.writer = p[1];
	if (uv_loop_init(&b.loop) < 0)
		return -1;
	return signals_start(&b.signals, &b.loop, &b.reactions, &none, p[0], &b.why);
}

static int bench_done(void **state)
{
	struct bench *b = *state;

	signals_stop(&b->signals); /* twice is once */
	(void)uv_run(&b->loop, UV_RUN_DEFAULT);
	signals_release(&b->taken);
	(void)sigprocmask(SIG_SETMASK, &b->before, NULL);
	if (b->writer >= 0)
		(void)close(b->writer);
	assert_int_equal(b->signals.fd, -1);
	assert_int_equal(b->signals.relay, -1);
	return uv_loop_close(&b->loop);
}

static void test_direct(void **state)
{
	struct bench *b = *state;

	(void)kill(getpid(), SIGUSR1); /* the guard's to relay */
	(void)kill(getpid(), SIGTERM); /* pending: the loop does not run yet */
	(void)uv_run(&b->loop, UV_RUN_DEFAULT);
	assert_int_equal(b->direct, 1);
	assert_int_equal(b->last.signal, SIGTERM);
	assert_int_equal(b->last.pid, getpid());
	assert_int_equal(b->last.uid, getuid());
}

static void test_relay(void **state)
{
	struct bench *b = *state;
	const struct relayed r = { SIGUSR1, SI_USER, 4711, 1000, 4711, 0 };

	assert_int_equal(write(b->writer, &r, sizeof r), sizeof r);
	(void)uv_run(&b->loop, UV_RUN_DEFAULT);
	assert_int_equal(b->relayed, 1);
	assert_memory_equal(&b->last, &r, sizeof r);
}

static void test_gone(void **state)
{
	struct bench *b = *state;

	(void)close(b->writer);
	b->writer = -1;
	(void)uv_run(&b->loop, UV_RUN_DEFAULT);
	assert_int_equal(b->gone, 1);
}

static void test_child(void **state)
{
	struct bench *b = *state;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(0);
	(void)uv_run(&b->loop, UV_RUN_DEFAULT);
	assert_int_equal(b->children, 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_release(void **state)
{
	struct bench *b = *state;
	sigset_t blocked;

	signals_stop(&b->signals);
	(void)uv_run(&b->loop, UV_RUN_DEFAULT);
	(void)kill(getpid(), SIGTERM); /* forgotten, or it would end this test */
	(void)kill(getpid(), SIGUSR1);
	signals_release(&b->taken);
	(void)sigprocmask(SIG_BLOCK, NULL, &blocked);
	assert_int_equal(sigismember(&blocked, SIGTERM), 0);
	assert_int_equal(sigismember(&blocked, SIGUSR1), 0);
	assert_int_equal(b->direct, 0);
}

static void test_taken(void **state)
{
	struct reactions r = { 0 };
	sigset_t ignored, taken;

	(void)state;
	r.of[SIGTERM].kind = r.of[SIGHUP].kind = r.of[SIGINT].kind = REACTION_END;
	r.of[SIGUSR1].kind = r.of[SIGUSR2].kind = REACTION_FORWARD;
	r.of[SIGUSR2].named = true;
	sigfillset(&ignored);
	sigdelset(&ignored, SIGINT);
	signals_taken(&r, &ignored, &taken);
	assert_int_equal(sigismember(&taken, SIGTERM), 1);
	assert_int_equal(sigismember(&taken, SIGINT), 1);
	assert_int_equal(sigismember(&taken, SIGHUP), 0);
	assert_int_equal(sigismember(&taken, SIGUSR1), 0);
	assert_int_equal(sigismember(&taken, SIGUSR2), 1);
	assert_int_equal(sigismember(&taken, SIGCHLD), 1);
	assert_int_equal(sigismember(&taken, SIGSEGV), 0);
}

TESTS(signals)
{
	static struct suite s;

	suite_add(&s, "one that ends the job comes as an event, also from before the loop",
		test_direct, bench_make, bench_done);
	suite_add(&s, "what the guard relays comes with its sender", test_relay, bench_make,
		bench_done);
	suite_add(&s, "the guard's end is an event", test_gone, bench_make, bench_done);
	suite_add(&s, "a child's end is an event", test_child, bench_make, bench_done);
	suite_add(&s, "what comes when all is done is forgotten", test_release, bench_make,
		bench_done);
	suite_add(&s, "what was ignored on entry is not taken, but TERM and what the user names is",
		test_taken, NULL, NULL);
	return suite_run(&s);
}
