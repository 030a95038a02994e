/* peers.h - which source addresses may use the store, and which were turned away. Pure. */
#ifndef LAUNCHD_DAEMON_OS_PEERS_H
#define LAUNCHD_DAEMON_OS_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sockaddr;

/* An IP address; one of IPv4 as IPv6 maps it, so that both kinds of sockets tell the same. */
struct peer {
	uint8_t at[16];
};

enum { PEERS_TOLD_MAX = 64 };

/* { 0 }: nobody but processes of this host, on the address that they connect to. */
struct peers {
	struct peer *allowed;
	size_t count, room;
	struct peer told[PEERS_TOLD_MAX]; /* turned away and noted */
	size_t told_count;
	bool loopback; /* any loopback address: the store listens on one */
};

/* -EAFNOSUPPORT: neither IPv4 nor IPv6. */
int peer_make(const struct sockaddr *addr, struct peer *ret);

bool peer_is_loopback(const struct peer *p);

/* Also where it is in the list already. -EAFNOSUPPORT, -ENOMEM. */
int peers_allow(struct peers *p, const struct sockaddr *addr);

/* Whether a connection from `from` to our address `to` is one of the job's. */
bool peers_may(const struct peers *p, const struct sockaddr *from, const struct sockaddr *to);

/* True the first time an address is turned away, while there is room to remember it. */
bool peers_is_news(struct peers *p, const struct sockaddr *from);

void peers_done(struct peers *p);

#endif
