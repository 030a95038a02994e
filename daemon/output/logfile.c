/* logfile.c - see logfile.h */
#include "daemon/output/logfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "daemon/plan/prefix.h"

enum {
	STAMP_LEN = PREFIX_TIME_SIZE, /* the time, and a blank instead of its NUL */
	STAMPED_ROOM = 16 * 1024,
};

static int open_path(const char *path, struct failure *why)
{
	int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);

	if (fd < 0)
		return failure_set(why, -errno, "can't open %s: %s", path, strerror(errno));
	return fd;
}

/* The present file is that one, whose bytes from now on are ours. */
static void use(struct logfile *f, int fd)
{
	struct stat st;
	uint64_t position = f->now.end;

	f->size_bytes = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	f->now = (struct segment){ fd, position, position, (off_t)f->size_bytes, f->mid_line };
}

int logfile_open(
	struct logfile *f, const char *path, const struct logfile_style *style, struct failure *why)
{
	int fd;

	*f = (struct logfile){ .style = *style, .now.fd = -1, .path = strdup(path) };
	if (!f->path)
		return failure_oom(why);
	fd = open_path(path, why);
	if (fd < 0)
		return fd;
	use(f, fd);
	return 0;
}

/* The file in use becomes an old one, for who still reads it. */
static void retire(struct logfile *f)
{
	struct segment *more = NULL;

	if (f->reads_back && f->now.end > f->now.begin)
		more = realloc(f->old, (f->old_count + 1) * sizeof *more);
	if (!more) {
		fd_closep(&f->now.fd);
		return;
	}
	f->old = more;
	f->old[f->old_count++] = f->now;
	/* deleted ones take room on the disk as long as we hold them */
	while (f->style.max_size_bytes && f->old_count > f->style.keep)
		logfile_forget(f, f->old[0].end);
}

int logfile_reopen(struct logfile *f, struct failure *why)
{
	int fd = open_path(f->path, why);

	if (fd < 0)
		return fd;
	retire(f);
	use(f, fd); /* where a line has begun, its rest begins this file, without a stamp */
	return 0;
}

/* path.1 becomes path.2 and so on; the last one is replaced. */
static int shift(const struct logfile *f)
{
	char from[4096], to[4096];

	for (unsigned i = f->style.keep; i-- > 0;) {
		int n = i > 0 ? snprintf(from, sizeof from, "%s.%u", f->path, i) :
				snprintf(from, sizeof from, "%s", f->path);

		(void)snprintf(to, sizeof to, "%s.%u", f->path, i + 1);
		if (n < 0 || (size_t)n + 12 >= sizeof from)
			return -ENAMETOOLONG;
		if (rename(from, to) < 0 && errno != ENOENT)
			return -errno;
	}
	return 0;
}

/* A file that can't be rotated goes on growing: no byte is lost for it, and no older file moved. */
static void rotate(struct logfile *f)
{
	struct failure why = { 0 };
	char path[4096];
	int n = snprintf(path, sizeof path, "%s.new", f->path);
	int fd = n > 0 && (size_t)n < sizeof path ? open_path(path, &why) : -1;

	if (fd < 0)
		return;
	if (shift(f) < 0) {
		(void)unlink(path);
		fd_closep(&fd);
		return;
	}
	(void)rename(path, f->path); /* whose name was just given away */
	retire(f);
	use(f, fd);
}

/* n bytes were written. Where they are not at the end of what we had, somebody has cut the file
 * (logrotate's copytruncate), and ours begins with them. */
static void moved_on(struct logfile *f, ssize_t n)
{
	off_t end = lseek(f->now.fd, 0, SEEK_CUR); /* -1: a pipe */

	f->now.end += (uint64_t)n;
	f->size_bytes += (uint64_t)n;
	if (end < n || end - f->now.at >= (off_t)(f->now.end - f->now.begin))
		return;
	f->now.begin = f->now.end - (uint64_t)n;
	f->now.at = end - n;
	f->now.mid_line = f->mid_line;
	f->size_bytes = (uint64_t)end;
}

/* Writes as much as the disk takes, and returns how much that was. */
static size_t put(struct logfile *f, const char *at, size_t len)
{
	size_t done = 0;

	f->error = 0;
	while (done < len) {
		ssize_t n = write(f->now.fd, at + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			f->error = errno;
			break;
		}
		moved_on(f, n);
		done += (size_t)n;
		f->mid_line = at[done - 1] != '\n';
		f->at_return = at[done - 1] == '\r';
	}
	return done;
}

/* All of it or nothing. */
static bool put_whole(struct logfile *f, const char *at, size_t len)
{
	bool mid_line = f->mid_line, at_return = f->at_return;
	size_t done = put(f, at, len);

	if (done == len)
		return true;
	if (done > 0 && ftruncate(f->now.fd, (off_t)(f->size_bytes - done)) == 0) {
		f->now.end -= done;
		f->size_bytes -= done;
		f->mid_line = mid_line;
		f->at_return = at_return;
	}
	return false;
}

/* Puts lines with their times; returns how many of their own bytes are in. */
static size_t put_stamped(struct logfile *f, const char *at, size_t len, int64_t wall_ns)
{
	char buf[STAMPED_ROOM], time[PREFIX_TIME_SIZE];
	size_t in = 0, used = 0, taken = 0;
	bool mid_line = f->mid_line;

	prefix_time(wall_ns, time);
	while (taken < len) {
		const char *end = memchr(at + taken, '\n', len - taken);
		size_t line = end ? (size_t)(end - at) - taken + 1 : len - taken;
		size_t stamp = mid_line ? 0 : STAMP_LEN;

		if (used + stamp + 1 > sizeof buf) {
			if (!put_whole(f, buf, used))
				return in;
			in = taken;
			used = 0;
		}
		if (stamp) {
			memcpy(buf + used, time, STAMP_LEN - 1);
			buf[used + STAMP_LEN - 1] = ' ';
			used += STAMP_LEN;
		}
		line = line < sizeof buf - used ? line : sizeof buf - used;
		memcpy(buf + used, at + taken, line);
		used += line;
		taken += line;
		mid_line = at[taken - 1] != '\n';
	}
	return put_whole(f, buf, used) ? len : in;
}

static size_t put_lines(struct logfile *f, const char *at, size_t len, int64_t wall_ns)
{
	return f->style.stamped ? put_stamped(f, at, len, wall_ns) : put(f, at, len);
}

/* In a full file a line without an end is divided where it goes back: a progress bar may last for
 * days. How many bytes of it go in before that; len: it does not go back. */
static size_t before_return(const struct logfile *f, const char *at, size_t len)
{
	if (f->at_return && at[0] != '\n')
		return 0;
	for (size_t i = 0; i + 1 < len && at[i] != '\n'; i++)
		if (at[i] == '\r' && at[i + 1] != '\n')
			return i;
	return len;
}

/* How many bytes go in before the file is rotated; 0: it is to be rotated first. */
static size_t before_rotation(const struct logfile *f, const char *at, size_t len)
{
	uint64_t room = f->style.max_size_bytes > f->size_bytes ?
		f->style.max_size_bytes - f->size_bytes :
		0;
	uint64_t size = 0;
	size_t taken = 0;

	if (room == 0 && f->mid_line) {
		size_t before = before_return(f, at, len);

		if (before < len)
			return before;
	}
	while (taken < len) {
		const char *end = memchr(at + taken, '\n', len - taken);
		size_t line = end ? (size_t)(end - at) - taken + 1 : len - taken;

		size += line + (f->style.stamped && (taken > 0 || !f->mid_line) ? STAMP_LEN : 0);
		if (size > room && !(taken == 0 && (f->mid_line || f->size_bytes == 0)))
			break;
		taken += line;
		if (size > room)
			break; /* a line alone may be longer than a file */
	}
	return taken;
}

/* What is missing is said where it is missing. */
static bool put_missing(struct logfile *f, int64_t wall_ns)
{
	char note[160];
	int n = snprintf(note, sizeof note, "%s[launchd: %llu bytes are missing here: %s]\n",
		f->mid_line ? "\n" : "", (unsigned long long)f->missing, strerror(f->error));
	int error = f->error;
	bool is_in = f->style.stamped ? put_stamped(f, note, (size_t)n, wall_ns) == (size_t)n :
					put_whole(f, note, (size_t)n);

	if (!is_in) {
		f->error = f->error ? f->error : error;
		return false;
	}
	f->missing = 0;
	return true;
}

struct logged logfile_write(struct logfile *f, const char *at, size_t len, int64_t wall_ns)
{
	struct logged w = { 0 };
	bool can = f->missing == 0 || put_missing(f, wall_ns);

	w.place = (struct logplace){ f->now.end, 0, !f->mid_line };
	while (can && w.len < len) {
		size_t room = len - w.len, done;

		if (f->style.max_size_bytes)
			room = before_rotation(f, at + w.len, room);
		if (room == 0) {
			uint64_t before = f->size_bytes;

			rotate(f);
			if (f->size_bytes >= before) /* it could not be */
				room = len - w.len;
			else
				continue;
		}
		done = put_lines(f, at + w.len, room, wall_ns);
		w.len += done;
		can = done == room;
	}
	f->missing += len - w.len;
	tally_add(f->written, w.len);
	return w;
}

struct logplace logfile_place(
	const struct logfile *f, const struct logged *w, const char *at, size_t taken)
{
	struct logplace p = w->place;

	if (taken == 0)
		return p;
	p.position += p.skip + taken;
	p.skip = 0;
	if (!f->style.stamped)
		return p;
	for (size_t i = 0; i < taken; i++) {
		if (p.line_begins)
			p.position += STAMP_LEN;
		p.line_begins = at[i] == '\n';
	}
	return p;
}

static const struct segment *segment_of(const struct logfile *f, uint64_t position)
{
	for (size_t i = 0; i < f->old_count; i++)
		if (position < f->old[i].end)
			return &f->old[i];
	return &f->now;
}

/* Leaves the stamps out, in place. */
static size_t unstamp(struct logplace *p, char *at, size_t len)
{
	size_t kept = 0;

	for (size_t i = 0; i < len;) {
		const char *end;
		size_t line;

		if (p->line_begins) {
			p->skip = STAMP_LEN;
			p->line_begins = false;
		}
		if (p->skip > 0) {
			size_t skip = p->skip < len - i ? p->skip : len - i;

			p->skip -= (unsigned)skip;
			i += skip;
			continue;
		}
		end = memchr(at + i, '\n', len - i);
		line = end ? (size_t)(end - at) - i + 1 : len - i;
		memmove(at + kept, at + i, line);
		kept += line;
		i += line;
		p->line_begins = end != NULL;
	}
	return kept;
}

/* Where this segment ends, and the next one begins. */
static struct logplace behind(const struct logfile *f, const struct segment *s)
{
	const struct segment *next = segment_of(f, s->end);
	bool mid_line = next->begin == s->end ? next->mid_line : f->mid_line;

	return (struct logplace){ s->end, 0, !mid_line };
}

ssize_t logfile_read(
	const struct logfile *f, struct logplace *place, char *ret, size_t room, uint64_t *ret_gone)
{
	const struct segment *s = segment_of(f, place->position);
	uint64_t from = place->position, left;
	ssize_t n;

	*ret_gone = 0;
	if (from < s->begin) { /* its file is deleted */
		*ret_gone = s->begin - from;
		*place = (struct logplace){ s->begin, 0, !s->mid_line };
		return 0;
	}
	left = s->end - from;
	if (left == 0)
		return 0;
	do
		n = pread(s->fd, ret, left < room ? (size_t)left : room,
			s->at + (off_t)(from - s->begin));
	while (n < 0 && errno == EINTR);
	if (n <= 0) { /* it was cut */
		*ret_gone = left;
		*place = behind(f, s);
		return n < 0 ? -errno : 0;
	}
	place->position += (uint64_t)n;
	return f->style.stamped ? (ssize_t)unstamp(place, ret, (size_t)n) : n;
}

void logfile_forget(struct logfile *f, uint64_t position)
{
	size_t count = 0;

	while (count < f->old_count && f->old[count].end <= position)
		fd_closep(&f->old[count++].fd);
	if (count == 0)
		return;
	f->old_count -= count;
	memmove(f->old, f->old + count, f->old_count * sizeof *f->old);
}

ssize_t logfile_last(const char *path, char *ret, size_t room)
{
	autoclose fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	size_t len = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	while (len < room) {
		off_t from = st.st_size > (off_t)room ? st.st_size - (off_t)room : 0;
		ssize_t n = pread(fd, ret + len, room - len, from + (off_t)len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

void logfile_close(struct logfile *f)
{
	for (size_t i = 0; i < f->old_count; i++)
		fd_closep(&f->old[i].fd);
	free(f->old);
	free(f->path);
	if (f->path)
		fd_closep(&f->now.fd);
	*f = (struct logfile){ .now.fd = -1 };
}
