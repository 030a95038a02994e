/* test_helper.c - a child that does its work, or hangs, crashes, prints or is not wanted any more.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/sm.h"
#include "common/text.h"
#include "daemon/os/helper.h"
#include "daemon/os/kernel.h"

static bool no_pidfds;

int __real_kernel_pidfd_open(pid_t pid);
int __wrap_kernel_pidfd_open(pid_t pid);

int __wrap_kernel_pidfd_open(pid_t pid)
{
	return no_pidfds ? -ENOSYS : __real_kernel_pidfd_open(pid);
}

struct answer {
	struct helper_answer head;
	char bytes[100000];
};

struct fixture {
	struct helper helper;
	uv_loop_t loop;
	uv_timer_t later;
	struct text text;
	unsigned ends, closings;
	bool succeeded;
	char first, last; /* of what it answered */
};

static const char *step_of(const struct helper *h)
{
	return h->answer->step == 7 ? "step 7" : "its start";
}

static void on_end(struct helper *h, bool succeeded)
{
	struct fixture *f = h->owner;
	struct answer *a = (struct answer *)h->answer;

	f->ends++;
	f->succeeded = succeeded;
	f->first = a->bytes[0];
	f->last = a->bytes[sizeof a->bytes - 1];
	if (!succeeded)
		helper_explain(h, step_of(h), &f->text);
	helper_close(h);
	helper_close(h);
}

static void work_well(struct helper *h)
{
	struct answer *a = (struct answer *)h->answer;

	if (h->answer->step != 0 || a->bytes[5] != 0)
		helper_fail(h, "not zero");
	memset(a->bytes, 'x', sizeof a->bytes);
}

static void work_fail(struct helper *h)
{
	h->answer->step = 7;
	helper_fail(h, "no %s: \033[1m%d", "luck", 3);
}

static void work_exit(struct helper *h)
{
	h->answer->step = 7;
	_exit(9);
}

static void work_crash(struct helper *h)
{
	h->answer->step = 7;
	(void)raise(SIGSEGV);
}

static void work_hang(struct helper *h)
{
	h->answer->step = 7;
	for (;;)
		(void)pause();
}

static void work_ignore_signals(struct helper *h)
{
	for (int s = 1; s < NSIG; s++)
		(void)signal(s, SIG_IGN);
	work_hang(h);
}

static void work_flood(struct helper *h)
{
	(void)h;
	for (int i = 0; i < 100000; i++)
		if (write(1, "----\n", 5) < 0 && errno != EAGAIN)
			_exit(1);
}

static void work_print(struct helper *h)
{
	(void)!write(2, "-----\n\n  == lost \033[1mit\nmore\n", 29);
	helper_fail(h, "no luck");
}

static void work_scribble(struct helper *h)
{
	memset(h->answer, 'z', sizeof(struct answer)); /* no NUL in its text */
	_exit(1);
}

/* What the set-up promises. */
static void work_look(struct helper *h)
{
	struct rlimit core;
	char name[16] = "";
	int how = 0;
	sigset_t mask;

	(void)getrlimit(RLIMIT_CORE, &core);
	(void)prctl(PR_GET_NAME, name);
	(void)prctl(PR_GET_PDEATHSIG, &how);
	(void)sigprocmask(SIG_SETMASK, NULL, &mask);
	if (core.rlim_max != 0)
		helper_fail(h, "it may dump core");
	if (strcmp(name, "rank-test") != 0)
		helper_fail(h, "it is called %s", name);
	if (how != SIGKILL)
		helper_fail(h, "it outlives its parent");
	if (sigismember(&mask, SIGUSR1) || signal(SIGUSR2, SIG_DFL) != SIG_DFL)
		helper_fail(h, "it has the parent's signals");
	if (signal(SIGPIPE, SIG_DFL) != SIG_IGN)
		helper_fail(h, "SIGPIPE kills it");
	for (int fd = 3; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			helper_fail(h, "it has descriptor %d", fd);
	if (read(0, name, 1) != 0)
		helper_fail(h, "it has the parent's standard input");
}

static void prepare(struct fixture *f, void (*work)(struct helper *h))
{
	*f = (struct fixture){ .helper = {
				       .work = work,
				       .on_end = on_end,
				       .owner = f,
				       .name = "rank-test",
			       } };
	assert_int_equal(uv_loop_init(&f->loop), 0);
}

static void make(struct fixture *f, void (*work)(struct helper *h), uint64_t limit_ms)
{
	prepare(f, work);
	assert_int_equal(helper_start(&f->helper, &f->loop, sizeof(struct answer), limit_ms), 0);
	assert_int_equal(f->helper.state, HELPER_RUNNING);
}

/* Runs to the end, at which nothing may be left. */
static void run(struct fixture *f)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	pid_t child = f->helper.child;
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);

	while (no_pidfds && uv_run(&f->loop, UV_RUN_NOWAIT) != 0)
		if (sigtimedwait(&chld, NULL, &moment) > 0)
			helper_on_child();
	assert_int_equal(uv_run(&f->loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(uv_loop_close(&f->loop), 0);
	assert_int_equal(f->helper.state, HELPER_NONE);
	assert_null(f->helper.answer);
	assert_int_equal(kill(child, 0), -1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

/* Leaves a process in its group, and then does what `work` is to do. */
static void leave_one(struct helper *h)
{
	if (fork() == 0)
		for (;;)
			(void)pause();
	h->answer->step = 7;
}

static void work_leave_and_end(struct helper *h)
{
	leave_one(h);
}

static void work_leave_and_hang(struct helper *h)
{
	leave_one(h);
	work_hang(h);
}

static const struct work_row {
	const char *says;
	void (*work)(struct helper *h);
	uint64_t limit_ms; /* what ends by itself has all the time it needs */
	const char *text;  /* NULL: it succeeds */
} works[] = {
	{ "it succeeds", work_well, 60000, NULL },
	{ "it is a process of its own", work_look, 60000, NULL },
	{ "it prints more than anybody reads", work_flood, 60000, NULL },
	{ "it says why it fails, which harms no terminal", work_fail, 60000, "no luck: \\x1b[1m3" },
	{ "it exits", work_exit, 60000, "its process exited with code 9 in step 7" },
	{ "it crashes", work_crash, 60000, "its process was killed by SIGSEGV in step 7" },
	{ "it hangs", work_hang, 2000, "step 7 did not finish within 2 s" },
	{ "it hangs and ignores signals", work_ignore_signals, 2000,
		"step 7 did not finish within 2 s" },
	{ "the first line that it prints is told", work_print, 60000,
		"no luck; it printed: lost \\x1b[1mit" },
};

static void test_work(void **state)
{
	const struct work_row *row = *state;
	struct fixture f;

	make(&f, row->work, row->limit_ms);
	run(&f);
	assert_int_equal(f.ends, 1);
	assert_int_equal(f.succeeded, row->text == NULL);
	assert_int_equal(f.helper.timed_out, row->limit_ms == 2000);
	assert_string_equal(text_string(&f.text), row->text ? row->text : "");
	text_done(&f.text);
	if (row->work == work_well)
		assert_true(f.first == 'x' && f.last == 'x');
}

static void test_without_pidfds(void **state)
{
	no_pidfds = true;
	test_work(state);
	no_pidfds = false;
}

static void test_scribble(void **state)
{
	struct fixture f;

	(void)state;
	make(&f, work_scribble, 60000);
	run(&f);
	assert_false(f.succeeded);
	assert_int_equal(f.text.len, sizeof f.helper.answer->text);
	text_done(&f.text);
}

static void on_group_closed(struct helper *h)
{
	struct fixture *f = h->owner;

	f->closings += h->state == HELPER_NONE ? 1 : 0;
}

static const struct group_row {
	const char *says;
	void (*work)(struct helper *h);
	uint64_t limit_ms;
} groups[] = {
	{ "what it leaves behind is killed", work_leave_and_end, 60000 },
	{ "what it has started is killed with it", work_leave_and_hang, 2000 },
};

/* What it leaves is ours at its death, and was killed before. */
static void test_group(void **state)
{
	const struct group_row *row = *state;
	struct fixture f;
	pid_t group;

	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	prepare(&f, row->work);
	f.helper.group = true;
	f.helper.on_closed = on_group_closed;
	assert_int_equal(helper_start(&f.helper, &f.loop, sizeof(struct answer), row->limit_ms), 0);
	group = f.helper.child;
	assert_int_equal(uv_run(&f.loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(uv_loop_close(&f.loop), 0);
	assert_int_equal(f.closings, 1);
	assert_int_equal(waitpid(-group, NULL, 0) > 0, 1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	text_done(&f.text);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

static void on_later(uv_timer_t *t)
{
	struct fixture *f = t->data;

	helper_close(&f->helper);
	helper_close(&f->helper);
	uv_close((uv_handle_t *)t, NULL);
}

static void test_closed(void **state)
{
	struct fixture f;

	(void)state;
	make(&f, work_hang, 60000);
	f.later.data = &f;
	assert_int_equal(uv_timer_init(&f.loop, &f.later), 0);
	assert_int_equal(uv_timer_start(&f.later, on_later, 20, 0), 0);
	run(&f);
	assert_int_equal(f.ends, 0);
}

static void test_closed_without_pidfds(void **state)
{
	no_pidfds = true;
	test_closed(state);
	no_pidfds = false;
}

/* One that hangs, beside another child that has ended. */
static void test_lasting(void **state)
{
	struct fixture f;
	pid_t child, other;

	(void)state;
	assert_false(helper_any_lasting());
	prepare(&f, work_hang);
	f.helper.lasting = true;
	assert_int_equal(helper_start(&f.helper, &f.loop, sizeof(struct answer), 0), 0);
	assert_false(uv_is_active((uv_handle_t *)&f.helper.limit));
	child = f.helper.child;
	other = fork();
	if (other == 0)
		_exit(0);
	assert_true(helper_any_lasting());
	assert_true(helper_is_lasting(child));
	assert_false(helper_is_lasting(other) || helper_is_lasting(0));
	assert_false(helper_reap_lasting(other));
	assert_int_equal(waitpid(other, NULL, 0), other);
	assert_int_equal(kill(child, SIGTERM), 0);
	assert_int_equal(waitid(P_PID, (id_t)child, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	assert_true(helper_reap_lasting(child));
	assert_int_equal(f.ends, 1);
	assert_false(helper_reap_lasting(child) || helper_is_lasting(child));
	assert_int_equal(uv_run(&f.loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(uv_loop_close(&f.loop), 0);
	assert_int_equal(f.helper.state, HELPER_NONE);
	assert_false(helper_any_lasting());
	assert_int_equal(f.ends, 1);
	assert_contains(text_string(&f.text), "its process was killed by SIGTERM in ");
	text_done(&f.text);
}

static void test_never_started(void **state)
{
	struct helper h = { 0 };

	(void)state;
	helper_close(&h);
	assert_int_equal(h.state, HELPER_NONE);
}

static void test_edges(void **state)
{
	(void)state;
	assert_life(&helper_life,
		(const char *const[]){ "none: running", "running: overdue unwanted ended",
			"overdue: unwanted ended", "unwanted: closing", "ended: closing",
			"closing: none", NULL });
}

TESTS(helper)
{
	static struct suite s;
	sigset_t some;

	sigemptyset(&some);
	sigaddset(&some, SIGUSR1);
	sigaddset(&some, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &some, NULL);
	(void)signal(SIGUSR2, SIG_IGN);
	SUITE_ROWS(&s, test_work, works);
	SUITE_ROWS(&s, test_without_pidfds, works);
	SUITE_ROWS(&s, test_group, groups);
	suite_add(&s, "it writes over its whole answer", test_scribble, NULL, NULL);
	suite_add(&s, "closed while it hangs, it is killed and silent", test_closed, NULL, NULL);
	suite_add(&s, "so it is without a pidfd", test_closed_without_pidfds, NULL, NULL);
	suite_add(&s, "a lasting one is known to who reaps all", test_lasting, NULL, NULL);
	suite_add(&s, "what never started can be closed", test_never_started, NULL, NULL);
	suite_add(&s, "its states", test_edges, NULL, NULL);
	return suite_run(&s);
}
