/* dialer.h - a link to the hub at whichever of its addresses answers first (RFC 8305).
 *
 * A round dials all addresses, each a moment after the one before it, or at once when that one has
 * failed. A connection that is still pending goes on beside the next round and is not dialled
 * twice. The first peer to prove that it has the key wins, and the others are closed: an address
 * that leads nowhere, or to somebody else, costs no more than that moment. */
#ifndef LAUNCHD_DAEMON_MEET_DIALER_H
#define LAUNCHD_DAEMON_MEET_DIALER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/address.h"
#include "daemon/net/link.h"

struct dialer;
struct sm;
struct text;

enum dialer_state {
	DIALER_NONE,
	DIALER_DIALING, /* a round's addresses, one after the other */
	DIALER_PAUSED,  /* until the next round; who was dialled may answer still */
	DIALER_READY,
	DIALER_STOPPED,
	DIALER_CLOSED,
	DIALER_STATES,
};

extern const struct sm dialer_life;

/* One address that is being dialled. */
struct dialer_lane {
	struct link link; /* the first: a link is its lane */
	struct dialer *dialer;
	struct address to;
	bool busy;
};

struct dialer {
	/* the owner's, before dialer_start(); the rest is { 0 } */
	/* It has stopped dialing. l's owner is this owner; its memory is the dialer's. */
	void (*on_ready)(struct dialer *d, struct link *l);
	/* That link was closed. May call dialer_again(). */
	void (*on_lost)(struct dialer *d, struct link *l, const char *why);
	/* A round is about to start, other than the first one. */
	void (*on_round)(struct dialer *d);
	/* Once: every address has failed, at least one of them in a way that would repeat (see
	 * `final`). It has stopped dialing. */
	void (*on_hopeless)(struct dialer *d, const char *why);
	void (*on_closed)(struct dialer *d); /* the memory is the owner's again */
	/* of the links; see link.h */
	void (*on_message)(struct link *l, unsigned type, const unsigned char *payload, size_t len);
	void (*on_idle)(struct link *l);
	void *owner;
	const struct link_auth *auth;
	uint32_t timeout_ms;
	unsigned final; /* a bit for each enum link_end that would repeat */

	/* private */
	enum dialer_state state;
	uv_loop_t *loop;
	uv_timer_t clock; /* the next address, or the next round */
	struct dialer_lane lanes[ADDRESSES_MAX];
	struct dialer_lane *ready;
	struct addresses to;
	unsigned next;     /* of these, in this round */
	unsigned rounds;   /* that are over; one that was ready and closed again is no success */
	char last[256];    /* why the last one failed; "": none has */
	char refusal[256]; /* of a final end; "": there was none in this round */
	unsigned handles;
};

/* Starts the first round. The addresses are copied. */
void dialer_start(struct dialer *d, uv_loop_t *loop, const struct addresses *to);

/* From now on these are the hub's addresses; new ones are dialled at once, unless there is a link.
 */
void dialer_use(struct dialer *d, const struct addresses *to);

/* From on_lost: dials again after a pause. why: for dialer_explain(). */
void dialer_again(struct dialer *d, const char *why);

/* Stops dialing. A link that is ready stays. */
void dialer_stop(struct dialer *d);

/* Adds why nobody was reached so far: the last failure, or which address does not answer. */
void dialer_explain(const struct dialer *d, struct text *t);

/* Closes it; the owner closes a link that is ready, before or after. on_closed is called when
 * nothing of it is left in the loop. */
void dialer_close(struct dialer *d);

#endif
