/* rescue.h - what is done about a watched link whose TCP connection delivers nothing: pieces by
 * UDP, a fresh connection, waiting for the dead peer's guard. Only for beat.c; see beat.h. */
#ifndef LAUNCHD_DAEMON_NET_RESCUE_H
#define LAUNCHD_DAEMON_NET_RESCUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/net/beat.h"

enum {
	RESCUE_LATE = 2, /* beats without an acknowledgement until pieces are sent */
	/* Beats without progress until a fresh connection is tried. If UDP stopped working, beats
	 * go by TCP before that, after half of the time-out. */
	RESCUE_DIAL = 7,
	/* Beats without a sign of life after a connection broke, until the peer is taken for dead:
	 * with UDP, and without, as then it has to dial first. */
	RESCUE_BROKEN = 4,
	RESCUE_BROKEN_TCP = 8,
	RESCUE_WINDOW = 32,   /* pieces in flight */
	RESCUE_PARTS = 4,     /* of a beat, between rounds of pieces at first */
	RESCUE_FAREWELLS = 3, /* copies of a last datagram, as any of them may be lost */
	/* From EOF until the peer's guard must have told how its supervisor died: it learns of that
	 * at once, but may have to wait for a CPU, and its first datagrams may be lost. */
	RESCUE_GUARD_MS = 500,
	RESCUE_ROUNDS_MS = 1000, /* and from then on until it has said that all know */
};

/* Notes in l->beats.trouble which began first: nothing is heard, nothing gets through, or bytes
 * that the peer has sent are missing. Returns since when, but not before we woke up; `now` if all
 * is well. */
uint64_t rescue_note_trouble(const struct beat *b, struct link *l, uint64_t now);

/* Does what is due: sends pieces, dials a fresh connection, ends a link whose connection broke for
 * good. Returns when to look again; UINT64_MAX: not before the next beat. */
uint64_t rescue_look(struct beat *b, struct link *l, uint64_t now);

/* The peer has acknowledged more than before: pieces go on from there. */
void rescue_acknowledged(struct beat *b, struct link *l);

/* A piece has come; it is acknowledged at once. May end the link. */
void rescue_take(struct beat *b, struct link *l, const struct piece *p);

/* The link ends: tells the peer how far its stream has arrived, several times, as datagrams get
 * lost. */
void rescue_farewell(struct beat *b, struct link *l);

/* The peer's datagrams come from elsewhere now. */
void rescue_moved(struct beat *b, struct link *l);

/* The link ends: our guard need not tell the peer any more. */
void rescue_withdraw(struct beat *b, struct link *l);

/* Takes and answers a notice of the peer's guard. False: the datagram is not one for this link. */
bool rescue_take_notice(struct link *l, const unsigned char *bytes, size_t len, uv_udp_t *udp,
	const struct address *from);

/* Whether the peer seems to have died. Then the link ends at *ret_due_ns, which may be past. */
bool rescue_awaits_guard(const struct link *l, uint64_t *ret_due_ns);

#endif
