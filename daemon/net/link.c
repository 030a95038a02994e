/* link.c - see link.h */
#include "daemon/net/link.h"

#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/signame.h"
#include "common/sm.h"
#include "daemon/net/talk.h"
#include "daemon/os/secret.h"

static const struct sm_state states[LINK_STATES] = {
	/* CLOSED: out of memory when it was accepted */
	[LINK_IDLE] = { "idle", SM_TO(LINK_CONNECTING) | SM_TO(LINK_CLOSED) },
	[LINK_CONNECTING] = { "connecting", SM_TO(LINK_HELLO) | SM_TO(LINK_CLOSING) },
	[LINK_HELLO] = { "hello", SM_TO(LINK_PROOF) | SM_TO(LINK_CLOSING) },
	[LINK_PROOF] = { "proof", SM_TO(LINK_OPEN) | SM_TO(LINK_CLOSING) },
	[LINK_OPEN] = { "open", SM_TO(LINK_DRAINING) | SM_TO(LINK_CLOSING) },
	[LINK_DRAINING] = { "draining", SM_TO(LINK_CLOSING) },
	[LINK_CLOSING] = { "closing", SM_TO(LINK_CLOSED) },
	[LINK_CLOSED] = { "closed", 0 },
};
const struct sm link_life = { "link", states, LINK_STATES };

/* The handshake is over, successfully or not. */
static void settle(struct link *l)
{
	void (*tell)(struct link *) = l->on_settled;

	l->on_settled = NULL;
	if (tell)
		tell(l);
}

void link_goto(struct link *l, enum link_state next)
{
	l->state = sm_go(&link_life, l->state, next);
	if (next < LINK_OPEN || next == LINK_CLOSED)
		return;
	/* a connection that resumes a link still waits for the hub's RESUME */
	if (!l->resumes || next != LINK_OPEN)
		(void)uv_timer_stop(&l->limit);
	settle(l);
}

void link_handle_closed(struct link *l)
{
	if (--l->handles > 0)
		return;
	frame_stream_done(&l->in);
	kept_done(&l->kept);
	link_goto(l, LINK_CLOSED);
	l->on_closed(l, l->why);
}

static void on_handle_closed(uv_handle_t *h)
{
	link_handle_closed(h->data);
}

static void on_tcp_closed(uv_handle_t *h)
{
	struct link *l = h->data;

	free(h);
	link_handle_closed(l);
}

static void close_tcp(struct link *l)
{
	if (l->tcp)
		uv_close((uv_handle_t *)l->tcp, on_tcp_closed);
	l->tcp = NULL;
}

/* Closes it by a reset, as EOF would tell the peer that this process has died. */
static void abort_tcp(struct link *l)
{
	const struct linger now = { .l_onoff = 1, .l_linger = 0 };
	uv_os_fd_t fd;

	if (l->tcp && uv_fileno((uv_handle_t *)l->tcp, &fd) == 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
	close_tcp(l);
}

/* From here on neither owner nor watcher hears of it. */
static void end_talk(struct link *l)
{
	const struct link_watcher *watcher = l->beats.watcher;

	if (watcher)
		watcher->on_ending(l);
	l->beats.watcher = NULL;
}

/* Everything except the connection that may replace it. */
static void shut_one(struct link *l)
{
	link_goto(l, LINK_CLOSING);
	end_talk(l);
	if (l->resumes && !l->moved && l->resumes->state < LINK_CLOSING)
		abort_tcp(l); /* the hub may use it already */
	else
		close_tcp(l);
	uv_close((uv_handle_t *)&l->limit, on_handle_closed);
	if (l->has_udp)
		uv_close((uv_handle_t *)&l->udp, on_handle_closed);
}

static bool is_out_of_use(const struct link *l)
{
	return l->state == LINK_IDLE || l->state >= LINK_CLOSING;
}

/* The owner ends it, unless it has ended before. */
static void end_here(struct link *l, const char *why)
{
	if (l->end != LINK_END_NONE)
		return;
	l->end = LINK_END_OURS;
	(void)snprintf(l->why, sizeof l->why, "%s", why ? why : "closed here");
}

static void shut(struct link *l)
{
	if (l->state >= LINK_CLOSING)
		return;
	shut_one(l);
	if (!l->fresh || is_out_of_use(l->fresh))
		return;
	end_here(l->fresh, NULL);
	shut_one(l->fresh);
}

void link_fail(struct link *l, enum link_end end, const char *fmt, ...)
{
	va_list args;

	if (l->end == LINK_END_NONE) {
		l->end = end;
		va_start(args, fmt);
		(void)vsnprintf(l->why, sizeof l->why, fmt, args);
		va_end(args);
	}
	shut(l);
}

static void on_limit(uv_timer_t *t)
{
	struct link *l = t->data;

	if (l->state == LINK_CONNECTING)
		link_fail(l, LINK_END_UNREACHED, "%s did not answer within %d s", l->peer,
			LINK_HANDSHAKE_MS / 1000);
	else
		link_fail(l, LINK_END_MUTE, "%s did not complete the handshake within %d s",
			l->peer, LINK_HANDSHAKE_MS / 1000);
}

static void on_room(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
	struct link *l = h->data;
	unsigned char *at = NULL;
	size_t len = 0;

	(void)suggested;
	(void)frame_stream_room(&l->in, &at, &len); /* without memory libuv reports ENOBUFS */
	*buf = uv_buf_init((char *)at, (unsigned)len);
}

void link_give_up(struct link *l)
{
	if (l->killed_by)
		link_fail(l, LINK_END_LOST, "its supervisor was killed by %s",
			signal_name(l->killed_by));
	else if (l->eof)
		link_fail(l, LINK_END_LOST, "the connection to %s ended", l->peer);
	else
		link_fail(l, LINK_END_LOST, "the connection to %s broke: %s", l->peer,
			strerror(-l->broke));
}

/* The peer has died. Once the job has begun, its guard may tell how: the watcher waits for that. */
static void end_unsaid(struct link *l)
{
	l->eof = true;
	l->broke_ns = uv_hrtime();
	close_tcp(l);
	if (l->beats.watcher && l->beats.entrusted)
		l->beats.watcher->on_change(l);
	else
		link_give_up(l);
}

/* The connection broke without CLOSE. Unless it is watched, the link ends. */
static void lose_connection(struct link *l, int rc)
{
	l->broke = rc;
	if (!l->beats.watcher) {
		link_give_up(l);
	} else if (l->tcp) {
		l->broke_ns = uv_hrtime();
		abort_tcp(l);
		l->beats.watcher->on_change(l);
	}
}

/* A frame that could not be written at once. */
struct outgoing {
	uv_write_t request;
	unsigned char bytes[];
};

/* A broken connection is left to the reader to find, as the peer's last bytes are still to be read.
 * If a write was told of a reset, reading later ends as if by a regular EOF: so that is noted. */
static void write_failed(struct link *l, int rc)
{
	l->was_reset = l->was_reset || rc == UV_ECONNRESET;
	if (rc != UV_EPIPE && rc != UV_ECONNRESET && l->state < LINK_CLOSING)
		lose_connection(l, rc);
}

static size_t queued(const struct link *l)
{
	return l->tcp ? uv_stream_get_write_queue_size((const uv_stream_t *)l->tcp) : 0;
}

bool link_is_idle(const struct link *l)
{
	if (l->state != LINK_OPEN)
		return false;
	return l->tcp ? queued(l) == 0 : l->kept.acked == kept_sent(&l->kept);
}

/* The request may belong to a connection that was given up. */
static void on_written(uv_write_t *r, int status)
{
	struct link *l = r->data;
	bool current = r->handle == (uv_stream_t *)l->tcp;

	free(r);
	if (!current)
		return;
	if (status < 0)
		write_failed(l, status);
	else if (l->on_idle && link_is_idle(l))
		l->on_idle(l);
}

/* Queues the rest of a buffer of which n bytes went out at once. 0 or negative errno. */
static int queue(struct link *l, struct outgoing *o, uv_buf_t rest, size_t n)
{
	int rc;

	rest.base += n;
	rest.len -= n;
	o->request.data = l;
	rc = uv_write(&o->request, (uv_stream_t *)l->tcp, &rest, 1, on_written);
	if (rc < 0)
		free(o);
	return rc;
}

/* Writes as much as possible at once. Takes o, which holds the bytes. 0 or negative errno. */
static int write_out(struct link *l, struct outgoing *o, uv_buf_t buf)
{
	int rc = uv_try_write((uv_stream_t *)l->tcp, &buf, 1);

	if (rc >= 0 ? (size_t)rc < buf.len : rc == UV_EAGAIN)
		return queue(l, o, buf, rc < 0 ? 0 : (size_t)rc);
	free(o);
	return rc < 0 ? rc : 0;
}

/* Whether so many bytes more may be queued. If pieces have already delivered what waits for TCP,
 * TCP is given up. */
static bool has_room(struct link *l, size_t size)
{
	size_t waits = queued(l);

	if (waits + size > LINK_QUEUE_MAX && l->kept.acked > kept_sent(&l->kept) - waits)
		lose_connection(l, -ETIMEDOUT);
	if (l->state >= LINK_CLOSING)
		return false;
	if (!l->tcp)
		waits = kept_sent(&l->kept) - l->kept.acked;
	if (waits + size > LINK_QUEUE_MAX)
		link_fail(l, LINK_END_FULL, "%s has not read the last %zu bytes", l->peer, waits);
	return l->state < LINK_CLOSING;
}

/* Keeps what belongs to the stream, which begins after the handshake. -ENOMEM. */
static int keep(struct link *l, unsigned type, uv_buf_t buf)
{
	if (type <= FRAME_READY || l->unkept)
		return 0;
	if (l->unacked_ns == 0)
		l->unacked_ns = uv_hrtime();
	return kept_add(&l->kept, buf.base, buf.len);
}

int link_put(struct link *l, unsigned type, const void *payload, size_t len)
{
	size_t size = frame_size(&l->out, len);
	struct outgoing *o;
	uv_buf_t buf;
	int rc = 0;

	if (!has_room(l, size))
		return -ENOBUFS;
	o = malloc(sizeof *o + FRAME_LEAD + size);
	if (o)
		buf = uv_buf_init(
			(char *)frame_write(&l->out, type, payload, len, o->bytes), (unsigned)size);
	if (!o || keep(l, type, buf) < 0) {
		free(o);
		link_fail(l, LINK_END_SYSTEM, "out of memory");
		return -ENOMEM;
	}
	if (l->tcp)
		rc = write_out(l, o, buf);
	else
		free(o);
	if (rc < 0)
		write_failed(l, rc);
	if (l->beats.watcher && link_is_behind(l))
		l->beats.watcher->on_change(l);
	return l->state < LINK_CLOSING ? 0 : rc;
}

int link_resend(struct link *l, uint64_t from)
{
	uint64_t first = from < l->kept.acked ? l->kept.acked : from;
	size_t zeros = first - from, size = zeros + (kept_sent(&l->kept) - first);
	struct outgoing *o;
	int rc;

	if (size == 0)
		return 0;
	o = malloc(sizeof *o + size);
	if (!o) {
		link_fail(l, LINK_END_SYSTEM, "out of memory");
		return -ENOMEM;
	}
	memset(o->bytes, 0, zeros);
	(void)kept_read(&l->kept, first, o->bytes + zeros, size - zeros);
	rc = write_out(l, o, uv_buf_init((char *)o->bytes, (unsigned)size));
	if (rc < 0)
		write_failed(l, rc);
	return l->state < LINK_CLOSING ? 0 : rc;
}

int link_send(struct link *l, unsigned type, const void *payload, size_t len)
{
	assert(type >= LINK_TYPE_MIN && type < FRAME_TYPES && len <= FRAME_MAX);
	return l->state == LINK_OPEN ? link_put(l, type, payload, len) : -ENOTCONN;
}

int link_send_beat(struct link *l, const void *payload, size_t len)
{
	return l->state == LINK_OPEN ? link_put(l, FRAME_BEAT, payload, len) : -ENOTCONN;
}

/* An EOF may be a reset: libuv reports EOF if a hang-up comes with the last bytes, and so does the
 * kernel once a write has been told. After the peer's own end (EPIPE) it is a real EOF. */
static int end_of_file(const struct link *l)
{
	socklen_t len = sizeof(int);
	uv_os_fd_t fd;
	int error = 0;

	if (l->was_reset)
		return UV_ECONNRESET;
	if (uv_fileno((uv_handle_t *)l->tcp, &fd) < 0 ||
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error == EPIPE)
		return UV_EOF;
	return error ? -error : UV_EOF;
}

static void on_end(struct link *l, int rc)
{
	if (rc == UV_EOF && l->tcp)
		rc = end_of_file(l);
	if (rc == UV_ENOBUFS)
		link_fail(l, LINK_END_SYSTEM, "out of memory");
	else if (l->state == LINK_DRAINING && rc == UV_EOF)
		shut(l);
	else if (l->state == LINK_OPEN && rc == UV_EOF)
		end_unsaid(l);
	else if (l->state == LINK_OPEN || l->state == LINK_DRAINING)
		lose_connection(l, rc);
	else
		link_fail(
			l, LINK_END_MUTE, "%s closed the connection during the handshake", l->peer);
}

/* Handles all whole frames of the stream. */
static void hear(struct link *l)
{
	struct frame f;
	int rc = 0;

	while (l->state < LINK_DRAINING && (rc = frame_stream_next(&l->in, &f)) > 0)
		talk_hear(l, &f);
	if (rc < 0)
		talk_garbled(l, rc);
}

/* TCP has delivered so many bytes into the stream's room. Pieces may have brought some of them
 * before. A draining link goes on reading, so that the kernel does not reset what is queued, and
 * the peer knows that it was heard. */
static void feed(struct link *l, unsigned char *bytes, size_t len)
{
	uint64_t known = l->taken - l->tcp_taken;
	size_t skip = known < len ? (size_t)known : len;

	l->tcp_taken += len;
	l->taken += len - skip;
	if (l->state == LINK_DRAINING) {
		frame_stream_done(&l->in);
		return;
	}
	memmove(bytes, bytes + skip, len - skip);
	frame_stream_fed(&l->in, len - skip);
	hear(l);
}

static void on_bytes(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
	struct link *l = s->data;

	if (n > 0)
		feed(l, (unsigned char *)buf->base, (size_t)n);
	else
		frame_stream_fed(&l->in, 0);
	if (l->beats.watcher && l->taken - l->told >= LINK_ACK_BYTES)
		l->beats.watcher->on_change(l);
	if (n < 0 && l->state <= LINK_DRAINING && s == (uv_stream_t *)l->tcp)
		on_end(l, (int)n);
}

bool link_take(struct link *l, uint64_t at, const unsigned char *bytes, size_t len)
{
	uint64_t known = l->taken - at;
	unsigned char *room;
	size_t there;

	if ((l->state != LINK_OPEN && l->state != LINK_DRAINING) || at > l->taken || known >= len)
		return false;
	bytes += known;
	len -= known;
	l->taken += len;
	while (l->state == LINK_OPEN && len > 0) {
		if (frame_stream_room(&l->in, &room, &there) < 0) {
			link_fail(l, LINK_END_SYSTEM, "out of memory");
			return true;
		}
		if (there > len)
			there = len;
		memcpy(room, bytes, there);
		frame_stream_fed(&l->in, there);
		bytes += there;
		len -= there;
	}
	if (l->state == LINK_OPEN)
		hear(l);
	return true;
}

void link_acknowledge(struct link *l, uint64_t upto)
{
	int rc = kept_ack(&l->kept, upto);
	bool all = l->kept.acked == kept_sent(&l->kept);

	if (rc < 0)
		link_fail(l, LINK_END_BROKEN, "%s acknowledged what was never sent", l->peer);
	if (rc <= 0)
		return;
	l->unacked_ns = all ? 0 : uv_hrtime();
	if (all && l->state == LINK_DRAINING)
		shut(l); /* including CLOSE */
	else if (all && !l->tcp && l->on_idle && link_is_idle(l))
		l->on_idle(l);
}

bool link_is_behind(const struct link *l)
{
	return !l->tcp || l->beats.behind || l->taken > l->tcp_taken;
}

void link_start_reading(struct link *l)
{
	(void)uv_read_start((uv_stream_t *)l->tcp, on_room, on_bytes); /* can't fail when open */
}

static void start_reading(struct link *l)
{
	link_start_reading(l);
	talk_begin(l);
}

/* If nobody listens at a port of this host, the kernel may choose that same port for our end and
 * connect the socket to itself. It must not linger where a launcher is about to listen. */
static bool is_own_end(struct link *l)
{
	struct address own = { 0 };
	int len = sizeof own;

	if (uv_tcp_getsockname(l->tcp, &own.any, &len) < 0 || !address_same(&own, &l->peer_address))
		return false;
	abort_tcp(l);
	return true;
}

static void on_connected(uv_connect_t *r, int status)
{
	struct link *l = r->data;

	if (l->state != LINK_CONNECTING)
		return;
	if (l->resumes)
		l->resumes->fresh_refused = status == UV_ECONNREFUSED;
	if (status == 0 && is_own_end(l))
		status = UV_ECONNREFUSED;
	if (status < 0)
		link_fail(l, LINK_END_UNREACHED, "%s can't be reached: %s", l->peer,
			strerror(-status));
	else
		start_reading(l);
}

/* Called before there is any handle, as it may fail. */
static int draw(struct link *l, const struct link_auth *auth, struct failure *why)
{
	unsigned char bytes[HANDSHAKE_NONCE + HANDSHAKE_TOKEN + sizeof l->session];
	int rc = secret_draw(bytes, sizeof bytes, why);

	if (rc < 0)
		return rc;
	l->hello = (struct hello){ .version = HANDSHAKE_VERSION, .keyed = auth->keyed };
	memcpy(l->hello.nonce, bytes, HANDSHAKE_NONCE);
	memcpy(l->token, bytes + HANDSHAKE_NONCE, HANDSHAKE_TOKEN);
	memcpy(&l->session, bytes + HANDSHAKE_NONCE + HANDSHAKE_TOKEN, sizeof l->session);
	return 0;
}

/* These make it faster or safer, but it also works without them. */
static void tune(int fd)
{
	const int on = 1, user_timeout = LINK_USER_TIMEOUT_MS, idle = LINK_KEEPALIVE_S;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout, sizeof user_timeout);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof idle);
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	/* few bytes are ever in flight: a second loss must not double the wait */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &on, sizeof on);
}

int link_put_under(struct link *l, int fd)
{
	uv_tcp_t *tcp = malloc(sizeof *tcp);

	if (!tcp)
		return -ENOMEM;
	abort_tcp(l);
	tune(fd);
	(void)uv_tcp_init(l->limit.loop, tcp);
	(void)uv_tcp_open(tcp, fd); /* in no loop yet: can't fail */
	tcp->data = l;
	l->tcp = tcp;
	l->was_reset = false;
	l->handles++;
	return 0;
}

/* Makes the handles, and takes fd unless it fails. */
static int begin(struct link *l, uv_loop_t *loop, int fd, const struct address *peer,
	const struct link_auth *auth, struct failure *why)
{
	l->limit.loop = loop;
	if (link_put_under(l, fd) < 0)
		return failure_oom(why);
	l->auth = auth;
	link_goto(l, LINK_CONNECTING);
	l->in.max = FRAME_EARLY_MAX;
	l->peer_address = *peer;
	address_text(peer, l->peer);
	(void)uv_timer_init(loop, &l->limit);
	l->limit.data = l->request.connect.data = l;
	l->handles++;
	uv_update_time(loop);
	(void)uv_timer_start(&l->limit, on_limit, LINK_HANDSHAKE_MS, 0);
	return 0;
}

int link_dial(struct link *l, uv_loop_t *loop, const struct address *to,
	const struct link_auth *auth, struct failure *why)
{
	int rc = draw(l, auth, why);
	autoclose fd = -1;

	if (rc < 0)
		return rc;
	fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return failure_set(why, -errno, "no socket: %s", strerror(errno));
	rc = begin(l, loop, fd, to, auth, why);
	if (rc < 0)
		return rc;
	(void)fd_take(&fd);
	rc = uv_tcp_connect(&l->request.connect, l->tcp, &to->any, on_connected);
	if (rc < 0)
		link_fail(l, LINK_END_UNREACHED, "%s can't be reached: %s", l->peer, strerror(-rc));
	return 0;
}

int link_accept(struct link *l, uv_loop_t *loop, int fd, const struct address *from, bool udp,
	const struct link_auth *auth)
{
	struct failure why = { 0 };

	l->is_hub = true;
	l->peer_udp = udp;
	if (draw(l, auth, &why) == 0 && begin(l, loop, fd, from, auth, &why) == 0) {
		start_reading(l);
		return 0;
	}
	l->end = LINK_END_SYSTEM;
	link_goto(l, LINK_CLOSED);
	settle(l);
	l->on_closed(l, why.text);
	return why.code;
}

void link_adopt_udp(struct link *l, int fd)
{
	(void)uv_udp_init(l->limit.loop, &l->udp);
	(void)uv_udp_open(&l->udp, fd); /* in no loop yet: can't fail */
	l->udp.data = l;
	l->has_udp = true;
	l->handles++;
}

/* If it failed, the connection broke: the reader finds that, and queued bytes may have another
 * way. */
static void on_shutdown(uv_shutdown_t *r, int status)
{
	(void)r, (void)status;
}

static void on_drain_limit(uv_timer_t *t)
{
	shut(t->data);
}

/* Sends what is queued, then shuts down our end. The link ends with the peer's EOF, or once the
 * peer has acknowledged everything including CLOSE. A peer that reads nothing for the time-out is
 * lost. */
static void drain(struct link *l)
{
	uint64_t most = l->timeout_ms ? l->timeout_ms : LINK_HANDSHAKE_MS;

	link_goto(l, LINK_DRAINING);
	if (link_put(l, FRAME_CLOSE, NULL, 0) < 0 || l->state != LINK_DRAINING) {
		shut(l);
		return;
	}
	uv_update_time(l->limit.loop);
	(void)uv_timer_start(
		&l->limit, on_drain_limit, most < LINK_HANDSHAKE_MS ? most : LINK_HANDSHAKE_MS, 0);
	if (l->tcp)
		(void)uv_shutdown(&l->request.shutdown, (uv_stream_t *)l->tcp, on_shutdown);
}

void link_close(struct link *l, bool flush, const char *why)
{
	if (is_out_of_use(l))
		return;
	end_here(l, why);
	if (flush && l->state == LINK_OPEN && !l->eof)
		drain(l);
	else if (!flush || l->state != LINK_DRAINING)
		shut(l);
}
