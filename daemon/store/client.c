/* client.c - see client.h */
#include "daemon/store/client.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/address.h"
#include "common/failure.h"
#include "common/sm.h"
#include "daemon/store/store.h"

enum {
	FLUSH_AT = 64 << 10,        /* a reply of several requests is sent when it is that long */
	KEEP = 64 << 10,            /* memory of that size is kept for the next time */
	READ_MAX = STORE_VALUE_MAX, /* bytes of one client, then it is the others' turn */
	UNREAD_MAX = 32 << 20,      /* to a client that does not read what it did not ask for */
};

static const struct sm_state states[CLIENT_STATES] = {
	[CLIENT_READING] = { "reading",
		SM_TO(CLIENT_WRITING) | SM_TO(CLIENT_LOST) | SM_TO(CLIENT_LEFT) },
	[CLIENT_WRITING] = { "writing",
		SM_TO(CLIENT_READING) | SM_TO(CLIENT_LOST) | SM_TO(CLIENT_LEFT) },
	[CLIENT_LOST] = { "lost", SM_TO(CLIENT_LEFT) },
	[CLIENT_LEFT] = { "left", 0 },
};
const struct sm client_life = { "client", states, CLIENT_STATES };

static void on_event(uv_poll_t *poll, int status, int events);

static void on_closed(uv_handle_t *h)
{
	struct client *c = h->data;
	struct store *s = c->store;

	budget_free(&s->budget, c, sizeof *c);
	store_handle_closed(s);
}

static void client_goto(struct client *c, enum client_state next)
{
	struct store *s = c->store;

	c->state = sm_go(&client_life, c->state, next);
	switch (next) {
	case CLIENT_READING:
		(void)uv_poll_start(&c->poll, UV_READABLE, on_event); /* can't fail */
		break;
	case CLIENT_WRITING:
		(void)uv_poll_start(&c->poll, UV_WRITABLE, on_event);
		break;
	case CLIENT_LOST:
		SLIST_INSERT_HEAD(&s->lost, c, of_lost);
		break;
	case CLIENT_LEFT:
		guest_leave(&s->space.keys, &c->guest);
		bytes_done(&c->inbox, &s->budget);
		bytes_done(&c->outbox, &s->budget);
		LIST_REMOVE(c, of_store);
		uv_close((uv_handle_t *)&c->poll, on_closed);
		(void)close(c->fd); /* nothing polls it any more */
		break;
	case CLIENT_STATES:
		break;
	}
}

void client_leave(struct client *c)
{
	if (c->state != CLIENT_LEFT)
		client_goto(c, CLIENT_LEFT);
}

/* It can't be spoken to. why NULL: it has gone. */
static void lose(struct client *c, const char *why)
{
	struct address from = { 0 };
	socklen_t len = sizeof from;
	char text[ADDRESS_TEXT];

	if (c->state >= CLIENT_LOST)
		return;
	if (why) {
		(void)getpeername(c->fd, &from.any, &len);
		address_text(&from, text);
		store_note(c->store, "the store closed the connection from %s: %s", text, why);
	}
	client_goto(c, CLIENT_LOST);
}

static void let_lost_leave(struct store *s)
{
	struct client *c;

	while ((c = SLIST_FIRST(&s->lost))) {
		SLIST_REMOVE_HEAD(&s->lost, of_lost);
		client_leave(c);
	}
}

/* Sends until the socket takes no more: what its reader takes meanwhile need not be copied by us.
 * Returns how much that was, or negative errno. At most two parts. */
static ssize_t send_now(const struct client *c, const struct iovec *parts, size_t count)
{
	struct iovec left[2];
	struct msghdr m = { .msg_iov = left, .msg_iovlen = count };
	ssize_t total = 0;

	memcpy(left, parts, count * sizeof *parts);
	while (m.msg_iovlen > 0) {
		ssize_t n = sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? total : -errno;
		total += n;
		for (; m.msg_iovlen > 0 && (size_t)n >= m.msg_iov->iov_len; m.msg_iovlen--)
			n -= (ssize_t)m.msg_iov++->iov_len;
		if (m.msg_iovlen > 0) {
			m.msg_iov->iov_base = (char *)m.msg_iov->iov_base + n;
			m.msg_iov->iov_len -= (size_t)n;
		}
	}
	return total;
}

/* Sends the parts one behind the other: at once, as far as the socket takes them. */
static void send_parts(struct client *c, const struct iovec *parts, size_t count)
{
	ssize_t sent = c->state == CLIENT_READING ? send_now(c, parts, count) : 0;

	if (sent < 0)
		lose(c, NULL);
	if (c->sent > c->outbox.len / 2) { /* here, as most outboxes are never added to again */
		bytes_drop(&c->outbox, c->sent);
		c->sent = 0;
	}
	for (size_t i = 0; i < count && c->state < CLIENT_LOST; i++) {
		size_t len = parts[i].iov_len, done = len < (size_t)sent ? len : (size_t)sent;

		sent -= (ssize_t)done;
		if (done == len)
			continue;
		if (bytes_add(&c->outbox, &c->store->budget, (char *)parts[i].iov_base + done,
			    len - done) < 0)
			lose(c, "out of memory for what it does not read");
		else if (c->state == CLIENT_READING)
			client_goto(c, CLIENT_WRITING);
	}
}

/* An iovec's bytes are not const, although what is sent is only read. */
static struct iovec part_of(const void *bytes, size_t len)
{
	return (struct iovec){ (void *)bytes, len };
}

static struct client *client_of(struct guest *g)
{
	return (struct client *)(void *)((char *)g - offsetof(struct client, guest));
}

void client_tell(struct guest *to, const void *bytes, size_t len)
{
	struct client *c = client_of(to);
	const struct iovec part = part_of(bytes, len);
	struct store *s = c->store;

	if (c == s->answering && bytes_add(&s->reply, &s->budget, bytes, len) == 0)
		return; /* behind what it has been answered before */
	if (c->state == CLIENT_WRITING && c->outbox.len - c->sent + len > UNREAD_MAX)
		lose(c, "it does not read what it is sent");
	send_parts(c, &part, 1);
}

void client_tell_large(struct guest *to, struct bytes *reply, const void *bytes, size_t len)
{
	struct client *c = client_of(to);
	const struct iovec parts[] = { part_of(reply->at, reply->len), part_of(bytes, len) };

	send_parts(c, parts, 2);
	reply->len = 0;
}

static void flush(struct client *c)
{
	struct store *s = c->store;
	const struct iovec part = part_of(s->reply.at, s->reply.len);

	if (s->reply.len > 0)
		send_parts(c, &part, 1);
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
	while (done < len && c->state == CLIENT_READING) {
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
	return failure_set(why, -ENOMEM, "out of memory for its request (%s): the store is full",
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
}

/* Reads all that has come: SET has no reply, so whoever called it may tell others at once, and who
 * then asks must not be told the value before, only because one read does not take the new one
 * whole. Torch's own server reads on as well. False: it has gone. */
static bool read_some(struct client *c)
{
	size_t total = 0;
	ssize_t n;

	do {
		n = recv(c->fd, c->store->room, CLIENT_READ_SIZE, 0);
		if (n <= 0)
			return n < 0 && (errno == EAGAIN || errno == EINTR);
		receive(c, (const uint8_t *)c->store->room, (size_t)n);
		total += (size_t)n;
	} while (c->state == CLIENT_READING && total < READ_MAX &&
		(c->inbox.len > 0 || n == CLIENT_READ_SIZE));
	return true;
}

static void write_some(struct client *c)
{
	struct bytes *out = &c->outbox;
	const struct iovec rest = part_of(out->at + c->sent, out->len - c->sent);
	ssize_t n = send_now(c, &rest, 1);
	struct failure why = { 0 };

	if (n < 0) {
		lose(c, NULL);
		return;
	}
	c->sent += (size_t)n;
	if (c->sent < out->len)
		return;
	c->sent = 0;
	bytes_trim(out, &c->store->budget, 0);
	client_goto(c, CLIENT_READING);
	if (answer_inbox(c, &why) < 0)
		lose(c, why.text);
}

/* libuv tells of a connection that broke by a status, and stops to poll it: what came before is
 * still there to be read. */
static void on_event(uv_poll_t *poll, int status, int events)
{
	struct client *c = poll->data;
	bool more = true;

	(void)events;
	do {
		if (c->state == CLIENT_WRITING)
			write_some(c);
		else
			more = read_some(c);
	} while (more && status < 0 && c->state < CLIENT_LOST);
	if (!more)
		client_leave(c);
	let_lost_leave(c->store);
}

int client_open(struct store *s, int fd)
{
	struct client *c = budget_alloc(&s->budget, sizeof *c);
	const int on = 1;
	int rc = -ENOMEM;

	if (c) {
		*c = (struct client){ .fd = fd, .store = s };
		rc = uv_poll_init(s->loop, &c->poll, fd);
	}
	if (rc < 0) {
		budget_free(&s->budget, c, sizeof *c);
		(void)close(fd);
		return rc;
	}
	scan_init(&c->scan, s->config.old);
	c->poll.data = c;
	s->handles++;
	LIST_INSERT_HEAD(&s->clients, c, of_store);
	(void)uv_poll_start(&c->poll, UV_READABLE, on_event);
	/* answers are small and awaited */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	return 0;
}
