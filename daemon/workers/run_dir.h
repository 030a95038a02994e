/* run_dir.h - the directory of a run, in which workers leave their error files. */
#ifndef LAUNCHD_DAEMON_WORKERS_RUN_DIR_H
#define LAUNCHD_DAEMON_WORKERS_RUN_DIR_H

struct arena;
struct failure;

/* Makes the directory of a run, mode 700, in $TMPDIR of env; where that is not set or can't be used
 * (a batch system's that is gone) in /tmp or /var/tmp, as Python's tempfile does. *ret is its
 * absolute path, the arena's. */
int run_dir_make(
	const char *const *env, struct arena *arena, const char **ret, struct failure *why);

/* Removes it with all that is in it; links are not followed, other file systems not entered.
 * 0 or negative errno. */
int run_dir_remove(const char *path);

#endif
