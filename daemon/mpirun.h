/* mpirun.h - launchd --mpirun-hosts: this process becomes Open MPI's mpirun. */
#ifndef LAUNCHD_DAEMON_MPIRUN_H
#define LAUNCHD_DAEMON_MPIRUN_H

#include "config/hosts.h"
#include "daemon/plan/head_node.h"

struct arena;
struct failure;
struct inherited;
struct settings;

struct mpirun {
	const char *path;
	struct hosts hosts;
	const char *hosts_from;
	struct head_plan plan;
};

/* Reads the list of hosts, finds mpirun and this program, and makes the command. argv is ours.
 * -EINVAL as of head_node_make(), and for a list that can't be read; -ENOENT, -EACCES: there is no
 * mpirun, or it can't be executed. */
int mpirun_prepare(const struct settings *s, const char *const *argv, const char *const *env,
	struct arena *arena, struct mpirun *ret, struct failure *why);

/* Executes it: signals, streams and the exit code are mpirun's own. Returns only if that fails. */
int mpirun_become(const struct mpirun *m, const struct inherited *inherited, struct failure *why);

#endif
