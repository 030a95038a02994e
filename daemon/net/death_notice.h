/* death_notice.h - how other nodes learn that this node's supervisor was killed, and by which
 * signal.
 *
 * A killed process can't say goodbye: its kernel closes its connections, and that is all the others
 * see. But its guard lives on. The supervisor writes into memory shared with it whom to tell and
 * with which key, and lends it its UDP sockets: the descriptors wait in a socketpair that the guard
 * reads only then, so nothing wakes it up before, and the ports stay open when the supervisor dies.
 *
 * The guard tells the peers in two rounds, so that all nodes exit with the same code: first how the
 * supervisor died, and, once all have answered, that all know it. Then the code is 128 + the signal
 * on every node. If a peer can't be reached, there is no second round: the node was lost, which is
 * 125 on every node. Codes differ only if all datagrams of the second round to some peer are lost;
 * no protocol can exclude that (the two generals' problem).
 *
 * Every call may fail silently; then nobody is told, and the others notice the loss by themselves.
 */
#ifndef LAUNCHD_DAEMON_NET_DEATH_NOTICE_H
#define LAUNCHD_DAEMON_NET_DEATH_NOTICE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/address.h"
#include "daemon/net/datagram.h"

enum {
	DEATH_NOTICE_PEERS = 8192, /* pages of unused entries are never touched */
	DEATH_NOTICE_SOCKETS = 32,
	DEATH_NOTICE_ROUND_MS = 310, /* for the answers to one round */
};

struct death_notice_book;

struct death_notice {
	struct death_notice_book *book; /* NULL: none */
	int lend, take;                 /* the supervisor's end, the guard's */
};

#define DEATH_NOTICE_NONE \
	{ \
		.book = NULL, .lend = -1, .take = -1 \
	}

/* A peer to tell. */
struct death_notice_peer {
	struct address to; /* none: unreachable by UDP, or not known yet */
	unsigned socket;   /* from death_notice_lend() */
	uint64_t session;
	unsigned char key[NOTICE_KEY];
};

/* Before the fork; then each process says which one it is. */
void death_notice_make(struct death_notice *o);
void death_notice_is_guards(struct death_notice *o);
void death_notice_is_supervisors(struct death_notice *o);

/* In the supervisor: */

/* Gives the guard a copy of the socket. Returns its number there, or a negative number on failure.
 */
int death_notice_lend(struct death_notice *o, int fd);

/* Adds a peer. Returns its place, or a negative number if all are taken: then nobody will be told.
 */
int death_notice_add(struct death_notice *o, const struct death_notice_peer *p);

/* Removes it. A negative place is ignored. */
void death_notice_drop(struct death_notice *o, int place);

/* In the guard, once: the supervisor was killed by that signal. Returns whether all peers know
 * that; false if there are none. Blocks for two DEATH_NOTICE_ROUND_MS at most, and no longer than
 * the answers take. */
bool death_notice_tell(struct death_notice *o, int signal);

void death_notice_done(struct death_notice *o);

#endif
