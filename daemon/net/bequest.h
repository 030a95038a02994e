/* bequest.h - what a watched link leaves to the guard (obituary.h), and what the peer's guard says
 * of the peer. Part of beat.c: nobody else calls it. */
#ifndef LAUNCHD_DAEMON_NET_BEQUEST_H
#define LAUNCHD_DAEMON_NET_BEQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <uv.h>

#include "daemon/net/beat.h"

enum {
	/* From the end of a connection until a guard has told how its supervisor died: it hears of
	 * that within a moment, but may have to share its CPU, and its first words may be lost. */
	BEQUEST_WAIT_MS = 500,
	BEQUEST_ROUNDS_MS = 1000, /* and from then on until it has said that all know */
};

/* The peer's datagrams come from elsewhere now. */
void bequest_move(struct beat *b, struct link *l);

/* The link ends: the peer need not be told any more. */
void bequest_withdraw(struct beat *b, struct link *l);

/* Whether it is a notice about this link's peer, which came to that handle from there: it is
 * answered. */
bool bequest_take(struct link *l, const unsigned char *bytes, size_t len, uv_udp_t *udp,
	const struct sockaddr *from);

/* Whether the peer has died, as it seems. Then the link ends at *ret_due_ns, which may be over. */
bool bequest_is_awaited(const struct link *l, uint64_t *ret_due_ns);

#endif
