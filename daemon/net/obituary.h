/* obituary.h - how the other nodes learn that the supervisor was killed, and by what.
 *
 * A process that is killed has no last word: its kernel closes its connections, and that is all the
 * others see. But its guard lives. The supervisor leaves it, in memory that both have, who is to be
 * told and with which key, and its UDP sockets: copies of them wait in a socket that nobody reads
 * before that, so that nothing wakes the guard up, and they are open when the supervisor dies.
 *
 * The guard tells in two rounds, that all may end with one exit code: first each of them how the
 * supervisor died, and when all have answered that, that all know. Then the code is 128 + the
 * signal, here and there. Where one can't be reached, nobody hears of the second round: the node
 * was lost, that is 125, here and there. Only where a whole second round is lost on its way to one
 * of them codes differ: no message can be the last one and certain.
 *
 * Every call may fail silently; then nobody is told, and the others find out as before. */
#ifndef LAUNCHD_DAEMON_NET_OBITUARY_H
#define LAUNCHD_DAEMON_NET_OBITUARY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "daemon/net/datagram.h"

enum {
	OBITUARY_PEERS = 8192, /* their memory is used by those that are there */
	OBITUARY_SOCKETS = 32,
	OBITUARY_ROUND_MS = 310, /* for the answers to one round */
};

struct obituary_book;

struct obituary {
	struct obituary_book *book; /* NULL: none */
	int lend, take;             /* the supervisor's end, the guard's */
};

#define OBITUARY_NONE \
	{ \
		.book = NULL, .lend = -1, .take = -1 \
	}

/* Whom to tell. */
struct obituary_peer {
	const struct sockaddr *to; /* AF_UNSPEC: it can't be told, or not yet */
	unsigned socket;           /* as obituary_lend() has it */
	uint64_t session;
	unsigned char key[NOTICE_KEY];
};

/* Before the two processes part; then each says which one it is. */
void obituary_make(struct obituary *o);
void obituary_is_guards(struct obituary *o);
void obituary_is_supervisors(struct obituary *o);

/* In the supervisor: */

/* The guard gets a copy of the socket. Its number there; negative: it did not get it. */
int obituary_lend(struct obituary *o, int fd);

/* One more who is to be told. Its place, from 0 on; negative: there is none for it, and so nobody
 * will be told. */
int obituary_add(struct obituary *o, const struct obituary_peer *p);

/* It need not be told any more. A negative place is nobody's. */
void obituary_drop(struct obituary *o, int place);

/* In the guard, once: the supervisor was killed by that signal. Returns whether all others know,
 * and that they all do; false where there are none. Takes two OBITUARY_ROUND_MS at most, and no
 * longer than the answers need. */
bool obituary_tell(struct obituary *o, int signal);

void obituary_done(struct obituary *o);

#endif
