/* link_send.c - frames on their way to the peer: at once, or queued; see link.h */
#include "daemon/cluster/link.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cluster/talk.h"

/* A frame that did not go out at once. */
struct outgoing {
	uv_write_t request;
	unsigned char bytes[];
};

/* A broken connection is the reader's to find: what the peer said last is still to be read. */
static void write_failed(struct link *l, int rc)
{
	if (rc != UV_EPIPE && rc != UV_ECONNRESET && l->state < LINK_CLOSING)
		link_fail(
			l, LINK_END_LOST, "the connection to %s broke: %s", l->peer, strerror(-rc));
}

bool link_is_idle(const struct link *l)
{
	return l->state == LINK_OPEN &&
		uv_stream_get_write_queue_size((const uv_stream_t *)&l->tcp) == 0;
}

static void on_written(uv_write_t *r, int status)
{
	struct link *l = r->data;

	free(r);
	if (status < 0)
		write_failed(l, status);
	else if (l->on_idle && link_is_idle(l))
		l->on_idle(l);
}

/* The rest of a frame of which n bytes went out at once. 0 or negative errno. */
static int queue(struct link *l, struct outgoing *o, uv_buf_t rest, size_t n)
{
	int rc;

	rest.base += n;
	rest.len -= n;
	o->request.data = l;
	rc = uv_write(&o->request, (uv_stream_t *)&l->tcp, &rest, 1, on_written);
	if (rc < 0)
		free(o);
	return rc;
}

int link_put(struct link *l, unsigned type, const void *payload, size_t len)
{
	uv_stream_t *stream = (uv_stream_t *)&l->tcp;
	size_t size = frame_size(&l->out, len), queued = uv_stream_get_write_queue_size(stream);
	struct outgoing *o;
	uv_buf_t buf;
	int rc;

	if (queued + size > LINK_QUEUE_MAX) {
		link_fail(l, LINK_END_FULL, "%s has not read the last %zu bytes", l->peer, queued);
		return -ENOBUFS;
	}
	o = malloc(sizeof *o + FRAME_LEAD + size);
	if (!o) {
		link_fail(l, LINK_END_SYSTEM, "out of memory");
		return -ENOMEM;
	}
	buf = uv_buf_init(
		(char *)frame_write(&l->out, type, payload, len, o->bytes), (unsigned)size);
	rc = uv_try_write(stream, &buf, 1);
	if (rc == (int)size || (rc < 0 && rc != UV_EAGAIN))
		free(o);
	else
		rc = queue(l, o, buf, rc < 0 ? 0 : (size_t)rc);
	if (rc < 0)
		write_failed(l, rc);
	return rc < 0 ? rc : 0;
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
