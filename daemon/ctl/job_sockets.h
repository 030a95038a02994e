/* job_sockets.h - the control sockets of this host's launchers, connected to.
 *
 * Any user can put a socket that pretends into a shared directory. So one counts only
 * if its directory, its file and its listener belong to one user, nobody else can write to the
 * directory, and the listener is the supervisor of the guard by whose pid the socket is named. Only
 * root looks into other users' directories, and each of those users gets a share of what it can
 * look at, keep open and hear: a crowd of one hides no other's. */
#ifndef LAUNCHD_DAEMON_CTL_JOB_SOCKETS_H
#define LAUNCHD_DAEMON_CTL_JOB_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/failure.h"
#include "daemon/ctl/ctl_link.h"

struct arena;

struct job_seen {
	struct ctl_link link; /* fd -1: not connected yet, as others wait to be */
	pid_t guard;          /* its socket's name */
	uid_t uid;
	pid_t here; /* the guard's pid in our pid namespace; 0: it is of another one, or gone */
	const char *place; /* the name of the service whose directory it is in; NULL: none's */
	int dir;           /* while it isn't connected; else -1 */
	/* of jobs_ask(): */
	bool asked;
	cJSON *root;         /* of its answer; NULL: there is none, and why says why */
	const cJSON *status; /* its result */
	struct failure why;
};

struct jobs {
	const struct cjson *cjson;
	struct arena *arena;
	struct job_seen *at;
	size_t count, room;
	struct job_user *users; /* others than this one */
	size_t user_count, user_room;
	bool cut; /* one of them has more than is looked at */
};

/* Connects to all that count, or where named is not 0 only to the launchers with this guard,
 * without waiting. */
void jobs_open(struct jobs *ret, const char *const *env, pid_t named, const struct cjson *cjson,
	struct arena *arena);
void jobs_close(struct jobs *jobs);

/* Asks all for their status, at once. Returns when each has answered or had the time that
 * ctl_link_ask() gives, or a moment after enough() has returned true. */
void jobs_ask(
	struct jobs *jobs, bool (*enough)(const struct jobs *jobs, const void *of), const void *of);

/* For a caller that wants them all: other users' that don't answer are not waited for long. */
bool jobs_own_answered(const struct jobs *jobs, const void *of);

#endif
