/* store.c - see store.h */
#include "daemon/store/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/address.h"
#include "common/failure.h"
#include "common/fd.h"
#include "daemon/os/secret.h"
#include "daemon/store/client.h"
#include "daemon/os/port.h"

enum { BACKLOG = 65535 }; /* the kernel takes the least of this and net.core.somaxconn */

void store_note(struct store *s, const char *fmt, ...)
{
	char text[768];
	va_list ap;

	if (!s->config.on_note || s->notes > STORE_NOTES_MAX)
		return;
	s->notes++;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (s->notes > STORE_NOTES_MAX)
		(void)snprintf(text, sizeof text,
			"the store reports no further connections that it closes");
	s->config.on_note(s->config.owner, text);
}

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

static void on_dropped(struct acceptor *a)
{
	store_note(a->owner, "the store closed a connection: launchd is out of file descriptors");
}

static void on_connection(struct acceptor *a, int connection, const struct address *from)
{
	struct store *s = a->owner;
	struct address to = { 0 };
	socklen_t len = sizeof to;
	autoclose fd = connection;
	char text[ADDRESS_TEXT];
	int rc;

	if (s->emptying)
		return;
	address_text(from, text);
	if (!s->config.open &&
		(getsockname(fd, &to.any, &len) < 0 || !peers_may(&s->peers, from, &to))) {
		if (peers_is_news(&s->peers, from))
			store_note(s,
				"the store closed the connection from %s: it is not a node of this job",
				text);
		return;
	}
	rc = client_open(s, fd_take(&fd));
	if (rc < 0)
		store_note(s, "the store closed the connection from %s: %s", text, strerror(-rc));
}

/* Also when the turn is over: those who wait for theirs must not keep others from joining them. */
static void on_connections(uv_poll_t *poll, int status, int events)
{
	struct store *s = poll->data;

	(void)status, (void)events;
	(void)acceptor_run(&s->acceptor, s->listener);
}

static void on_waiting(uv_idle_t *idle)
{
	(void)idle; /* on_next_turn() follows */
}

static void on_next_turn(uv_prepare_t *turns)
{
	struct store *s = turns->data;
	struct client *c;

	s->turn = STORE_TURN;
	while (s->turn > 0 && (c = TAILQ_FIRST(&s->waiting)))
		client_resume(c);
	if (TAILQ_EMPTY(&s->waiting))
		(void)uv_idle_stop(&s->again);
	else
		(void)uv_idle_start(&s->again, on_waiting);
}

/* NULL: all. */
static const struct address *store_address(const struct store *s)
{
	return s->own.any.sa_family == AF_UNSPEC ? NULL : &s->own;
}

/* Its descriptor or negative errno. */
static int store_listen(const struct store *s, unsigned port, unsigned how)
{
	autoclose fd =
		port_bind(store_address(s), (uint16_t)port, SOCK_STREAM, PORT_BOTH_FAMILIES | how);

	if (fd >= 0 && listen(fd, BACKLOG) < 0)
		return -errno;
	return fd_take(&fd);
}

static int open_listener(struct store *s, struct failure *why)
{
	const unsigned port = s->config.port;
	int rc;

	if (s->config.addr && address_parse(s->config.addr, 0, &s->own) < 0)
		return failure_set(why, -EINVAL,
			"the store can't listen at \"%s\": it is not an IP address",
			s->config.addr);
	s->listener = rc = store_listen(s, port, 0);
	if (rc >= 0)
		rc = port_of(s->listener);
	if (rc < 0)
		return port_explain("the store ", store_address(s), (uint16_t)port, rc, why);
	s->port = (unsigned)rc;
	s->peers.loopback = !s->config.addr || address_is_loopback(&s->own);
	return 0;
}

/* Puts a new socket in the place of the one that listens, under the same number, on the same port,
 * which is open all the time. Connections that nobody has accepted are reset, those too that are
 * only about to be made: a peer that is dead by now, and whose last packets come late, gets in no
 * more. Negative errno: nothing has changed. */
static int renew_listener(const struct store *s)
{
	const int on = 1, off = 0;
	int rc = 0;

	/* for a moment both sockets share the port, with nobody of another user */
	(void)setsockopt(s->listener, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
	autoclose now = store_listen(s, s->port, PORT_SHARED);
	if (now < 0)
		rc = now;
	else if (dup3(now, s->listener, O_CLOEXEC) < 0)
		rc = -errno;
	(void)setsockopt(s->listener, SOL_SOCKET, SO_REUSEPORT, &off, sizeof off);
	return rc;
}

static int start(struct store *s, struct failure *why)
{
	uint8_t secret[SIPHASH_KEY_SIZE];
	int rc = secret_draw(secret, sizeof secret, why);

	if (rc < 0)
		return rc;
	s->room = malloc(CLIENT_READ_SIZE);
	if (!s->room)
		return failure_oom(why);
	rc = open_listener(s, why);
	if (rc < 0)
		return rc;
	acceptor_open(&s->acceptor);
	keys_init(&s->space.keys, &s->budget, secret);
	s->space.budget = &s->budget;
	s->space.tell = client_tell;
	s->space.tell_large = client_tell_large;
	rc = uv_poll_init(s->loop, &s->poll, s->listener);
	if (rc < 0)
		return failure_set(why, rc, "the store can't poll its socket: %s", uv_strerror(rc));
	(void)uv_prepare_init(s->loop, &s->turns); /* these two can't fail */
	(void)uv_idle_init(s->loop, &s->again);
	s->poll.data = s->turns.data = s->again.data = s;
	s->handles = 3;
	(void)uv_poll_start(&s->poll, UV_READABLE, on_connections);
	(void)uv_prepare_start(&s->turns, on_next_turn);
	return 0;
}

int store_open(struct store *s, uv_loop_t *loop, const struct store_config *c, struct failure *why)
{
	int rc;

	*s = (struct store){ .loop = loop,
		.listener = -1,
		.acceptor = { .on_connection = on_connection,
			.on_dropped = on_dropped,
			.owner = s,
			.spare = -1 },
		.config = *c,
		.turn = STORE_TURN,
		.budget = { .max = c->memory_max } };
	TAILQ_INIT(&s->waiting);
	rc = start(s, why);
	s->config.addr = NULL;
	if (rc < 0) {
		free(s->room);
		fd_closep(&s->listener);
		acceptor_close(&s->acceptor);
		return rc;
	}
	return 0;
}

unsigned store_port(const struct store *s)
{
	return s->port;
}

int store_allow(struct store *s, const struct address *a)
{
	return peers_allow(&s->peers, a);
}

static void part_from_all(struct store *s)
{
	while (!LIST_EMPTY(&s->clients))
		client_leave(LIST_FIRST(&s->clients));
	SLIST_INIT(&s->lost);
	space_clear(&s->space);
}

void store_next_attempt(struct store *s)
{
	part_from_all(s);
	uv_poll_stop(&s->poll); /* the number will be another socket's */
	if (renew_listener(s) < 0) {
		s->emptying = true;
		while (acceptor_run(&s->acceptor, s->listener))
			;
		s->emptying = false;
	}
	(void)uv_poll_start(&s->poll, UV_READABLE, on_connections);
	s->spoke = s->notes = 0;
}

unsigned store_keys(const struct store *s)
{
	return (unsigned)s->space.keys.with_value;
}

unsigned store_clients(const struct store *s)
{
	return s->spoke;
}

static const struct key *first_awaited(const struct guest *g)
{
	for (size_t i = 0; g->waits && i < g->filled; i++)
		if (g->waits[i].key)
			return g->waits[i].key;
	return NULL;
}

void store_waits(const struct store *s,
	void (*see)(void *to, const struct address *client, struct span key), void *to)
{
	struct client *c;

	LIST_FOREACH(c, &s->clients, of_store)
	{
		const struct key *key = first_awaited(&c->guest);
		struct address from = { 0 };
		socklen_t len = sizeof from;

		if (key && getpeername(c->fd, &from.any, &len) == 0)
			see(to, &from, (struct span){ key->name, key->len });
	}
}

void store_polls(const struct store *s,
	void (*see)(void *to, const struct address *client, unsigned polls), void *to)
{
	struct client *c;

	LIST_FOREACH(c, &s->clients, of_store)
	{
		struct address from = { 0 };
		socklen_t len = sizeof from;

		if (c->guest.polls > 0 && getpeername(c->fd, &from.any, &len) == 0)
			see(to, &from, c->guest.polls);
	}
}

static void on_own_closed(uv_handle_t *h)
{
	store_handle_closed(h->data);
}

void store_close(struct store *s, void (*on_closed)(struct store *s))
{
	s->closing = true;
	s->on_closed = on_closed;
	part_from_all(s);
	uv_close((uv_handle_t *)&s->poll, on_own_closed);
	uv_close((uv_handle_t *)&s->turns, on_own_closed);
	uv_close((uv_handle_t *)&s->again, on_own_closed);
	fd_closep(&s->listener);
	acceptor_close(&s->acceptor);
}
