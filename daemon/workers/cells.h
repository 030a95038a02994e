/* cells.h - a cgroup for each attempt, and in it one for each worker: where the worker is born.
 *
 * They lie in the leaf (cgroup.h), and are not there where it is not. cgroup.kill ends an attempt's
 * at once; a restart has a new one. No process is in the attempt's own, so that the kernel's
 * controllers can tell workers apart, where the leaf was divided (cgroup_leaf_divide()). */
#ifndef LAUNCHD_DAEMON_WORKERS_CELLS_H
#define LAUNCHD_DAEMON_WORKERS_CELLS_H

struct cgroup_leaf;
struct worker_limits;

struct cells {
	const struct cgroup_leaf *leaf;     /* borrowed; may be none */
	unsigned attempt, first, count;     /* count: ranks from the first one on */
	int dir;                            /* OURS/launchd-PID/attempt-N; -1: there is none */
	int kill;                           /* its cgroup.kill */
	const struct worker_limits *limits; /* borrowed; of each worker */
};

#define CELLS_NONE \
	{ \
		.leaf = NULL, .dir = -1, .kill = -1 \
	}

/* Makes "attempt-N" for the workers of these ranks, divided as the leaf is. 0, also where there is
 * no leaf; negative errno: it can't be made, and *c is none. */
int cells_open(struct cells *c, const struct cgroup_leaf *leaf, unsigned attempt, unsigned first,
	unsigned count, const struct worker_limits *limits);

/* Makes "rank-R" in it, with its limits. Its directory, for who starts the worker, and who then
 * closes it; -ENOENT: there is no attempt's cgroup to make it in; another negative errno: it can't
 * be made. */
int cells_add(const struct cells *c, unsigned rank);

/* The directory of a worker's, for who then closes it; -1: there is none. */
int cells_find(const struct cells *c, unsigned rank);

/* SIGKILL to everything in it, at once. */
void cells_kill(const struct cells *c);

/* Ends what is in it, and removes it. What dies slowly keeps it: it goes with the leaf then. Does
 * not wait; *c is none afterwards. */
void cells_close(struct cells *c);

#endif
