/* scrub.h - which variables of the launcher's MPI or Slurm task, or of its systemd unit,
 * workers must not inherit. Pure.
 *
 * A worker that finds its launcher's wire-up takes the launcher's identity: two of them at once
 * make mpirun end the job, or hang (seen with Open MPI 4.1.4 and mpi4py). */
#ifndef LAUNCHD_DAEMON_PLAN_SCRUB_H
#define LAUNCHD_DAEMON_PLAN_SCRUB_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/plan/plan.h"

enum scrub {
	SCRUB_PASS, /* the worker inherits it */
	SCRUB_REMOVE,
	SCRUB_REWRITE, /* the worker gets its own value, see scrub_value() */
};

/* What becomes of a variable; name has len bytes. *ret_why: one line for --dry-run. */
enum scrub scrub_of(const char *name, size_t len, enum mpi_env policy, const char **ret_why);

/* The same of what systemd sets for a unit's process. service: launchd is that process; a variable
 * that a login shell may have, too, passes otherwise. */
enum scrub scrub_of_service(const char *name, size_t len, bool service, const char **ret_why);

/* The worker's own value of a variable that is rewritten. */
unsigned scrub_value(const char *name, size_t len, const struct worker_rank *rank);

#endif
