/* peers.h - which source addresses may use the store, and which were refused. Pure. */
#ifndef LAUNCHD_DAEMON_OS_PEERS_H
#define LAUNCHD_DAEMON_OS_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sockaddr;

/* An IP address; IPv4 is mapped into IPv6, so that it is equal whichever kind of socket has it. */
struct peer {
	uint8_t at[16];
};

enum { PEERS_TOLD_MAX = 64 };

/* { 0 } admits only processes of this host, which come from the address that they connect to. */
struct peers {
	struct peer *allowed;
	size_t count, room;
	struct peer told[PEERS_TOLD_MAX]; /* refused, and noted */
	size_t told_count;
	bool loopback; /* any loopback address: the store listens on one */
};

/* -EAFNOSUPPORT: neither IPv4 nor IPv6. */
int peer_make(const struct sockaddr *addr, struct peer *ret);

bool peer_is_loopback(const struct peer *p);

/* Twice is once. -EAFNOSUPPORT, -ENOMEM. */
int peers_allow(struct peers *p, const struct sockaddr *addr);

/* Whether a connection from `from` to our address `to` is one of the job's. */
bool peers_may(const struct peers *p, const struct sockaddr *from, const struct sockaddr *to);

/* True the first time an address is refused, while there is room to remember it. */
bool peers_is_news(struct peers *p, const struct sockaddr *from);

void peers_done(struct peers *p);

#endif
