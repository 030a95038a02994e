/* port.c - see port.h */
#include "daemon/os/port.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/address.h"
#include "common/failure.h"
#include "common/fd.h"
#include "daemon/os/process.h"
#include "daemon/os/sockets.h"

static int port_bind_at(const struct address *a, uint16_t port, int type, unsigned how)
{
	const int on = 1, v6_only = !(how & PORT_BOTH_FAMILIES);
	struct address at = *a;
	autoclose fd = socket(a->any.sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	address_set_port(&at, port);
	if (a->any.sa_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof v6_only);
	/* else the connections of a process that has just ended keep its port for a minute */
	if (type == SOCK_STREAM && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0)
		return -errno;
	if ((how & PORT_SHARED) && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) < 0)
		return -errno;
	if (bind(fd, &at.any, address_size(&at)) < 0)
		return -errno;
	return fd_take(&fd);
}

int port_bind(const struct address *at, uint16_t port, int type, unsigned how)
{
	const struct address v6 = { .v6.sin6_family = AF_INET6 }, v4 = { .v4.sin_family = AF_INET };
	int fd = port_bind_at(at ? at : &v6, port, type, at ? how : how | PORT_BOTH_FAMILIES);

	if (!at && (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)) /* IPv6 is off */
		fd = port_bind_at(&v4, port, type, how);
	return fd;
}

int port_of(int fd)
{
	struct address at;
	socklen_t len = sizeof at;

	return getsockname(fd, &at.any, &len) < 0 ? -errno : address_port(&at);
}

/* The address in question (NULL: any) and its port, which names where it was given. */
static void place_text(const struct address *at, uint16_t port, char *ret, size_t room)
{
	struct address shown = at ? *at : (struct address){ 0 };
	char text[ADDRESS_TEXT] = "any port";

	if (at && port) {
		address_set_port(&shown, port);
		address_text(&shown, text);
	} else if (at) {
		address_host_text(at, text);
	} else if (port) {
		(void)snprintf(text, sizeof text, "port %u", port);
	}
	(void)snprintf(ret, room, "%s %s", at ? "at" : "on", text);
}

int port_explain(
	const char *who, const struct address *at, uint16_t port, int rc, struct failure *why)
{
	const struct address any = { 0 };
	char place[ADDRESS_TEXT + 4];
	struct port_holder holder;

	place_text(at, port, place, sizeof place);
	if (rc != -EADDRINUSE || sockets_find_holder(at ? at : &any, port, &holder) < 0)
		return failure_set(why, rc, "%scan't listen %s: %s", who, place, strerror(-rc));
	return failure_set(why, rc, "%scan't listen %s: %s (pid %d) %s", who, place,
		holder.listens && strcmp(holder.command, SUPERVISOR_NAME) == 0 ? ANOTHER_LAUNCHD :
										 holder.command,
		(int)holder.pid, holder.listens ? "listens there" : "has a connection from there");
}

int port_try(uint16_t port)
{
	autoclose fd = port_bind(NULL, port, SOCK_STREAM, 0);

	return fd < 0 ? fd : 0;
}

int port_reserve(int *ret_fd, unsigned *ret_port, struct failure *why)
{
	autoclose fd = port_bind(NULL, 0, SOCK_STREAM, 0);
	int port = fd < 0 ? fd : port_of(fd);

	if (port < 0)
		return failure_set(why, port, "can't get a free port: %s", strerror(-port));
	*ret_port = (unsigned)port;
	*ret_fd = fd_take(&fd);
	return 0;
}
