/* replace.c - see replace.h */
#include "daemon/os/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/monotonic.h"
#include "common/patience.h"
#include "daemon/os/question.h"
#include "daemon/os/rehearsal.h"

/* A rename would replace a device by a file, as root even /dev/null. */
static int write_into(const char *path, const char *bytes, size_t len, int ms)
{
	autoclose fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	return fd < 0 ? -errno : patience_write(fd, bytes, len, ms);
}

/* Creates a file of a name that nobody has; ret_name has room for PATH_MAX. */
static int create_beside(const char *path, char *ret_name)
{
	enum { TRIES = 64 }; /* a launcher with our pid may have left one, on another host, too */

	for (unsigned i = 0; i < TRIES; i++) {
		int fd;

		if (snprintf(ret_name, PATH_MAX, "%s.%d.%u", path, (int)getpid(), i) >= PATH_MAX)
			return -ENAMETOOLONG;
		fd = open(ret_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd >= 0 || errno != EEXIST)
			return fd >= 0 ? fd : -errno;
	}
	return -EEXIST;
}

static int write_whole(int fd, const char *bytes, size_t len, unsigned how)
{
	int rc = fd_write_all(fd, bytes, len);

	if (rc == 0 && (how & REPLACE_FOR_ALL) && fchmod(fd, 0644) < 0)
		rc = -errno;
	if (rc < 0 || !(how & REPLACE_DURABLY))
		return rc;
	/* a file system that can't do it has said so; others mean that the bytes are lost */
	return fsync(fd) < 0 && errno != EINVAL && errno != ENOSYS ? -errno : 0;
}

static int replace(const char *path, const char *bytes, size_t len, unsigned how)
{
	char name[PATH_MAX];
	autoclose fd = create_beside(path, name);
	int rc = fd < 0 ? fd : write_whole(fd, bytes, len, how);

	if (fd < 0)
		return rc;
	if (rc == 0 && rename(name, path) < 0)
		rc = -errno;
	if (rc < 0)
		(void)unlink(name);
	return rc;
}

static int replace_within(
	const char *path, const char *bytes, size_t len, unsigned how, int reader_ms)
{
	char target[PATH_MAX];
	struct stat st;
	int rc;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return write_into(path, bytes, len, reader_ms);
	/* a link stays a link */
	rc = replace(realpath(path, target) ? target : path, bytes, len, how);
	/* a file that is mounted, such as a container's /dev/termination-log, can't be renamed to
	 */
	return rc == -EBUSY ? write_into(path, bytes, len, reader_ms) : rc;
}

int file_replace(const char *path, const char *bytes, size_t len, unsigned how)
{
	return replace_within(path, bytes, len, how, 0);
}

struct replacing {
	const char *path, *bytes;
	size_t len;
	unsigned how;
};

struct replaced {
	int rc;
	bool is_special; /* no regular file, and not written to: its reader is not the child's */
};

static void replace_work(const void *how, void *answer)
{
	const struct replacing *r = how;
	struct replaced *ret = answer;
	struct stat st;

	ret->is_special = stat(r->path, &st) == 0 && !S_ISREG(st.st_mode);
	if (!ret->is_special)
		ret->rc = file_replace(r->path, r->bytes, r->len, r->how);
}

static int64_t last_until_ms; /* the main thread's; 0: none was written yet */

void last_files_hurry(void)
{
	last_until_ms = monotonic_ms();
}

int last_files_left_ms(void)
{
	int left;

	if (last_until_ms == 0)
		last_until_ms = monotonic_ms() + PATIENCE_MOST_MS;
	left = monotonic_left_ms(last_until_ms);
	return left > PATIENCE_ASKED_MS ? left : PATIENCE_ASKED_MS;
}

const char *file_error(int rc)
{
	return rc == -ETIMEDOUT ? "its file system does not respond" :
		rc == -EAGAIN   ? "its reader takes nothing" :
				  strerror(-rc);
}

/* A path of a descriptor, like a shell's >(command): a child has others. */
static const char *for_child(const char *path, char ret[64])
{
	static const char *const names[][2] = {
		{ "/dev/fd/", "" },
		{ "/proc/self/fd/", "" },
		{ "/dev/stdout", "1" },
		{ "/dev/stderr", "2" },
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		size_t n = strlen(names[i][0]);

		if (strncmp(path, names[i][0], n) == 0 && strlen(path + n) < 24) {
			(void)snprintf(
				ret, 64, "/proc/%d/fd/%s%s", (int)getpid(), names[i][1], path + n);
			return ret;
		}
	}
	return path;
}

int file_replace_last(const char *path, const char *bytes, size_t len, unsigned how)
{
	char room[64];
	const struct replacing r = { for_child(path, room), bytes, len, how };
	const struct question q = { .work = replace_work,
		.how = &r,
		.whom = "the file system",
		.hint = "",
		.limit_ms = (uint64_t)last_files_left_ms() };
	struct failure why = { 0 };
	struct replaced done;
	int rc = question_ask(&q, &done, sizeof done, &why);

	if (rc == -ETIMEDOUT || rc == -EIO)
		return rc;
	/* without another process this one does it, unless it might stay there for ever */
	if (rc < 0 && path_is_far(path))
		return rc;
	return rc < 0 || done.is_special ?
		replace_within(path, bytes, len, how, last_files_left_ms()) :
		done.rc;
}

struct far_bytes {
	const char *bytes;
	size_t len;
};

static void far_write_work(const void *how, void *answer)
{
	const struct far_bytes *b = how;

	*(int *)answer = fd_write_all(QUESTION_KEPT, b->bytes, b->len);
}

int far_write(int fd, const char *bytes, size_t len, int64_t ms)
{
	const struct far_bytes b = { bytes, len };
	const struct question q = { .work = far_write_work,
		.how = &b,
		.kept = fd,
		.whom = "the file system",
		.hint = "",
		.limit_ms = (uint64_t)ms };
	struct failure why = { 0 };
	int rc, done;

	rc = question_ask(&q, &done, sizeof done, &why);
	return rc == -ETIMEDOUT ? -EAGAIN : rc < 0 ? rc : done;
}

struct path_work {
	int (*work)(const void *what);
	const void *what;
};

static void path_touch_work(const void *how, void *answer)
{
	const struct path_work *t = how;

	*(int *)answer = t->work(t->what);
}

int path_touch(const char *path, uint64_t limit_ms, int (*work)(const void *what), const void *what)
{
	const struct path_work t = { work, what };
	struct question q = {
		.work = path_touch_work, .how = &t, .whom = "the file system", .hint = ""
	};
	struct failure why = { 0 };
	int rc, done;

	if (!path_is_far(path))
		return work(what);
	q.limit_ms = limit_ms > 0 ? limit_ms : (uint64_t)last_files_left_ms();
	rc = question_ask(&q, &done, sizeof done, &why);
	return rc < 0 ? rc : done;
}
