/* fd.c - see fd.h */
#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void fd_closep(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd); /* Linux frees the number whatever close(2) says */
	*fd = -1;
}

int fd_take(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

int fd_open_standard(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* open(2) gives the lowest free number, and all below fd are taken */
		if (open("/dev/null", O_RDWR) < 0) /* lint: no O_CLOEXEC, it is a standard stream */
			return -errno;
	}
	return 0;
}

int fd_write_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) { /* somebody made our stderr non-blocking */
			struct pollfd p = { .fd = fd, .events = POLLOUT };

			(void)poll(&p, 1, -1);
			continue;
		}
		if (n < 0)
			return -errno;
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

/* What a pipe takes whole or not at all, and without a part of a line, where lines are shorter. */
static size_t whole_lines(const char *at, size_t len)
{
	const char *end;

	if (len <= PIPE_BUF)
		return len;
	end = memrchr(at, '\n', PIPE_BUF);
	return end ? (size_t)(end + 1 - at) : PIPE_BUF;
}

/* A socket that poll(2) calls writable may still have no room for that much. */
static ssize_t write_piece(int fd, const char *at, size_t len)
{
	ssize_t n = send(fd, at, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	return n < 0 && errno == ENOTSOCK ? write(fd, at, len) : n;
}

int fd_write_within(int fd, const char *bytes, size_t len, int patience_ms, size_t *ret_done)
{
	for (*ret_done = 0; *ret_done < len;) {
		struct pollfd p = { .fd = fd, .events = POLLOUT };
		int rc = poll(&p, 1, patience_ms);
		ssize_t n;

		if (rc == 0)
			return 0;
		n = rc < 0 ? -1 :
			     write_piece(fd, bytes + *ret_done,
				     whole_lines(bytes + *ret_done, len - *ret_done));
		if (n < 0 && errno == EAGAIN && patience_ms == 0)
			return 0;
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		*ret_done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

long fd_read_up_to(int fd, char *ret, size_t max)
{
	size_t len = 0;
	ssize_t n = 1;

	while (len < max && n != 0) {
		n = read(fd, ret + len, max - len);
		if (n < 0 && errno != EINTR)
			return -errno;
		len += n > 0 ? (size_t)n : 0;
	}
	return (long)len;
}

long fd_read_file(const char *path, char *ret, size_t max)
{
	autoclose fd = open(path, O_RDONLY | O_CLOEXEC);
	long len = fd < 0 ? -errno : fd_read_up_to(fd, ret, max);

	if (len == (long)max)
		return -EFBIG;
	if (len >= 0)
		ret[len] = '\0';
	return len;
}
