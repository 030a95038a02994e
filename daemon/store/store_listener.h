/* store_listener.h - the socket that the store listens on. */
#ifndef LAUNCHD_DAEMON_STORE_STORE_LISTENER_H
#define LAUNCHD_DAEMON_STORE_STORE_LISTENER_H

#include <netinet/in.h>
#include <sys/socket.h>

struct failure;

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_storage storage;
};

/* Listens on an IP address as text, at port 0 on any free one; *ret_addr is what was bound, with
 * the port in *ret_port. Who has a port that is in use is said, as far as it can be seen. -EINVAL:
 * text is no IP address; errors of socket(2), bind(2), listen(2). */
int front_open(const char *text, unsigned port, union address *ret_addr, int *ret_fd,
	unsigned *ret_port, struct failure *why);

/* Puts a new socket in the place of one that listens, under the same number, on the same port,
 * which is open all the time. Connections that nobody has accepted are reset, those too that are
 * only about to be made: a peer that is dead by now, and whose last packets come late, gets in no
 * more. Negative errno: nothing has changed. */
int front_renew(int fd, const union address *addr);

#endif
