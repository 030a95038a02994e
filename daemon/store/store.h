/* store.h - the TCPStore by which a job's workers meet: on the wire format of PyTorch, so that
 * every worker is a client and no rank has to live for the others.
 *
 * It listens before anybody is told its port, outlives all ranks, and has no timer: it sleeps until
 * somebody asks. Between two polls of the loop it does no more than a turn's work, however many
 * clients ask, so that timers and other sockets are not late. Each attempt of the job has keys of
 * its own. The protocol has no authentication, so the store binds one address where that will do,
 * accepts connections only from the job's nodes unless its owner wants all, and limits all memory
 * that clients can make it use. One loop, one thread; all descriptors close on exec. */
#ifndef LAUNCHD_DAEMON_STORE_STORE_H
#define LAUNCHD_DAEMON_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/os/acceptor.h"
#include "daemon/os/peers.h"
#include "daemon/store/answer.h"
#include "daemon/store/request.h"

struct client;
struct failure;

struct store_config {
	/* An IPv4 or IPv6 address as text, and the only one that is bound. NULL: all. */
	const char *addr;
	bool open;              /* connections are accepted from anywhere, as torch's store does */
	unsigned port;          /* 0: any free one */
	enum store_dialect old; /* of clients that do not speak D: the caller knows their torch */
	uint64_t memory_max;    /* bytes, for keys, values, clients and all that is on its way */
	/* One sentence for the log, a few in each attempt. It must not call the store. May be NULL.
	 */
	void (*on_note)(void *owner, const char *text);
	void *owner;
};

/* A turn's work: 2 to 10 ms of CPU, measured, on machines of 2026. Only one request is not divided,
 * whose keys and values have torch's own limits. */
enum {
	STORE_TURN = 4 << 20,       /* bytes that are read or sent */
	STORE_CALL_COST = 8 << 10,  /* a system call costs as much as so many bytes */
	STORE_REQUEST_COST = 1 << 9 /* so does a request */
};

struct store {
	uv_loop_t *loop;
	uv_poll_t poll;               /* of the listening socket */
	uv_prepare_t turns;           /* a new turn begins before each poll */
	uv_idle_t again;              /* active while clients wait: the next poll doesn't block */
	TAILQ_HEAD(, client) waiting; /* for their turn, the next one first */
	long turn;                    /* what is left of it; 0 and below: nothing */
	int listener;                 /* -1: closed */
	struct acceptor acceptor;
	bool emptying;              /* what waits to be accepted is of the last attempt */
	struct store_config config; /* addr: only while opening */
	struct address own;         /* the one that is bound; AF_UNSPEC: all are */
	unsigned port;
	struct peers peers;
	struct budget budget;
	struct space space;
	LIST_HEAD(, client) clients; /* of this attempt */
	SLIST_HEAD(, client) lost;   /* of these, what can't be sent to: they leave next */
	struct client *answering;    /* whose request is at work */
	struct bytes reply;          /* to it */
	char *room;                  /* what is read, one client after the other */
	unsigned spoke;
	unsigned notes;
	unsigned handles; /* not closed yet: its own and all clients, those of old attempts too */
	bool closing;
	void (*on_closed)(struct store *s);
};

/* Binds and listens. -EINVAL: addr is not an IP address; -EADDRINUSE with the name of the process
 * that has the port, if it can be seen; other errors of bind(2). On failure nothing is left. */
int store_open(struct store *s, uv_loop_t *loop, const struct store_config *c, struct failure *why);

unsigned store_port(const struct store *s);

/* Admits connections from an address, besides those of this host (which come from the address they
 * go to; from any loopback address, if the store listens on one). Others are closed when they are
 * accepted. -EAFNOSUPPORT, -ENOMEM. */
int store_allow(struct store *s, const struct address *a);

/* Starts an attempt: closes all connections, also those that wait to be accepted, and removes all
 * keys. The port stays open. The workers of the last attempt must have ended. */
void store_next_attempt(struct store *s);

/* Connections of this attempt so far that have asked for something. Clients of torch before 2.1
 * have two, of which the second speaks only to watch a key. */
unsigned store_clients(const struct store *s);

/* Keys of this attempt that have a value. */
unsigned store_keys(const struct store *s);

/* Calls see() for each client that waits now, with its address and the first key that it waits for,
 * which has not come. */
void store_waits(const struct store *s,
	void (*see)(void *to, const struct address *client, struct span key), void *to);

/* Calls see() for each client that has asked whether the key exception_dump is there, with its
 * address and how often. The monitor thread of torch's ProcessGroupNCCL does that once a second
 * while its default group completes nothing. */
void store_polls(const struct store *s,
	void (*see)(void *to, const struct address *client, unsigned polls), void *to);

/* Closes everything. on_closed is called from the loop once the memory is the owner's again. */
void store_close(struct store *s, void (*on_closed)(struct store *s));

/* --- for client.c --- */

enum { STORE_NOTES_MAX = 32 }; /* of one attempt */

/* One sentence to the owner; beyond STORE_NOTES_MAX only that there are more. */
__attribute__((format(printf, 2, 3))) void store_note(struct store *s, const char *fmt, ...);

/* One of its handles is closed. */
void store_handle_closed(struct store *s);

#endif
