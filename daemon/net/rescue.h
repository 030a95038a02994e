/* rescue.h - what is done for a watched link whose TCP connection brings nothing; see beat.h. Part
 * of beat.c: nobody else calls it. */
#ifndef LAUNCHD_DAEMON_NET_RESCUE_H
#define LAUNCHD_DAEMON_NET_RESCUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <uv.h>

#include "daemon/net/beat.h"

enum {
	RESCUE_LATE = 2, /* beats without an acknowledgement until pieces are sent */
	/* Beats without progress until a fresh connection is tried. Where UDP has ended, beats go
	 * by TCP before that, after half of the time-out. */
	RESCUE_DIAL = 7,
	/* Beats without a sign of life from the end of a connection that broke, until that was the
	 * peer's: where its datagrams come, and where it has to dial first. */
	RESCUE_BROKEN = 4,
	RESCUE_BROKEN_TCP = 8,
	RESCUE_WINDOW = 32,   /* pieces that are under way */
	RESCUE_PARTS = 4,     /* of a beat, between rounds of pieces at first */
	RESCUE_FAREWELLS = 3, /* of an end that is not told again, on a way that loses */
	/* From the end of a connection until a guard has told how its supervisor died: it hears of
	 * that within a moment, but may have to share its CPU, and its first words may be lost. */
	RESCUE_GUARD_MS = 500,
	RESCUE_ROUNDS_MS = 1000, /* and from then on until it has said that all know */
};

/* Notes in l->beats.trouble whether nothing was heard, nothing got through, or what the peer has
 * sent is missing, whichever began first. Returns since when: not before we woke; `now` where
 * all is well. */
uint64_t rescue_note_trouble(const struct beat *b, struct link *l, uint64_t now);

/* Does what is due: pieces, a fresh connection, the end of a link whose connection broke for good.
 * Returns when to look again; UINT64_MAX: with the next beat is soon enough. */
uint64_t rescue_look(struct beat *b, struct link *l, uint64_t now);

/* The peer has told that it has more than before: pieces go on from there. */
void rescue_acknowledged(struct beat *b, struct link *l);

/* A piece has come; it is acknowledged at once. May end the link. */
void rescue_take(struct beat *b, struct link *l, const struct piece *p);

/* The link ends, and that is not told again: the peer hears how it stands, on a way that loses. */
void rescue_farewell(struct beat *b, struct link *l);

/* The peer's datagrams come from elsewhere now. */
void rescue_moved(struct beat *b, struct link *l);

/* The link ends: the peer need not be told any more. */
void rescue_withdraw(struct beat *b, struct link *l);

/* Whether it is a notice about this link's peer, which came to that handle from there: it is
 * answered. */
bool rescue_take_notice(struct link *l, const unsigned char *bytes, size_t len, uv_udp_t *udp,
	const struct sockaddr *from);

/* Whether the peer has died, as it seems. Then the link ends at *ret_due_ns, which may be over. */
bool rescue_awaits_guard(const struct link *l, uint64_t *ret_due_ns);

#endif
