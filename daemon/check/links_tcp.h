/* links_tcp.h - the sockets by which links are tried, and what the kernel tells of them. Nothing
 * here blocks. */
#ifndef LAUNCHD_DAEMON_CHECK_LINKS_TCP_H
#define LAUNCHD_DAEMON_CHECK_LINKS_TCP_H

#include <stdbool.h>
#include <stdint.h>

struct address;
struct failure;

/* Of a connection so far. */
struct links_tcp {
	uint64_t acked;       /* bytes that the other host has acknowledged */
	uint64_t busy_us;     /* there was something to send */
	uint64_t receiver_us; /* of that, the other process had not read what came before */
	unsigned rtt_us;      /* the shortest; 0: not known */
	unsigned segments;    /* packets with data */
	unsigned resent;      /* of these, as they were lost; some of these were only late where
				 the kernel is older than 4.19 */
	unsigned segment_max; /* bytes of data in one */
};

/* 0 or negative errno. */
int links_tcp_read(int fd, struct links_tcp *ret);

/* Listens at this address of this host, at any port; *ret_at is where, and *ret_mtu its
 * interface's, 0 if that isn't known. At a loopback address it listens at all addresses, because
 * others know this host by another one. The caller closes *ret_fd. */
int links_tcp_listen(const struct address *at, int *ret_fd, struct address *ret_at,
	unsigned *ret_mtu, struct failure *why);

/* Begins to connect; segment_max: 0 or the most bytes of data in a packet. The descriptor, which
 * the caller closes, or negative errno. */
int links_tcp_dial(const struct address *to, unsigned segment_max);

/* How a connection that links_tcp_dial() has begun came out, once it is writable: 0 or negative
 * errno. */
int links_tcp_outcome(int fd);

/* Closes it at once: what has not been sent is dropped, so that it doesn't get in the way of what
 * follows on a slow link. *fd is -1 afterwards. */
void links_tcp_drop(int *fd);

#endif
