/* job_find.h - the job that is meant, among those whose control sockets we may use. */
#ifndef LAUNCHD_DAEMON_CTL_JOB_FIND_H
#define LAUNCHD_DAEMON_CTL_JOB_FIND_H

#include "daemon/ctl/ctl_link.h"

struct failure;

/* Connects to the job of that name, run ID or pid; NULL: the only one. Of several with that name
 * the service in whose directory it is, else this user's own: others may give theirs any name.
 * -ESRCH: there is none; -ENOTUNIQ: several, which why names. */
int job_find(const char *const *env, const char *job, const struct cjson *cjson,
	struct ctl_link *ret, struct failure *why);

#endif
