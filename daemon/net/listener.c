/* listener.c - see listener.h */
#include "daemon/net/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "daemon/os/peers.h"
#include "daemon/os/process.h"
#include "daemon/os/sockets.h"

enum {
	TRIES = 32,   /* to find a port that is free at all addresses */
	AT_ONCE = 64, /* connections that are taken before other events have their turn */
	BACKLOG = 4096,
	BUFFER = 4 << 20, /* of a socket for beats; the kernel cuts it to what is allowed */
};

static void close_sockets(struct listener *li)
{
	for (unsigned i = 0; i < LISTENER_ADDRESSES; i++) {
		fd_closep(&li->fd[i]);
		fd_closep(&li->udp[i]);
	}
	fd_closep(&li->epoll);
	fd_closep(&li->spare);
	li->count = 0;
}

/* A socket bound to the address at a port. Negative errno, or the descriptor. */
static int bind_at(const struct sockaddr *a, uint16_t port, int type, bool both_families)
{
	const int on = 1, v6_only = !both_families, buffer = BUFFER;
	struct sockaddr_storage at = { 0 };
	autoclose fd = socket(a->sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	memcpy(&at, a, address_size(a));
	address_set_port((struct sockaddr *)&at, port);
	if (a->sa_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof v6_only);
	if (type == SOCK_STREAM) /* connections of a launcher that has just ended may linger */
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	else
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
	if (bind(fd, (struct sockaddr *)&at, address_size(a)) < 0)
		return -errno;
	if (type == SOCK_STREAM && listen(fd, BACKLOG) < 0)
		return -errno;
	return fd_take(&fd);
}

static int port_of(int fd, uint16_t *ret)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof a;

	if (getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		return -errno;
	*ret = address_port((struct sockaddr *)&a);
	return 0;
}

/* One more address. UDP may fail where the port was given. */
static int add(struct listener *li, const struct sockaddr *a, bool any, bool chosen)
{
	struct epoll_event e = { .events = EPOLLIN };
	unsigned i = li->count;
	int rc = bind_at(a, li->port, SOCK_STREAM, any);

	if (rc < 0)
		return rc;
	li->fd[i] = rc;
	li->count++;
	if (li->port == 0 && (rc = port_of(li->fd[i], &li->port)) < 0)
		return rc;
	rc = bind_at(a, li->port, SOCK_DGRAM, any);
	if (rc < 0 && (chosen || rc != -EADDRINUSE))
		return rc;
	li->udp[i] = rc < 0 ? -1 : rc;
	li->has_udp = li->has_udp && rc >= 0;
	return epoll_ctl(li->epoll, EPOLL_CTL_ADD, li->fd[i], &e) < 0 ? -errno : 0;
}

static int add_any(struct listener *li, bool chosen)
{
	const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	const struct sockaddr_in v4 = { .sin_family = AF_INET };
	int rc = add(li, (const struct sockaddr *)&v6, true, chosen);

	if (rc == -EAFNOSUPPORT || rc == -EADDRNOTAVAIL) /* a host without IPv6 */
		rc = add(li, (const struct sockaddr *)&v4, true, chosen);
	return rc;
}

/* All of them at one port, or nothing. *ret_at: the address that failed, if it was one. */
static int add_all(struct listener *li, const struct sockaddr *const *addresses, unsigned count,
	uint16_t port, const struct sockaddr **ret_at)
{
	int rc = 0;

	li->port = port;
	li->has_udp = true;
	*ret_at = NULL;
	li->epoll = epoll_create1(EPOLL_CLOEXEC);
	li->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (li->epoll < 0)
		rc = -errno;
	else if (count == 0)
		rc = add_any(li, port == 0);
	for (unsigned i = 0; rc == 0 && i < count; i++) {
		*ret_at = addresses[i];
		rc = add(li, addresses[i], false, port == 0);
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

/* Who connects and says nothing must not keep others out: one that has to go before there is room
 * for another from there, the oldest, which had the most time. NULL: there is room. */
static struct link *find_excess(const struct listener *li, const struct sockaddr *from)
{
	unsigned max = li->source_max ? li->source_max : LISTENER_PENDING_SOURCE;
	struct link *oldest = NULL;
	unsigned same = 0;

	for (struct link *l = li->first; l; l = l->pending_next)
		if (address_same_host((const struct sockaddr *)&l->peer_address, from)) {
			oldest = l;
			same++;
		}
	if (same >= max)
		return oldest;
	return li->pending >= (li->pending_max ? li->pending_max : LISTENER_PENDING) ? li->last :
										       NULL;
}

/* Its descriptor is free at once. */
static void drop(struct listener *li, struct link *l, const struct sockaddr *newest)
{
	if (li->on_crowded)
		li->on_crowded(li, newest);
	l->on_settled = NULL;
	unlist(l);
	link_close(l, false, "it had not introduced itself when too many others came");
}

static void take(struct listener *li, int connection, const struct sockaddr *from, bool udp)
{
	autoclose fd = connection;
	struct link *excess = find_excess(li, from), *l;

	if (excess)
		drop(li, excess, from);
	l = li->on_accept(li, from);
	if (!l) {
		li->refused++;
		return;
	}
	list(li, l);
	if (link_accept(l, li->loop, fd, from, udp, li->auth) == 0)
		(void)fd_take(&fd);
	else
		li->refused++;
}

/* No descriptor is left: the oldest one in a handshake gives up its own. Else the connection is
 * taken with the spare one and dropped, as otherwise it would be announced without end. */
static bool make_room(struct listener *li, int fd)
{
	bool had = li->spare >= 0;
	autoclose dropped = -1;

	li->starved = true;
	if (li->last) {
		drop(li, li->last, (const struct sockaddr *)&li->first->peer_address);
		return true;
	}
	fd_closep(&li->spare);
	dropped = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	had = had && dropped >= 0;
	fd_closep(&dropped);
	li->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	li->refused += had;
	return had;
}

/* False: there is none any more. */
static bool accept_one(struct listener *li, int fd, bool udp)
{
	struct sockaddr_storage from = { 0 };
	socklen_t len = sizeof from;
	int connection = accept4(fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (connection >= 0) {
		take(li, connection, (struct sockaddr *)&from, udp);
		return true;
	}
	if (errno == EMFILE || errno == ENFILE)
		return make_room(li, fd);
	return errno != EAGAIN && errno != ENOMEM &&
		errno != ENOBUFS; /* else: it broke meanwhile */
}

static void on_connection(uv_poll_t *h, int status, int events)
{
	struct listener *li = h->data;

	(void)status, (void)events;
	for (unsigned i = 0; i < li->count; i++)
		for (int n = 0; n < AT_ONCE && !uv_is_closing((uv_handle_t *)h); n++)
			if (!accept_one(li, li->fd[i], li->has_udp))
				break;
}

/* The address in question (NULL: any) and its port, which names where it was given. */
static void place_text(const struct sockaddr *at, uint16_t port, char *ret, size_t room)
{
	struct sockaddr_storage shown = { 0 };
	char text[ADDRESS_TEXT] = "any port";

	if (at && port) {
		memcpy(&shown, at, address_size(at));
		address_set_port((struct sockaddr *)&shown, port);
		address_text((struct sockaddr *)&shown, text);
	} else if (at) {
		address_host_text(at, text);
	} else if (port) {
		(void)snprintf(text, sizeof text, "port %u", port);
	}
	(void)snprintf(ret, room, "%s %s", at ? "at" : "on", text);
}

static int cannot_listen(const struct sockaddr *at, uint16_t port, int rc, struct failure *why)
{
	struct peer addr = { 0 }; /* any */
	char place[ADDRESS_TEXT + 4], command[16];
	pid_t pid;

	place_text(at, port, place, sizeof place);
	if (at)
		(void)peer_make(at, &addr); /* of a known family: it has a socket */
	if (rc != -EADDRINUSE || sockets_find_listener(&addr, port, &pid, command) < 0)
		return failure_set(why, rc, "can't listen %s: %s", place, strerror(-rc));
	return failure_set(why, rc, "can't listen %s: %s (pid %d) listens there", place,
		strcmp(command, SUPERVISOR_NAME) == 0 ? "another launchd" : command, (int)pid);
}

int listener_open(struct listener *li, uv_loop_t *loop, const struct sockaddr *const *addresses,
	unsigned count, uint16_t port, struct failure *why)
{
	const struct sockaddr *at = NULL;
	int rc = -EADDRINUSE;

	if (count > LISTENER_ADDRESSES)
		return failure_set(
			why, -EINVAL, "more than %d addresses to listen at", LISTENER_ADDRESSES);
	li->epoll = li->spare = -1;
	for (unsigned i = 0; i < LISTENER_ADDRESSES; i++)
		li->fd[i] = li->udp[i] = -1;
	for (int i = 0; rc == -EADDRINUSE && i < (port ? 1 : TRIES); i++)
		rc = add_all(li, addresses, count, port, &at);
	if (rc == 0 && (rc = uv_poll_init(loop, &li->poll, li->epoll)) < 0)
		close_sockets(li);
	if (rc < 0)
		return cannot_listen(at, port, rc, why);
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
	for (unsigned i = 0; i < li->count; i++)
		fd_closep(&li->fd[i]); /* from now on the port is free */
	uv_close((uv_handle_t *)&li->poll, on_poll_closed);
}
