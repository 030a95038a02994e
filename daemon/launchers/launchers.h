/* launchers.h - all that is known of what may have started this launcher: a row each. Pure.
 *
 * A variable proves only that an ancestor was a task, so a row says what tells a task from what a
 * task has started. What is true of some launchers only stands in their rows, and everybody else
 * asks the row. */
#ifndef LAUNCHD_DAEMON_LAUNCHERS_LAUNCHERS_H
#define LAUNCHD_DAEMON_LAUNCHERS_LAUNCHERS_H

#include <stdbool.h>
#include <stddef.h>

enum { LAUNCHER_NAMES = 4 }; /* of one value, the last one NULL */

enum launcher_kind {
	LAUNCHER_ANYONE,     /* nobody known: variables that anyone may have set */
	LAUNCHER_TASK,       /* it has started this process, and can't be wrong */
	LAUNCHER_PLATFORM,   /* it has started this container; its numbers fill gaps */
	LAUNCHER_ALLOCATION, /* it has given nodes to a script; its processes are not known */
};

/* A variable that workers must not see. */
struct launcher_leak {
	const char *pattern; /* with '*' at its end: every name that begins so */
	const char *why;
	bool rewritten; /* by --mpi-env rewrite; always removed otherwise */
};

struct launcher {
	const char *name; /* its command, for users */
	enum launcher_kind kind;
	unsigned first_rank; /* 1: it counts its processes from 1 */

	/* It is there where all of `needs` are set, or all of `or_needs`, and is_there(), if there
	 * is one, says so. Inside a worker it counts only if `wire` is set, which the launcher that
	 * has started the worker doesn't leave to it. */
	const char *needs[LAUNCHER_NAMES], *or_needs[LAUNCHER_NAMES];
	bool (*is_there)(const char *const *env);
	const char *wire;

	/* This process's numbers: of several names the first that is set counts. */
	const char *rank[LAUNCHER_NAMES], *size[LAUNCHER_NAMES];
	const char *local_rank[LAUNCHER_NAMES], *local_size[LAUNCHER_NAMES];
	const char *node, *nodes; /* of the hosts of its job: the number of this one, how many */
	const char *gpus;         /* how many this node has, where nothing else tells */
	const char *bound;        /* set: it may have bound this process to some of the CPUs */

	/* Hosts in the order of ranks. `host` is this one's name among them: rank and size where no
	 * variable has them. */
	const char *hosts[LAUNCHER_NAMES], *host;
	const char *hostfile; /* of an allocation: a file with a line for each process */
	const char *addr[LAUNCHER_NAMES]; /* of rank 0 */

	/* Which job this is: the values of all that are set. The first must be. */
	const char *job[LAUNCHER_NAMES], *job_or; /* the latter in place of the first */
	bool slurm_lists;   /* hosts are "gpu[01-04]", local_size has all nodes': "4(x2),3" */
	bool job_by_parent; /* its proxy on a host is the parent of all processes there */
	bool own_ports;     /* its jobs share nodes: default ports follow from the job */

	/* How the processes find one another. */
	bool pmix, pmi; /* by PMIx; by PMI-1, where it has left a descriptor for that */
	bool pmix_size; /* only PMIx tells how many there are */
	bool azure;     /* Azure ML's own jobs are started by it */
	bool own_host;  /* its variables tell where itself runs */
	bool maps_by;   /* it has --map-by; without it local ranks may have another order */

	/* What it does with output, and how it ends a job. */
	bool merges_output; /* of all nodes */
	bool shows_output;  /* so, if it isn't told to keep them apart */
	bool ends_others;   /* some time after its first process has ended, with 0 too */
	unsigned grace_ms;  /* from its SIGTERM to SIGKILL; 0: not known */
	const char *grace_from, *grace_variable; /* the latter, in seconds, changes it */

	const char *lifeline;  /* neither its own process nor a worker of ours has it; NULL: rank */
	const char *task_pid;  /* the process that it started, this one or one above it */
	const char *more_cpus; /* of its options: more CPUs for each task, where it gives one by
				  default */
	const char *one_each;  /* of its options: one launcher on each node */
	const struct launcher_leak *leaks; /* besides rank, sizes and node; end with pattern NULL */
};

/* Whether this launcher runs in a worker of another one (of ours, or of torchrun) rather than on
 * its node: then ranks, sizes and addresses of the environment are that worker's, not this job's,
 * as a sweep or an evaluation in a worker starts a job of its own. A launcher that the worker has
 * called brings its own wire-up, which a worker has not. */
bool inside_worker(const char *const *env);

/* Whether a worker is among this process's ancestors, whatever has started it there. */
bool started_in_worker(const char *const *env);

/* The launcher that has started this process as one of its tasks; launcher_anyone(): it isn't
 * known. */
const struct launcher *launcher_of(const char *const *env);

/* The row of what anyone may have set. */
const struct launcher *launcher_anyone(void);

/* The platforms (the first one, or the one behind `after`), and the allocation, that this process
 * belongs to; NULL: not known, or this is inside a worker. */
const struct launcher *platform_of(const char *const *env, const struct launcher *after);
const struct launcher *allocation_of(const char *const *env);

/* Whether a batch system or Kubernetes has given these hosts, and may give others next time. */
bool launchers_have_others(const char *const *env);

/* The first of these names whose variable is set and not empty; NULL: all are unset. */
const char *launcher_variable(const char *const *names, const char *const *env);

/* The first part of the job's identity; NULL: it isn't told. */
const char *launcher_job(const struct launcher *l, const char *const *env);

/* Item n of a list of hosts, in brackets and quotes or not, with commas, blanks or newlines between
 * them, and its length. NULL: there is none. */
const char *launcher_host(const char *list, unsigned n, size_t *ret_len);

/* Why workers must not see this variable, whose name has len bytes: what a launcher's row says, or
 * that a task is known by it. NULL: they may. */
const struct launcher_leak *launcher_leak_of(const char *name, size_t len);

#endif
