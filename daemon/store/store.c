/* store.c - see store.h */
#include "daemon/store/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/address.h"
#include "common/failure.h"
#include "common/fd.h"
#include "daemon/store/client.h"
#include "daemon/store/note.h"
#include "daemon/store/store_listener.h"

enum { ACCEPTS_MAX = 64 }; /* at a time; the loop comes back for more */

void store_handle_closed(struct store *s)
{
	if (--s->handles > 0 || !s->closing)
		return;
	space_clear(&s->space);
	bytes_done(&s->reply, &s->budget);
	peers_done(&s->peers);
	free(s->room);
	assert(s->budget.used == 0);
	s->on_closed(s);
}

/* There is no descriptor left; the kernel says so whether a connection waits or not. One that does
 * would wake us for ever: it is taken with the spare descriptor, and closed. False: none waits. */
static bool shed(struct store *s)
{
	int fd;

	fd_closep(&s->spare);
	fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0) {
		(void)close(fd);
		note(s, "the store closed a connection: launchd has no file descriptor left");
	}
	s->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fd >= 0;
}

static void receive_client(struct store *s, int fd, const union address *from)
{
	union address to = { 0 };
	socklen_t len = sizeof to;
	char text[ADDRESS_TEXT];
	int rc;

	address_text(&from->any, text);
	if (getsockname(fd, &to.any, &len) < 0 || !peers_may(&s->peers, &from->any, &to.any)) {
		(void)close(fd);
		if (peers_is_news(&s->peers, &from->any))
			note(s, "the store closed the connection of %s: it is no node of this job",
				text);
		return;
	}
	rc = client_open(s, fd);
	if (rc < 0)
		note(s, "the store closed the connection of %s: %s", text, strerror(-rc));
}

/* Accepts one connection; false: there is none. */
static bool accept_one(struct store *s, bool wanted)
{
	union address from = { 0 };
	socklen_t len = sizeof from;
	int fd = accept4(s->listener, &from.any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		return shed(s);
	if (fd < 0) /* those of the network are errors of one connection: see accept(2) */
		return errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM;
	if (wanted)
		receive_client(s, fd, &from);
	else
		(void)close(fd);
	return true;
}

static void on_connections(uv_poll_t *poll, int status, int events)
{
	struct store *s = poll->data;

	(void)status, (void)events;
	for (int i = 0; i < ACCEPTS_MAX && accept_one(s, true); i++)
		;
}

static int start(struct store *s, struct failure *why)
{
	uint8_t secret[SIPHASH_KEY_SIZE];
	struct peer own;
	int rc;

	if (getrandom(secret, sizeof secret, 0) != (ssize_t)sizeof secret)
		return failure_set(why, -EIO, "the store has no random numbers");
	s->room = malloc(CLIENT_READ_SIZE);
	if (!s->room)
		return failure_oom(why);
	rc = front_open(s->config.addr, s->config.port, &s->own, &s->listener, &s->port, why);
	if (rc < 0)
		return rc;
	(void)peer_make(&s->own.any, &own);
	s->peers.loopback = peer_is_loopback(&own);
	s->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	keys_init(&s->space.keys, &s->budget, secret);
	s->space.budget = &s->budget;
	s->space.tell = client_tell;
	s->space.tell_large = client_tell_large;
	rc = uv_poll_init(s->loop, &s->poll, s->listener);
	if (rc < 0)
		return failure_set(why, rc, "the store can't be watched: %s", uv_strerror(rc));
	s->poll.data = s;
	return 0;
}

int store_open(struct store *s, uv_loop_t *loop, const struct store_config *c, struct failure *why)
{
	int rc;

	*s = (struct store){ .loop = loop,
		.listener = -1,
		.spare = -1,
		.config = *c,
		.budget = { .max = c->memory_max } };
	rc = start(s, why);
	s->config.addr = NULL;
	if (rc < 0) {
		free(s->room);
		fd_closep(&s->listener);
		fd_closep(&s->spare);
		return rc;
	}
	s->handles = 1;
	(void)uv_poll_start(&s->poll, UV_READABLE, on_connections);
	return 0;
}

unsigned store_port(const struct store *s)
{
	return s->port;
}

int store_allow(struct store *s, const struct sockaddr *addr)
{
	return peers_allow(&s->peers, addr);
}

static void part_from_all(struct store *s)
{
	while (s->clients)
		client_leave(s->clients);
	s->lost = NULL;
	space_clear(&s->space);
}

void store_next_attempt(struct store *s)
{
	part_from_all(s);
	uv_poll_stop(&s->poll); /* the number will be another socket's */
	if (front_renew(s->listener, &s->own) < 0)
		while (accept_one(s, false))
			;
	(void)uv_poll_start(&s->poll, UV_READABLE, on_connections);
	s->spoke = s->notes = 0;
}

unsigned store_clients(const struct store *s)
{
	return s->spoke;
}

static void on_poll_closed(uv_handle_t *h)
{
	store_handle_closed(h->data);
}

void store_close(struct store *s, void (*on_closed)(struct store *s))
{
	s->closing = true;
	s->on_closed = on_closed;
	part_from_all(s);
	uv_close((uv_handle_t *)&s->poll, on_poll_closed);
	fd_closep(&s->listener);
	fd_closep(&s->spare);
}
