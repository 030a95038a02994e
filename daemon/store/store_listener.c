/* store_listener.c - see store_listener.h */
#include "daemon/store/store_listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "common/failure.h"
#include "common/fd.h"
#include "daemon/os/sockets.h"

enum { BACKLOG = 65535 }; /* the kernel takes the least of this and net.core.somaxconn */

static int parse_address(const char *text, unsigned port, union address *ret, struct failure *why)
{
	memset(ret, 0, sizeof *ret);
	if (uv_ip4_addr(text, (int)port, &ret->in) == 0)
		return 0;
	if (uv_ip6_addr(text, (int)port, &ret->in6) == 0)
		return 0;
	return failure_set(
		why, -EINVAL, "the store can't listen on \"%s\": it is no IP address", text);
}

static int cannot_listen(
	const char *text, unsigned port, const union address *addr, int error, struct failure *why)
{
	char command[16] = "", where[32] = "";
	struct peer at;
	pid_t pid;

	if (port > 0)
		(void)snprintf(where, sizeof where, " port %u", port);
	if (error == EADDRINUSE && peer_make(&addr->any, &at) == 0 &&
		sockets_find_listener(&at, port, &pid, command) == 0)
		return failure_set(why, -error,
			"the store can't listen on %s%s: %s (pid %d) listens there", text, where,
			command, (int)pid);
	return failure_set(
		why, -error, "the store can't listen on %s%s: %s", text, where, strerror(error));
}

static socklen_t length(const union address *addr)
{
	return addr->any.sa_family == AF_INET ? sizeof addr->in : sizeof addr->in6;
}

static int set_option(int fd, int option, int value)
{
	return setsockopt(fd, SOL_SOCKET, option, &value, sizeof value);
}

/* A socket that listens, or negative errno. */
static int listen_on(const union address *addr, int shared)
{
	autoclose fd = socket(addr->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	/* without SO_REUSEADDR the connections of the last job keep its port for a minute */
	if (fd < 0 || set_option(fd, SO_REUSEADDR, 1) < 0 ||
		set_option(fd, SO_REUSEPORT, shared) < 0 ||
		bind(fd, &addr->any, length(addr)) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return fd_take(&fd);
}

int front_open(const char *text, unsigned port, union address *ret_addr, int *ret_fd,
	unsigned *ret_port, struct failure *why)
{
	union address addr;
	socklen_t len = sizeof addr;
	int rc = parse_address(text, port, &addr, why);
	autoclose fd = rc == 0 ? listen_on(&addr, 0) : -1;

	if (rc < 0)
		return rc;
	if (fd < 0)
		return cannot_listen(text, port, &addr, -fd, why);
	if (getsockname(fd, &addr.any, &len) < 0)
		return cannot_listen(text, port, &addr, errno, why);
	*ret_port = ntohs(addr.any.sa_family == AF_INET ? addr.in.sin_port : addr.in6.sin6_port);
	*ret_addr = addr;
	*ret_fd = fd_take(&fd);
	return 0;
}

int front_renew(int fd, const union address *addr)
{
	/* for a moment both sockets share the port, with nobody of another user */
	autoclose now = set_option(fd, SO_REUSEPORT, 1) < 0 ? -errno : listen_on(addr, 1);
	int rc = now < 0 ? now : 0;

	if (rc == 0 && dup3(now, fd, O_CLOEXEC) < 0)
		rc = -errno;
	(void)set_option(fd, SO_REUSEPORT, 0);
	return rc;
}
