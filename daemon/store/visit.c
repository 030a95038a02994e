/* visit.c - see visit.h */
#include "daemon/store/visit.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/monotonic.h"
#include "common/text.h"

/* Their numbers since torch 2.2, which only ever adds some at the end. */
enum { VALIDATE = 0, SET = 1, GET = 3, ADD = 4, CHECK = 5, WAIT = 6, CANCEL_WAIT = 12 };
enum { READY = 0, STOP_WAITING = 0, WAIT_CANCELED = 1 };
enum { VALUE_MAX = 8 << 20 }; /* torch's own limit */

static const uint32_t magic = 0x3C85F7CE;

/* Waits until the socket is ready. -ETIMEDOUT. */
static int await(int fd, short events, int64_t until_ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	for (;;) {
		int rc = poll(&p, 1, monotonic_left_ms(until_ms));

		if (rc > 0)
			return 0;
		if (rc == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

/* --- the connection --- */

void visit_close(struct visit *v)
{
	fd_closep(&v->fd);
}

/* The connection is of no use any more. */
static int broken(struct visit *v, int rc, const char *what, struct failure *why)
{
	visit_close(v);
	if (rc == -ETIMEDOUT)
		return failure_set(why, rc, "the store did not answer within %.3g s (%s)",
			v->limit_ms / 1000.0, what);
	if (rc == -ECONNRESET || rc == -EPIPE)
		return failure_set(why, rc, "the store closed the connection (%s)", what);
	return failure_set(why, rc, "the store can't be asked (%s): %s", what, strerror(-rc));
}

static int send_all(int fd, const void *bytes, size_t len, int64_t until_ms)
{
	const char *at = bytes;

	while (len > 0) {
		ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
		int rc;

		if (n > 0) {
			at += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) {
			rc = await(fd, POLLOUT, until_ms);
			if (rc < 0)
				return rc;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

static int receive(int fd, void *ret, size_t len, int64_t until_ms)
{
	char *at = ret;

	while (len > 0) {
		ssize_t n = recv(fd, at, len, 0);
		int rc;

		if (n > 0) {
			at += n;
			len -= (size_t)n;
		} else if (n == 0) {
			return -ECONNRESET;
		} else if (errno == EAGAIN) {
			rc = await(fd, POLLIN, until_ms);
			if (rc < 0)
				return rc;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

/* Connects to one address; *ret_fd is the caller's. */
static int dial(const struct addrinfo *to, int64_t until_ms, int *ret_fd)
{
	autoclose fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int error = 0, one = 1, rc;
	socklen_t size = sizeof error;

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (connect(fd, to->ai_addr, to->ai_addrlen) < 0) {
		if (errno != EINPROGRESS)
			return -errno;
		rc = await(fd, POLLOUT, until_ms);
		if (rc < 0)
			return rc;
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
			return -errno;
		if (error)
			return -error;
	}
	*ret_fd = fd_take(&fd);
	return 0;
}

static int greet(int fd, int64_t until_ms)
{
	char first[1 + sizeof magic] = { VALIDATE };

	memcpy(first + 1, &magic, sizeof magic);
	return send_all(fd, first, sizeof first, until_ms);
}

int visit_open(struct visit *v, const char *host, unsigned port, int limit_ms, struct failure *why)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *all = NULL;
	int64_t until_ms = monotonic_ms() + limit_ms;
	int rc = -EADDRNOTAVAIL, error;
	char service[16];

	v->fd = -1;
	v->limit_ms = limit_ms;
	(void)snprintf(service, sizeof service, "%u", port);
	error = getaddrinfo(host, service, &hints, &all);
	if (error)
		return failure_set(why, -EADDRNOTAVAIL, "the store's address %s is not known: %s",
			host, gai_strerror(error));
	for (const struct addrinfo *a = all; a && v->fd < 0; a = a->ai_next)
		rc = dial(a, until_ms, &v->fd);
	freeaddrinfo(all);
	if (rc == 0)
		rc = greet(v->fd, until_ms);
	if (rc == 0)
		return 0;
	visit_close(v);
	return failure_set(why, rc, "the store at %s, port %u, can't be reached: %s", host, port,
		rc == -ETIMEDOUT ? "no answer" : strerror(-rc));
}

/* --- requests --- */

/* A query and its key, and what follows the key. `many`: the query takes a count of keys. */
struct request_bytes {
	uint8_t query;
	bool many;
	const char *key;
	const void *more;
	size_t more_len;
	bool with_len; /* more is a value, whose length goes before it */
};

static void add_number(struct text *t, uint64_t n)
{
	text_add_bytes(t, (const char *)&n, sizeof n);
}

static int ask(struct visit *v, const struct request_bytes *r, int64_t until_ms)
{
	struct text t = { 0 };
	int rc;

	if (v->fd < 0)
		return -ENOTCONN;
	text_add_bytes(&t, (const char *)&r->query, sizeof r->query);
	if (r->many)
		add_number(&t, 1);
	add_number(&t, strlen(r->key));
	text_add(&t, r->key);
	if (r->with_len)
		add_number(&t, r->more_len);
	if (r->more_len > 0)
		text_add_bytes(&t, r->more, r->more_len);
	rc = t.failed ? -ENOMEM : send_all(v->fd, t.at, t.len, until_ms);
	text_done(&t);
	return rc;
}

int visit_set(struct visit *v, const char *key, const void *value, size_t len, struct failure *why)
{
	const struct request_bytes r = {
		.query = SET, .key = key, .more = value, .more_len = len, .with_len = true
	};
	int rc = ask(v, &r, monotonic_ms() + v->limit_ms);

	return rc < 0 ? broken(v, rc, key, why) : 0;
}

int visit_add(struct visit *v, const char *key, int64_t delta, int64_t *ret, struct failure *why)
{
	const struct request_bytes r = {
		.query = ADD, .key = key, .more = &delta, .more_len = sizeof delta
	};
	int64_t until_ms = monotonic_ms() + v->limit_ms, sum = 0;
	int rc = ask(v, &r, until_ms);

	if (rc == 0)
		rc = receive(v->fd, &sum, sizeof sum, until_ms);
	if (rc < 0)
		return broken(v, rc, key, why);
	*ret = sum;
	return 0;
}

/* The key has not come in time. The server may have said that it has just before it read this; what
 * it answers to this comes in any case, and last. */
static int stop_waiting(struct visit *v, const char *key, struct failure *why)
{
	const uint8_t cancel = CANCEL_WAIT;
	int64_t until_ms = monotonic_ms() + v->limit_ms;
	uint8_t said = STOP_WAITING;
	int rc = send_all(v->fd, &cancel, sizeof cancel, until_ms);
	bool came = false;

	while (rc == 0 && said != WAIT_CANCELED) {
		rc = receive(v->fd, &said, sizeof said, until_ms);
		if (rc == 0 && said > WAIT_CANCELED)
			rc = -EPROTO;
		came |= rc == 0 && said == STOP_WAITING;
	}
	if (rc < 0)
		return broken(v, rc, key, why);
	return came ? 0 : -ETIMEDOUT;
}

/* Whether the key is there now. */
static int look(struct visit *v, const char *key, struct failure *why)
{
	const struct request_bytes r = { .query = CHECK, .many = true, .key = key };
	int64_t until_ms = monotonic_ms() + v->limit_ms;
	int rc = ask(v, &r, until_ms);
	uint8_t said = READY;

	if (rc == 0)
		rc = receive(v->fd, &said, sizeof said, until_ms);
	if (rc < 0)
		return broken(v, rc, key, why);
	return said == READY ? 0 : -ETIMEDOUT;
}

int visit_wait(struct visit *v, const char *key, int wait_ms, struct failure *why)
{
	const struct request_bytes r = { .query = WAIT, .many = true, .key = key };
	uint8_t said = STOP_WAITING;
	int rc;

	if (wait_ms <= 0)
		return look(v, key, why);
	rc = ask(v, &r, monotonic_ms() + v->limit_ms);
	if (rc < 0)
		return broken(v, rc, key, why);
	rc = receive(v->fd, &said, sizeof said, monotonic_ms() + wait_ms);
	if (rc == -ETIMEDOUT)
		return stop_waiting(v, key, why);
	if (rc == 0 && said != STOP_WAITING)
		rc = -EPROTO;
	return rc < 0 ? broken(v, rc, key, why) : 0;
}

/* A value of a length that the server says. */
static int receive_value(struct visit *v, int64_t until_ms, struct text *ret)
{
	uint64_t left = 0;
	int rc = receive(v->fd, &left, sizeof left, until_ms);

	if (rc == 0 && left > VALUE_MAX)
		return -EPROTO;
	while (rc == 0 && left > 0) {
		char some[4096];
		size_t len = left < sizeof some ? (size_t)left : sizeof some;

		rc = receive(v->fd, some, len, until_ms);
		if (rc == 0)
			text_add_bytes(ret, some, len);
		left -= len;
	}
	return rc == 0 && ret->failed ? -ENOMEM : rc;
}

int visit_get(struct visit *v, const char *key, int wait_ms, struct text *ret, struct failure *why)
{
	const struct request_bytes r = { .query = GET, .key = key };
	int rc = visit_wait(v, key, wait_ms, why);
	int64_t until_ms;

	if (rc < 0)
		return rc;
	until_ms = monotonic_ms() + v->limit_ms;
	rc = ask(v, &r, until_ms);
	if (rc == 0)
		rc = receive_value(v, until_ms, ret);
	return rc < 0 ? broken(v, rc, key, why) : 0;
}
