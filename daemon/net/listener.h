/* listener.h - the hub's port, TCP for links and UDP for beats, at one or more addresses. */
#ifndef LAUNCHD_DAEMON_NET_LISTENER_H
#define LAUNCHD_DAEMON_NET_LISTENER_H

#include <uv.h>

#include "daemon/net/link.h"
#include "daemon/os/acceptor.h"

enum {
	LISTENER_PENDING = 4096,      /* unfinished handshakes */
	LISTENER_PENDING_SOURCE = 64, /* of these, from one address */
};

struct listener {
	/* the owner's, before listener_open(); the rest is { 0 } */
	/* Returns memory for a link with the owner's part filled in, or NULL to refuse. The link's
	 * on_closed gives it back. Must not close the listener. */
	struct link *(*on_accept)(struct listener *li);
	void (*on_closed)(struct listener *li); /* the memory is the owner's again */
	/* There are too many unfinished handshakes, or no descriptors for more: each new one
	 * replaces the oldest. from: who came last. May be NULL. */
	void (*on_crowded)(struct listener *li, const struct address *from);
	void *owner;
	const struct link_auth *auth;
	unsigned pending_max, source_max; /* 0: LISTENER_PENDING, LISTENER_PENDING_SOURCE */

	/* to be read */
	uint16_t port;
	bool starved;           /* descriptors ran out at least once */
	unsigned count;         /* of addresses */
	unsigned pending;       /* unfinished handshakes */
	int udp[ADDRESSES_MAX]; /* -1: the port was taken, or passed on: see beat_hear() */
	bool has_udp;           /* at all addresses */

	/* private */
	uv_loop_t *loop;
	int fd[ADDRESSES_MAX];
	int epoll; /* of these */
	struct acceptor acceptor;
	uv_poll_t poll;
	struct link *first, *last; /* of those in a handshake: the newest, the oldest */
};

/* Listens at all these addresses (none: at any, IPv4 and IPv6) on one port: the given one, or with
 * 0 one that is free at all of them for TCP and UDP. If only UDP of a given port is taken, beats go
 * by TCP (has_udp). -EADDRINUSE, -EADDRNOTAVAIL, …: why names the address and who listens there;
 * nothing is open then. */
int listener_open(struct listener *li, uv_loop_t *loop, const struct addresses *at, uint16_t port,
	struct failure *why);

/* Stops listening; links live on, those in a handshake too. */
void listener_close(struct listener *li);

#endif
