/* decide.h - the decisions of plan_make() that have a file of their own. Pure.
 *
 * Each fills in the fields of a plan whose ranks and sizes are already set. */
#ifndef LAUNCHD_DAEMON_PLAN_DECIDE_H
#define LAUNCHD_DAEMON_PLAN_DECIDE_H

#include "daemon/plan/topology.h"

struct plan;

/* --only-rank, --wrap and --preempt-watch: which ranks start here, what stands before their
 * commands, and what runs beside them.
 * nproc_of_node as for plan_make(). -EINVAL: ranks that the job does not have; -ENOENT, -EACCES:
 * a rank that starts here needs a command that is not there, or can't be executed. */
int decide_start(const struct deciding *d, const unsigned *nproc_of_node, struct plan *p);

/* --report with its placeholders filled in. -EINVAL: an unknown one. */
int decide_report(const struct deciding *d, struct plan *p);

/* --metrics-file likewise, and --metrics-listen. -EINVAL: that is no address with a port. */
int decide_metrics(const struct deciding *d, struct plan *p);

/* --mpi-env rewrite-slurm: whether workers see themselves as tasks of Slurm. nproc_of_node as for
 * plan_make(). */
void decide_slurm(const struct deciding *d, const unsigned *nproc_of_node, struct plan *p);

/* All of p->output; nproc_of_node as for plan_make(). -EINVAL: --merge-logs where nodes don't meet,
 * a name for --events that can't be. */
int decide_output(const struct deciding *d, const struct topology *t, const unsigned *nproc_of_node,
	struct plan *p);

/* Its part in another file: --events, with errors as decide_report()'s. */
int decide_events(const struct deciding *d, struct plan *p);

/* --tf-config, --tf-roles and --jax-env; nproc_of_node as for plan_make(). Of ports that the
 * launchers have not told one another yet the words HOST and PORT stand there. -EINVAL: a role that
 * TensorFlow doesn't have, roles that are not the job's workers, nodes that don't meet, or a node
 * whose launcher has told no ports. */
int decide_libraries(const struct deciding *d, const struct topology *t,
	const unsigned *nproc_of_node, struct plan *p);

/* --store, and what decides where it is not given. -EINVAL: a torch whose store is not known. */
int decide_store(const struct deciding *d, struct plan *p);

/* --bind, --numa-binding, --membind and --cpus-per-worker: where workers run, if facts has the
 * machine. -EINVAL: that can't be had here. */
int decide_placement(const struct deciding *d, struct plan *p);
/* The variable by which UCX is told its ports, as in "mlx5_0:1". */
#define UCX_PORTS "UCX_NET_DEVICES"

/* --nic gpu; after decide_placement(). -ENOMEM. */
int decide_nics(const struct deciding *d, struct plan *p);

/* --rlimit, --nice and --oom-score-adj. -ENOMEM. */
int decide_attributes(const struct deciding *d, struct plan *p);

/* What mpirun's own way to end a job leaves of the grace. */
void decide_mpirun_grace(const struct deciding *d, const struct launcher *launcher, struct plan *p);

#endif
