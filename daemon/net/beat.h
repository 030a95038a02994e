/* beat.h - heartbeats: a peer that is silent for too long is lost, and so is one that nothing
 * reaches any more.
 *
 * Each side sends 12 beats per time-out (the shorter one, if the two differ). They go by UDP, as
 * one lost packet of a TCP connection delays all that follow it. Unless the peer has confirmed a
 * datagram within half of the time-out, beats also go over the link, so a firewall that drops UDP
 * does no harm. Any authenticated frame or datagram is a sign of life. One timer serves all links
 * of a process; without links nothing wakes up.
 *
 * A beat carries the length of its sender's stream and how much of the peer's has arrived (link.h).
 * So both ends notice bytes that are in flight for too long while TCP reports nothing: a firewall
 * may drop TCP, have forgotten the connection, or drop large packets. What is not acknowledged
 * within two beats also goes by UDP, in pieces of less than 200 bytes (rescue.h). A dialer whose
 * connection broke, or through which nothing has passed for more than half of the time-out, dials a
 * fresh one as well. If none of these ways delivers another byte for the whole time-out, the peer
 * is considered lost, as if it had been silent. It is told so by UDP: if only one direction is cut,
 * it can still hear us. */
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
	BEAT_LATE = 2,   /* beats that ours may be late before we assume that we were suspended */
	BEAT_TIMEOUT_MIN_MS = 240,
};

struct beat {
	/* the owner's, before beat_open(); the rest is { 0 } */
	/* Nothing came over an open link for the time-out, or one direction delivered nothing for
	 * so long. Called once until the peer is heard again. May close links, and the beat. */
	void (*on_silent)(struct beat *b, struct link *l, uint64_t silent_ms);
	void (*on_closed)(struct beat *b); /* the memory is the owner's again; may be NULL */
	void *owner;
	uint32_t timeout_ms;
	struct death_notice *death_notice; /* for beat_entrust(); NULL: nobody would be told */

	/* to be read */
	unsigned links;
	uint64_t interval_ns;
	unsigned long bad; /* datagrams dropped: unknown session, wrong tag, old sequence */

	/* private */
	uv_loop_t *loop;
	uv_timer_t timer;
	uint64_t next_ns;  /* our next beats */
	uint64_t fresh_ns; /* when we last woke up: silence is counted from then on */
	uint64_t awake_ns; /* when we last ran for sure; this and the next two: CLOCK_BOOTTIME */
	uint64_t woke_ns, slept_ns; /* the last sleep that others must have noticed, and how long */
	bool soon;                  /* some link is to be looked at before the timer says so */
	bool closing;
	struct link *first;
	struct link **table; /* by session */
	size_t buckets;      /* a power of two */
	uv_udp_t udp[ADDRESSES_MAX];
	int lent[ADDRESSES_MAX]; /* as in struct link_beats */
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

/* From now on until the link ends our guard tells the peer if this process is killed. */
void beat_entrust(struct beat *b, struct link *l);

/* The link of a session that is watched. NULL: none. */
struct link *beat_find(const struct beat *b, uint64_t session);

/* How long this process did not run (it was stopped or frozen, or the machine was suspended), if
 * that was long enough for others to consider it lost and at most a time-out ago; else 0. */
uint64_t beat_slept_ms(const struct beat *b);

/* The usual on_silent: tells the peer by UDP, as it may still hear us, and closes the link with the
 * silence as the reason. */
void beat_drop(struct beat *b, struct link *l, uint64_t silent_ms);

/* Closes as soon as all watched links are closed: their last frames may need it. */
void beat_close(struct beat *b);

/* For rescue.c: */

/* Sends len bytes and a tag behind them, for which there is room, by UDP, where the other end of
 * it is known; a datagram may be lost. */
void beat_send_datagram(struct beat *b, struct link *l, unsigned char *datagram, size_t len);

/* A beat by UDP; and one by each way that it may need. The latter may end the link. */
void beat_answer(struct beat *b, struct link *l);
void beat_send(struct beat *b, struct link *l);

/* Whether that was less than half of the time-out ago, and so can be relied on. */
bool beat_is_recent(const struct link *l, uint64_t then, uint64_t now);

#endif
