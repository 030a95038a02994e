/* http_server.h - who asks for metrics: a few connections of HTTP/1 in the event loop, with one
 * request each.
 *
 * At most 64 connections are open, each for 10 seconds. A new one takes the place of one that has
 * its answer, else of the one that has waited the longest: slow ones, however many, keep
 * nobody out. A timer runs only while one is open. There is neither encryption nor a password:
 * whoever reaches the port may read. */
#ifndef LAUNCHD_DAEMON_SERVICE_HTTP_SERVER_H
#define LAUNCHD_DAEMON_SERVICE_HTTP_SERVER_H

#include <stdbool.h>
#include <uv.h>

#include "daemon/os/acceptor.h"

struct address;
struct failure;
struct sm;
struct text;
struct visitor;

enum { HTTP_VISITORS = 64, HTTP_PATIENCE_MS = 10000 };

/* A connection. */
enum visitor_state {
	VISITOR_FREE, /* there is none */
	VISITOR_READING,
	VISITOR_WRITING,
	VISITOR_LINGERING, /* all is written: its reader would lose it if we closed first */
	VISITOR_CLOSING,   /* the loop has its handle still */
	VISITOR_STATES
};

extern const struct sm visitor_life;

struct http_server {
	/* the owner's, before http_server_open() */
	void (*page)(void *owner, struct text *ret); /* what /metrics is now */
	void *owner;

	/* private */
	int listening; /* -1: it is not open */
	bool in_loop;
	struct acceptor acceptor;
	struct visitor *visitors; /* HTTP_VISITORS of them */
	unsigned open;            /* that are not free */
	uint64_t moves;           /* of all visitors */
	uv_poll_t poll;           /* of the listening socket */
	uv_timer_t clock;         /* while any is open */
	unsigned handles;         /* that are in the loop, but for visitors' */
};

/* Listens there, without a loop yet. Failures are the user's: the address can't be had, and why. */
int http_server_open(struct http_server *s, const struct address *at, struct failure *why);

/* Answers from now on. On failure the server is open still. */
int http_server_enter(struct http_server *s, uv_loop_t *loop, struct failure *why);

/* Closes the port and all connections. The loop must run once more, until all is closed; then the
 * memory is freed. For a server that was never opened, too, if listening is -1. */
void http_server_close(struct http_server *s);

#endif
