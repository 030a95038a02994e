/* cgroup_paths.h - where this process stands in the trees of cgroups, as directories.
 *
 * /proc/self/cgroup has our place in each tree as this cgroup namespace sees it. Where, and from
 * which place on, a tree can be seen is in /proc/self/mountinfo; but the kernel takes 2.5 us to
 * tell of one mount, and there may be hundreds, so the usual places are tried first. */
#ifndef LAUNCHD_DAEMON_OS_CGROUP_PATHS_H
#define LAUNCHD_DAEMON_OS_CGROUP_PATHS_H

#include <stddef.h>

struct arena;

struct cgroup_place {
	const char *dir; /* ours; NULL: there is none, or no mount shows it; the arena's */
	size_t top;      /* the first bytes of dir that are the mount point */
};

struct cgroup_paths {
	struct cgroup_place unified; /* of version 2, also beside trees of version 1 */
	struct cgroup_place memory;  /* of version 1 with the memory controller */
	struct cgroup_place cpu;     /* with that of CPU time */
};

/* Reads them; `root` is "" but in tests: there it is what comes before /proc and /sys. What can't
 * be read is not there: cgroups are a help, nothing depends on them. 0 or -ENOMEM.
 *
 * Beside a mount from outside of our cgroup namespace (unshare -C) it may be that the directory is
 * an ancestor of ours. It is of no use then, and does no harm: it is not ours to divide. */
int cgroup_paths_read(const char *root, struct arena *arena, struct cgroup_paths *ret);

#endif
