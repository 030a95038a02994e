/* peers.h - which source addresses may use the store, and which were refused. Pure. */
#ifndef LAUNCHD_DAEMON_OS_PEERS_H
#define LAUNCHD_DAEMON_OS_PEERS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/address.h"

enum { PEERS_TOLD_MAX = 64 };

/* { 0 } admits only processes of this host, which come from the address that they connect to. */
struct peers {
	struct address *allowed;
	size_t count, room;
	struct address told[PEERS_TOLD_MAX]; /* refused, and noted */
	size_t told_count;
	bool loopback; /* any loopback address: the store listens on one */
};

/* Twice is once; ports do not matter. -EAFNOSUPPORT: that is none; -ENOMEM. */
int peers_allow(struct peers *p, const struct address *a);

/* Whether a connection from `from` to our address `to` is one of the job's. */
bool peers_may(const struct peers *p, const struct address *from, const struct address *to);

/* True the first time an address is refused, while there is room to remember it. */
bool peers_is_news(struct peers *p, const struct address *from);

void peers_done(struct peers *p);

#endif
