/* port.c - see port.h */
#include "daemon/os/port.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/address.h"
#include "common/failure.h"
#include "common/fd.h"
#include "daemon/os/process.h"
#include "daemon/os/sockets.h"

int port_bind(const struct sockaddr *a, uint16_t port, int type, unsigned how)
{
	const int on = 1, v6_only = !(how & PORT_BOTH_FAMILIES);
	struct sockaddr_storage at = { 0 };
	autoclose fd = socket(a->sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	memcpy(&at, a, address_size(a));
	address_set_port((struct sockaddr *)&at, port);
	if (a->sa_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof v6_only);
	/* else the connections of a process that has just ended keep its port for a minute */
	if (type == SOCK_STREAM && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0)
		return -errno;
	if ((how & PORT_SHARED) && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&at, address_size(a)) < 0)
		return -errno;
	return fd_take(&fd);
}

int port_of(int fd)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof at;

	return getsockname(fd, (struct sockaddr *)&at, &len) < 0 ?
		-errno :
		address_port((struct sockaddr *)&at);
}

/* The address in question (NULL: any) and its port, which names where it was given. */
static void place_text(const struct sockaddr *at, uint16_t port, char *ret, size_t room)
{
	struct sockaddr_storage shown = { 0 };
	char text[ADDRESS_TEXT] = "any port";

	if (at && port) {
		memcpy(&shown, at, address_size(at));
		address_set_port((struct sockaddr *)&shown, port);
		address_text((struct sockaddr *)&shown, text);
	} else if (at) {
		address_host_text(at, text);
	} else if (port) {
		(void)snprintf(text, sizeof text, "port %u", port);
	}
	(void)snprintf(ret, room, "%s %s", at ? "at" : "on", text);
}

int port_explain(
	const char *who, const struct sockaddr *at, uint16_t port, int rc, struct failure *why)
{
	struct peer addr = { 0 }; /* any */
	char place[ADDRESS_TEXT + 4], command[16];
	pid_t pid;

	place_text(at, port, place, sizeof place);
	if (at)
		(void)peer_make(at, &addr); /* of a known family: it has a socket */
	if (rc != -EADDRINUSE || sockets_find_listener(&addr, port, &pid, command) < 0)
		return failure_set(why, rc, "%scan't listen %s: %s", who, place, strerror(-rc));
	return failure_set(why, rc, "%scan't listen %s: %s (pid %d) listens there", who, place,
		strcmp(command, SUPERVISOR_NAME) == 0 ? "another launchd" : command, (int)pid);
}

int port_reserve(int *ret_fd, unsigned *ret_port, struct failure *why)
{
	const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	const struct sockaddr_in v4 = { .sin_family = AF_INET };
	autoclose fd = port_bind((const struct sockaddr *)&v6, 0, SOCK_STREAM, PORT_BOTH_FAMILIES);
	int port;

	if (fd < 0) /* IPv6 is off */
		fd = port_bind((const struct sockaddr *)&v4, 0, SOCK_STREAM, 0);
	port = fd < 0 ? fd : port_of(fd);
	if (port < 0)
		return failure_set(why, port, "can't get a free port: %s", strerror(-port));
	*ret_port = (unsigned)port;
	*ret_fd = fd_take(&fd);
	return 0;
}
