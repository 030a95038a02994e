/* port.c - see port.h */
#include "daemon/os/port.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "common/failure.h"
#include "common/fd.h"

/* A bound socket of the family, or negative errno. */
static int bind_any(int family)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	const struct sockaddr *addr = (const struct sockaddr *)(const void *)&v4;
	socklen_t len = sizeof v4;
	autoclose fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int on = 1, off = 0;

	if (fd < 0)
		return -errno;
	if (family == AF_INET6) {
		addr = (const struct sockaddr *)(const void *)&v6;
		len = sizeof v6;
		if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0)
			return -errno;
	}
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 || bind(fd, addr, len) < 0)
		return -errno;
	return fd_take(&fd);
}

int port_reserve(int *ret_fd, unsigned *ret_port, struct failure *why)
{
	struct sockaddr_storage got;
	socklen_t len = sizeof got;
	autoclose fd = bind_any(AF_INET6);
	in_port_t port;

	if (fd < 0)
		fd = bind_any(AF_INET); /* IPv6 is off */
	if (fd < 0)
		return failure_set(why, fd, "can't get a free port: %s", strerror(-fd));
	if (getsockname(fd, (struct sockaddr *)(void *)&got, &len) < 0)
		return failure_set(why, -errno, "getsockname: %s", strerror(errno));
	/* the port stands at the same place in both */
	memcpy(&port, &((struct sockaddr_in *)(void *)&got)->sin_port, sizeof port);
	*ret_port = ntohs(port);
	*ret_fd = fd_take(&fd);
	return 0;
}
