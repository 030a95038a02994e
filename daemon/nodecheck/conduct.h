/* conduct.h - the check as one rank lives it: rank 0 says what comes next and judges, and every
 * rank, itself too, does its part. They meet in the job's store only. Blocking. */
#ifndef LAUNCHD_DAEMON_NODECHECK_CONDUCT_H
#define LAUNCHD_DAEMON_NODECHECK_CONDUCT_H

#include "daemon/nodecheck/check_case.h"
#include "daemon/nodecheck/check_options.h"

struct arena;
struct failure;
struct text;

struct conduct {
	const struct check_options *o;
	const struct check_place *place;
	char *const *argv; /* main()'s, for the parts */
	struct arena *arena;
};

/* As rank 0: the case is over afterwards. */
int conduct_lead(struct conduct *c, struct check_case *ret, struct failure *why);

/* As another rank. Returns 1 with what is to be printed in ret_said, if the first rank of a node
 * was to print its findings (--findings), else 0. */
int conduct_follow(struct conduct *c, struct text *ret_said, struct failure *why);

#endif
