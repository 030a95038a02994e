/* task.c - see task.h */
#include "daemon/check/task.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/num.h"
#include "common/signame.h"
#include "common/sm.h"
#include "daemon/os/process.h"
#include "daemon/os/procfs.h"

static const struct sm_state states[TASK_STATES] = {
	[TASK_NEW] = { "new", SM_TO(TASK_RUNNING) | SM_TO(TASK_ENDED) },
	[TASK_RUNNING] = { "running", SM_TO(TASK_KILLED) | SM_TO(TASK_ENDED) },
	[TASK_KILLED] = { "killed", SM_TO(TASK_ENDED) },
	[TASK_ENDED] = { "ended", 0 },
};
const struct sm task_life = { "task", states, TASK_STATES };

/* One that has had less than this part of the time for which it wanted a CPU has hardly run. */
enum { STARVED = 10 };

static const uint64_t ns_in_ms = 1000000;

static uint64_t now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* can't fail */
	return (uint64_t)t.tv_sec * 1000 * ns_in_ms + (uint64_t)t.tv_nsec;
}

int tasks_init(struct tasks *t)
{
	size_t size = TASKS_MAX * sizeof *t->answers;
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return -errno;
	t->answers = at;
	return 0;
}

void tasks_done(struct tasks *t)
{
	if (t->answers)
		(void)munmap(t->answers, TASKS_MAX * sizeof *t->answers);
	t->answers = NULL;
}

void tasks_add(struct tasks *t, const struct task *task)
{
	if (t->count == TASKS_MAX) {
		t->left_out++;
		return;
	}
	t->at[t->count] = *task;
	t->at[t->count].state = TASK_NEW;
	t->at[t->count].answer = &t->answers[t->count];
	t->count++;
}

/* --- the child --- */

void task_step(struct task_answer *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(a->step, sizeof a->step, fmt, ap);
	va_end(ap);
}

/* The parent waits for SIGCHLD, and looks at all tasks whoever has sent it. */
_Noreturn void task_ready(struct task_answer *a)
{
	a->ready = true;
	(void)kill(getppid(), SIGCHLD);
	for (;;)
		(void)pause();
}

static _Noreturn void be_child(const struct task *t, pid_t parent)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct task_answer *a = t->answer;
	const char *what;
	int rc = null < 0 ? -errno : process_set_apart(parent, 0, null, &what);

	if (rc < 0) {
		findings_add(&a->findings, HEALTH_UNKNOWN, t->check, t->subject,
			"it can't be looked at: %s", strerror(-rc));
	} else {
		(void)prctl(PR_SET_NAME, "launchd-check");
		t->work(t, a);
	}
	a->done = true;
	_exit(0);
}

/* --- the parent --- */

static void task_goto(struct task *t, enum task_state next)
{
	t->state = sm_go(&task_life, t->state, next);
	if (next == TASK_KILLED) {
		(void)kill(t->child, SIGKILL); /* not reaped yet, so the number is its own */
		t->deadline_ns = now() + TASK_KILL_MS * ns_in_ms;
	} else if (next == TASK_ENDED) {
		t->child = 0;
	}
}

static void start(struct task *t)
{
	pid_t parent = getpid(), child = fork();

	if (child == 0)
		be_child(t, parent);
	if (child < 0) {
		findings_add(&t->answer->findings, HEALTH_UNKNOWN, t->check, t->subject,
			"it can't be looked at: no process can be started: %s", strerror(errno));
		task_goto(t, TASK_ENDED);
		return;
	}
	t->child = child;
	t->since_ns = now();
	t->deadline_ns = t->since_ns + t->limit_ms * ns_in_ms;
	task_goto(t, TASK_RUNNING);
}

/* Whether a child that has not ended was busy or wanted to be, rather than waiting for an answer:
 * on a machine that has no CPU for it nothing is known. What spins in a driver has used its CPU. */
static bool is_starved(const struct task *t)
{
	uint64_t ms = (now() - t->since_ns) / ns_in_ms;
	struct process p;
	struct usage used;

	return process_read(t->child, &p) == 0 && p.state == 'R' &&
		process_usage(t->child, &used) == 0 && used.cpu_ms < ms / STARVED;
}

/* Its time is over. What that means is said when the child can't write any more. */
static void overdue(struct task *t)
{
	char step[sizeof t->answer->step];
	bool starved = is_starved(t);

	memcpy(step, t->answer->step, sizeof step);
	step[sizeof step - 1] = '\0';
	t->overdue = t->asks && !starved ? HEALTH_BAD : HEALTH_UNKNOWN;
	(void)snprintf(t->late, sizeof t->late, "no answer within %s s%s%s%s%s",
		num_seconds(t->limit_ms).text, *step ? " (" : "", step, *step ? ")" : "",
		starved ? ": there was no CPU to ask on" : "");
	task_goto(t, TASK_KILLED);
}

static void left_behind(struct task *t)
{
	findings_add(&t->answer->findings, t->overdue, t->check, t->subject,
		"%s; process %d hangs in the kernel, can't be killed, and is left behind", t->late,
		(int)t->child);
	task_goto(t, TASK_ENDED);
}

static void ended(struct task *t, int status)
{
	struct task_answer *a = t->answer;

	if (t->stays)
		; /* it had done its work */
	else if (t->state == TASK_KILLED)
		findings_add(&a->findings, t->overdue, t->check, t->subject, "%s", t->late);
	else if (!a->done)
		findings_add(&a->findings, HEALTH_UNKNOWN, t->check, t->subject,
			"what looks at it %s%s%s%.*s",
			WIFSIGNALED(status) ? "was killed by " : "ended",
			WIFSIGNALED(status) ? signal_name(WTERMSIG(status)) : "",
			*a->step ? " in " : "", (int)sizeof a->step - 1, a->step);
	task_goto(t, TASK_ENDED);
}

/* It is ready. Only a kill that fails is still reported. */
static void let_stay(struct task *t)
{
	t->stays = true;
	t->deadline_ns = UINT64_MAX;
	t->overdue = HEALTH_UNKNOWN;
	(void)snprintf(t->late, sizeof t->late, "it does not end");
}

/* How a task that was being done goes on; true: it has ended, or is ready. */
static bool look_after(struct task *t)
{
	int status;
	bool stayed = t->stays;
	pid_t gone = waitpid(t->child, &status, WNOHANG);

	if (t->state == TASK_RUNNING && t->answer->ready && !t->stays)
		let_stay(t);
	if (gone != 0) /* also where somebody else has reaped it */
		ended(t, gone < 0 ? 0 : status);
	else if (now() >= t->deadline_ns && t->state == TASK_RUNNING)
		overdue(t);
	else if (now() >= t->deadline_ns)
		left_behind(t);
	return !stayed && (t->stays || t->state == TASK_ENDED);
}

static bool is_alive(const struct task *t)
{
	return t->state == TASK_RUNNING || t->state == TASK_KILLED;
}

/* Waits for the end of a child, or of a limit; false: there is none. */
static bool wait_for_one(const struct tasks *all, const sigset_t *child)
{
	uint64_t first = UINT64_MAX, t = now(), ns;
	struct timespec limit;

	for (size_t i = 0; i < all->count; i++)
		if (is_alive(&all->at[i]) && all->at[i].deadline_ns < first)
			first = all->at[i].deadline_ns;
	if (first == UINT64_MAX)
		return false;
	ns = first > t ? first - t : 0;
	limit.tv_sec = (time_t)(ns / (1000 * ns_in_ms));
	limit.tv_nsec = (long)(ns % (1000 * ns_in_ms));
	(void)sigtimedwait(child, NULL, &limit); /* whatever woke us: all are looked at */
	return true;
}

/* Starts those that are new, and looks after the others. */
static void go_on(struct tasks *all)
{
	for (size_t i = 0; i < all->count; i++) { /* then() may make them more */
		struct task *t = &all->at[i];
		bool over;

		if (t->state == TASK_NEW) {
			start(t);
			over = t->state == TASK_ENDED;
		} else {
			over = is_alive(t) && look_after(t);
		}
		if (over && t->then)
			t->then(all, t);
	}
}

/* Those that hold something open for the others, which have ended. False: there is none. */
static bool end_staying(struct tasks *all)
{
	bool any = false;

	for (size_t i = 0; i < all->count; i++)
		if (all->at[i].stays && all->at[i].state == TASK_RUNNING) {
			task_goto(&all->at[i], TASK_KILLED);
			any = true;
		}
	return any;
}

void tasks_run(struct tasks *all, struct findings *ret)
{
	sigset_t child, before;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &child, &before); /* can't fail */
	do {
		do {
			go_on(all);
		} while (wait_for_one(all, &child));
	} while (end_staying(all));
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	for (size_t i = 0; i < all->count; i++)
		findings_merge(ret, &all->at[i].answer->findings);
	if (all->left_out)
		findings_add(ret, HEALTH_UNKNOWN, "check", "",
			"%u more things than can be looked at at once were left out",
			all->left_out);
}
