/* cpu_quota.h - how much CPU time the cgroups around this process leave it. */
#ifndef LAUNCHD_DAEMON_OS_CPU_QUOTA_H
#define LAUNCHD_DAEMON_OS_CPU_QUOTA_H

#include <stdint.h>

struct cgroup_paths;

/* The least quota of our cgroup and of those above it that can be seen, in thousandths of a CPU. 0:
 * there is none, or nothing says so. */
uint64_t cpu_quota_read(const struct cgroup_paths *paths);

#endif
