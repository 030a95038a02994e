/* client.h - one connection to the store.
 *
 * While something for it is still to be written, nothing more is read from it: a client that asks
 * and does not listen costs its last answer, not more. What it is told without asking (a key that
 * it watches has changed) has a limit.
 *
 * All clients share the turns of the event loop (store.h): a client that finds no turn left waits
 * in a queue, in the order in which epoll reports them, and goes on where it was. */
#ifndef LAUNCHD_DAEMON_STORE_CLIENT_H
#define LAUNCHD_DAEMON_STORE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "daemon/store/keys.h"
#include "daemon/store/request.h"

struct sm;
struct store;

enum { CLIENT_READ_SIZE = 64 << 10 }; /* what is read at a time, into memory that all share */

enum client_state {
	CLIENT_READING,
	CLIENT_WRITING, /* what its socket did not take at once */
	CLIENT_LOST,    /* it leaves as soon as nobody is at work on keys */
	CLIENT_LEFT,
	CLIENT_STATES,
};

extern const struct sm client_life;

/* What a client has yet to be sent: a blob, behind what was sent of it. */
struct unsent {
	TAILQ_ENTRY(unsent) of_client;
	struct blob *blob;
	size_t sent;
};

struct client {
	uv_poll_t poll;
	int fd;
	enum client_state state;
	struct store *store;
	struct guest guest;
	struct scan scan;
	struct bytes inbox; /* what came of a request that is not whole, or has to wait */
	TAILQ_HEAD(unsents, unsent) outbox;
	size_t unsent; /* bytes in the outbox */
	size_t served; /* what it has taken of turns since others were before it */
	LIST_ENTRY(client) of_store;
	SLIST_ENTRY(client) of_lost;
	TAILQ_ENTRY(client) of_waiting;
	bool spoke;
	bool unfinished; /* there was more to read or to answer when the turn was over */
	bool waiting;    /* for its turn */
	bool broken;     /* libuv polls it no more: what came before is still there to be read */
};

/* Takes a connection over, also on failure. -ENOMEM and others: it is closed. */
int client_open(struct store *s, int fd);

/* It has gone, or has to: it waits for nothing more, and its connection is closed. Its memory is
 * given back when libuv has closed its handle. */
void client_leave(struct client *c);

/* Goes on with a client that waited for its turn, which has come. */
void client_resume(struct client *c);

/* What struct space asks for. */
void client_tell(struct guest *to, const void *bytes, size_t len);
void client_tell_large(struct guest *to, struct bytes *reply, struct blob *value);

#endif
