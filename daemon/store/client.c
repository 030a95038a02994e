/* client.c - see client.h */
#include "daemon/store/client.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/failure.h"
#include "daemon/store/note.h"
#include "daemon/store/store.h"

enum {
	FLUSH_AT = 64 << 10,   /* a reply of several requests is sent when it is that long */
	KEEP = 64 << 10,       /* memory of that size is kept for the next time */
	UNREAD_MAX = 32 << 20, /* bytes to a client that does not read what it did not ask for */
};

/* Bytes that did not fit into the socket. */
struct unsent {
	uv_write_t req;
	struct client *client;
	size_t len;
	char bytes[];
};

static struct client *client_of(struct guest *g)
{
	return (struct client *)(void *)((char *)g - offsetof(struct client, guest));
}

static void on_closed(uv_handle_t *h)
{
	struct client *c = h->data;
	struct store *s = c->store;

	budget_free(&s->budget, c, sizeof *c);
	store_handle_closed(s);
}

void client_leave(struct client *c)
{
	struct store *s = c->store;

	if (c->left)
		return;
	c->left = true;
	guest_leave(&s->space.keys, &c->guest);
	bytes_done(&c->inbox, &s->budget);
	if (c->before)
		c->before->next = c->next;
	else
		s->clients = c->next;
	if (c->next)
		c->next->before = c->before;
	uv_close((uv_handle_t *)&c->tcp, on_closed);
}

/* It can't be spoken to, and leaves as soon as nobody is at work on keys. why NULL: it has gone. */
static void lose(struct client *c, const char *why)
{
	if (c->is_lost)
		return;
	if (why)
		note_client(c, why);
	c->is_lost = true;
	c->next_lost = c->store->lost;
	c->store->lost = c;
}

static void let_lost_leave(struct store *s)
{
	while (s->lost) {
		struct client *c = s->lost;

		s->lost = c->next_lost;
		client_leave(c);
	}
}

static void on_written(uv_write_t *req, int status);

static void send_later(struct client *c, const char *bytes, size_t len)
{
	struct store *s = c->store;
	struct unsent *u;
	uv_buf_t buf;

	u = budget_alloc(&s->budget, sizeof *u + len);
	if (!u) {
		lose(c, "no memory for what it does not read");
		return;
	}
	u->client = c;
	u->len = len;
	memcpy(u->bytes, bytes, len);
	buf = uv_buf_init(u->bytes, (unsigned)len);
	if (uv_write(&u->req, (uv_stream_t *)&c->tcp, &buf, 1, on_written) < 0) {
		budget_free(&s->budget, u, sizeof *u + len);
		lose(c, NULL);
		return;
	}
	if (c->queued == 0)
		(void)uv_read_stop((uv_stream_t *)&c->tcp);
	c->queued += len;
}

/* libuv's buffers are not const, although what is written is only read. */
static uv_buf_t buffer(const char *at, size_t len)
{
	uv_buf_t buf = { .len = len };

	memcpy(&buf.base, &at, sizeof at);
	return buf;
}

/* One behind the other: at once, as far as the socket takes them. The buffers are used up. */
static void send_all(struct client *c, uv_buf_t *bufs, unsigned count)
{
	while (count > 0 && !c->is_lost) {
		ssize_t n = UV_EAGAIN;

		if (bufs->len > 0 && c->queued == 0)
			n = uv_try_write((uv_stream_t *)&c->tcp, bufs, count);
		if (n == UV_EAGAIN && bufs->len > 0)
			send_later(c, bufs->base, bufs->len);
		else if (n < 0 && bufs->len > 0)
			lose(c, NULL);
		if (n < 0)
			n = (ssize_t)bufs->len;
		for (; count > 0 && (size_t)n >= bufs->len; bufs++, count--)
			n -= (ssize_t)bufs->len;
		if (count > 0) {
			bufs->base += n;
			bufs->len -= (size_t)n;
		}
	}
}

static void send_bytes(struct client *c, const void *bytes, size_t len)
{
	uv_buf_t buf = buffer(bytes, len);

	send_all(c, &buf, 1);
}

void client_tell(struct guest *to, const void *bytes, size_t len)
{
	struct client *c = client_of(to);
	struct store *s = c->store;

	if (c == s->answering && bytes_add(&s->reply, &s->budget, bytes, len) == 0)
		return; /* behind what it has been answered before */
	if (c->queued > 0 && c->queued + len > UNREAD_MAX)
		lose(c, "it does not read what it is sent");
	send_bytes(c, bytes, len);
}

void client_tell_large(struct guest *to, struct bytes *reply, const void *bytes, size_t len)
{
	struct client *c = client_of(to);
	uv_buf_t bufs[] = { buffer((const char *)reply->at, reply->len), buffer(bytes, len) };

	send_all(c, bufs, 2);
	reply->len = 0;
}

static void flush(struct client *c)
{
	struct store *s = c->store;

	send_bytes(c, s->reply.at, s->reply.len);
	bytes_trim(&s->reply, &s->budget, KEEP);
}

/* Answers what is whole, as long as the client takes the answers. Returns how many bytes that was,
 * or negative errno: nothing good will come of this client. */
static long answer_all(struct client *c, const uint8_t *bytes, size_t len, struct failure *why)
{
	struct store *s = c->store;
	struct request r;
	size_t done = 0;
	int rc = 1;

	s->answering = c;
	while (done < len && c->queued == 0 && !c->is_lost) {
		rc = scan_next(&c->scan, bytes + done, len - done, &r, why);
		if (rc > 0) {
			s->spoke += !c->spoke;
			c->spoke = true;
			rc = answer(&s->space, &c->guest, &r, &s->reply, why) < 0 ? -1 : 1;
		}
		if (rc <= 0)
			break;
		done += r.len;
		if (s->reply.len >= FLUSH_AT)
			flush(c);
	}
	if (rc >= 0)
		flush(c);
	bytes_trim(&s->reply, &s->budget, KEEP);
	s->answering = NULL;
	return rc < 0 ? why->code : (long)done;
}

/* Answers what the inbox holds. Negative errno as above. */
static long answer_inbox(struct client *c, struct failure *why)
{
	long done = answer_all(c, c->inbox.at, c->inbox.len, why);

	if (done < 0)
		return done;
	bytes_drop(&c->inbox, (size_t)done);
	if (c->inbox.len == 0)
		bytes_trim(&c->inbox, &c->store->budget, 0);
	return 0;
}

static int keep(struct client *c, const uint8_t *bytes, size_t len, struct failure *why)
{
	if (len == 0 || bytes_add(&c->inbox, &c->store->budget, bytes, len) == 0)
		return 0;
	return failure_set(why, -ENOMEM, "no memory for its request (%s): the store is full",
		query_name(c->scan.query));
}

static void receive(struct client *c, const uint8_t *bytes, size_t len)
{
	struct failure why = { 0 };
	long rc = 0;

	if (c->inbox.len == 0) { /* most requests are read whole, and need no memory */
		rc = answer_all(c, bytes, len, &why);
		if (rc >= 0)
			rc = keep(c, bytes + rc, len - (size_t)rc, &why);
	} else {
		rc = keep(c, bytes, len, &why);
		if (rc == 0)
			rc = answer_inbox(c, &why);
	}
	if (rc < 0)
		lose(c, why.text);
	let_lost_leave(c->store);
}

static void on_room(uv_handle_t *h, size_t wanted, uv_buf_t *ret)
{
	const struct client *c = h->data;

	(void)wanted;
	*ret = uv_buf_init(c->store->room, CLIENT_READ_SIZE);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct client *c = stream->data;

	if (n > 0)
		receive(c, (const uint8_t *)buf->base, (size_t)n);
	else if (n < 0)
		client_leave(c);
}

static void on_written(uv_write_t *req, int status)
{
	struct unsent *u = (struct unsent *)(void *)((char *)req - offsetof(struct unsent, req));
	struct client *c = u->client;
	struct failure why = { 0 };

	c->queued -= u->len;
	budget_free(&c->store->budget, u, sizeof *u + u->len);
	if (c->left)
		return;
	if (status < 0)
		lose(c, NULL);
	else if (c->queued == 0 && answer_inbox(c, &why) < 0)
		lose(c, why.text);
	if (!c->is_lost && c->queued == 0 &&
		uv_read_start((uv_stream_t *)&c->tcp, on_room, on_read) < 0)
		lose(c, NULL);
	let_lost_leave(c->store);
}

int client_open(struct store *s, int fd)
{
	struct client *c = budget_alloc(&s->budget, sizeof *c);
	int rc;

	if (!c) {
		(void)close(fd);
		return -ENOMEM;
	}
	*c = (struct client){ .store = s, .next = s->clients };
	scan_init(&c->scan, s->config.old);
	rc = uv_tcp_init(s->loop, &c->tcp);
	if (rc < 0) {
		budget_free(&s->budget, c, sizeof *c);
		(void)close(fd);
		return rc;
	}
	c->tcp.data = c;
	s->handles++;
	if (c->next)
		c->next->before = c;
	s->clients = c;
	rc = uv_tcp_open(&c->tcp, fd);
	if (rc < 0)
		(void)close(fd);
	if (rc == 0)
		rc = uv_read_start((uv_stream_t *)&c->tcp, on_room, on_read);
	if (rc < 0)
		client_leave(c);
	else
		(void)uv_tcp_nodelay(&c->tcp, 1); /* answers are small and awaited */
	return rc;
}
