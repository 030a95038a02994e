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

struct cells;
struct cgroup_paths;
struct outcome;

enum { OOM_ABOVE_MAX = 8 };

struct oom_watch {
	int fd;             /* the file with the counter; -1: there is none */
	bool shared;        /* processes that are not ours may be counted, too */
	uint64_t counted;   /* at the last look */
	uint64_t unclaimed; /* of these, how many no worker's death was put down to */
	/* version 2: our cgroup and those above it that count, the nearest first */
	struct {
		int dir;
		uint64_t reached; /* how often its own limit kept memory from being had, at first */
	} above[OOM_ABOVE_MAX];
	unsigned above_count;
	bool to_root; /* there is none above the last of them but the machine's */
};

#define OOM_NONE \
	{ \
		.fd = -1, .above_count = 0 \
	}

/* Remembers the counter of the memory cgroup that we are in, before the first worker starts and
 * before cgroup_leaf_make(). It is ours alone if only this process and its parent, which waits for
 * us, are in it now, and (version 2) no other cgroup lies in it. None where nothing counts. */
void oom_start(const struct cgroup_paths *paths, struct oom_watch *ret);

/* What is to be said of a worker that has died by a SIGKILL that we did not send; one call a
 * worker. YES: somebody was killed since the last look, and only ours are counted. LIKELY: others
 * are counted, too, or it was before an earlier look. Reads one small file, does not wait. */
enum oom oom_look(struct oom_watch *o);

/* Sets the oom, oom_limit and oom_bytes of a worker that has ended, not by a SIGKILL of ours: for
 * sure where its own cgroup counts, else as oom_look() has it. Reads some small files. */
void oom_judge(struct oom_watch *o, const struct cells *cells, struct outcome *w);

void oom_stop(struct oom_watch *o);

#endif
