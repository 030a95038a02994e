/* death_notice.h - how the other nodes learn that the supervisor was killed, and by what.
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
#ifndef LAUNCHD_DAEMON_NET_DEATH_NOTICE_H
#define LAUNCHD_DAEMON_NET_DEATH_NOTICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "daemon/net/datagram.h"

enum {
	DEATH_NOTICE_PEERS = 8192, /* their memory is used by those that are there */
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

/* Whom to tell. */
struct death_notice_peer {
	const struct sockaddr *to; /* AF_UNSPEC: it can't be told, or not yet */
	unsigned socket;           /* as death_notice_lend() has it */
	uint64_t session;
	unsigned char key[NOTICE_KEY];
};

/* Before the two processes part; then each says which one it is. */
void death_notice_make(struct death_notice *o);
void death_notice_is_guards(struct death_notice *o);
void death_notice_is_supervisors(struct death_notice *o);

/* In the supervisor: */

/* The guard gets a copy of the socket. Its number there; negative: it did not get it. */
int death_notice_lend(struct death_notice *o, int fd);

/* One more who is to be told. Its place, from 0 on; negative: there is none for it, and so nobody
 * will be told. */
int death_notice_add(struct death_notice *o, const struct death_notice_peer *p);

/* It need not be told any more. A negative place is nobody's. */
void death_notice_drop(struct death_notice *o, int place);

/* In the guard, once: the supervisor was killed by that signal. Returns whether all others know,
 * and that they all do; false where there are none. Takes two DEATH_NOTICE_ROUND_MS at most, and no
 * longer than the answers need. */
bool death_notice_tell(struct death_notice *o, int signal);

void death_notice_done(struct death_notice *o);

#endif
