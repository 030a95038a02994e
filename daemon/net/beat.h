/* beat.h - beats: who is silent for too long is lost, and who can't be told anything.
 *
 * Each side sends a beat every twelfth of the time-out (of the shorter one, if the two differ), by
 * UDP: a lost packet of a TCP connection holds up all that follow. While the peer has not heard a
 * datagram for half of the time-out, or ever, beats go over the link too, so a firewall that drops
 * UDP does no harm. Any authenticated frame or datagram is a sign of life. One timer serves all
 * links of a process; without links nothing wakes up.
 *
 * A beat says how long its sender's stream is, and how much of the peer's has come (link.h). So
 * both ends know of bytes that are under way for too long, though TCP says nothing: a firewall that
 * drops TCP, has forgotten the connection, or drops what is large. What is not acknowledged within
 * two beats goes by UDP, too, in pieces of less than 200 bytes (rescue.h); a dialer whose
 * connection broke, or that gets nothing through or hears nothing for more than half of the
 * time-out, dials a fresh one as well. Where for the whole time-out none of these ways has brought
 * a byte further, the peer is as lost as if it were silent. It is told so by UDP: where one
 * direction is cut, it hears us as ever. */
#ifndef LAUNCHD_DAEMON_NET_BEAT_H
#define LAUNCHD_DAEMON_NET_BEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/net/datagram.h"
#include "daemon/net/link.h"

struct listener;
struct death_notice;

enum {
	BEAT_PARTS = 12, /* beats in a time-out */
	BEAT_LATE = 2,   /* of these, that our own may be late before we take it for sleep */
	BEAT_TIMEOUT_MIN_MS = 240,
	BEAT_SOCKETS = 16,
};

struct beat {
	/* the owner's, before beat_open(); the rest is { 0 } */
	/* Nothing was heard of an open link for the time-out, or one direction has brought nothing
	 * for so long; again only after it was heard again. May close links, and the beat. */
	void (*on_silent)(struct beat *b, struct link *l, uint64_t silent_ms);
	void (*on_closed)(struct beat *b); /* the memory is the owner's again; NULL: nobody asks */
	void *owner;
	uint32_t timeout_ms;
	struct death_notice *death_notice; /* for beat_entrust(); NULL: nobody would be told */

	/* to be read */
	unsigned links;
	uint64_t interval_ns;
	unsigned long bad; /* datagrams that were thrown away: no such session, tag, old sequence */

	/* private */
	uv_loop_t *loop;
	uv_timer_t timer;
	uint64_t next_ns;  /* our next beats */
	uint64_t fresh_ns; /* when we woke: nobody counts as silent since before that */
	uint64_t awake_ns; /* when we last ran for sure; this and the next two: CLOCK_BOOTTIME */
	uint64_t woke_ns, slept_ns; /* the last sleep that others must have noticed, and how long */
	bool soon;                  /* some link is to be looked at before the timer says so */
	bool closing;
	struct link *first;
	struct link **table; /* by session */
	size_t buckets;      /* a power of two */
	uv_udp_t udp[BEAT_SOCKETS];
	int lent[BEAT_SOCKETS]; /* as in struct link_beats */
	unsigned sockets, handles;
	unsigned char buffer[DATAGRAM_MAX + 1]; /* of the datagram that is being read */
};

/* Starts; nothing happens before a link is watched. A timeout_ms below BEAT_TIMEOUT_MIN_MS is taken
 * as that. */
void beat_open(struct beat *b, uv_loop_t *loop);

/* The hub's: hears datagrams at the sockets of the listener, which it takes over. Once. */
void beat_hear(struct beat *b, struct listener *li);

/* Watches a link from its on_ready on, for as long as it is open. On -ENOMEM it isn't watched. */
int beat_watch(struct beat *b, struct link *l);

/* From now on the peer is to be told by our guard, if this process is killed; until the link ends.
 */
void beat_entrust(struct beat *b, struct link *l);

/* The link of a session that is watched. NULL: none. */
struct link *beat_find(const struct beat *b, uint64_t session);

/* How long this process did not run (it was stopped, frozen, or the machine suspended), where that
 * was so long that the others have missed it, and no longer ago than a time-out; 0: it was not. */
uint64_t beat_slept_ms(const struct beat *b);

/* What on_silent mostly is: tells the peer by UDP, which may still hear us, and closes the link,
 * with the silence as the reason. */
void beat_drop(struct beat *b, struct link *l, uint64_t silent_ms);

/* Closes, as soon as all links are closed that are watched: what they say last may need it. */
void beat_close(struct beat *b);

/* For rescue.c: */

/* Sends len bytes and a tag behind them, for which there is room, by UDP, where the other end of
 * it is known; a datagram may be lost. */
void beat_send_datagram(struct beat *b, struct link *l, unsigned char *datagram, size_t len);

/* A beat by UDP; and one by each way that it may need. The latter may end the link. */
void beat_answer(struct beat *b, struct link *l);
void beat_send(struct beat *b, struct link *l);

/* Whether that was less than half of the time-out ago, so that one may rely on it. */
bool beat_is_recent(const struct link *l, uint64_t then, uint64_t now);

#endif
