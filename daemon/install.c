/* install.c - see install.h */
#include "daemon/install.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/text.h"
#include "daemon/facts/program.h"

/* Whichever links lead there. */
static bool same_file(const char *a, const char *b)
{
	struct stat sa, sb;

	return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
		sa.st_ino == sb.st_ino;
}

static int refuse(const char *link, const char *where, struct failure *why)
{
	char target[PATH_MAX];
	ssize_t len = readlink(link, target, sizeof target - 1);

	target[len < 0 ? 0 : len] = '\0';
	return failure_usage(why,
		"%s: %s is there already%s%s, and is not this launchd: remove it, or choose a "
		"directory that stands before it on PATH",
		where, link, len < 0 ? "" : ", a link to ", target);
}

int install_torchrun(const char *dir, const char *where, const char *const *env,
	struct arena *arena, struct text *out, struct failure *why)
{
	const char *link = arena_printf(arena, "%s/torchrun", dir), *found = NULL, *self;
	int rc = program_self(arena, &self);

	if (arena_failed(arena))
		return failure_oom(why);
	if (rc < 0)
		return failure_set(why, rc, "/proc/self/exe: %s", strerror(-rc));
	if (!same_file(self, "/proc/self/exe")) /* "/tmp/launchd (deleted)" */
		return failure_set(why, -ENOENT,
			"%s: there is no file of this launchd to link to: %s", where, self);
	if (symlink(self, link) < 0) {
		if (errno != EEXIST)
			return failure_set(
				why, -errno, "%s: can't make %s: %s", where, link, strerror(errno));
		if (!same_file(link, self))
			return refuse(link, where, why);
	}
	text_printf(out, "%s is launchd: %s\n", link, self);
	if (program_search(arena, env, "torchrun", &found) < 0)
		text_printf(out, "PATH has no torchrun yet: add %s to it\n", dir);
	else if (!same_file(found, self))
		text_printf(out, "PATH finds %s first: put %s before that\n", found, dir);
	return 0;
}
