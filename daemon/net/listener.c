/* listener.c - see listener.h */
#include "daemon/net/listener.h"

#include <errno.h>
#include <sys/epoll.h>

#include "common/failure.h"
#include "common/fd.h"
#include "daemon/os/port.h"

enum {
	TRIES = 32, /* to find a port that is free at all addresses */
	BACKLOG = 4096,
	BUFFER = 4 << 20, /* of a socket for beats; the kernel limits it */
};

static void close_sockets(struct listener *li)
{
	for (unsigned i = 0; i < ADDRESSES_MAX; i++) {
		fd_closep(&li->fd[i]);
		fd_closep(&li->udp[i]);
	}
	fd_closep(&li->epoll);
	acceptor_close(&li->acceptor);
	li->count = 0;
}

/* Adds an address (NULL: all). UDP may fail if the port was given. */
static int add(struct listener *li, const struct address *a, bool chosen)
{
	struct epoll_event e = { .events = EPOLLIN };
	unsigned i = li->count;
	const int buffer = BUFFER;
	int rc = port_bind(a, li->port, SOCK_STREAM, 0);

	if (rc < 0)
		return rc;
	li->fd[i] = rc;
	li->count++;
	if (listen(li->fd[i], BACKLOG) < 0)
		return -errno;
	if (li->port == 0 && (rc = port_of(li->fd[i])) < 0)
		return rc;
	li->port = li->port ? li->port : (uint16_t)rc;
	rc = port_bind(a, li->port, SOCK_DGRAM, 0);
	if (rc < 0 && (chosen || rc != -EADDRINUSE))
		return rc;
	li->udp[i] = rc < 0 ? -1 : rc;
	li->has_udp = li->has_udp && rc >= 0;
	(void)setsockopt(li->udp[i], SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
	return epoll_ctl(li->epoll, EPOLL_CTL_ADD, li->fd[i], &e) < 0 ? -errno : 0;
}

/* All of them on one port, or none. *ret_at: the address that failed, if it was one. */
static int add_all(struct listener *li, const struct addresses *at, uint16_t port,
	const struct address **ret_at)
{
	int rc = 0;

	li->port = port;
	li->has_udp = true;
	*ret_at = NULL;
	li->epoll = epoll_create1(EPOLL_CLOEXEC);
	acceptor_open(&li->acceptor);
	if (li->epoll < 0)
		rc = -errno;
	else if (at->count == 0)
		rc = add(li, NULL, port == 0);
	for (unsigned i = 0; rc == 0 && i < at->count; i++) {
		*ret_at = &at->at[i];
		rc = add(li, &at->at[i], port == 0);
	}
	if (rc < 0)
		close_sockets(li);
	return rc;
}

static void unlist(struct link *l)
{
	struct listener *li = l->listener;

	if (l->pending_next)
		l->pending_next->pending_previous = l->pending_previous;
	else
		li->last = l->pending_previous;
	if (l->pending_previous)
		l->pending_previous->pending_next = l->pending_next;
	else
		li->first = l->pending_next;
	l->pending_next = l->pending_previous = NULL;
	li->pending--;
}

static void list(struct listener *li, struct link *l)
{
	l->listener = li;
	l->on_settled = unlist;
	l->pending_next = li->first;
	if (li->first)
		li->first->pending_previous = l;
	else
		li->last = l;
	li->first = l;
	li->pending++;
}

/* Peers that connect and stay silent must not keep others out. Returns the one to drop before there
 * is room for another from there: the oldest, which had the most time. NULL: there is room. */
static struct link *find_excess(const struct listener *li, const struct address *from)
{
	unsigned max = li->source_max ? li->source_max : LISTENER_PENDING_SOURCE;
	struct link *oldest = NULL;
	unsigned same = 0;

	for (struct link *l = li->first; l; l = l->pending_next)
		if (address_same_host(&l->peer_address, from)) {
			oldest = l;
			same++;
		}
	if (same >= max)
		return oldest;
	return li->pending >= (li->pending_max ? li->pending_max : LISTENER_PENDING) ? li->last :
										       NULL;
}

/* Frees its descriptor at once. */
static void drop(struct listener *li, struct link *l, const struct address *newest)
{
	if (li->on_crowded)
		li->on_crowded(li, newest);
	l->on_settled = NULL;
	unlist(l);
	link_close(l, false, "it had not completed the handshake when too many others connected");
}

static void take(struct acceptor *a, int connection, const struct address *from)
{
	struct listener *li = a->owner;
	autoclose fd = connection;
	struct link *excess = find_excess(li, from), *l;

	if (excess)
		drop(li, excess, from);
	l = li->on_accept(li);
	if (!l)
		return;
	list(li, l);
	if (link_accept(l, li->loop, fd, from, li->has_udp, li->auth) == 0)
		(void)fd_take(&fd);
}

/* The oldest one in a handshake gives up its descriptor. */
static bool make_room(struct acceptor *a)
{
	struct listener *li = a->owner;
	bool had = li->last != NULL;

	li->starved = true;
	if (had)
		drop(li, li->last, &li->first->peer_address);
	return had;
}

static void on_connection(uv_poll_t *h, int status, int events)
{
	struct listener *li = h->data;

	(void)status, (void)events;
	for (unsigned i = 0; i < li->count; i++)
		(void)acceptor_run(&li->acceptor, li->fd[i]);
}

int listener_open(struct listener *li, uv_loop_t *loop, const struct addresses *at, uint16_t port,
	struct failure *why)
{
	const struct address *failed = NULL;
	int rc = -EADDRINUSE;

	li->epoll = -1;
	li->acceptor = (struct acceptor){
		.on_connection = take, .make_room = make_room, .owner = li, .spare = -1
	};
	for (unsigned i = 0; i < ADDRESSES_MAX; i++)
		li->fd[i] = li->udp[i] = -1;
	for (int i = 0; rc == -EADDRINUSE && i < (port ? 1 : TRIES); i++)
		rc = add_all(li, at, port, &failed);
	if (rc == 0 && (rc = uv_poll_init(loop, &li->poll, li->epoll)) < 0)
		close_sockets(li);
	if (rc < 0)
		return port_explain("", failed, port, rc, why);
	li->loop = loop;
	li->poll.data = li;
	(void)uv_poll_start(&li->poll, UV_READABLE, on_connection); /* a new watch: can't fail */
	return 0;
}

static void on_poll_closed(uv_handle_t *h)
{
	struct listener *li = h->data;

	close_sockets(li);
	if (li->on_closed)
		li->on_closed(li);
}

void listener_close(struct listener *li)
{
	if (li->count == 0 || uv_is_closing((uv_handle_t *)&li->poll))
		return;
	while (li->first) {
		li->first->on_settled = NULL;
		unlist(li->first);
	}
	acceptor_close(&li->acceptor);
	for (unsigned i = 0; i < li->count; i++)
		fd_closep(&li->fd[i]); /* from now on the port is free */
	uv_close((uv_handle_t *)&li->poll, on_poll_closed);
}
