/* test_task.c - things that may hang: what becomes of each, and of the others beside it. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/sm.h"
#include "daemon/check/task.h"

enum { LIMIT_MS = 60000, SHORT_MS = 2000 };

static struct tasks *all;
static struct findings found;

static int set_up(void **state)
{
	(void)state;
	all = calloc(1, sizeof *all);
	memset(&found, 0, sizeof found);
	return all ? tasks_init(all) : -1;
}

/* No child is left, and SIGCHLD is as it was. */
static int tear_down(void **state)
{
	sigset_t now;

	(void)state;
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &now), 0);
	assert_false(sigismember(&now, SIGCHLD));
	tasks_done(all);
	free(all);
	return 0;
}

/* Who is killed where no CPU is free may be left behind: it ends when there is one. */
static int tear_down_late(void **state)
{
	while (waitpid(-1, NULL, 0) > 0)
		;
	return tear_down(state);
}

static void work_well(const struct task *t, struct task_answer *a)
{
	findings_add(&a->findings, HEALTH_GOOD, t->check, t->subject, "%u", t->number);
}

static void work_and_hang(const struct task *t, struct task_answer *a)
{
	work_well(t, a);
	task_step(a, "%s", "asking");
	for (;;)
		(void)pause();
}

static void work_and_spin(const struct task *t, struct task_answer *a)
{
	(void)t, (void)a;
	for (volatile unsigned long turns = 0;; turns++)
		;
}

static void work_and_die(const struct task *t, struct task_answer *a)
{
	work_well(t, a);
	task_step(a, "%s", "asking");
	(void)raise(SIGSEGV);
}

static void work_and_exit(const struct task *t, struct task_answer *a)
{
	(void)t, (void)a;
	_exit(7);
}

/* The job's signals and streams are none of its business. */
static void work_on_itself(const struct task *t, struct task_answer *a)
{
	sigset_t now;
	bool right = sigprocmask(SIG_SETMASK, NULL, &now) == 0 && !sigismember(&now, SIGCHLD) &&
		read(0, &now, 1) == 0 && write(1, "noise\n", 6) == 6 && close(3) < 0;

	findings_add(&a->findings, right ? HEALTH_GOOD : HEALTH_BAD, t->check, "", "itself");
}

static void add(
	void (*work)(const struct task *, struct task_answer *), uint64_t limit_ms, bool asks)
{
	struct task t = { .work = work,
		.number = (unsigned)all->count,
		.check = "it",
		.limit_ms = limit_ms,
		.asks = asks };

	(void)snprintf(t.subject, sizeof t.subject, "%zu", all->count);
	tasks_add(all, &t);
}

static void assert_finding(unsigned at, enum health health, const char *subject, const char *text)
{
	assert_true(at < found.count);
	assert_string_equal(found.at[at].text, text);
	assert_int_equal(found.at[at].health, health);
	assert_string_equal(found.at[at].subject, subject);
}

static void test_in_order(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++)
		add(work_well, LIMIT_MS, true);
	add(work_on_itself, LIMIT_MS, true);
	tasks_run(all, &found);
	assert_int_equal(found.count, 21);
	assert_finding(0, HEALTH_GOOD, "0", "0");
	assert_finding(19, HEALTH_GOOD, "19", "19");
	assert_finding(20, HEALTH_GOOD, "", "itself");
}

static void test_what_hangs(void **state)
{
	(void)state;
	add(work_and_hang, SHORT_MS, true);
	add(work_and_hang, SHORT_MS, false);
	add(work_well, LIMIT_MS, true);
	tasks_run(all, &found);
	assert_int_equal(found.count, 5);
	assert_finding(0, HEALTH_GOOD, "0", "0"); /* what it had found stands */
	assert_finding(1, HEALTH_BAD, "0", "no answer within 2 s (asking)");
	assert_finding(2, HEALTH_GOOD, "1", "1");
	assert_finding(3, HEALTH_UNKNOWN, "1", "no answer within 2 s (asking)");
	assert_finding(4, HEALTH_GOOD, "2", "2");
}

static void test_what_dies(void **state)
{
	(void)state;
	add(work_and_die, LIMIT_MS, true);
	add(work_and_exit, LIMIT_MS, true);
	add(work_well, LIMIT_MS, true);
	tasks_run(all, &found);
	assert_int_equal(found.count, 4);
	assert_finding(0, HEALTH_GOOD, "0", "0");
	assert_finding(1, HEALTH_UNKNOWN, "0", "what looks at it was killed by SIGSEGV in asking");
	assert_finding(2, HEALTH_UNKNOWN, "1", "what looks at it ended");
	assert_finding(3, HEALTH_GOOD, "2", "2");
}

/* One that had no CPU can't tell whether there would have been an answer. */
static void test_what_starves(void **state)
{
	enum { MANY = 96, CPUS_MAX = 6, SPIN_MS = 600 };

	(void)state;
	for (int i = 0; i < MANY; i++)
		add(work_and_spin, SPIN_MS, true);
	tasks_run(all, &found);
	assert_int_equal(found.count, MANY);
	if (sysconf(_SC_NPROCESSORS_ONLN) > CPUS_MAX)
		return;
	for (unsigned i = 0; i < MANY; i++)
		if (found.at[i].health == HEALTH_UNKNOWN) {
			assert_contains(found.at[i].text, "there was no CPU to ask on");
			return;
		}
	fail_msg("%s", "none of them starved");
}

static void add_two(struct tasks *t, const struct task *of)
{
	assert_ptr_equal(t, all);
	assert_true(of->answer->done);
	add(work_well, LIMIT_MS, true);
	add(work_and_hang, SHORT_MS, true);
}

static void test_more_to_do(void **state)
{
	(void)state;
	add(work_well, LIMIT_MS, true);
	all->at[0].then = add_two;
	tasks_run(all, &found);
	assert_int_equal(found.count, 4);
	assert_finding(1, HEALTH_GOOD, "1", "1");
	assert_finding(3, HEALTH_BAD, "2", "no answer within 2 s (asking)");
}

static void work_and_stay(const struct task *t, struct task_answer *a)
{
	findings_add(&a->findings, HEALTH_GOOD, "test", "", "%u", t->number);
	a->more[0] = (uint64_t)getpid();
	task_ready(a);
}

/* What holds something open lives while what it does so for is done. */
static void work_beside(const struct task *t, struct task_answer *a)
{
	bool there = kill((pid_t)all->at[0].answer->more[0], 0) == 0;

	findings_add(&a->findings, there ? HEALTH_GOOD : HEALTH_BAD, "test", "", "%u", t->number);
}

static unsigned times_ready;

static void add_beside(struct tasks *t, const struct task *of)
{
	assert_ptr_equal(t, all);
	assert_true(of->answer->ready);
	times_ready++;
	add(work_and_hang, SHORT_MS, false);
	add(work_beside, LIMIT_MS, false);
}

static void test_ready(void **state)
{
	(void)state;
	times_ready = 0;
	add(work_and_stay, SHORT_MS / 2, true); /* its limit is over long before the others end */
	all->at[0].then = add_beside;
	tasks_run(all, &found);
	assert_int_equal(times_ready, 1);
	assert_int_equal(found.count, 4);
	assert_finding(0, HEALTH_GOOD, "", "0");
	assert_finding(3, HEALTH_GOOD, "", "2");
	assert_int_equal(kill((pid_t)all->at[0].answer->more[0], 0), -1);
}

static void test_too_many(void **state)
{
	(void)state;
	for (int i = 0; i < TASKS_MAX + 2; i++)
		add(work_well, LIMIT_MS, true);
	tasks_run(all, &found);
	assert_int_equal(found.count, TASKS_MAX + 1);
	assert_contains(found.at[TASKS_MAX].text, "2 more things");
}

static void test_life(void **state)
{
	static const char *const lines[] = { "new: running ended", "running: killed ended",
		"killed: ended", "ended:", NULL };

	(void)state;
	assert_life(&task_life, lines);
}

TESTS(task)
{
	static struct suite s;

	suite_add(&s, "the edges of a task's life", test_life, NULL, NULL);
	suite_add(&s, "findings are in the order of the tasks", test_in_order, set_up, tear_down);
	suite_add(
		&s, "what hangs is killed, and harms no other", test_what_hangs, set_up, tear_down);
	suite_add(&s, "what dies tells nothing", test_what_dies, set_up, tear_down);
	suite_add(
		&s, "who starves is not taken for dead", test_what_starves, set_up, tear_down_late);
	suite_add(&s, "the end of one may be the begin of others", test_more_to_do, set_up,
		tear_down);
	suite_add(&s, "what is ready stays until the others have ended", test_ready, set_up,
		tear_down);
	suite_add(&s, "more than there is room for are said", test_too_many, set_up, tear_down);
	return suite_run(&s);
}
