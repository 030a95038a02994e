/* guard.h - two processes for one job: each ends the workers if the other one is killed.
 *
 * The guard is the process that mpirun, systemd or the shell knows: it relays signals and waits.
 * The supervisor, its child in a session of its own, runs the loop and starts the workers. Whoever
 * of the two is killed, the other ends all workers and whatever they started, wherever it has gone
 * to: both are subreapers, so that every orphan below them becomes a child of the survivor.
 *
 * What this can't help against: both killed in the same instant, with no cgroup, pid namespace or
 * batch system around them. */
#ifndef LAUNCHD_DAEMON_WORKERS_GUARD_H
#define LAUNCHD_DAEMON_WORKERS_GUARD_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/failure.h"
#include "daemon/control/ctl_place.h"
#include "daemon/os/helper.h"
#include "daemon/os/tmp_dir.h"
#include "daemon/workers/cgroup.h"
#include "daemon/workers/oom.h"
#include "daemon/workers/tree.h"

struct arena;
struct plan;

/* A supervisor that is stopped alone: a terminal, mpirun and batch systems stop the guard, or both.
 * Who sent a SIGSTOP can't be known. So it holds for a while, which is for a look at it and for a
 * batch system that has not come to the guard yet; each time for half as long, and not at all once
 * the job is to end. Somebody who does not let it run does not let the job live. */
struct suspension {
	bool active;       /* it is stopped, as far as we know */
	bool over;         /* the job ends: no more patience */
	uint64_t since_ns; /* CLOCK_MONOTONIC */
	unsigned woken;    /* how often it was, by us */
	unsigned thawed;   /* the same, where it was frozen with its leaf */
};

/* What the two tell one another, in memory that both have. The guard makes the run's directory and
 * removes it; the supervisor, which may have to make another one, writes all else. */
struct guard_shared {
	/* Of the run's directory: the supervisor needs it no more, the guard is at its removal, it
	 * is gone, or was given up. */
	volatile sig_atomic_t run_dir_unused, run_dir_taken, run_dir_removed;
	/* The supervisor has done its work, but can't exit: one of its threads waits for a disk
	 * that doesn't answer, and can't be killed. */
	volatile sig_atomic_t done, exit_code;
	/* The supervisor's helpers that hang in the kernel, and have SIGKILL: nobody waits. */
	pid_t lost[HELPER_LOST_MAX];
	size_t lost_count;
	/* What all other nodes exit with, should the supervisor be killed now; 0: there are none.
	 * unless_told: only those that are not told of its death, else 128 + the signal. */
	volatile sig_atomic_t code_if_killed, unless_told;
	/* It is the job's, also if that is 0: all that is left are the last words. */
	volatile sig_atomic_t code_is_final;
	/* The job has ended for a SIGTERM, on whichever node. */
	volatile sig_atomic_t ended_by_term;
	/* Its user has asked for that by the control socket. */
	volatile sig_atomic_t asked;
	struct ctl_place control;       /* to be removed by who is the last */
	struct failure run_dir_failure; /* of TMPDIR, as tmp_dir_make() has it */
	struct tmp_dir run_dir;
};

/* Tells others that the supervisor was killed. tell() returns whether all of them know that now,
 * and by which signal; it is called at most once. */
struct killed_hook {
	bool (*tell)(void *of, int signal); /* NULL: there is nobody */
	void *of;
};

struct guard {
	const struct plan *plan;
	sigset_t taken; /* blocked in both processes from guard_fork() on */
	struct spared spared;
	struct cgroup_leaf leaf; /* the supervisor and all below it live there */
	struct oom_watch oom;
	pid_t guard, supervisor;
	pid_t parent;        /* what started the guard */
	bool watches_parent; /* its end is the job's, and not seen yet */
	int relay;           /* our end of the pipe: the guard writes, the supervisor reads */
	bool gone;           /* the supervisor has seen the guard's end */
	struct guard_shared *shared;
	struct killed_hook on_killed; /* the caller's, before guard_wait() */
	struct suspension suspension;
	int watch;          /* for the leaf's being frozen; negative: none */
	int run_dir_lock;   /* of whichever process has made that; -1: none */
	bool run_dir_hangs; /* the supervisor has given it up */
	int cut;            /* the signal that came at the supervisor's last words; 0: none */
	uint64_t cut_ns;    /* when the first of them did */
	bool manager_asked; /* SIGTERM came from the service manager, which has started us */
};

/* Blocks the signals that launchd takes (`ignored`: on entry) and remembers the children that are
 * here already. To be called before anything is made that would have to be cleaned up. */
int guard_init(
	struct guard *g, const struct plan *plan, const sigset_t *ignored, struct failure *why);

/* What cgroups can do for us: the counter of the OOM killer's kills, and a leaf of our own, divided
 * among the workers. After guard_init(), before guard_fork(). -ENOMEM; -EINVAL: the workers' limits
 * can't be had here, see divide_leaf(). */
int guard_use_cgroups(struct guard *g, struct arena *arena, struct failure *why);

/* Gives them back, with all that is left in the leaf: for the survivor, at the end. */
void guard_drop_cgroups(struct guard *g);

/* Makes the two processes. Returns 0 in the supervisor, its pid in the guard. Negative errno: there
 * is still but one process, or this is a supervisor that must end at once. */
pid_t guard_fork(struct guard *g, struct failure *why);

/* In the supervisor: waits for the directory of the run, which the guard makes while the supervisor
 * prepares the rest; it also removes it while the supervisor ends: where many files were deleted
 * lately, ext4 takes 0.2 ms for either. -ESRCH: the guard was killed. note is set if it isn't in
 * TMPDIR, or if there is none. */
int guard_await_run_dir(struct guard *g, struct failure *note, struct failure *why);

/* Then: its path; NULL: there is none. For an attempt that begins: if it was removed, or another
 * directory has its name, another one is made, and note is set. */
const char *guard_run_dir(struct guard *g, struct failure *note);

/* In the supervisor, which needs that directory no more: the guard may remove it. */
void guard_end_run_dir(const struct guard *g);

/* In the supervisor, before it ends: removes it, unless the guard is at it already, which then says
 * what it can't remove: to wait for each other takes 0.1 ms. 0, or negative errno and a sentence.
 */
int guard_remove_run_dir(const struct guard *g, struct failure *why);

/* In the supervisor, which has done all it had to: a guard that is stopped, by whomever, wakes and
 * ends. One that is gone wakes nobody any more. */
void guard_wake(const struct guard *g);

/* In the supervisor, which has ended all that it could. */
void guard_leave_lost(struct guard *g);

/* In the supervisor, which has done its work but has a thread that can't be ended: exits. The guard
 * exits with this code, too, within some seconds, even if the supervisor can't. */
_Noreturn void guard_exit_stuck(struct guard *g, int exit_code);

/* In the supervisor: if it is killed now, the guard exits with this code, as all other nodes do, or
 * as the job has ended here. 0: neither; the code is 128 + the signal then. unless_told: it is that
 * also where the other nodes have been told of the death. */
void guard_set_code_if_killed(struct guard *g, int exit_code, bool unless_told);

/* In the supervisor: the job has ended with this code, and only its last words follow. */
void guard_set_final_code(struct guard *g, int exit_code);

/* In the supervisor: the job has ended for a SIGTERM, and for no worker's failure. */
void guard_set_ended_by_term(struct guard *g);

/* In the supervisor: its user asks for the end. */
void guard_set_asked(const struct guard *g);

/* In the guard, as its last act: where the service manager, or the user of a service, has asked for
 * the end, and the job has ended for a SIGTERM, it dies of one. systemd takes that for a clean end,
 * and exit code 143 for a failure: a worker that a stranger's SIGTERM has killed exits with that
 * code, too. */
void guard_end_as_asked(const struct guard *g);

/* The guard's whole life: relays until the supervisor has ended. Returns its exit code; where it
 * was killed, calls on_killed, ends all that it has left, sets why, and returns the code
 * of guard_set_code_if_killed(), else 128 + the signal. The signals stay blocked: one that comes
 * now must not take the exit code's place, and only cuts short what is waited for (patience.h). */
int guard_wait(struct guard *g, struct failure *why);

#endif
