/* guard.c - see guard.h */
#include "daemon/workers/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/signame.h"
#include "daemon/plan/plan.h"
#include "daemon/report/ending.h"
#include "daemon/workers/cgroup_paths.h"
#include "daemon/workers/place.h"
#include "daemon/workers/signals.h"

int guard_init(
	struct guard *g, const struct plan *plan, const sigset_t *ignored, struct failure *why)
{
	*g = (struct guard){ .plan = plan,
		.relay = -1,
		.parent = getppid(),
		.leaf = CGROUP_LEAF_NONE,
		.oom = OOM_NONE };
	signals_taken(&plan->reactions, ignored, &g->taken);
	if (sigprocmask(SIG_BLOCK, &g->taken, NULL) < 0)
		return failure_set(why, -errno, "sigprocmask: %s", strerror(errno));
	if (tree_spare(&g->spared) < 0)
		return failure_set(why, -E2BIG,
			"this process has more than %d children already: start launchd from a "
			"process that has fewer",
			SPARED_MAX);
	return 0;
}

int guard_use_cgroups(struct guard *g, struct arena *arena, struct failure *why)
{
	struct cgroup_paths paths;

	if (cgroup_paths_read("", arena, &paths) < 0)
		return failure_oom(why);
	oom_start(&paths, &g->oom);
	(void)cgroup_leaf_make(&paths, arena, &g->leaf); /* a help; there is none without it */
	return 0;
}

void guard_drop_cgroups(struct guard *g)
{
	enum { PATIENCE_MS = 5000 }; /* for what SIGKILL has not ended yet */

	if (cgroup_leaf_leave(&g->leaf) == 0)
		(void)cgroup_leaf_kill(&g->leaf);
	(void)cgroup_leaf_remove(&g->leaf, PATIENCE_MS);
	oom_stop(&g->oom);
}

/* The supervisor leaves the session that mpirun or a terminal signals as a whole, and wakes, if
 * it was stopped, when the guard dies. */
static int become_supervisor(struct guard *g, struct failure *why)
{
	if (setsid() < 0)
		return failure_set(why, -errno, "setsid: %s", strerror(errno));
	if (prctl(PR_SET_PDEATHSIG, SIGCONT) < 0)
		return failure_set(why, -errno, "prctl(PR_SET_PDEATHSIG): %s", strerror(errno));
	if (getppid() != g->guard)
		return failure_set(why, -ESRCH, "launchd (pid %d) was killed", (int)g->guard);
	return 0;
}

pid_t guard_fork(struct guard *g, struct failure *why)
{
	int p[2], rc = tree_adopt_orphans(); /* the child does not inherit it */

	if (rc < 0)
		return failure_set(why, rc, "prctl(PR_SET_CHILD_SUBREAPER): %s", strerror(-rc));
	g->will = mmap(
		NULL, sizeof *g->will, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (g->will == MAP_FAILED)
		return failure_set(why, -errno, "mmap: %s", strerror(errno));
	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
		return failure_set(why, -errno, "can't make a pipe: %s", strerror(errno));
	autoclose reader = p[0];
	autoclose writer = p[1];
	g->guard = getpid();
	g->supervisor = cgroup_fork(&g->leaf);
	if (g->supervisor < 0)
		return failure_set(why, -errno, "can't start a process: %s", strerror(errno));
	if (g->supervisor > 0) {
		g->relay = fd_take(&writer);
		return g->supervisor;
	}
	g->relay = fd_take(&reader);
	rc = tree_adopt_orphans();
	if (rc < 0)
		return failure_set(why, rc, "prctl(PR_SET_CHILD_SUBREAPER): %s", strerror(-rc));
	return become_supervisor(g, why);
}

/* The supervisor's ending, or false. What else has ended is an orphan of before our time. */
static bool supervisor_ended(struct guard *g, int *ret_status)
{
	bool ended = false;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
		tree_forget(&g->spared, pid);
		if (pid == g->supervisor) {
			*ret_status = status;
			ended = true;
		}
	}
	return ended;
}

/* Stops this process, which is how a shell sees that the job has stopped. Unless a CONT is here
 * already: a stop discards it, and nobody would send another. */
static void stop_self(void)
{
	sigset_t waiting;

	if (sigpending(&waiting) == 0 && sigismember(&waiting, SIGCONT) != 1)
		(void)kill(getpid(), SIGSTOP);
}

/* Hands a signal on. A supervisor that has closed the pipe is at its last words, for which it has
 * a moment: see guard_wait(). One that is stopped, the pipe may be full, must wake to end the job.
 */
static void relay(struct guard *g, const siginfo_t *si)
{
	enum reaction_kind kind = g->plan->reactions.of[si->si_signo].kind;
	const struct relayed r = { si->si_signo, si->si_code, si->si_pid, si->si_uid };
	bool ends = kind == REACTION_END || kind == REACTION_STOP;
	ssize_t n = write(g->relay, &r, sizeof r);

	if (n < 0 && ends && errno == EPIPE)
		g->cut = si->si_signo;
	if (n < 0 && ends)
		(void)kill(g->supervisor, si->si_signo);
	if (ends || kind == REACTION_RESUME)
		(void)kill(g->supervisor, SIGCONT);
	if (kind == REACTION_SUSPEND)
		stop_self();
}

/* The status line that a killed supervisor has left: its row scrolls again (status.h). */
static void give_terminal_back(const struct guard *g)
{
	static const char all_rows[] = "\0337\033[r\0338\033[J";
	const char *term = getenv("TERM");

	if (g->plan->output.foreground && term && strcmp(term, "dumb") != 0)
		(void)fd_write_all(STDERR_FILENO, all_rows, sizeof all_rows - 1);
}

/* The supervisor was killed: its workers have SIGKILL from the kernel, and all that was below it
 * is ours now. */
static void inherit(struct guard *g, int signal, struct failure *why)
{
	struct survivor left[SURVIVORS_MAX];
	unsigned count;
	int rc;

	(void)cgroup_leaf_kill(&g->leaf); /* at once; the rounds reap, and end what left the leaf */
	(void)tree_end_all(&g->spared, left, &count);
	rc = run_dir_remove(g->run_dir);
	give_terminal_back(g);
	if (g->cut)
		return; /* its report could not be written, neither could this */
	(void)failure_set(why, -EOWNERDEAD,
		"launchd's supervisor (pid %d) was killed by %s: all workers of this node were "
		"killed%s%s%s",
		(int)g->supervisor, signal_name(signal),
		count > 0 ? ", but for some that SIGKILL does not end" : "",
		rc < 0 ? "; this directory could not be removed: " : "", rc < 0 ? g->run_dir : "");
}

_Noreturn void guard_bequeath(struct guard *g, int exit_code)
{
	g->will->exit_code = exit_code;
	g->will->said = 1;
	if (!g->gone)
		(void)kill(g->guard, SIGCHLD); /* it looks, and sees the will */
	_exit(exit_code); /* no destructor: what they free may be the other thread's */
}

/* Nothing came for a second, in which the supervisor should have ended. False: it can't be ended.
 */
static bool hasten(struct guard *g, unsigned *seconds)
{
	enum { PATIENCE_S = 3 };

	(void)kill(g->supervisor, SIGKILL);
	return !g->will->said || ++*seconds < PATIENCE_S;
}

int guard_wait(struct guard *g, struct failure *why)
{
	const struct timespec moment = { .tv_sec = 1 };
	/* a second for who reads its output, one for its report, one for its events */
	const struct timespec last_words = { .tv_sec = 4 };
	unsigned seconds = 0;
	struct survivor left[SURVIVORS_MAX];
	unsigned count;
	siginfo_t si;
	int status = 0;

	while (!supervisor_ended(g, &status)) {
		/* a report that nobody reads must not make the job immortal */
		const struct timespec *patience = g->will->said ? &moment :
			g->cut                                  ? &last_words :
								  NULL;

		if ((patience ? sigtimedwait(&g->taken, &si, patience) :
				sigwaitinfo(&g->taken, &si)) < 0) {
			if (errno == EAGAIN && !hasten(g, &seconds))
				break;
			continue; /* EINTR: a debugger, or a stop that is over */
		}
		if (si.si_signo != SIGCHLD)
			relay(g, &si);
	}
	fd_closep(&g->relay);
	if (g->will->said)
		status = W_EXITCODE(g->will->exit_code, 0); /* it may have been killed since */
	if (!WIFEXITED(status))
		inherit(g, WTERMSIG(status), why);
	else if (!g->will->said)
		/* nothing, unless it ended in a way that it does not know of (a library's exit())
		 */
		(void)tree_end_all(&g->spared, left, &count);
	guard_drop_cgroups(g);
	signals_release(&g->taken);
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	return 128 + (g->cut ? g->cut : WTERMSIG(status));
}
