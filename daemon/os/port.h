/* port.h - ports of this host: bound, kept from others, and who has one that can't be bound. */
#ifndef LAUNCHD_DAEMON_OS_PORT_H
#define LAUNCHD_DAEMON_OS_PORT_H

#include <stdint.h>

struct address;
struct failure;

enum {
	PORT_BOTH_FAMILIES = 1, /* "any" of IPv6 takes IPv4 along */
	PORT_SHARED = 2,        /* with other sockets of this user that say so, too */
};

/* Returns a socket of that type (SOCK_STREAM, SOCK_DGRAM), bound to the address at a port (0: any
 * free one), or negative errno. NULL: to all addresses, of IPv6 and IPv4, or of IPv4 alone where
 * IPv6 is off. It neither blocks nor listens. */
int port_bind(const struct address *at, uint16_t port, int type, unsigned how);

/* The port that a socket is bound to, or negative errno. */
int port_of(int fd);

/* What port_explain() calls a launchd that listens there. */
#define ANOTHER_LAUNCHD "another launchd"

/* Says that `who` ("", "the store ") can't listen at an address (NULL: any) and port, for which rc
 * is the error, and names the process that has a port in use, as far as that can be seen. Returns
 * rc. */
int port_explain(
	const char *who, const struct address *at, uint16_t port, int rc, struct failure *why);

/* Whether a TCP port of all addresses can be bound now: 0, or negative errno as of bind(2). */
int port_try(uint16_t port);

/* Binds a free TCP port of all addresses, IPv6 and IPv4, with SO_REUSEADDR and without listening:
 * then another socket with SO_REUSEADDR may bind and listen there (torch's store does), while the
 * kernel gives the number to nobody who asks for a free one. The caller closes *ret_fd. */
int port_reserve(int *ret_fd, unsigned *ret_port, struct failure *why);

#endif
