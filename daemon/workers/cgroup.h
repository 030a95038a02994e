/* cgroup.h - a cgroup of our own for all that launchd starts, where one is delegated to us.
 *
 * It is a help and never the only means: cgroup.kill ends everything in it in one call, also what
 * forks without end. The guard makes it and forks the supervisor into it; whoever survives, kills
 * and removes it. Nothing outside of it is ever touched.
 *
 *   OURS/                        where launchd was started: the guard, unless
 *   OURS/launchd-PID-guard       there is this, for the guard: see cgroup_leaf_divide()
 *   OURS/launchd-PID/            PID: the guard's; no process is in it
 *   OURS/launchd-PID/supervisor  the supervisor and its helpers
 *   OURS/launchd-PID/attempt-N/  one for each attempt, see cells.h; no process is in it
 *
 * A cgroup whose memory is to be divided may have no process of its own (cgroup-v2.rst, "No
 * Internal Process Constraint"): hence the one for the supervisor. The guard's is beside the leaf,
 * so that who freezes the leaf does not freeze him who will thaw it.
 *
 * Delegated means that cgroups may be made here: the directory of our cgroup (version 2) belongs
 * to our user, who is not root, or systemd has marked it (Delegate=yes), and it can be written. */
#ifndef LAUNCHD_DAEMON_WORKERS_CGROUP_H
#define LAUNCHD_DAEMON_WORKERS_CGROUP_H

#include <stdbool.h>
#include <sys/types.h>

struct arena;
struct cgroup_paths;

/* Both processes have a copy. Every function takes one that is none and does nothing then. */
struct cgroup_leaf {
	const char *path; /* NULL: none; the arena's */
	int dir;          /* the leaf's directory */
	int nest;         /* of the supervisor's cgroup in it */
	int kill;         /* its cgroup.kill */
	int freeze;       /* its cgroup.freeze */
	int home;         /* the directory of the cgroup that it lies in: OURS */
	int procs;        /* its cgroup.procs */
	int lobby;        /* cgroup.procs of OURS/launchd-PID-guard; -1: there is none */
	int control;      /* OURS/cgroup.subtree_control; -1: can't be written */
	bool inside;      /* this process is in it */
	/* sets of enum controller: what may be used in OURS; what attempts are divided by; what was
	 * enabled in OURS for that, and is disabled at the end */
	unsigned available, controllers, enabled;
};

#define CGROUP_LEAF_NONE \
	{ \
		.path = NULL, .dir = -1, .nest = -1, .kill = -1, .freeze = -1, .home = -1, \
		.procs = -1, .lobby = -1, .control = -1, .inside = false \
	}

/* Whether a leaf could be made: 0; -ENOENT: no cgroup of version 2 is seen here; -EPERM: ours is
 * not delegated; another negative errno: its directory can't be opened. Makes nothing. */
int cgroup_look(const struct cgroup_paths *paths);

/* Makes the leaf "launchd-<pid>" below our own cgroup. *ret is none where nothing is delegated.
 * Negative errno: it is, but no leaf could be made; *ret is untouched, and nothing is left. */
int cgroup_leaf_make(
	const struct cgroup_paths *paths, struct arena *arena, struct cgroup_leaf *ret);

/* Has the kernel tell the resources of attempts in the leaf apart by these controllers, which must
 * be available. Where this needs it, moves this process, which must be the only one in OURS, to
 * OURS/launchd-PID-guard: who divides its resources may have no process. To be called before
 * cgroup_fork(); takes the kernel some 10 ms. 0 or negative errno, and nothing is changed then;
 * -EBUSY: other processes are in OURS, see cgroup_leaf_other(). */
int cgroup_leaf_divide(struct cgroup_leaf *leaf, unsigned controllers);

/* A process in OURS that is not this one; 0: there is none; -1: there is one of another pid
 * namespace, or nobody can tell. */
pid_t cgroup_leaf_other(const struct cgroup_leaf *leaf);

/* fork(2) with the child in the supervisor's cgroup; where that fails, it is a child like any other
 * (and not `inside`). As fork(2) returns; -1: errno is set. Handlers of pthread_atfork(3) may not
 * run: to be called before this process has an event loop. */
pid_t cgroup_fork(struct cgroup_leaf *leaf);

/* Takes this process out of the leaf to where the guard is, what it has started stays in. Waits for
 * the kernel, which needs some 10 ms. 0 or negative errno. */
int cgroup_leaf_leave(struct cgroup_leaf *leaf);

/* Lets everything in the leaf go on that was frozen in it, as a worker may do: what is frozen takes
 * no signal but SIGKILL. What an operator freezes lies above, and stays. */
void cgroup_leaf_thaw(const struct cgroup_leaf *leaf);

/* Has the kernel send this process that signal when something in the leaf was frozen or thawed, as
 * a whole, or its last process has ended. A descriptor for cgroup_leaf_was_frozen(), which also
 * asks for the next signal; negative: there is none. */
int cgroup_leaf_watch(const struct cgroup_leaf *leaf, int signal);
bool cgroup_leaf_was_frozen(const struct cgroup_leaf *leaf, int watch);

/* SIGKILL to everything in the leaf and in the cgroups that workers made in it, at once and
 * without a gap for what forks. 0 or negative errno; -EBUSY: this process is in it. */
int cgroup_leaf_kill(const struct cgroup_leaf *leaf);

/* Removes the leaf with all cgroups in it and undoes cgroup_leaf_divide(): this process is in OURS
 * afterwards. Waits at most within_ms for what is still dying in there. Blocks as long; in any case
 * the leaf is none afterwards. Whoever removes it second finds nothing, which is fine. 0 or
 * negative errno; -EBUSY: something in it lives, or we are in it. */
int cgroup_leaf_remove(struct cgroup_leaf *leaf, unsigned within_ms);

/* Removes the leaves and lobbies beside this leaf that dead launchers left, because both of their
 * processes were killed at once. Anything with processes in it stays, and so does the leaf of a
 * launcher that may be alive or about to start. */
void cgroup_leaf_sweep(const struct cgroup_leaf *leaf);

/* Enables a set of controllers for the cgroups in one. 0 or negative errno. */
int cgroup_enable(int dir, unsigned controllers);

/* Removes a cgroup with all cgroups in it. 0, also where it is not there, or negative errno;
 * -EBUSY: there are processes in it, maybe dying. */
int cgroup_remove(const char *path);

#endif
