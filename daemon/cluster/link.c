/* link.c - see link.h */
#include "daemon/cluster/link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "common/failure.h"
#include "common/fd.h"
#include "daemon/cluster/talk.h"

static void on_handle_closed(uv_handle_t *h)
{
	struct link *l = h->data;

	if (--l->handles > 0)
		return;
	frame_stream_done(&l->in);
	l->state = LINK_CLOSED;
	l->on_closed(l, l->why);
}

/* The handshake is over, one way or the other. */
static void settle(struct link *l)
{
	void (*tell)(struct link *) = l->on_settled;

	l->on_settled = NULL;
	if (tell)
		tell(l);
}

/* From here on the owner and the watcher hear nothing more of it. */
static void end_talk(struct link *l)
{
	const struct link_watcher *watcher = l->beats.watcher;

	settle(l);
	if (watcher)
		watcher->on_ending(l);
	l->beats.watcher = NULL;
}

static void shut(struct link *l)
{
	if (l->state >= LINK_CLOSING)
		return;
	l->state = LINK_CLOSING;
	end_talk(l);
	uv_close((uv_handle_t *)&l->tcp, on_handle_closed);
	uv_close((uv_handle_t *)&l->limit, on_handle_closed);
	if (l->has_udp)
		uv_close((uv_handle_t *)&l->udp, on_handle_closed);
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

void link_opened(struct link *l)
{
	(void)uv_timer_stop(&l->limit);
	settle(l);
}

static void on_limit(uv_timer_t *t)
{
	struct link *l = t->data;

	if (l->state == LINK_CONNECTING)
		link_fail(l, LINK_END_UNREACHED, "%s did not answer within %d s", l->peer,
			LINK_HANDSHAKE_MS / 1000);
	else
		link_fail(l, LINK_END_MUTE, "%s did not introduce itself within %d s", l->peer,
			LINK_HANDSHAKE_MS / 1000);
}

static void on_room(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
	struct link *l = h->data;
	unsigned char *at = NULL;
	size_t len = 0;

	(void)suggested;
	(void)frame_stream_room(&l->in, &at, &len); /* without room libuv says ENOBUFS */
	*buf = uv_buf_init((char *)at, (unsigned)len);
}

static void on_end(struct link *l, int rc)
{
	if (rc == UV_ENOBUFS)
		link_fail(l, LINK_END_SYSTEM, "out of memory");
	else if (l->state == LINK_OPEN)
		link_fail(l, LINK_END_LOST, "the connection to %s %s%s", l->peer,
			rc == UV_EOF ? "ended" : "broke: ", rc == UV_EOF ? "" : strerror(-rc));
	else
		link_fail(l, LINK_END_MUTE, "%s ended the connection before it introduced itself",
			l->peer);
}

static void on_bytes(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
	struct link *l = s->data;
	struct frame f;
	int rc = 0;

	(void)buf;
	if (l->state ==
		LINK_DRAINING) { /* read, so that the kernel does not reset what is queued */
		frame_stream_done(&l->in);
		if (n < 0)
			shut(l);
		return;
	}
	frame_stream_fed(&l->in, n > 0 ? (size_t)n : 0);
	while (n > 0 && l->state < LINK_DRAINING && (rc = frame_stream_next(&l->in, &f)) > 0)
		talk_hear(l, &f);
	if (rc < 0)
		talk_garbled(l, rc);
	else if (n < 0)
		on_end(l, (int)n);
}

static void start_reading(struct link *l)
{
	(void)uv_read_start((uv_stream_t *)&l->tcp, on_room, on_bytes); /* can't fail when open */
	talk_begin(l);
}

/* Where nobody listens at a port of this host, the kernel may choose that port for our end, and
 * connect it to itself. That must not linger where a launcher is about to listen. */
static bool is_own_end(struct link *l)
{
	const struct linger now = { .l_onoff = 1, .l_linger = 0 };
	const struct sockaddr *peer = (const struct sockaddr *)&l->peer_address;
	struct sockaddr_storage own;
	uv_os_fd_t fd;

	if (link_local_address(l, &own) < 0 ||
		address_port((const struct sockaddr *)&own) != address_port(peer) ||
		!address_same_host((const struct sockaddr *)&own, peer))
		return false;
	if (uv_fileno((uv_handle_t *)&l->tcp, &fd) == 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
	return true;
}

static void on_connected(uv_connect_t *r, int status)
{
	struct link *l = r->data;

	if (l->state != LINK_CONNECTING)
		return;
	if (status == 0 && is_own_end(l))
		status = UV_ECONNREFUSED;
	if (status < 0)
		link_fail(l, LINK_END_UNREACHED, "%s can't be reached: %s", l->peer,
			strerror(-status));
	else
		start_reading(l);
}

/* What can fail is done before the first handle is there. */
static int draw(struct link *l, const struct link_auth *auth, struct failure *why)
{
	unsigned char bytes[HANDSHAKE_NONCE + HANDSHAKE_TOKEN + sizeof l->session];

	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		return failure_set(why, -EIO, "no random numbers: %s", strerror(errno));
	l->hello = (struct hello){ .version = HANDSHAKE_VERSION, .keyed = auth->keyed };
	memcpy(l->hello.nonce, bytes, HANDSHAKE_NONCE);
	memcpy(l->token, bytes + HANDSHAKE_NONCE, HANDSHAKE_TOKEN);
	memcpy(&l->session, bytes + HANDSHAKE_NONCE + HANDSHAKE_TOKEN, sizeof l->session);
	return 0;
}

/* Options make it faster or surer; it works without them, too. */
static void tune(int fd)
{
	const int on = 1, user_timeout = LINK_USER_TIMEOUT_MS;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout, sizeof user_timeout);
	/* few bytes are ever in flight: a second loss shall not double the wait */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &on, sizeof on);
}

/* Makes the handles; takes fd, which is open and in no loop, so that nothing of it can fail. */
static void begin(struct link *l, uv_loop_t *loop, int fd, const struct sockaddr *peer,
	const struct link_auth *auth)
{
	l->auth = auth;
	l->state = LINK_CONNECTING;
	l->in.max = FRAME_EARLY_MAX;
	memcpy(&l->peer_address, peer, address_size(peer));
	address_text(peer, l->peer);
	tune(fd);
	(void)uv_tcp_init(loop, &l->tcp);
	(void)uv_tcp_open(&l->tcp, fd);
	(void)uv_timer_init(loop, &l->limit);
	l->tcp.data = l->limit.data = l->request.connect.data = l;
	l->handles = 2;
	uv_update_time(loop);
	(void)uv_timer_start(&l->limit, on_limit, LINK_HANDSHAKE_MS, 0);
}

int link_dial(struct link *l, uv_loop_t *loop, const struct sockaddr *to,
	const struct link_auth *auth, struct failure *why)
{
	int rc = draw(l, auth, why);
	autoclose fd = -1;

	if (rc < 0)
		return rc;
	fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return failure_set(why, -errno, "no socket: %s", strerror(errno));
	begin(l, loop, fd_take(&fd), to, auth);
	rc = uv_tcp_connect(&l->request.connect, &l->tcp, to, on_connected);
	if (rc < 0)
		link_fail(l, LINK_END_UNREACHED, "%s can't be reached: %s", l->peer, strerror(-rc));
	return 0;
}

int link_accept(struct link *l, uv_loop_t *loop, int fd, const struct sockaddr *from, bool udp,
	const struct link_auth *auth, struct failure *why)
{
	int rc = draw(l, auth, why);

	if (rc < 0)
		return rc;
	l->is_hub = true;
	l->peer_udp = udp;
	begin(l, loop, fd, from, auth);
	start_reading(l);
	return 0;
}

void link_adopt_udp(struct link *l, int fd)
{
	(void)uv_udp_init(l->tcp.loop, &l->udp);
	(void)uv_udp_open(&l->udp, fd); /* in no loop yet: can't fail */
	l->udp.data = l;
	l->has_udp = true;
	l->handles++;
}

static void on_shutdown(uv_shutdown_t *r, int status)
{
	struct link *l = r->data;

	if (status < 0 && l->state == LINK_DRAINING)
		shut(l);
}

static void on_drain_limit(uv_timer_t *t)
{
	shut(t->data);
}

/* Everything goes out, then our end of the connection; the peer's end of it is the end. A peer that
 * reads nothing for the time-out is lost. */
static void drain(struct link *l)
{
	uint64_t most = l->timeout_ms ? l->timeout_ms : LINK_HANDSHAKE_MS;

	l->state = LINK_DRAINING;
	end_talk(l);
	if (link_put(l, FRAME_CLOSE, NULL, 0) < 0 || l->state != LINK_DRAINING) {
		shut(l);
		return;
	}
	l->request.shutdown.data = l;
	uv_update_time(l->limit.loop);
	(void)uv_timer_start(
		&l->limit, on_drain_limit, most < LINK_HANDSHAKE_MS ? most : LINK_HANDSHAKE_MS, 0);
	if (uv_shutdown(&l->request.shutdown, (uv_stream_t *)&l->tcp, on_shutdown) < 0)
		shut(l);
}

void link_close(struct link *l, bool flush, const char *why)
{
	if (l->state == LINK_IDLE || l->state >= LINK_CLOSING)
		return;
	if (l->end == LINK_END_NONE) {
		l->end = LINK_END_OURS;
		(void)snprintf(l->why, sizeof l->why, "%s", why ? why : "closed here");
	}
	if (flush && l->state == LINK_OPEN)
		drain(l);
	else if (!flush || l->state != LINK_DRAINING)
		shut(l);
}

const char *link_peer_text(const struct link *l)
{
	return l->peer;
}

int link_local_address(const struct link *l, struct sockaddr_storage *ret)
{
	struct sockaddr_storage a = { 0 };
	int len = sizeof a, rc = uv_tcp_getsockname(&l->tcp, (struct sockaddr *)&a, &len);

	if (rc == 0)
		*ret = a;
	return rc;
}
