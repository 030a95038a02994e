/* run_dir.c - see run_dir.h */
#include "daemon/workers/run_dir.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/vec.h"

/* mkdtemp(3) below a directory, by its absolute path: workers may change theirs. */
static int make_below(const char *dir, struct arena *arena, const char **ret)
{
	char *here = *dir == '/' ? NULL : get_current_dir_name();
	char *path;

	if (*dir != '/' && !here)
		return -errno;
	path = here ? arena_printf(arena, "%s/%s/launchd_XXXXXX", here, dir) :
		      arena_printf(arena, "%s/launchd_XXXXXX", dir);
	free(here);
	if (arena_failed(arena))
		return -ENOMEM;
	if (!mkdtemp(path)) /* mode 700 */
		return -errno;
	*ret = path;
	return 0;
}

int run_dir_make(const char *const *env, struct arena *arena, const char **ret, struct failure *why)
{
	const char *tmp = env_get(env, "TMPDIR");
	const char *dirs[] = { tmp && *tmp ? tmp : "/tmp", "/tmp", "/var/tmp" };
	int first = 0;

	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		int rc = make_below(dirs[i], arena, ret);

		if (rc == 0)
			return 0;
		first = first ? first : rc;
	}
	return failure_set(why, -EIO, "can't make a directory for error files in %s: %s", dirs[0],
		strerror(-first));
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st, (void)type, (void)where;
	return remove(path) < 0 && errno != ENOENT ? -errno : 0;
}

int run_dir_remove(const char *path)
{
	int rc;

	if (rmdir(path) == 0) /* nearly always: only a worker that fails writes something */
		return 0;
	rc = nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);

	return rc == -1 ? -errno : rc;
}
