/* rehearsal.c - see rehearsal.h */
#include "daemon/os/rehearsal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/patience.h"
#include "daemon/os/kernel.h"
#include "daemon/os/question.h"
#include "daemon/os/replace.h"

/* "WHERE: PATH" of what is touched now, in memory that the child shares with its parent. NULL: this
 * is no rehearsal. */
enum { PLACE_SIZE = PATH_MAX + 256 };
static char *place;

/* A directory of the machine's own, mostly in memory, that the path is in or below; -1: none. Skips
 * its name. */
static int open_base(const char **path)
{
	char own[40];
	const char *const bases[] = { own, "/run", "/tmp", "/var/tmp", "/dev/shm" };

	(void)snprintf(own, sizeof own, "/run/user/%u", (unsigned)geteuid());
	for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
		size_t len = strlen(bases[i]);
		int fd = -1;

		if (strncmp(*path, bases[i], len) == 0 && ((*path)[len] == '/' || !(*path)[len]))
			fd = open(bases[i], O_PATH | O_CLOEXEC);
		if (fd < 0)
			continue;
		*path += len + strspn(*path + len, "/");
		return fd;
	}
	return -1;
}

/* Opens the path, which must be absolute, up to the first mount on its way. */
static bool crosses_mount(const char *path)
{
	const struct {
		uint64_t flags, mode, resolve;
	} how = { O_PATH | O_CLOEXEC, 0, RESOLVE_ONE_MOUNT };
	autoclose base = open_base(&path);
	autoclose fd =
		(int)syscall(SYS_openat2, base < 0 ? AT_FDCWD : base, path, &how, sizeof how);

	/* a sandbox refuses a call that it doesn't know by EPERM; any other error is an answer */
	return fd < 0 && (errno == EXDEV || errno == ENOSYS || errno == EPERM || errno == EAGAIN);
}

bool path_is_far(const char *path)
{
	char whole[PATH_MAX], here[PATH_MAX];

	if (!path || !*path)
		return false;
	if (*path == '/')
		return crosses_mount(path);
	/* asks no file system */
	if (!getcwd(here, sizeof here) || *here != '/' ||
		snprintf(whole, sizeof whole, "%s/%s", here, path) >= (int)sizeof whole)
		return true;
	return crosses_mount(whole);
}

bool file_is_far(int fd, char *ret_path)
{
	char link[32];
	ssize_t len;

	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	len = readlink(link, ret_path, PATH_MAX - 1); /* "pipe:[4711]" is no path */
	ret_path[len > 0 ? len : 0] = '\0';
	return *ret_path == '/' && strncmp(ret_path, "/dev/", 5) != 0 && path_is_far(ret_path);
}

void rehearsal_path(const char *where, const char *path)
{
	if (place)
		(void)snprintf(place, PLACE_SIZE, "%s%s%s", where, *where ? ": " : "", path);
}

struct rehearsed {
	void (*work)(const void *how);
	const void *how;
};

static void rehearsal_work(const void *how, void *answer)
{
	const struct rehearsed *it = how;

	(void)answer; /* that there is one is enough */
	it->work(it->how);
}

static int rehearse_within(
	uint64_t limit_ms, void (*work)(const void *how), const void *how, struct failure *why)
{
	const struct rehearsed it = { work, how };
	const struct question q = { .work = rehearsal_work,
		.how = &it,
		.whom = "the file system",
		.hint = "",
		.limit_ms = limit_ms };
	struct failure ignored = { 0 };
	char answer;
	int rc;

	place = mmap(NULL, PLACE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (place == MAP_FAILED) {
		place = NULL;
		return 0;
	}
	/* without another process this one finds out */
	rc = question_ask(&q, &answer, sizeof answer, &ignored) == -ETIMEDOUT ? -ETIMEDOUT : 0;
	if (rc < 0) {
		last_files_hurry();
		(void)failure_set(why, rc, "%s: %s", place, file_error(rc));
	}
	(void)munmap(place, PLACE_SIZE);
	place = NULL;
	return rc;
}

int rehearse(void (*work)(const void *how), const void *how, struct failure *why)
{
	return rehearse_within(PATIENCE_MOST_MS, work, how, why);
}

struct single {
	const char *where, *path;
};

static void single_work(const void *how)
{
	const struct single *s = how;
	struct stat st;
	char bytes[4096];
	int fd = -1;

	rehearsal_path(s->where, s->path);
	if (stat(s->path, &st) == 0 && S_ISREG(st.st_mode))
		fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	while (fd >= 0 && fd_read_up_to(fd, bytes, sizeof bytes) == sizeof bytes)
		;
	fd_closep(&fd);
}

int path_answers(const char *where, const char *path, struct failure *why)
{
	const struct single s = { where, path };

	return path_is_far(path) ? rehearse(single_work, &s, why) : 0;
}

int path_answers_soon(const char *path, struct failure *why)
{
	const struct single s = { "", path };

	return path_is_far(path) ? rehearse_within(PATH_SOON_MS, single_work, &s, why) : 0;
}
