/* test_lifeline.c - what counts as the end of mpirun, and what does not. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/workers/lifeline.h"

/* A launcher, and a shell of this rank below it: it has the mark. Both end with descriptor 3. */
#define LAUNCHER \
	"MARK=mine sh -c 'echo $$ >&4; read line <&3; exit' 2>/dev/null; read line <&3; exit"

enum { QUIET_MS = 900, LIMIT_MS = 60000, SIGNAL_SOON_MS = 60, SIGNAL_LATE_MS = 30000 };

struct bench {
	uv_loop_t loop;
	struct lifeline lifeline;
	uv_timer_t quiet, signal;
	pid_t launcher, shell;
	int keep;  /* the other end of their descriptor 3 */
	int error; /* stderr, for as long as a pipe stands in for it */
	int reader;
	struct failure why;
	unsigned lost;
	enum cause_kind kind;
};

static void on_lost(struct lifeline *l, enum cause_kind kind)
{
	struct bench *b = l->owner;

	b->lost++;
	b->kind = kind;
	uv_stop(&b->loop);
}

static void on_quiet(uv_timer_t *t)
{
	uv_stop(t->loop);
}

static void on_signal(uv_timer_t *t)
{
	lifeline_signalled(&((struct bench *)t->data)->lifeline, SIGTERM);
}

static void become_launcher(int keep, int tell)
{
	char *const argv[] = { (char *)"sh", (char *)"-c", (char *)LAUNCHER, NULL };
	char *const env[] = { (char *)"PATH=/usr/bin:/bin", NULL };

	if (dup2(keep, 13) == 13 && dup2(tell, 14) == 14 && dup2(13, 3) == 3 && dup2(14, 4) == 4)
		(void)execve("/bin/sh", argv, env);
	_exit(99);
}

static int bench_make(struct bench *b)
{
	int keep[2], tell[2], error[2];
	char line[32] = "";

	*b = (struct bench){ .lifeline = { .on_lost = on_lost, .owner = b } };
	if (pipe2(keep, O_CLOEXEC) < 0 || pipe2(tell, O_CLOEXEC) < 0 || pipe2(error, O_CLOEXEC) < 0)
		return -1;
	b->launcher = fork();
	if (b->launcher == 0)
		become_launcher(keep[0], tell[1]);
	(void)close(keep[0]);
	(void)close(tell[1]);
	if (b->launcher < 0 || read(tell[0], line, sizeof line - 1) < 2)
		return -1;
	(void)close(tell[0]);
	b->shell = atoi(line);
	b->keep = keep[1];
	b->reader = error[0];
	b->error = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (dup2(error[1], STDERR_FILENO) < 0)
		return -1;
	(void)close(error[1]);
	return uv_loop_init(&b->loop);
}

static void bench_done(struct bench *b)
{
	lifeline_stop(&b->lifeline);
	lifeline_stop(&b->lifeline); /* twice is once */
	uv_close((uv_handle_t *)&b->quiet, NULL);
	uv_close((uv_handle_t *)&b->signal, NULL);
	(void)uv_run(&b->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&b->loop), 0);
	assert_int_equal(b->lifeline.epoll, -1);
	assert_int_equal(b->lifeline.launcher, -1);
	assert_int_equal(b->lifeline.shell, -1);
	(void)dup2(b->error, STDERR_FILENO);
	(void)close(b->error);
	if (b->reader >= 0)
		(void)close(b->reader);
	(void)close(b->keep);
	assert_int_equal(waitpid(b->launcher, NULL, 0), b->launcher);
}

enum loss { LOSS_NONE, LOSS_LAUNCHER, LOSS_SHELL, LOSS_READER };

static const struct lifeline_row {
	const char *says;
	enum loss loss;
	bool alone;      /* launchd's parent is the launcher itself */
	const char *env; /* launchd's mark */
	int signal_ms;   /* TERM so long after the loss; 0: none; < 0: this signal before it */
	enum cause_kind cause; /* CAUSE_NONE: the job lives on */
	bool at_once;
} rows[] = {
	{ "nothing happens", LOSS_NONE, false, "MARK=mine", 0, CAUSE_NONE, false },
	{ "the launcher ends", LOSS_LAUNCHER, true, "MARK=mine", 0, CAUSE_LAUNCHER, true },
	{ "the launcher ends, and a shell between lives on", LOSS_LAUNCHER, false, "MARK=mine", 0,
		CAUSE_LAUNCHER, true },
	{ "the launcher ends with a signal", LOSS_LAUNCHER, false, "MARK=mine", -SIGTERM,
		CAUSE_LAUNCHER, true },
	{ "the shell between ends", LOSS_SHELL, false, "MARK=mine", 0, CAUSE_LAUNCHER, false },
	{ "a shell between ends by a signal to all", LOSS_SHELL, false, "MARK=mine", -SIGTERM,
		CAUSE_NONE, false },
	{ "a shell between ends before we hear the signal", LOSS_SHELL, false, "MARK=mine",
		SIGNAL_SOON_MS, CAUSE_NONE, false },
	{ "the shell between ends long before a signal", LOSS_SHELL, false, "MARK=mine",
		SIGNAL_LATE_MS, CAUSE_LAUNCHER, false },
	{ "what started us is of another rank", LOSS_SHELL, false, "MARK=other", 0, CAUSE_LAUNCHER,
		true },
	{ "there is no mark", LOSS_SHELL, false, NULL, 0, CAUSE_LAUNCHER, true },
	{ "nobody reads stderr any more", LOSS_READER, false, "MARK=mine", 0, CAUSE_HANGUP, false },
	{ "the reader of stderr ends by a signal to all", LOSS_READER, false, "MARK=mine", -SIGTERM,
		CAUSE_NONE, false },
	{ "the reader of stderr ends after SIGCONT", LOSS_READER, false, "MARK=mine", -SIGCONT,
		CAUSE_HANGUP, false },
	{ "nobody reads stderr any more, and we have no parent", LOSS_READER, false, NULL, 0,
		CAUSE_HANGUP, false },
};

static void lose(struct bench *b, enum loss loss)
{
	if (loss == LOSS_LAUNCHER)
		(void)kill(b->launcher, SIGKILL);
	if (loss == LOSS_SHELL)
		(void)kill(b->shell, SIGKILL);
	if (loss == LOSS_READER) {
		(void)close(b->reader);
		b->reader = -1;
	}
}

/* The process whose signals are mpirun's. */
static pid_t seen_as_launcher(const struct bench *b, const struct lifeline_row *row, pid_t parent)
{
	if (parent == 1)
		return 0;
	return row->env && strcmp(row->env, "MARK=mine") == 0 ? b->launcher : parent;
}

static void test_loss(void **state)
{
	const struct lifeline_row *row = *state;
	const char *const env[] = { row->env, NULL };
	struct bench b;
	pid_t parent;

	assert_int_equal(bench_make(&b), 0);
	(void)uv_timer_init(&b.loop, &b.quiet);
	(void)uv_timer_init(&b.loop, &b.signal);
	b.signal.data = &b;
	parent = row->alone ? b.launcher : b.shell;
	if (row->loss == LOSS_READER && !row->env)
		parent = 1;
	assert_int_equal(lifeline_start(&b.lifeline, &b.loop, parent, "MARK", env, &b.why), 0);
	assert_true(lifeline_is_launcher(&b.lifeline, seen_as_launcher(&b, row, parent)));
	assert_false(lifeline_is_launcher(&b.lifeline, getpid()));
	lose(&b, row->loss);
	if (row->signal_ms < 0)
		lifeline_signalled(&b.lifeline, -row->signal_ms);
	else if (row->signal_ms > 0)
		(void)uv_timer_start(&b.signal, on_signal, (uint64_t)row->signal_ms, 0);
	(void)uv_timer_start(&b.quiet, on_quiet, row->cause == CAUSE_NONE ? QUIET_MS : LIMIT_MS, 0);
	(void)uv_run(&b.loop, UV_RUN_DEFAULT);
	assert_int_equal(b.lost, row->cause != CAUSE_NONE);
	assert_int_equal(b.kind, row->cause);
	if (b.lost)
		assert_int_equal(b.lifeline.lost_ns == 0, row->at_once);
	bench_done(&b);
}

/* 0: the job lives on though the shell above has ended, as there was a signal; 1: there is no such
 * namespace; 2: it does not. */
static int play_unseen(void)
{
	const char *const env[] = { "MARK=mine", NULL };
	struct bench b;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		umount2("/proc", MNT_DETACH) < 0)
		return 1;
	if (bench_make(&b) < 0)
		return 2;
	(void)uv_timer_init(&b.loop, &b.quiet);
	if (lifeline_start(&b.lifeline, &b.loop, b.shell, "MARK", env, &b.why) < 0)
		return 2;
	lifeline_signalled(&b.lifeline, SIGTERM);
	(void)kill(b.shell, SIGKILL);
	(void)uv_timer_start(&b.quiet, on_quiet, QUIET_MS, 0);
	(void)uv_run(&b.loop, UV_RUN_DEFAULT);
	(void)kill(b.launcher, SIGKILL);
	return b.lost == 0 ? 0 : 2;
}

/* Without /proc nobody knows whether launchd's parent is a shell. */
static void test_unseen(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(play_unseen());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	needs(status != W_EXITCODE(1, 0), "the right to make mount namespaces");
	assert_int_equal(status, 0);
}

static void test_gone(void **state)
{
	struct lifeline l = { 0 };
	struct failure why = { 0 };
	uv_loop_t loop;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(uv_loop_init(&loop), 0);
	assert_int_equal(lifeline_start(&l, &loop, pid, "MARK", NULL, &why), -ESRCH);
	assert_contains(why.text, "what started launchd");
	lifeline_stop(&l);
	assert_int_equal(uv_loop_close(&loop), 0);
}

/* The guard may still tell of the parent while the member says its last words. */
static void test_stopped(void **state)
{
	struct bench b = { .lifeline = { .on_lost = on_lost, .owner = &b } };
	struct lifeline *l = &b.lifeline;

	(void)state;
	assert_int_equal(uv_loop_init(&b.loop), 0);
	assert_int_equal(lifeline_start(l, &b.loop, getpid(), "MARK", NULL, &b.why), 0);
	l->parent_unseen = true; /* as without pidfds */
	lifeline_stop(l);
	lifeline_parent_gone(l);
	(void)uv_run(&b.loop, UV_RUN_DEFAULT);
	lifeline_parent_gone(l);
	assert_int_equal(b.lost, 0);
	assert_int_equal(uv_loop_close(&b.loop), 0);
}

TESTS(lifeline)
{
	static struct suite s;

	SUITE_ROWS(&s, test_loss, rows);
	suite_add(&s, "what started us has ended already", test_gone, NULL, NULL);
	suite_add(&s, "whatever ends when it is not watched any more", test_stopped, NULL, NULL);
	suite_add(&s, "what can't be seen may be a shell", test_unseen, NULL, NULL);
	return suite_run(&s);
}
