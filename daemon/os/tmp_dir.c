/* tmp_dir.c - see tmp_dir.h */
#include "daemon/os/tmp_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/vec.h"
#include "daemon/os/replace.h"

/* A full tmpfs makes directories, but takes no byte; neither does a full quota. */
static int tmp_dir_try_file(int dir)
{
	static const char name[] = "probe", bytes[4096] = "";
	autoclose fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int rc = fd < 0 ? -errno : fd_write_all(fd, bytes, sizeof bytes);

	if (fd >= 0 && unlinkat(dir, name, 0) < 0 && rc == 0)
		rc = -errno;
	return rc;
}

/* Opens a directory that was just made, and tries it. */
static int tmp_dir_hold(struct tmp_dir *d, int *ret_lock)
{
	struct stat st;

	*ret_lock = open(d->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret_lock < 0 || fstat(*ret_lock, &st) < 0)
		return -errno;
	(void)flock(*ret_lock, LOCK_SH | LOCK_NB); /* a help */
	d->dev = st.st_dev;
	d->ino = st.st_ino;
	return tmp_dir_try_file(*ret_lock);
}

/* mkdtemp(3) below a directory, by its absolute path: workers may change theirs. */
static int make_below(const char *dir, const char *name, struct tmp_dir *ret, int *ret_lock)
{
	char *here = *dir == '/' ? NULL : get_current_dir_name();
	int len = *dir != '/' && !here ? -errno :
					 snprintf(ret->path, sizeof ret->path, "%s%s%s/%sXXXXXX",
						 here ? here : "", here ? "/" : "", dir, name);
	int rc = len;

	free(here);
	if (len >= (int)sizeof ret->path)
		rc = -ENAMETOOLONG;
	if (rc >= 0)
		rc = mkdtemp(ret->path) ? 0 : -errno; /* mode 700 */
	if (rc < 0)
		return rc;
	rc = tmp_dir_hold(ret, ret_lock);
	if (rc < 0) {
		fd_closep(ret_lock);
		(void)rmdir(ret->path);
	}
	return rc;
}

/* Whether nobody else, root aside, can put another directory in the place of one of ours there. */
static bool is_safe(const char *dir)
{
	struct stat st;

	return stat(dir, &st) == 0 && (st.st_uid == geteuid() || st.st_uid == 0) &&
		(!(st.st_mode & (S_IWGRP | S_IWOTH)) || st.st_mode & S_ISVTX);
}

/* torch makes pipes in the run's directory, and a worker ends that can't. */
static bool takes_pipes(const struct tmp_dir *d)
{
	char path[PATH_MAX + sizeof "/pipe"];

	(void)snprintf(path, sizeof path, "%s/pipe", d->path);
	return mkfifo(path, 0600) == 0 && unlink(path) == 0;
}

static int make_here(const char *name, struct tmp_dir *ret, int *ret_lock)
{
	char *here = get_current_dir_name();
	int rc = here && is_safe(here) ? make_below(here, name, ret, ret_lock) : -EPERM;

	free(here);
	if (rc < 0 || takes_pipes(ret))
		return rc;
	fd_closep(ret_lock);
	(void)rmdir(ret->path);
	return -EPERM;
}

int tmp_dir_make(const char *const *env, const char *name, enum tmp_dir_use use,
	struct tmp_dir *ret, int *ret_lock, struct failure *why)
{
	const char *tmp = env_get(env, "TMPDIR"), *user = env_get(env, "XDG_RUNTIME_DIR");
	bool passing = use == TMP_DIR_PASSING, set = tmp && *tmp;
	char run_user[32];
	const char *dirs[] = { set ? tmp : NULL, "/tmp", "/var/tmp", passing ? "/dev/shm" : NULL,
		passing ? run_user : NULL,
		/* it may be another user's: mpirun hands variables on */
		passing && user && *user == '/' && is_safe(user) ? user : NULL };
	int first = 0, rc;

	*ret_lock = -1;
	(void)snprintf(run_user, sizeof run_user, "/run/user/%u", (unsigned)geteuid());
	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		rc = dirs[i] ? make_below(dirs[i], name, ret, ret_lock) : -ENOENT;
		if (rc == 0)
			break;
		first = first || !dirs[i] ? first : rc;
	}
	if (rc < 0)
		rc = make_here(name, ret, ret_lock);
	if (rc < 0)
		*ret->path = '\0';
	if (first)
		(void)failure_set(why, first, "%s%s can't be used: %s%s", set ? "TMPDIR=" : "",
			set ? tmp : "/tmp", strerror(-first),
			rc < 0 ? "; neither can any other temporary directory, nor the working "
				 "directory" :
				 "");
	return rc < 0 ? first : 0;
}

bool tmp_dir_is_there(const struct tmp_dir *d)
{
	struct stat st;

	/* not by its owner, which is another one than its maker on NFS, for root */
	return lstat(d->path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_dev == d->dev &&
		st.st_ino == d->ino;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st, (void)type, (void)where;
	return remove(path) < 0 && errno != ENOENT ? -errno : 0;
}

static int tmp_dir_remove_now(const void *what)
{
	const struct tmp_dir *d = what;
	int rc;

	if (!tmp_dir_is_there(d))
		return -ENOENT;
	if (rmdir(d->path) == 0) /* nearly always: only a worker that fails writes something */
		return 0;
	rc = nftw(d->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	return rc == -1 ? -errno : rc;
}

int tmp_dir_remove(const struct tmp_dir *d)
{
	return path_touch(d->path, 0, tmp_dir_remove_now, d);
}
