/* sockets.h - the kernel's list of TCP sockets (/proc/net/tcp, tcp6), and which process has one of
 * them open. Reading /proc takes noticeable time only with many thousand sockets. */
#ifndef LAUNCHD_DAEMON_OS_SOCKETS_H
#define LAUNCHD_DAEMON_OS_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/address.h"

enum { SOCKET_ESTABLISHED = 1, SOCKET_LISTEN = 10 }; /* as include/net/tcp_states.h has them */

struct tcp_socket {
	struct address local, remote;
	unsigned state;
	uint64_t inode; /* 0: no process has it open any more */
};

/* Parses one line of such a file; -EINVAL: not a socket (the heading). Pure. */
int socket_parse(const char *line, struct tcp_socket *ret);

/* Calls see() for each TCP socket in the network namespace of a process (of IPv4, then of IPv6).
 * 0 or negative errno, where not even IPv4's list can be read. */
int sockets_each(pid_t of, void (*see)(const struct tcp_socket *s, void *to), void *to);

/* Calls see() for the inode of each socket that a process has open, until it returns false.
 * Negative errno: its descriptors can't be seen. */
int sockets_of(pid_t pid, bool (*see)(uint64_t inode, void *to), void *to);

struct port_holder {
	pid_t pid;
	char command[16];
	bool listens; /* otherwise it has a connection from that port */
};

/* Finds the process that has a port of this host, so that a socket for that address (none: any)
 * can't be bound to it: the first in /proc with a socket that listens there, else with a connection
 * from it. -ENOENT: none that can be seen. */
int sockets_find_holder(const struct address *at, unsigned port, struct port_holder *ret);

#endif
