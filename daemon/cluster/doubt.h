/* doubt.h - warns the user long before the join timeout if the address where the launchers are to
 * meet does not seem to be node rank 0's.
 *
 * Node rank 0 may be reachable by an address that is not one of its own (NAT, a Kubernetes
 * service). Or two nodes were given that rank: then the other one's launcher listens there, and
 * when this one asks it for its place, it refuses the job on both. */
#ifndef LAUNCHD_DAEMON_CLUSTER_DOUBT_H
#define LAUNCHD_DAEMON_CLUSTER_DOUBT_H

#include <stdbool.h>
#include <uv.h>

#include "daemon/meet/dialer.h"

struct finder;
struct hub;
struct party;
struct spoke;

enum doubt_kind {
	DOUBT_NONE,
	DOUBT_RIVAL,     /* this is node rank 0, but the address is not its own */
	DOUBT_MISPLACED, /* this is another rank, but the address is its own */
	DOUBT_LOOPBACK,  /* every node has that address */
};

struct doubt {
	/* the owner's, before doubt_start(); the rest is { 0 } */
	struct party *party;
	struct hub *hub;     /* NULL: this node is not node rank 0 */
	struct spoke *spoke; /* where it isn't */

	enum doubt_kind kind;
	uv_timer_t clock;     /* MISPLACED, LOOPBACK: until it is time to warn */
	struct dialer dialer; /* RIVAL: looks for the other launcher */
	struct link *link;    /* to the rival; NULL: there is none */
	unsigned rounds;      /* of dialing, in vain */
	bool closing;
};

/* Starts if there is a reason: f has found the addresses, of which `own` are this node's. True: it
 * is a part of the party now and needs doubt_close(). It is quiet once the nodes have met. */
bool doubt_start(struct doubt *d, const struct finder *f, unsigned own);

/* The party hears party_part_closed() when nothing is left in the loop. */
void doubt_close(struct doubt *d);

#endif
