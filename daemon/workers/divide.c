/* divide.c - see divide.h */
#include "daemon/workers/divide.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/text.h"
#include "daemon/os/procfs.h"
#include "daemon/workers/cgroup.h"
#include "daemon/os/cgroup_paths.h"
#include "daemon/workers/controllers.h"

#define RIGHT \
	"start launchd in a systemd unit with Delegate=yes, or by systemd-run --user --scope " \
	"-p Delegate=yes"

/* There is no leaf. */
static int no_leaf(
	const struct cgroup_paths *paths, int made, const char *from, struct failure *why)
{
	if (!paths->unified.dir)
		return failure_usage(
			why, "%s needs cgroups of version 2, and there are none here", from);
	if (made < 0)
		return failure_usage(why, "%s: no cgroup can be made in %s: %s", from,
			paths->unified.dir, strerror(-made));
	return failure_usage(why,
		"%s needs a cgroup that is delegated to launchd, and %s is not: " RIGHT, from,
		paths->unified.dir);
}

static int missing(
	const struct cgroup_paths *paths, unsigned set, const char *from, struct failure *why)
{
	struct text names = { 0 };
	int rc;

	controllers_add(&names, set, '\0');
	rc = failure_usage(why, "%s: %s lacks what this needs of the kernel's controllers (%s): %s",
		from, paths->unified.dir, text_string(&names),
		paths->memory.dir ?
			"they are used by cgroups of version 1 on this machine; boot it "
			"with systemd.unified_cgroup_hierarchy=1" :
			RIGHT);
	text_done(&names);
	return rc;
}

/* "pid 12 (bash)". */
static void add_other(struct text *out, const struct cgroup_leaf *leaf)
{
	pid_t pid = cgroup_leaf_other(leaf);
	struct process p = { 0 };

	if (pid <= 0)
		text_add(out, "of another pid namespace");
	else if (process_read(pid, &p) == 0)
		text_printf(out, "such as pid %d (%s)", (int)pid, p.command);
	else
		text_printf(out, "such as pid %d", (int)pid);
}

static int refused(const struct cgroup_leaf *leaf, const struct cgroup_paths *paths, int error,
	const char *from, struct failure *why)
{
	struct text other = { 0 };
	int rc;

	if (error != -EBUSY)
		return failure_usage(why, "%s: the resources of %s can't be divided: %s", from,
			paths->unified.dir, strerror(-error));
	add_other(&other, leaf);
	rc = failure_usage(why,
		"%s: other processes are in %s, %s, and where a cgroup's resources are divided there "
		"may be none: " RIGHT ", which gives it one of its own",
		from, paths->unified.dir, text_string(&other));
	text_done(&other);
	return rc;
}

int divide_leaf(struct cgroup_leaf *leaf, const struct cgroup_paths *paths, int made,
	const struct worker_limits *limits, struct failure *why)
{
	unsigned need = limits_need(limits), wanted = need | CONTROLLER_BIT(CONTROLLER_MEMORY);
	const char *from = limits_from(limits, need);
	int rc;

	if (!leaf->path)
		return from ? no_leaf(paths, made, from, why) : 0;
	if (need & ~leaf->available)
		return missing(paths, need & ~leaf->available,
			limits_from(limits, need & ~leaf->available), why);
	wanted &= leaf->available;
	rc = wanted ? cgroup_leaf_divide(leaf, wanted) : 0;
	return rc < 0 && from ? refused(leaf, paths, rc, from, why) : 0;
}

void divide_describe(const struct cgroup_paths *paths, struct text *out)
{
	char path[4096], list[512];
	unsigned all = (1u << CONTROLLERS) - 1, available = 0;
	int rc = cgroup_look(paths);

	if (rc == -ENOENT)
		text_add(out, "none of version 2 is seen here");
	else if (rc == -EPERM)
		text_printf(out, "%s is not delegated (Delegate=yes in a systemd unit)",
			paths->unified.dir);
	else if (rc < 0)
		text_printf(out, "%s", strerror(-rc));
	if (rc < 0)
		return;
	if (snprintf(path, sizeof path, "%s/cgroup.controllers", paths->unified.dir) <
			(int)sizeof path &&
		fd_read_file(path, list, sizeof list) >= 0)
		available = controllers_parse(list);
	text_printf(out, "%s is delegated: a job gets its own below", paths->unified.dir);
	if (available) {
		text_add(out, ", and workers can be limited by ");
		controllers_add(out, available, '\0');
	}
	if (available != all) {
		text_add(out,
			available ? "; missing: " : ", but workers can't be limited; missing: ");
		controllers_add(out, all & ~available, '\0');
	}
}
