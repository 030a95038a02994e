/* keep.c - see keep.h */
#include "daemon/blackbox/keep.h"

#include <dirent.h>
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
#include "daemon/blackbox/bundle_name.h"

#define MARK ".launchd-blackbox"

enum {
	OPEN_DIR = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW,
	DEPTH_MAX = 4, /* of what a failure's directory holds */
	NODE_NAME = 24,
};

/* --- making --- */

/* What is missing of a path. */
static int make_path(const char *path)
{
	char *copy = strdup(path);
	int rc = copy ? 0 : -ENOMEM;

	for (char *at = copy; at && rc == 0; at++) {
		char was;

		at += strcspn(at, "/");
		was = *at;
		*at = '\0';
		if (*copy && mkdir(copy, 0777) < 0 && errno != EEXIST)
			rc = -errno;
		*at = was;
		if (!was)
			break;
	}
	free(copy);
	return rc;
}

int keep_open_failure(const char *dir, const char *name, struct failure *why)
{
	int rc = make_path(dir);
	autoclose base = rc == 0 ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	autoclose mark = -1;
	int fd = -1;

	if (rc == 0 && base < 0)
		rc = -errno;
	if (rc == 0 && mkdirat(base, name, 0777) < 0 && errno != EEXIST)
		rc = -errno;
	if (rc == 0) {
		fd = openat(base, name, OPEN_DIR);
		rc = fd < 0 ? -errno : 0;
	}
	if (rc == 0) {
		mark = openat(fd, MARK, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
		rc = mark < 0 ? -errno : 0;
	}
	if (rc == 0)
		return fd;
	fd_closep(&fd);
	return failure_set(
		why, rc, "--blackbox: %s/%s can't be made: %s", dir, name, strerror(-rc));
}

/* "--blackbox: DIR/node-0 can't be made: No space left on device" */
static int keep_failed(int dir_fd, const char *name, const char *what, int rc, struct failure *why)
{
	char dir[PATH_MAX] = "";
	bool known = keep_path(dir_fd, dir, sizeof dir) == 0;

	return failure_set(why, rc, "--blackbox: %s%s%s can't be %s: %s", known ? dir : "",
		known ? "/" : "", name, what, strerror(-rc));
}

int keep_open_node(int failure_fd, unsigned node, struct failure *why)
{
	char name[NODE_NAME];
	int fd;

	(void)snprintf(name, sizeof name, "node-%u", node);
	if (mkdirat(failure_fd, name, 0777) < 0 && errno != EEXIST)
		return keep_failed(failure_fd, name, "made", -errno, why);
	fd = openat(failure_fd, name, OPEN_DIR);
	return fd >= 0 ? fd : keep_failed(failure_fd, name, "opened", -errno, why);
}

int keep_path(int dir_fd, char *ret, size_t room)
{
	char link[48];
	ssize_t len;

	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", dir_fd);
	len = readlink(link, ret, room);
	if (len < 0 || (size_t)len >= room)
		return len < 0 ? -errno : -ENAMETOOLONG;
	ret[len] = '\0';
	return 0;
}

/* --- writing --- */

int keep_write(int dir_fd, const char *name, const char *bytes, size_t len, struct failure *why)
{
	enum { FLAGS = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW };
	char new[128];
	autoclose fd = -1;
	int rc = 0;

	(void)snprintf(new, sizeof new, "%s.new", name);
	fd = openat(dir_fd, new, FLAGS, 0666);
	if (fd < 0)
		rc = -errno;
	if (rc == 0)
		rc = fd_write_all(fd, bytes, len);
	if (rc == 0 && close(fd_take(&fd)) < 0) /* a file server may be full only then */
		rc = -errno;
	if (rc == 0 && renameat(dir_fd, new, dir_fd, name) < 0)
		rc = -errno;
	if (rc == 0)
		return 0;
	(void)unlinkat(dir_fd, new, 0);
	return keep_failed(dir_fd, name, "written", rc, why);
}

/* Where its last lines begin. */
static const char *last_lines(const char *text, size_t len)
{
	const char *at = text + len;
	unsigned lines = 0;

	if (len > 0 && at[-1] == '\n')
		at--;
	while (at > text && lines < KEEP_TAIL_LINES) {
		const char *before = memrchr(text, '\n', (size_t)(at - text));

		if (!before)
			return text;
		at = before;
		lines++;
	}
	return lines == KEEP_TAIL_LINES && *at == '\n' ? at + 1 : at;
}

int keep_tail(int dir_fd, const char *name, const char *log, struct failure *why)
{
	/* whatever lies there now: no FIFO holds us up */
	autoclose fd = open(log, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	char *text;
	const char *from;
	off_t start;
	long len;
	int rc;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return failure_set(why, -errno, "%s can't be read: %s", log, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_size == 0)
		return 0;
	start = st.st_size > KEEP_TAIL_BYTES ? st.st_size - KEEP_TAIL_BYTES : 0;
	text = malloc(KEEP_TAIL_BYTES);
	if (!text)
		return failure_oom(why);
	len = lseek(fd, start, SEEK_SET) < 0 ? -errno : fd_read_up_to(fd, text, KEEP_TAIL_BYTES);
	if (len < 0) {
		rc = failure_set(why, (int)len, "%s can't be read: %s", log, strerror((int)-len));
	} else {
		from = last_lines(text, (size_t)len);
		rc = keep_write(dir_fd, name, from, (size_t)len - (size_t)(from - text), why);
	}
	free(text);
	return rc;
}

/* --- what it may take --- */

struct sized {
	uint64_t size;
	char name[NAME_MAX + 1];
};

struct sizes {
	struct sized *at; /* of the files that may be cut */
	size_t count, room;
	uint64_t whole; /* bytes of the others */
};

static int add_size(struct sizes *s, const char *name, uint64_t size)
{
	if (strncmp(name, KEEP_WHOLE, strlen(KEEP_WHOLE)) == 0) {
		s->whole += size;
		return 0;
	}
	if (s->count == s->room) {
		size_t room = s->room ? 2 * s->room : 64;
		struct sized *more = realloc(s->at, room * sizeof *more);

		if (!more)
			return -ENOMEM;
		s->at = more;
		s->room = room;
	}
	s->at[s->count].size = size;
	(void)snprintf(s->at[s->count++].name, sizeof s->at->name, "%s", name);
	return 0;
}

static int measure(int dir_fd, struct sizes *ret)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct stat st;

	if (!dir) {
		rc = -errno;
		fd_closep(&fd);
		return rc;
	}
	for (const struct dirent *e = readdir(dir); e && rc == 0; e = readdir(dir))
		if (fstatat(dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISREG(st.st_mode))
			rc = add_size(ret, e->d_name, (uint64_t)st.st_size);
	(void)closedir(dir);
	return rc;
}

static int compare_sizes(const void *a, const void *b)
{
	const struct sized *s = a, *t = b;

	return s->size < t->size ? -1 : s->size > t->size;
}

/* The length to which the longest are cut, so that all have so many bytes; UINT64_MAX: none is. */
static uint64_t level_of(struct sizes *s, uint64_t max_bytes)
{
	uint64_t left = max_bytes > s->whole ? max_bytes - s->whole : 0;

	if (s->count > 1)
		qsort(s->at, s->count, sizeof *s->at, compare_sizes);
	for (size_t i = 0; i < s->count; i++) {
		if (s->at[i].size * (s->count - i) > left)
			return left / (s->count - i);
		left -= s->at[i].size;
	}
	return UINT64_MAX;
}

static const char cut_mark[] = "[launchd has cut what was before this]\n";
enum { CUT_MARK_LEN = sizeof cut_mark - 1 };

/* Keeps its last `room` bytes, from where a line begins, below a line that says so. */
static bool keep_end(int dir_fd, const char *name, int fd, size_t room)
{
	char *bytes = malloc(CUT_MARK_LEN + room), *text = bytes ? bytes + CUT_MARK_LEN : NULL;
	struct failure why = { 0 };
	long len = -1;

	if (text && lseek(fd, -(off_t)room, SEEK_END) >= 0)
		len = fd_read_up_to(fd, text, room);
	if (len > 0) {
		char *newline = memchr(text, '\n', (size_t)len - 1);

		if (newline) {
			len -= newline + 1 - text;
			memmove(text, newline + 1, (size_t)len);
		}
		memcpy(bytes, cut_mark, CUT_MARK_LEN);
		if (keep_write(dir_fd, name, bytes, CUT_MARK_LEN + (size_t)len, &why) < 0)
			len = -1;
	}
	free(bytes);
	return len > 0;
}

/* To so many bytes: its end, or its beginning where there is no room for a copy. */
static int cut(int dir_fd, const char *name, uint64_t left)
{
	enum { FLAGS = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK };
	autoclose fd = openat(dir_fd, name, FLAGS);

	if (fd < 0)
		return -errno;
	if (left > CUT_MARK_LEN && keep_end(dir_fd, name, fd, (size_t)left - CUT_MARK_LEN))
		return 0;
	return ftruncate(fd, (off_t)left) == 0 ? 0 : -errno;
}

int keep_within(int dir_fd, uint64_t max_bytes)
{
	struct sizes s = { .at = NULL };
	int count = 0, rc = measure(dir_fd, &s);
	uint64_t level = rc == 0 ? level_of(&s, max_bytes) : 0;

	for (size_t i = 0; i < s.count && rc == 0; i++) {
		if (s.at[i].size <= level)
			continue;
		rc = cut(dir_fd, s.at[i].name, level);
		count++;
	}
	free(s.at);
	return rc < 0 ? rc : count;
}

/* --- removing --- */

/* Removes the files of a directory. True: this one is left, which is a directory, or stays. */
static bool remove_files(int fd, char ret_left[NAME_MAX + 1])
{
	int copy = openat(fd, ".", OPEN_DIR);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	bool left = false;

	if (!dir) {
		fd_closep(&copy);
		return false;
	}
	for (const struct dirent *e = readdir(dir); e && !left; e = readdir(dir)) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		left = unlinkat(fd, e->d_name, 0) < 0;
		if (left)
			(void)snprintf(ret_left, NAME_MAX + 1, "%s", e->d_name);
	}
	(void)closedir(dir);
	return left;
}

/* A directory and what is below it, as far as it goes. */
static void remove_in(int dir_fd, const char *name)
{
	struct {
		int fd;
		char name[NAME_MAX + 1];
	} path[DEPTH_MAX];
	char next[NAME_MAX + 1];
	size_t depth = 0;
	bool goes_on = true;

	(void)snprintf(next, sizeof next, "%s", name);
	do {
		int above = depth > 0 ? path[depth - 1].fd : dir_fd;
		int fd = depth < DEPTH_MAX ? openat(above, next, OPEN_DIR) : -1;

		goes_on = fd >= 0;
		if (goes_on) {
			path[depth].fd = fd;
			memcpy(path[depth++].name, next, sizeof next);
		}
		while (depth > 0 && (!goes_on || !remove_files(path[depth - 1].fd, next))) {
			depth--;
			fd_closep(&path[depth].fd);
			above = depth > 0 ? path[depth - 1].fd : dir_fd;
			if (unlinkat(above, path[depth].name, AT_REMOVEDIR) < 0)
				goes_on = false;
		}
	} while (depth > 0);
}

static bool is_marked(int dir_fd, const char *name)
{
	char path[BUNDLE_NAME_SIZE + sizeof MARK + 1];

	(void)snprintf(path, sizeof path, "%.*s/" MARK, BUNDLE_NAME_SIZE - 1, name);
	return faccessat(dir_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Those of ours; NULL: none, or no memory. */
static struct bundle_name *list_ours(int dir_fd, DIR *dir, size_t *ret_count)
{
	struct bundle_name *list = NULL;
	size_t count = 0, room = 0;

	for (const struct dirent *e = readdir(dir); e; e = readdir(dir)) {
		struct bundle_name name;

		if (!bundle_name_read(e->d_name, &name) || !is_marked(dir_fd, e->d_name))
			continue;
		if (count == room) {
			struct bundle_name *more =
				realloc(list, (room = room ? 2 * room : 64) * sizeof *list);

			if (!more)
				break;
			list = more;
		}
		list[count++] = name;
	}
	*ret_count = count;
	return list;
}

unsigned keep_newest(const char *dir, unsigned keep, const char *mine)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *all = fd < 0 ? NULL : fdopendir(fd);
	struct bundle_name own, *list;
	size_t count = 0, go = 0;

	if (!all || !bundle_name_read(mine, &own)) {
		if (all)
			(void)closedir(all);
		else
			fd_closep(&fd);
		return 0;
	}
	list = list_ours(fd, all, &count);
	if (list)
		go = bundle_names_to_go(list, count, keep, &own);
	for (size_t i = 0; i < go; i++) {
		char name[BUNDLE_NAME_SIZE];

		bundle_name_write(&list[i], name);
		remove_in(fd, name);
	}
	free(list);
	(void)closedir(all);
	return (unsigned)go;
}
