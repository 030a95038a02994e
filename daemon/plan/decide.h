/* decide.h - the decisions of plan_make() that have a file of their own. Pure.
 *
 * Each fills in the fields of a plan whose ranks and sizes are already set. */
#ifndef LAUNCHD_DAEMON_PLAN_DECIDE_H
#define LAUNCHD_DAEMON_PLAN_DECIDE_H

#include "daemon/plan/topology.h"

struct facts;
struct failure;
struct notes;
struct plan;
struct settings;

/* --only-rank and --wrap: which ranks start here, and what stands before their commands.
 * nproc_of_node as for plan_make(). -EINVAL: ranks that the job does not have; -ENOENT, -EACCES:
 * a rank that starts here needs a command that is not there, or can't be executed. */
int decide_start(const struct settings *s, const struct facts *facts, const unsigned *nproc_of_node,
	struct plan *p, struct notes *notes, struct failure *why);

/* --report with its placeholders filled in. -EINVAL: an unknown one. */
int decide_report(const struct settings *s, const struct facts *facts, struct plan *p,
	struct notes *notes, struct failure *why);

/* All of p->output; nproc_of_node as for plan_make(). -EINVAL: --merge-logs where nodes don't meet,
 * a name for --events that can't be. */
int decide_output(const struct settings *s, const struct facts *facts, const struct topology *t,
	const unsigned *nproc_of_node, struct plan *p, struct notes *notes, struct failure *why);

/* Its part in another file: --events, with errors as decide_report()'s. */
int decide_events(const struct settings *s, const struct facts *facts, struct plan *p,
	struct notes *notes, struct failure *why);

/* --store, and what decides where it is not given. -EINVAL: a torch whose store is not known. */
int decide_store(const struct settings *s, const struct facts *facts, struct plan *p,
	struct notes *notes, struct failure *why);

/* What mpirun's own way to end a job leaves of the grace. */
void decide_mpirun_grace(const struct settings *s, const struct facts *facts,
	enum launcher launcher, struct plan *p, struct notes *notes);

#endif
