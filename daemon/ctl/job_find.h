/* job_find.h - the launchers of this host whose control sockets we may use. */
#ifndef LAUNCHD_DAEMON_CTL_JOB_FIND_H
#define LAUNCHD_DAEMON_CTL_JOB_FIND_H

#include <stdbool.h>

#include "daemon/ctl/ctl_link.h"

struct arena;
struct failure;
struct vec;

/* Adds the paths of all sockets that are there: for root those of all users. Some may be of
 * launchers that were killed. */
void job_sockets(const char *const *env, struct arena *arena, struct vec *ret);

/* The guard's pid, by which a socket is named. */
pid_t job_guard(const char *path);

/* Connects to the job of that name, run ID or pid; NULL: the only one. -ESRCH: there is none;
 * -ENOTUNIQ: several, which why names. */
int job_find(const char *const *env, const char *job, const struct cjson *cjson,
	struct ctl_link *ret, struct failure *why);

#endif
