/* link_send.c - frames on their way to the peer: at once, or queued; see link.h */
#include "daemon/net/link.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/net/talk.h"

/* A frame that did not go out at once. */
struct outgoing {
	uv_write_t request;
	unsigned char bytes[];
};

/* A broken connection is the reader's to find: what the peer said last is still to be read. After a
 * reset of which a write was told, reading ends as after a farewell of the kernel's. */
static void write_failed(struct link *l, int rc)
{
	l->was_reset = l->was_reset || rc == UV_ECONNRESET;
	if (rc != UV_EPIPE && rc != UV_ECONNRESET && l->state < LINK_CLOSING)
		link_broke(l, rc);
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

/* It may be the request of a connection that was given up. */
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

/* The rest of what is to be written, of which n bytes went out at once. 0 or negative errno. */
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

/* Writes at once what can be. Takes o, in which the bytes lie. 0 or negative errno. */
static int write_out(struct link *l, struct outgoing *o, uv_buf_t buf)
{
	int rc = uv_try_write((uv_stream_t *)l->tcp, &buf, 1);

	if (rc >= 0 ? (size_t)rc < buf.len : rc == UV_EAGAIN)
		return queue(l, o, buf, rc < 0 ? 0 : (size_t)rc);
	free(o);
	return rc < 0 ? rc : 0;
}

/* Whether the peer is not too far behind for so many bytes more. Where pieces have brought what
 * waits for TCP, TCP is given up. */
static bool has_room(struct link *l, size_t size)
{
	size_t waits = queued(l);

	if (waits + size > LINK_QUEUE_MAX && l->kept.acked > kept_sent(&l->kept) - waits)
		link_broke(l, -ETIMEDOUT);
	if (l->state >= LINK_CLOSING)
		return false;
	if (!l->tcp)
		waits = kept_sent(&l->kept) - l->kept.acked;
	if (waits + size > LINK_QUEUE_MAX)
		link_fail(l, LINK_END_FULL, "%s has not read the last %zu bytes", l->peer, waits);
	return l->state < LINK_CLOSING;
}

/* What follows the handshake is the stream. -ENOMEM. */
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
