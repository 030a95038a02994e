/* guard.c - see guard.h */
#include "daemon/workers/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "common/arena.h"
#include "common/fd.h"
#include "common/patience.h"
#include "common/signame.h"
#include "daemon/job/ending.h"
#include "daemon/plan/plan.h"
#include "daemon/os/cgroup_paths.h"
#include "daemon/os/rehearsal.h"
#include "daemon/os/replace.h"
#include "daemon/workers/divide.h"
#include "daemon/workers/signals.h"

static int too_old(struct failure *why)
{
	struct utsname u = { 0 };

	(void)uname(&u); /* can't fail */
	return failure_set(why, -ENOSYS,
		"this kernel, Linux %s, is too old, as its waitid does not know __WALL: launchd "
		"needs Linux 4.18 or later",
		u.release);
}

int guard_init(
	struct guard *g, const struct plan *plan, const sigset_t *ignored, struct failure *why)
{
	*g = (struct guard){ .plan = plan,
		.relay = -1,
		.parent = getppid(),
		.run_dir_lock = -1,
		.leaf = CGROUP_LEAF_NONE,
		.oom = OOM_NONE };
	int rc;

	signals_taken(&plan->reactions, ignored, &g->taken);
	if (sigprocmask(SIG_BLOCK, &g->taken, NULL) < 0)
		return failure_set(why, -errno, "sigprocmask: %s", strerror(errno));
	/* for a supervisor that can't see it: see lifeline_parent_gone() */
	g->watches_parent = plan->lifeline_mark && g->parent > 1;
	if (g->watches_parent && prctl(PR_SET_PDEATHSIG, SIGCHLD) < 0)
		return failure_set(why, -errno, "prctl(PR_SET_PDEATHSIG): %s", strerror(errno));
	rc = tree_spare(&g->spared);
	if (rc == -EINVAL)
		return too_old(why);
	if (rc < 0)
		return failure_set(why, -E2BIG,
			"launchd has more than %d child processes already, of the program that "
			"executed it: start it from one with fewer",
			SPARED_MAX);
	return 0;
}

int guard_use_cgroups(struct guard *g, struct arena *arena, struct failure *why)
{
	struct cgroup_paths paths;
	int rc;

	if (cgroup_paths_read("", arena, &paths) < 0)
		return failure_oom(why);
	oom_start(&paths, &g->oom);
	/* a help; there is none without it */
	rc = cgroup_leaf_make(&paths, arena, &g->leaf);
	return divide_leaf(&g->leaf, &paths, rc, &g->plan->limits, why);
}

void guard_drop_cgroups(struct guard *g)
{
	enum { PATIENCE_MS = 5000 }; /* for what SIGKILL has not ended yet */

	if (cgroup_leaf_leave(&g->leaf) == 0)
		(void)cgroup_leaf_kill(&g->leaf);
	(void)cgroup_leaf_remove(&g->leaf, PATIENCE_MS);
	oom_stop(&g->oom);
}

static int killed(const struct guard *g, struct failure *why)
{
	return failure_set(why, -ESRCH, "launchd (pid %d) was killed", (int)g->guard);
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
		return killed(g, why);
	return 0;
}

/* It is not there for the other process until it is whole. */
static int make_run_dir(struct guard *g, struct failure *why)
{
	struct guard_shared *s = g->shared;
	int rc;

	s->run_dir_removed = 1;
	fd_closep(&g->run_dir_lock);
	rc = tmp_dir_make(
		g->plan->env, "launchd_", TMP_DIR_PASSING, &s->run_dir, &g->run_dir_lock, why);
	if (rc == 0)
		s->run_dir_removed = 0;
	return rc;
}

/* And tells the supervisor, with the first of what it relays. */
static void offer_run_dir(struct guard *g)
{
	const struct relayed made = { 0 };

	(void)make_run_dir(g, &g->shared->run_dir_failure);
	if (write(g->relay, &made, sizeof made) < 0) /* the pipe is empty; EPIPE: it was killed */
		fd_closep(&g->relay);                /* else it would wait for ever */
}

static void note_run_dir(const struct guard *g, const struct failure *reason, struct failure *note)
{
	const char *path = g->shared->run_dir.path;

	if (reason->code != 0)
		(void)failure_set(note, reason->code, "%s; %s%s", reason->text, path,
			*path ? " is used instead" : "workers have no error files");
}

int guard_await_run_dir(struct guard *g, struct failure *note, struct failure *why)
{
	struct pollfd p = { .fd = g->relay, .events = POLLIN };
	struct relayed made;

	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	if (read(g->relay, &made, sizeof made) != sizeof made) {
		g->gone = true;
		return killed(g, why);
	}
	note_run_dir(g, &g->shared->run_dir_failure, note);
	return 0;
}

const char *guard_run_dir(struct guard *g, struct failure *note)
{
	struct guard_shared *s = g->shared;
	char before[sizeof s->run_dir.path];
	struct failure none = { 0 };

	if (g->run_dir_hangs)
		return NULL;
	if (path_answers_soon(s->run_dir.path, &none) < 0) {
		g->run_dir_hangs = true;
		*s->run_dir.path = '\0';
		note_run_dir(g, &none, note);
		return NULL;
	}
	if (!tmp_dir_is_there(&s->run_dir)) {
		memcpy(before, s->run_dir.path, sizeof before);
		if (make_run_dir(g, &none) < 0 && *before)
			note_run_dir(g, &none, note);
		else if (*before)
			(void)failure_set(note, -ENOENT,
				"%s has been removed; %s is used from now on", before,
				s->run_dir.path);
	}
	return *s->run_dir.path ? s->run_dir.path : NULL;
}

/* The guard looks at what both share, even if it is stopped. */
static void make_look(const struct guard *g)
{
	if (g->gone)
		return;
	(void)kill(g->guard, SIGCHLD);
	(void)kill(g->guard, SIGCONT);
}

void guard_end_run_dir(const struct guard *g)
{
	if (path_is_far(g->shared->run_dir.path))
		return; /* the guard has signals to relay, and waits for no file system */
	g->shared->run_dir_unused = 1;
	make_look(g);
}

/* Once; the other process may be at it, too. 0 or negative errno. */
static int remove_run_dir(struct guard_shared *s)
{
	int rc = s->run_dir_removed ? 0 : tmp_dir_remove(&s->run_dir);

	if (rc == 0 || rc == -ENOENT || rc == -ETIMEDOUT)
		s->run_dir_removed = 1;
	return s->run_dir_removed && rc != -ETIMEDOUT ? 0 : rc;
}

static int not_removed(const struct guard *g, int error, struct failure *why)
{
	return failure_set(
		why, -EIO, "%s: can't be removed: %s", g->shared->run_dir.path, file_error(error));
}

int guard_remove_run_dir(const struct guard *g, struct failure *why)
{
	/* SIGKILL doesn't end a system call that removes: a guard that is killed now has done it */
	bool is_at_it = g->shared->run_dir_taken && !g->gone && getppid() == g->guard;
	int rc = is_at_it ? 0 : remove_run_dir(g->shared);

	return rc < 0 ? not_removed(g, rc, why) : 0;
}

pid_t guard_fork(struct guard *g, struct failure *why)
{
	int p[2], rc = tree_adopt_orphans(); /* the child does not inherit it */

	if (rc < 0)
		return failure_set(why, rc, "prctl(PR_SET_CHILD_SUBREAPER): %s", strerror(-rc));
	g->shared = mmap(
		NULL, sizeof *g->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (g->shared == MAP_FAILED)
		return failure_set(why, -errno, "mmap: %s", strerror(errno));
	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
		return failure_set(why, -errno, "can't make a pipe: %s", strerror(errno));
	autoclose reader = p[0];
	autoclose writer = p[1];
	g->guard = getpid();
	g->supervisor = cgroup_fork(&g->leaf);
	if (g->supervisor < 0)
		return failure_not_started(why, -errno, "a process");
	if (g->supervisor > 0) {
		g->relay = fd_take(&writer);
		offer_run_dir(g);
		return g->supervisor;
	}
	g->relay = fd_take(&reader);
	rc = tree_adopt_orphans();
	if (rc < 0)
		return failure_set(why, rc, "prctl(PR_SET_CHILD_SUBREAPER): %s", strerror(-rc));
	return become_supervisor(g, why);
}

enum {
	SUSPENSION_MS = 10000, /* the first */
	WOKEN_MAX = 100,
};

/* The supervisor was stopped, or goes on. */
static void note_suspension(struct guard *g, int status)
{
	g->suspension.active = WIFSTOPPED(status);
	g->suspension.since_ns = uv_hrtime();
}

/* PR_SET_PDEATHSIG also tells of a thread that has ended. */
static void look_for_parent(struct guard *g)
{
	const struct relayed r = { .signal = SIGCHLD };

	if (!g->watches_parent || getppid() == g->parent)
		return;
	/* a pipe that is full now: the next signal tries again */
	g->watches_parent = write(g->relay, &r, sizeof r) < 0 && errno == EAGAIN;
}

/* The supervisor's ending, or false. What else has ended is an orphan of before our time. */
static bool supervisor_ended(struct guard *g, int *ret_status)
{
	bool ended = false;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED | __WALL)) > 0) {
		bool lives = WIFSTOPPED(status) || WIFCONTINUED(status);

		if (!lives)
			tree_forget(&g->spared, pid);
		if (pid != g->supervisor)
			continue;
		if (lives) {
			note_suspension(g, status);
		} else {
			*ret_status = status;
			ended = true;
		}
	}
	return ended;
}

/* For how much longer the supervisor may stand still. */
static uint64_t suspension_left_ns(const struct suspension *s)
{
	uint64_t patience_ns =
		s->over || s->woken >= 64 ? 0 : (uint64_t)SUSPENSION_MS * 1000000 >> s->woken;
	uint64_t passed_ns = uv_hrtime() - s->since_ns;

	return passed_ns < patience_ns ? patience_ns - passed_ns : 0;
}

/* It goes on and says what has been; or has been stopped so often that it can't work, and ends. */
static void end_suspension(struct guard *g)
{
	const struct relayed r = { .signal = SIGSTOP };

	g->suspension.active = false;
	if (++g->suspension.woken > WOKEN_MAX) {
		(void)kill(g->supervisor, SIGKILL);
		return;
	}
	if (g->suspension.woken == 1 && !g->suspension.over)
		(void)!write(g->relay, &r, sizeof r); /* the pipe may be full: it's but a word */
	cgroup_leaf_thaw(&g->leaf);
	(void)kill(g->supervisor, SIGCONT);
}

/* Somebody has frozen the supervisor with all that is in its leaf: that is no operator's way, whose
 * freezes lie above, with us in them. */
static void end_freeze(struct guard *g)
{
	if (!cgroup_leaf_was_frozen(&g->leaf, g->watch))
		return;
	if (++g->suspension.thawed > WOKEN_MAX)
		(void)kill(g->supervisor, SIGKILL);
	cgroup_leaf_thaw(&g->leaf);
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
 * a moment: see guard_wait(). One that is stopped must wake to end the job, as the pipe may be
 * full. It is woken before the signal is written: whoever has read that may be in LeakSanitizer,
 * where a CONT does harm (is_wake()). */
static void relay(struct guard *g, const siginfo_t *si)
{
	enum reaction_kind kind = g->plan->reactions.of[si->si_signo].kind;
	const struct relayed r =
		signals_relayed(si->si_signo, si->si_code, si->si_pid, si->si_uid, g->supervisor);
	bool ends = reaction_ends(&g->plan->reactions.of[si->si_signo]);

	if (g->plan->service && si->si_signo == SIGTERM && si->si_code <= 0 &&
		si->si_pid == g->parent)
		g->manager_asked = true;
	if (ends) {
		g->suspension.over = true;
		cgroup_leaf_thaw(&g->leaf);
	}
	if (ends || kind == REACTION_RESUME)
		(void)kill(g->supervisor, SIGCONT);
	if (write(g->relay, &r, sizeof r) < 0 && ends) {
		if (errno == EPIPE) {
			g->cut_ns = g->cut ? g->cut_ns : uv_hrtime();
			g->cut = si->si_signo;
		}
		(void)kill(g->supervisor, si->si_signo);
	}
	if (kind == REACTION_SUSPEND)
		stop_self();
}

/* The status line that a killed supervisor has left: its row scrolls again (status.h). */
static void give_terminal_back(const struct guard *g)
{
	static const char all_rows[] = "\0337\033[r\0338\033[J";
	const char *term = getenv("TERM");

	if (g->plan->output.foreground && term && strcmp(term, "dumb") != 0)
		(void)patience_write(
			STDERR_FILENO, all_rows, sizeof all_rows - 1, PATIENCE_ASKED_MS);
}

/* Ends all that the supervisor has left, and removes the run's directory: 0 or negative errno.
 * Returns how many SIGKILL does not end. */
static unsigned end_what_is_left(struct guard *g, int *ret_removed)
{
	struct survivor left[SURVIVORS_MAX];
	unsigned count;

	for (size_t i = 0; i < g->shared->lost_count; i++)
		tree_spare_child(&g->spared, g->shared->lost[i]);
	(void)tree_end_all(&g->spared, NULL, left, &count);
	*ret_removed = remove_run_dir(g->shared);
	return count;
}

/* The supervisor has ended by itself. */
static void end_quietly(struct guard *g, struct failure *why)
{
	int removed;

	if (g->shared->done) /* it may live yet */
		removed = remove_run_dir(g->shared);
	else /* nothing is left, unless it ended early, or by a library's exit() */
		(void)end_what_is_left(g, &removed);
	if (removed < 0)
		(void)not_removed(g, removed, why);
}

/* The supervisor was killed: its workers have SIGKILL from the kernel, and all that was below it
 * is ours now. */
static void take_over(struct guard *g, int signal, struct failure *why)
{
	bool frozen = g->suspension.thawed > WOKEN_MAX, stopped = g->suspension.woken > WOKEN_MAX;
	unsigned count;
	int removed;

	(void)cgroup_leaf_kill(&g->leaf); /* at once; the rounds reap, and end what left the leaf */
	count = end_what_is_left(g, &removed);
	give_terminal_back(g);
	if (g->cut)
		return; /* its report could not be written, neither could this */
	(void)failure_set(why, -EOWNERDEAD,
		"launchd's supervisor (pid %d) was killed %s%s: all workers on this node were "
		"killed%s%s%s",
		(int)g->supervisor, frozen || stopped ? "because it was " : "by ",
		frozen          ? "frozen again and again" :
			stopped ? "stopped again and again" :
				  signal_name(signal),
		count > 0 ? ", except some that survive SIGKILL" : "",
		removed < 0 ? "; this directory could not be removed: " : "",
		removed < 0 ? g->shared->run_dir.path : "");
}

void guard_wake(const struct guard *g)
{
	/* while it dies it is our parent still, and its CONT is yet to come: see is_wake() */
	if (g->gone)
		(void)prctl(PR_SET_PDEATHSIG, 0);
	else if (getppid() == g->guard)
		(void)kill(g->guard, SIGCONT);
}

void guard_leave_lost(struct guard *g)
{
	g->shared->lost_count = helper_lost(g->shared->lost);
}

_Noreturn void guard_exit_stuck(struct guard *g, int exit_code)
{
	g->shared->exit_code = exit_code;
	g->shared->done = 1;
	make_look(g);
	_exit(exit_code); /* no destructor: what they free may be the other thread's */
}

void guard_set_code_if_killed(struct guard *g, int exit_code, bool unless_told)
{
	g->shared->unless_told = unless_told;
	g->shared->code_if_killed = exit_code;
}

void guard_set_final_code(struct guard *g, int exit_code)
{
	guard_set_code_if_killed(g, exit_code, false);
	g->shared->code_is_final = 1;
}

void guard_set_ended_by_term(struct guard *g)
{
	g->shared->ended_by_term = 1;
}

void guard_set_asked(const struct guard *g)
{
	g->shared->asked = 1;
}

void guard_end_as_asked(const struct guard *g)
{
	struct sigaction by_default = { .sa_handler = SIG_DFL };
	sigset_t term;

	if (!g->manager_asked && !(g->plan->service && g->shared->asked))
		return;
	if (!g->shared->ended_by_term)
		return;
	(void)sigemptyset(&term);
	(void)sigaddset(&term, SIGTERM);
	if (sigaction(SIGTERM, &by_default, NULL) == 0 &&
		sigprocmask(SIG_UNBLOCK, &term, NULL) == 0)
		(void)raise(SIGTERM);
}

/* What can't wait, as the rest may take seconds. Returns the job's exit code. */
static int kill_and_tell(struct guard *g, int signal)
{
	const struct killed_hook *n = &g->on_killed;
	bool all_know;

	(void)cgroup_leaf_kill(&g->leaf);
	all_know = n->tell && n->tell(n->of, signal);
	if (g->shared->code_is_final)
		return g->shared->code_if_killed;
	if (g->shared->code_if_killed && !(g->shared->unless_told && all_know))
		return g->shared->code_if_killed;
	return 128 + (g->cut ? g->cut : signal);
}

enum {
	LAST_WORDS_S = 8, /* for readers and files: each of them has a second, once a signal came */
	UNKILLED_S = 3,   /* from SIGKILL on; longer only for what hangs in the kernel */
};

/* Nothing came for a second, in which the supervisor should have ended. False: it can't be ended.
 */
static bool kill_supervisor(struct guard *g, unsigned *seconds)
{
	(void)kill(g->supervisor, SIGKILL);
	return !g->shared->done || ++*seconds < UNKILLED_S;
}

/* Its last words have a moment once somebody wants the end, however often that is said. False: the
 * supervisor can't be ended. */
static bool limit_last_words(const struct guard *g)
{
	uint64_t s = g->cut ? (uv_hrtime() - g->cut_ns) / 1000000000 : 0;

	if (s >= LAST_WORDS_S)
		(void)kill(g->supervisor, SIGKILL);
	return s < LAST_WORDS_S + UNKILLED_S;
}

/* guard_wake()'s: not for the workers; and to the supervisor itself, which it would go back to, a
 * CONT can do harm while a debugger attaches, or LeakSanitizer: it takes the STOP with which
 * PTRACE_ATTACH begins away, and both wait for ever. */
static bool is_wake(const struct guard *g, const siginfo_t *si)
{
	return si->si_signo == SIGCONT && si->si_code == SI_USER && si->si_pid == g->supervisor;
}

/* For how long to wait for a signal. False: for ever. A report that nobody reads must not make the
 * job immortal. */
static bool patience(const struct guard *g, struct timespec *ret)
{
	uint64_t left_ns;

	if (g->shared->done || g->cut) {
		*ret = (struct timespec){ .tv_sec = 1 };
		return true;
	}
	if (!g->suspension.active)
		return false;
	left_ns = suspension_left_ns(&g->suspension);
	ret->tv_sec = (time_t)(left_ns / 1000000000);
	ret->tv_nsec = (long)(left_ns % 1000000000);
	return true;
}

/* Once one of them comes, the guard's last lines wait for no reader. */
static void heed_requests(const struct guard *g)
{
	sigset_t ending;

	(void)sigemptyset(&ending);
	for (int n = 1; n < REACTION_SIGNALS; n++)
		if (reaction_ends(&g->plan->reactions.of[n]))
			(void)sigaddset(&ending, n);
	patience_heed(&ending);
}

int guard_wait(struct guard *g, struct failure *why)
{
	unsigned seconds = 0;
	struct timespec most;
	siginfo_t si;
	int status = -1, code;

	g->watch = cgroup_leaf_watch(&g->leaf, SIGCHLD);
	cgroup_leaf_sweep(&g->leaf); /* now: the supervisor needn't wait for it */
	while (!supervisor_ended(g, &status)) {
		if (g->shared->run_dir_unused) {
			g->shared->run_dir_taken = 1;
			(void)remove_run_dir(g->shared);
		}
		end_freeze(g);
		look_for_parent(g);
		if (!limit_last_words(g))
			break;
		if ((patience(g, &most) ? sigtimedwait(&g->taken, &si, &most) :
					  sigwaitinfo(&g->taken, &si)) < 0) {
			if (errno == EAGAIN && !g->shared->done && !g->cut)
				end_suspension(g);
			else if (errno == EAGAIN && g->shared->done &&
				!kill_supervisor(g, &seconds))
				break;
			continue; /* EINTR: a debugger, or a stop that is over */
		}
		if (si.si_signo != SIGCHLD && !is_wake(g, &si))
			relay(g, &si);
	}
	fd_closep(&g->relay);
	fd_closep(&g->watch);
	if (g->shared->done)
		status = W_EXITCODE(g->shared->exit_code, 0); /* it may have been killed since */
	else if (status < 0)
		status = W_EXITCODE(0, SIGKILL); /* which it gets when its disk responds */
	code = WIFEXITED(status) ? WEXITSTATUS(status) : kill_and_tell(g, WTERMSIG(status));
	if (!WIFEXITED(status))
		take_over(g, WTERMSIG(status), why);
	else
		end_quietly(g, why);
	guard_drop_cgroups(g);
	heed_requests(g);
	return code;
}
