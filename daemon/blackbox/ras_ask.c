/* ras_ask.c - see ras_ask.h */
#include "daemon/blackbox/ras_ask.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/monotonic.h"
#include "common/text.h"
#include "daemon/blackbox/ras_talk.h"
#include "daemon/os/procfs.h"

static int wait_for(int fd, short what, int64_t until_ms)
{
	struct pollfd p = { fd, what, 0 };
	int n = poll(&p, 1, monotonic_left_ms(until_ms));

	return n < 0 ? -errno : n == 0 ? -ETIMEDOUT : 0;
}

static int connect_one(const struct addrinfo *at, int64_t until_ms)
{
	autoclose fd = socket(
		at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol);
	int error = 0, rc;
	socklen_t len = sizeof error;

	if (fd < 0)
		return -errno;
	if (connect(fd, at->ai_addr, at->ai_addrlen) < 0) {
		if (errno != EINPROGRESS)
			return -errno;
		rc = wait_for(fd, POLLOUT, until_ms);
		if (rc < 0)
			return rc;
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
			return -errno;
	}
	return error ? -error : fd_take(&fd);
}

static int connect_any(const char *host, const char *port, int64_t until_ms)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	struct addrinfo *all;
	int fd = -EHOSTUNREACH;

	if (getaddrinfo(host, port, &hints, &all) != 0)
		return -EHOSTUNREACH;
	for (const struct addrinfo *at = all; at && fd < 0; at = at->ai_next)
		fd = connect_one(at, until_ms);
	freeaddrinfo(all);
	return fd;
}

/* Until it ends the connection. -ETIMEDOUT, -EMSGSIZE, an error of read(2): what had come is
 * there. */
static int hear(int fd, int64_t until_ms, size_t max, struct text *answer)
{
	char bytes[16384];

	while (answer->len < max) {
		ssize_t n = read(fd, bytes, sizeof bytes);

		if (n == 0)
			return 0;
		if (n > 0) {
			text_add_bytes(answer, bytes, (size_t)n);
		} else if (errno == EAGAIN) {
			int rc = wait_for(fd, POLLIN, until_ms);

			if (rc < 0 && rc != -EINTR)
				return rc;
		} else if (errno != EINTR) {
			return -errno;
		}
		if (monotonic_left_ms(until_ms) == 0)
			return -ETIMEDOUT;
	}
	return -EMSGSIZE;
}

int ras_ask(
	const char *address, const char *question, int limit_ms, size_t max, struct text *answer)
{
	int64_t until_ms = monotonic_ms() + limit_ms;
	size_t len = strlen(question);
	char host[128], port[16];

	if (!ras_talk_address(address, host, sizeof host, port, sizeof port))
		return -EINVAL;
	autoclose fd = connect_any(host, port, until_ms);

	if (fd < 0)
		return fd == -ETIMEDOUT ? -EHOSTUNREACH : fd;
	if (send(fd, question, len, MSG_NOSIGNAL) != (ssize_t)len)
		return -EIO;
	return hear(fd, until_ms, max, answer);
}

int ras_address_of(pid_t worker, char ret[RAS_ADDRESS_SIZE])
{
	char word[8];

	if (process_variable(worker, "NCCL_RAS_ENABLE", word, sizeof word) &&
		strcmp(word, "0") == 0)
		return -ENOENT;
	return process_variable(worker, "NCCL_RAS_ADDR", ret, RAS_ADDRESS_SIZE);
}
