/* tmp_dir.h - a directory of our own in a temporary place. Programs that clean such places leave it
 * alone while its lock is held; it may be removed all the same, and its name taken. */
#ifndef LAUNCHD_DAEMON_OS_TMP_DIR_H
#define LAUNCHD_DAEMON_OS_TMP_DIR_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct failure;

struct tmp_dir {
	dev_t dev;
	ino_t ino;
	char path[PATH_MAX]; /* absolute; "": there is none */
};

enum tmp_dir_use {
	TMP_DIR_PASSING, /* small, and gone with the job */
	TMP_DIR_KEPT,    /* may grow, and stays: not in memory */
};

/* Makes one, mode 700, named `name` and six random characters, in the first of these directories
 * that takes a file: TMPDIR of env (a batch system's may be gone), /tmp, /var/tmp; for
 * TMP_DIR_PASSING also /dev/shm, /run/user/UID, XDG_RUNTIME_DIR; the working directory. On failure
 * ret is empty.
 *
 * *ret_lock is a descriptor of it with a shared lock: while it is open, systemd-tmpfiles(8) leaves
 * the directory alone, and no other one has its inode. why is also set on success where TMPDIR,
 * or /tmp without it, can't be used. */
int tmp_dir_make(const char *const *env, const char *name, enum tmp_dir_use use,
	struct tmp_dir *ret, int *ret_lock, struct failure *why);

/* Whether it is still there, and not another one of its name. */
bool tmp_dir_is_there(const struct tmp_dir *d);

/* Removes it with all that is in it; links are not followed, other file systems not entered.
 * At the end of the process: see path_touch(). 0 or negative errno; -ENOENT: it is gone, and what
 * has its name now is left alone; -ETIMEDOUT: its file system hangs. */
int tmp_dir_remove(const struct tmp_dir *d);

#endif
