/* port.h - a port that nobody else takes. */
#ifndef LAUNCHD_DAEMON_OS_PORT_H
#define LAUNCHD_DAEMON_OS_PORT_H

struct failure;

/* Binds a free TCP port of all addresses, IPv6 and IPv4, with SO_REUSEADDR and without listening:
 * then another socket with SO_REUSEADDR may bind and listen there (torch's store does), while the
 * kernel gives the number to nobody who asks for a free one. The caller closes *ret_fd. */
int port_reserve(int *ret_fd, unsigned *ret_port, struct failure *why);

#endif
