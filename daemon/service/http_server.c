/* http_server.c - see http_server.h */
#include "daemon/service/http_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/address.h"
#include "common/failure.h"
#include "common/fd.h"
#include "common/sm.h"
#include "common/text.h"
#include "daemon/os/port.h"
#include "daemon/service/http.h"

enum {
	BACKLOG = 4096, /* the kernel cuts it to net.core.somaxconn */
	TICK_MS = 1000,
	LINGER_MS = 2000, /* for a reader to close, when it has all */
};

#define PAGE_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct visitor {
	struct http_server *server;
	enum visitor_state state;
	int fd;
	uv_poll_t poll;
	uint64_t due_ms; /* uv_now() */
	uint64_t moved;  /* the server's count when it came or took something */
	size_t got;
	struct text answer;
	size_t sent;
	char request[HTTP_REQUEST_MAX];
};

static const struct sm_state states[VISITOR_STATES] = {
	[VISITOR_FREE] = { "free", SM_TO(VISITOR_READING) },
	[VISITOR_READING] = { "reading", SM_TO(VISITOR_WRITING) | SM_TO(VISITOR_CLOSING) },
	[VISITOR_WRITING] = { "writing", SM_TO(VISITOR_LINGERING) | SM_TO(VISITOR_CLOSING) },
	[VISITOR_LINGERING] = { "lingering", SM_TO(VISITOR_CLOSING) },
	[VISITOR_CLOSING] = { "closing", SM_TO(VISITOR_FREE) },
};

const struct sm visitor_life = { "visitor", states, VISITOR_STATES };

static void on_visitor(uv_poll_t *p, int status, int events);
static void on_listening(uv_poll_t *p, int status, int events);
static void on_visitor_closed(uv_handle_t *h);

static void visitor_goto(struct visitor *v, enum visitor_state next)
{
	v->state = sm_go(&visitor_life, v->state, next);
	if (next == VISITOR_READING || next == VISITOR_LINGERING)
		(void)uv_poll_start(&v->poll, UV_READABLE, on_visitor); /* these can't fail */
	else if (next == VISITOR_WRITING)
		(void)uv_poll_start(&v->poll, UV_WRITABLE, on_visitor);
	if (next != VISITOR_CLOSING)
		return;
	uv_close((uv_handle_t *)&v->poll, on_visitor_closed);
	fd_closep(&v->fd); /* libuv polls it no more */
}

static void free_if_over(struct http_server *s)
{
	if (s->handles > 0 || s->open > 0)
		return;
	free(s->visitors);
	s->visitors = NULL;
}

static void listen_again(struct http_server *s)
{
	if (s->listening >= 0)
		(void)uv_poll_start(&s->poll, UV_READABLE, on_listening);
}

static void on_visitor_closed(uv_handle_t *h)
{
	struct visitor *v = h->data;
	struct http_server *s = v->server;

	visitor_goto(v, VISITOR_FREE);
	text_done(&v->answer);
	s->open--;
	if (s->open == 0 && s->listening >= 0)
		(void)uv_timer_stop(&s->clock);
	listen_again(s);
	free_if_over(s);
}

/* What its request comes to. */
static void answer(struct visitor *v, enum http_status status, const struct http_request *r)
{
	struct http_server *s = v->server;
	struct text body = { 0 };

	if (status == HTTP_OK &&
		(r->path_len != strlen("/metrics") ||
			memcmp(r->path, "/metrics", r->path_len) != 0))
		status = HTTP_NOT_FOUND;
	if (status == HTTP_OK)
		s->page(s->owner, &body);
	else
		text_add(&body, status == HTTP_NOT_FOUND ? "See /metrics\n" : "GET /metrics\n");
	http_add_head(&v->answer, status, status == HTTP_OK ? PAGE_TYPE : "text/plain", body.len);
	if (!r->head)
		text_add_bytes(&v->answer, text_string(&body), body.len);
	if (body.failed || v->answer.failed)
		visitor_goto(v, VISITOR_CLOSING);
	else
		visitor_goto(v, VISITOR_WRITING);
	text_done(&body);
}

static void read_request(struct visitor *v)
{
	ssize_t n = recv(v->fd, v->request + v->got, sizeof v->request - v->got, 0);
	struct http_request r = { .head = false };
	enum http_status status;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		visitor_goto(v, VISITOR_CLOSING);
		return;
	}
	v->got += (size_t)n;
	status = http_read(v->request, v->got, &r);
	if (status != HTTP_UNFINISHED)
		answer(v, status, &r);
}

static void write_answer(struct visitor *v)
{
	ssize_t n = send(v->fd, v->answer.at + v->sent, v->answer.len - v->sent, MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		visitor_goto(v, VISITOR_CLOSING);
		return;
	}
	v->sent += (size_t)n;
	v->moved = ++v->server->moves;
	if (v->sent < v->answer.len)
		return;
	if (shutdown(v->fd, SHUT_WR) < 0) {
		visitor_goto(v, VISITOR_CLOSING);
		return;
	}
	v->due_ms = uv_now(v->poll.loop) + LINGER_MS;
	visitor_goto(v, VISITOR_LINGERING);
}

/* Until its reader closes. Were a byte of it unread when we do, the kernel would reset the
 * connection, and with it throw away what the reader has not read. */
static void linger(struct visitor *v)
{
	ssize_t n = recv(v->fd, v->request, sizeof v->request, 0);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		visitor_goto(v, VISITOR_CLOSING);
}

static void on_visitor(uv_poll_t *p, int status, int events)
{
	struct visitor *v = p->data;

	(void)status, (void)events;
	if (v->state == VISITOR_READING)
		read_request(v);
	else if (v->state == VISITOR_WRITING)
		write_answer(v);
	else if (v->state == VISITOR_LINGERING)
		linger(v);
}

/* One that has all it wanted, else one that has not moved for the longest. A request that comes
 * byte by byte does not move: its crowd would stay, and the one whose request is on its way go. */
static bool goes_before(const struct visitor *a, const struct visitor *b)
{
	bool has_all = a->state == VISITOR_LINGERING;

	return has_all == (b->state == VISITOR_LINGERING) ? a->moved < b->moved : has_all;
}

/* Closes one to make room; it is free in the loop's next turn. False: there is none. */
static bool visitor_evict(struct http_server *s)
{
	struct visitor *first = NULL;

	for (unsigned i = 0; i < HTTP_VISITORS; i++) {
		struct visitor *v = &s->visitors[i];

		if (v->state != VISITOR_FREE && v->state != VISITOR_CLOSING &&
			(!first || goes_before(v, first)))
			first = v;
	}
	if (first)
		visitor_goto(first, VISITOR_CLOSING);
	return first != NULL;
}

/* No descriptor is left. */
static bool visitor_give_up(struct acceptor *a)
{
	return visitor_evict(a->owner);
}

static void on_tick(uv_timer_t *t)
{
	struct http_server *s = t->data;

	for (unsigned i = 0; i < HTTP_VISITORS; i++) {
		struct visitor *v = &s->visitors[i];

		if (v->state != VISITOR_FREE && v->state != VISITOR_CLOSING &&
			uv_now(t->loop) >= v->due_ms)
			visitor_goto(v, VISITOR_CLOSING);
	}
}

static void welcome(struct acceptor *a, int fd, const struct address *from)
{
	struct http_server *s = a->owner;
	struct visitor *v = s->visitors;

	(void)from;
	while (v->state != VISITOR_FREE) /* one is: see on_listening() */
		v++;
	if (uv_poll_init(s->clock.loop, &v->poll, fd) < 0) {
		(void)close(fd);
		return;
	}
	v->server = s;
	v->fd = fd;
	v->poll.data = v;
	v->got = v->sent = 0;
	v->moved = ++s->moves;
	v->due_ms = uv_now(s->clock.loop) + HTTP_PATIENCE_MS;
	visitor_goto(v, VISITOR_READING);
	if (s->open++ == 0)
		(void)uv_timer_start(&s->clock, on_tick, TICK_MS, TICK_MS);
	read_request(v); /* now: a crowd behind it can't push it out before it has its answer */
	if (v->state == VISITOR_WRITING)
		write_answer(v);
}

/* If all places are taken, one makes room for the next, which waits in the kernel until then. */
static void on_listening(uv_poll_t *p, int status, int events)
{
	struct http_server *s = p->data;

	(void)status, (void)events;
	s->acceptor.at_once = HTTP_VISITORS - s->open;
	if (s->acceptor.at_once > 0) {
		(void)acceptor_run(&s->acceptor, s->listening);
		return;
	}
	(void)uv_poll_stop(&s->poll);
	(void)visitor_evict(s);
}

/* Negative errno: there is no such socket. */
static int listen_at(const struct address *at)
{
	autoclose fd = port_bind(
		at, address_port(at), SOCK_STREAM, address_is_any(at) ? PORT_BOTH_FAMILIES : 0);

	if (fd < 0)
		return fd;
	return listen(fd, BACKLOG) < 0 ? -errno : fd_take(&fd);
}

int http_server_open(struct http_server *s, const struct address *at, struct failure *why)
{
	struct failure cause = { 0 };

	s->acceptor = (struct acceptor){
		.on_connection = welcome, .make_room = visitor_give_up, .owner = s, .spare = -1
	};
	s->open = s->handles = 0;
	s->moves = 0;
	s->in_loop = false;
	s->listening = listen_at(at);
	if (s->listening < 0) {
		(void)port_explain("", at, address_port(at), s->listening, &cause);
		return failure_usage(why, "--metrics-listen: %s", cause.text);
	}
	s->visitors = calloc(HTTP_VISITORS, sizeof *s->visitors);
	if (s->visitors)
		return 0;
	fd_closep(&s->listening);
	return failure_oom(why);
}

int http_server_enter(struct http_server *s, uv_loop_t *loop, struct failure *why)
{
	int rc = uv_poll_init(loop, &s->poll, s->listening);

	if (rc < 0)
		return failure_set(why, rc, "--metrics-listen: %s", uv_strerror(rc));
	(void)uv_timer_init(loop, &s->clock); /* can't fail */
	s->poll.data = s->clock.data = s;
	s->handles = 2;
	s->in_loop = true;
	acceptor_open(&s->acceptor);
	listen_again(s);
	return 0;
}

static void on_handle_closed(uv_handle_t *h)
{
	struct http_server *s = h->data;

	s->handles--;
	free_if_over(s);
}

void http_server_close(struct http_server *s)
{
	if (s->listening < 0)
		return;
	if (s->in_loop) {
		acceptor_close(&s->acceptor);
		uv_close((uv_handle_t *)&s->poll, on_handle_closed);
		uv_close((uv_handle_t *)&s->clock, on_handle_closed);
		for (unsigned i = 0; i < HTTP_VISITORS; i++)
			if (s->visitors[i].state != VISITOR_FREE &&
				s->visitors[i].state != VISITOR_CLOSING)
				visitor_goto(&s->visitors[i], VISITOR_CLOSING);
	}
	fd_closep(&s->listening);
	free_if_over(s);
}
