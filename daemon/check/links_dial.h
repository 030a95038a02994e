/* links_dial.h - one connection to a partner after the other, by which the link to it is tried:
 *
 *	from us: struct links_hello      from the partner: LINKS_GO, when it is our turn
 *	         data, then the end                        LINKS_GOT, when it has read all of it
 *
 * Nothing here blocks. Times are CLOCK_MONOTONIC in us. */
#ifndef LAUNCHD_DAEMON_CHECK_LINKS_DIAL_H
#define LAUNCHD_DAEMON_CHECK_LINKS_DIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/address.h"
#include "daemon/check/links_told.h"

/* Who is to be dialled, and will dial. */
struct links_partner {
	unsigned node;
	struct address at; /* none: it hadn't come in time, but may still dial */
	uint64_t token;    /* what it wants to hear of those who dial it */
};

enum links_purpose {
	LINKS_TRY,       /* as much data as there is time for */
	LINKS_TRY_SMALL, /* little data, in small packets */
	LINKS_BYE,       /* no data: there will be no other connection */
	LINKS_PURPOSES
};

/* In the sender's byte order: what else reads the same says another magic, and is a stranger. */
struct links_hello {
	uint64_t magic, token; /* token: the partner's, that we have from the store */
	uint32_t node, purpose;
};

#define LINKS_MAGIC 0x314b4e494c44484cULL
enum { LINKS_GO = 'G', LINKS_GOT = 'D' };

enum {
	/* SYNs go at 0 and 1 s: one may be lost. */
	LINKS_CONNECT_US = 2500000,
	/* Whoever has not moved for so long doesn't keep others from their turn. */
	LINKS_IDLE_US = 50000,
};

enum links_dial_state {
	LINKS_DIAL_RESTING,
	LINKS_DIAL_CONNECTING,
	LINKS_DIAL_ASKING, /* whether it is our turn */
	LINKS_DIAL_SENDING,
	LINKS_DIAL_ENDING, /* all is sent, and the answer awaited */
	LINKS_DIAL_STATES
};

struct links_dial {
	enum links_dial_state state;
	const struct links_partner *partner;
	uint32_t from; /* this node */
	enum links_purpose purpose;
	int fd;                     /* -1 while it rests */
	int64_t begun_us, until_us; /* of this state */
	int64_t looked_us;          /* for what has been acknowledged */
	int64_t moved_us;           /* when some more had been */
	uint64_t acked, sent;
	struct link_told told; /* what came of all of them */
};

void links_dial_init(struct links_dial *d, const struct links_partner *partner, uint32_t from);

/* It rests: begins another connection. */
void links_dial_begin(struct links_dial *d, enum links_purpose purpose, int64_t now_us);

/* What poll(2) is to look for; may_send: no other one carries data. */
short links_dial_events(const struct links_dial *d, bool may_send);

/* What poll(2) has found. */
void links_dial_ready(struct links_dial *d, short found, int64_t now_us);

/* Ends what has taken too long. */
void links_dial_tick(struct links_dial *d, int64_t now_us);

/* When it wants its next tick; INT64_MAX: never. */
int64_t links_dial_due_us(const struct links_dial *d);

/* It carries data. */
bool links_dial_is_busy(const struct links_dial *d, int64_t now_us);

/* Time is over. */
void links_dial_stop(struct links_dial *d, int64_t now_us);

#endif
