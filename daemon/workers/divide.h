/* divide.h - whether workers' resources can be told apart and limited here, and what to say if not.
 */
#ifndef LAUNCHD_DAEMON_WORKERS_DIVIDE_H
#define LAUNCHD_DAEMON_WORKERS_DIVIDE_H

struct cgroup_leaf;
struct cgroup_paths;
struct failure;
struct text;
struct worker_limits;

/* Divides the leaf by what the limits need, and by memory, whose events tell for sure whom the OOM
 * killer has killed. made: what cgroup_leaf_make() has returned. Without limits what can't be is
 * left out; with limits it is -EINVAL, and the sentence names the setting and what would be right.
 */
int divide_leaf(struct cgroup_leaf *leaf, const struct cgroup_paths *paths, int made,
	const struct worker_limits *limits, struct failure *why);

/* In words for people, what there is of cgroups here. Makes nothing. */
void divide_describe(const struct cgroup_paths *paths, struct text *out);

#endif
