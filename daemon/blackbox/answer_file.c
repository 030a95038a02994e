/* answer_file.c - see answer_file.h */
#include "daemon/blackbox/answer_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/text.h"
#include "daemon/blackbox/source.h"

static int create(const struct source_input *in, const char *name)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof path, "%s/%s", in->dir, name), fd;

	if (n < 0 || (size_t)n >= sizeof path)
		return -ENAMETOOLONG;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

int answer_file_write(const struct source_input *in, const char *name, const struct text *t)
{
	autoclose fd = create(in, name);

	if (fd < 0)
		return fd;
	return fd_write_all(fd, text_string(t), t->len < ANSWER_MAX ? t->len : ANSWER_MAX);
}

int answer_file_copy(const struct source_input *in, const char *name, const char *path, size_t max)
{
	autoclose from = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char bytes[16384];
	struct stat st;
	size_t left;

	if (from < 0)
		return -errno;
	if (fstat(from, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOENT;
	if ((size_t)st.st_size > max && lseek(from, st.st_size - (off_t)max, SEEK_SET) < 0)
		return -errno;
	autoclose to = create(in, name);

	if (to < 0)
		return to;
	for (left = max; left > 0;) {
		long n = fd_read_up_to(from, bytes, left < sizeof bytes ? left : sizeof bytes);

		if (n <= 0)
			return (int)n;
		if (fd_write_all(to, bytes, (size_t)n) < 0)
			return -EIO;
		left -= (size_t)n;
	}
	return 0;
}
