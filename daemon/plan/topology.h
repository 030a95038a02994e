/* topology.h - where this node stands in the job, and where worker 0 listens. Pure.
 *
 * Settings and facts go in; ranks, numbers and the master address come out, each with the place
 * that decided it. */
#ifndef LAUNCHD_DAEMON_PLAN_TOPOLOGY_H
#define LAUNCHD_DAEMON_PLAN_TOPOLOGY_H

#include <stdbool.h>

struct arena;
struct facts;
struct failure;
struct notes;
struct settings;

/* Who started this launcher, one on each node. */
enum launcher {
	LAUNCHER_NONE,
	LAUNCHER_OPEN_MPI,
	LAUNCHER_HYDRA, /* mpiexec of MPICH and Intel MPI */
	LAUNCHER_SLURM, /* a step of srun; a batch script is none */
};

struct identity {
	unsigned nnodes, node_rank;
	const char *nnodes_from, *node_rank_from;
};

struct master {
	const char *addr;
	unsigned port; /* 0: a free one, chosen anew for each attempt; on one node only */
	const char *addr_from, *port_from;
};

struct topology {
	enum launcher launcher;
	struct identity identity;
	struct master master;
	unsigned nproc; /* workers on this node */
	const char *nproc_from;
};

/* Whether this launcher runs in a worker of another one (of ours, or of torchrun) rather than on
 * its node: then ranks, sizes and addresses of the environment are that worker's, not this job's,
 * as a sweep or an evaluation in a worker starts a job of its own. mpirun, mpiexec and srun in a
 * worker bring their own wire-up, which a worker has not. */
bool inside_worker(const char *const *env);

/* The launcher that the environment shows. */
enum launcher launcher_of(const char *const *env);

/* Its name for users. */
const char *launcher_name(enum launcher l);

/* The variable that tells processes of this rank from the launcher's own and from other jobs';
 * NULL: LAUNCHER_NONE. */
const char *launcher_mark(enum launcher l, const char *const *env);

/* Node rank and number of nodes. What is given must not contradict MPI's or Slurm's.
 * -EINVAL: a contradiction, a rank outside the job, a rank without a size, no number. */
int identity_find(const struct settings *s, const char *const *env, enum launcher launcher,
	struct identity *ret, struct notes *notes, struct failure *why);

/* Master address and port; see master.c for the order of places.
 * -EINVAL: no way to know, or what was found is none. */
int master_find(const struct settings *s, const struct facts *facts, enum launcher launcher,
	const struct identity *id, struct arena *arena, struct master *ret, struct notes *notes,
	struct failure *why);

/* All of the above and nproc. */
int topology_make(const struct settings *s, const struct facts *facts, struct arena *arena,
	struct topology *ret, struct notes *notes, struct failure *why);

/* The first host of a Slurm host list ("gpu[01-04,07],x" is gpu01), the arena's. "": none. */
const char *hostlist_first(struct arena *arena, const char *list);

#endif
