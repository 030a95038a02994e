/* oom.h - whether a worker was killed by the kernel's OOM killer.
 *
 * SIGKILL doesn't tell who sent it. The kernel counts the processes that it kills when memory is
 * out, for the limit of a cgroup or of the whole machine, in memory.events (version 2: with all
 * cgroups below) or memory.oom_control (version 1: that cgroup's own processes). It counts before
 * it kills, so whoever sees the death sees the count. It counts processes and does not say which.
 */
#ifndef LAUNCHD_DAEMON_WORKERS_OOM_H
#define LAUNCHD_DAEMON_WORKERS_OOM_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/job/ending.h"

struct cgroup_paths;

struct oom_watch {
	int fd;             /* the file with the counter; -1: there is none */
	bool shared;        /* processes that are not ours may be counted, too */
	uint64_t counted;   /* at the last look */
	uint64_t unclaimed; /* of these, how many no worker's death was put down to */
};

#define OOM_NONE \
	{ \
		.fd = -1 \
	}

/* Remembers the counter of the memory cgroup that we are in, before the first worker starts and
 * before cgroup_leaf_make(). It is ours alone if only this process and its parent, which waits for
 * us, are in it now, and (version 2) no other cgroup lies in it. None where nothing counts. */
void oom_start(const struct cgroup_paths *paths, struct oom_watch *ret);

/* What is to be said of a worker that has died by a SIGKILL that we did not send; one call a
 * worker. YES: somebody was killed since the last look, and only ours are counted. LIKELY: others
 * are counted, too, or it was before an earlier look. Reads one small file, does not wait. */
enum oom oom_look(struct oom_watch *o);

void oom_stop(struct oom_watch *o);

#endif
