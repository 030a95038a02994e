/* outfile.c - see outfile.h */
#include "daemon/facts/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/failure.h"
#include "daemon/os/rehearsal.h"

static int check_directory(
	const char *path, const char *directory, int mode, const char *where, struct failure *why)
{
	struct stat st;

	if (stat(directory, &st) < 0)
		return failure_usage(why, "%s: %s: its directory %s: %s", where, path, directory,
			strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return failure_usage(why, "%s: %s: %s is not a directory", where, path, directory);
	if (access(directory, mode) < 0)
		return failure_usage(why, "%s: %s: its directory %s can't be %s: %s", where, path,
			directory, mode & W_OK ? "written to" : "entered", strerror(errno));
	return 0;
}

static int check_parent(const char *path, int mode, const char *where, struct failure *why)
{
	const char *slash = strrchr(path, '/');
	char *directory;
	int rc;

	if (!slash || slash == path)
		directory = strdup(slash ? "/" : ".");
	else
		directory = strndup(path, (size_t)(slash - path));
	if (!directory)
		return failure_oom(why);
	rc = check_directory(path, directory, mode, where, why);
	free(directory);
	return rc;
}

int outfile_directory_check(const char *path, const char *where, struct failure *why)
{
	rehearsal_path(where, path);
	return check_parent(path, X_OK, where, why);
}

/* A path at which there is no file yet. */
static int check_new(const char *path, const char *where, struct failure *why)
{
	const char *slash = strrchr(path, '/');
	int rc = check_parent(path, W_OK | X_OK, where, why);

	if (rc == 0 && slash && !slash[1])
		rc = failure_usage(why, "%s: %s is a directory", where, path);
	return rc;
}

int outfile_check(const char *path, const char *where, struct failure *why)
{
	struct stat st;

	rehearsal_path(where, path);
	if (stat(path, &st) < 0)
		return check_new(path, where, why);
	if (S_ISDIR(st.st_mode))
		return failure_usage(why, "%s: %s is a directory", where, path);
	if (access(path, W_OK) < 0)
		return failure_usage(
			why, "%s: %s can't be written to: %s", where, path, strerror(errno));
	/* a device or a FIFO is written to where it stands, a file may be replaced by a new one */
	return S_ISREG(st.st_mode) ? check_new(path, where, why) : 0;
}

/* The last directory of a path that is there. */
static int check_above(const char *path, char *above, const char *where, struct failure *why)
{
	struct stat st;

	while (stat(above, &st) < 0 && errno == ENOENT) {
		char *slash = strrchr(above, '/');

		if (!slash || slash == above)
			return check_directory(path, slash ? "/" : ".", W_OK | X_OK, where, why);
		*slash = '\0';
	}
	return check_directory(path, above, W_OK | X_OK, where, why);
}

int outdir_check(const char *path, const char *where, struct failure *why)
{
	struct stat st;
	char *above;
	int rc;

	rehearsal_path(where, path);
	if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
		return failure_usage(why, "%s: %s is not a directory", where, path);
	above = strdup(path);
	if (!above)
		return failure_oom(why);
	rc = check_above(path, above, where, why);
	free(above);
	return rc;
}

int outfd_check(int fd, const char *where, struct failure *why)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return failure_usage(why,
			"%s: descriptor %d is not open: whoever starts launchd must open it", where,
			fd);
	if ((flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH))
		return failure_usage(why, "%s: descriptor %d is open for reading only", where, fd);
	return 0;
}
