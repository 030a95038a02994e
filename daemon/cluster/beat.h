/* beat.h - beats: who is silent for too long is lost.
 *
 * Each side sends a beat every twelfth of the time-out (of the shorter one, if the two differ), by
 * UDP: a lost packet of a TCP connection holds up all that follow. While the peer has not heard a
 * datagram for half of the time-out, or ever, beats go over the link too, so a firewall that drops
 * UDP does no harm. Any authenticated frame or datagram is a sign of life. One timer serves all
 * links of a process; without links nothing wakes up. */
#ifndef LAUNCHD_DAEMON_CLUSTER_BEAT_H
#define LAUNCHD_DAEMON_CLUSTER_BEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/cluster/datagram.h"
#include "daemon/cluster/link.h"

struct listener;

enum {
	BEAT_PARTS = 12, /* beats in a time-out */
	BEAT_LATE = 2,   /* of these, that our own may be late before we take it for sleep */
	BEAT_TIMEOUT_MIN_MS = 240,
	BEAT_SOCKETS = 16,
};

struct beat {
	/* the owner's, before beat_open(); the rest is { 0 } */
	/* Nothing was heard of an open link for the time-out; again only after it was heard again.
	 * May close links, and the beat. */
	void (*on_silent)(struct beat *b, struct link *l, uint64_t silent_ms);
	void (*on_closed)(struct beat *b); /* the memory is the owner's again; NULL: nobody asks */
	void *owner;
	uint32_t timeout_ms;

	/* to be read */
	unsigned links;
	uint64_t interval_ns;
	unsigned long bad; /* datagrams that were thrown away: no such session, tag, old sequence */

	/* private */
	uv_loop_t *loop;
	uv_timer_t timer;
	uint64_t next_ns;  /* our next beats */
	uint64_t fresh_ns; /* when we woke: nobody counts as silent since before that */
	struct link *first;
	struct link **table; /* by session */
	size_t buckets;      /* a power of two */
	uv_udp_t udp[BEAT_SOCKETS];
	unsigned sockets, handles;
	unsigned char buffer[BEAT_DATAGRAM + 1]; /* of the datagram that is being read */
};

/* Starts; nothing happens before a link is watched. A timeout_ms below BEAT_TIMEOUT_MIN_MS is taken
 * as that. */
void beat_open(struct beat *b, uv_loop_t *loop);

/* The hub's: hears datagrams at the sockets of the listener, which it takes over. Once. */
void beat_hear(struct beat *b, struct listener *li);

/* Watches a link from its on_ready on, for as long as it is open. On -ENOMEM it isn't watched. */
int beat_watch(struct beat *b, struct link *l);

/* What on_silent mostly is: closes the link, with the silence as the reason. */
void beat_drop(struct beat *b, struct link *l, uint64_t silent_ms);

/* Ends the watch of all links, and closes. */
void beat_close(struct beat *b);

#endif
