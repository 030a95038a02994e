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
	FLUSH_AT = 64 << 10,   /* a reply of several requests is sent when it is that long */
	KEEP = 64 << 10,       /* memory of that size is kept for the next time */
	SEND_MAX = 1 << 20,    /* bytes of one call, which lasts as long as the socket takes more */
	PARTS = 8,             /* of one call */
	UNREAD_MAX = 32 << 20, /* to a client that does not read what it did not ask for */
	/* turns of one client, then it is the others' turn; a value that has come whole is read
	 * whole before that, see client_read() */
	SERVED_MAX = 2 * STORE_VALUE_MAX,
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
static void client_spend(struct client *c, size_t what);
static void client_drop_first(struct client *c);

static void on_closed(uv_handle_t *h)
{
	struct client *c = h->data;
	struct store *s = c->store;

	budget_free(&s->budget, c, sizeof *c);
	store_handle_closed(s);
}

/* Polls for what its state needs. Can't fail. A client that waits for its turn is polled as well:
 * epoll would put one that comes back behind those that have asked after it. */
static void client_poll(struct client *c)
{
	if (!c->broken)
		(void)uv_poll_start(
			&c->poll, c->state == CLIENT_WRITING ? UV_WRITABLE : UV_READABLE, on_event);
}

static void client_goto(struct client *c, enum client_state next)
{
	struct store *s = c->store;

	c->state = sm_go(&client_life, c->state, next);
	switch (next) {
	case CLIENT_READING:
	case CLIENT_WRITING:
		client_poll(c);
		break;
	case CLIENT_LOST:
		SLIST_INSERT_HEAD(&s->lost, c, of_lost);
		break;
	case CLIENT_LEFT:
		guest_leave(&s->space.keys, &c->guest);
		bytes_done(&c->inbox, &s->budget);
		while (!TAILQ_EMPTY(&c->outbox))
			client_drop_first(c);
		if (c->waiting)
			TAILQ_REMOVE(&s->waiting, c, of_waiting);
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
static void client_lose(struct client *c, const char *why)
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

/* --- turns --- */

static bool is_turn_over(const struct client *c)
{
	return c->store->turn <= 0;
}

static void client_spend(struct client *c, size_t what)
{
	c->store->turn -= (long)what;
	c->served += what;
}

/* Its turn is over, and it has more to do. It stays the first, so that its request is read whole
 * before others are answered, until it has had its share. */
static void client_wait(struct client *c)
{
	struct store *s = c->store;

	c->waiting = true;
	if (c->served > 0 && c->served < SERVED_MAX) {
		TAILQ_INSERT_HEAD(&s->waiting, c, of_waiting);
	} else {
		TAILQ_INSERT_TAIL(&s->waiting, c, of_waiting);
		c->served = 0;
	}
}

/* --- sending --- */

static void client_drop_first(struct client *c)
{
	struct budget *b = &c->store->budget;
	struct unsent *u = TAILQ_FIRST(&c->outbox);

	TAILQ_REMOVE(&c->outbox, u, of_client);
	c->unsent -= u->blob->len - u->sent;
	blob_drop(u->blob, b);
	budget_free(b, u, sizeof *u);
}

/* Adds a blob, whose holder the outbox becomes in any case. -ENOMEM. */
static int client_keep_blob(struct client *c, struct blob *blob, size_t sent)
{
	struct budget *b = &c->store->budget;
	struct unsent *u = budget_alloc(b, sizeof *u);

	if (!u) {
		blob_drop(blob, b);
		return -ENOMEM;
	}
	*u = (struct unsent){ .blob = blob, .sent = sent };
	TAILQ_INSERT_TAIL(&c->outbox, u, of_client);
	c->unsent += blob->len - sent;
	return 0;
}

/* Adds bytes, to the last blob if it is small and nobody else's. -ENOMEM. */
static int client_keep_bytes(struct client *c, const void *bytes, size_t len)
{
	struct budget *b = &c->store->budget;
	struct unsent *last = TAILQ_LAST(&c->outbox, unsents);
	struct blob *blob = NULL;

	if (last && last->blob->holders == 1 && last->blob->len < KEEP) {
		if (blob_add(&last->blob, b, bytes, len) < 0)
			return -ENOMEM;
		c->unsent += len;
		return 0;
	}
	return blob_set(&blob, b, bytes, len) < 0 ? -ENOMEM : client_keep_blob(c, blob, 0);
}

/* Sends until the socket takes no more, or the turn is over: what its reader takes meanwhile need
 * not be kept by us. Changes the parts. Returns how many bytes that was, or negative errno. */
static ssize_t client_send(struct client *c, struct iovec *parts, size_t count)
{
	struct msghdr m = { .msg_iov = parts };
	ssize_t total = 0;

	while (count > 0 && !is_turn_over(c)) {
		size_t at_once = 0, len;
		ssize_t n;

		for (m.msg_iovlen = 0; m.msg_iovlen < count && at_once < SEND_MAX; m.msg_iovlen++)
			at_once += m.msg_iov[m.msg_iovlen].iov_len;
		len = m.msg_iov[m.msg_iovlen - 1].iov_len;
		if (at_once > SEND_MAX)
			m.msg_iov[m.msg_iovlen - 1].iov_len -= at_once - SEND_MAX;
		n = sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
		m.msg_iov[m.msg_iovlen - 1].iov_len = len;
		client_spend(c, STORE_CALL_COST + (n > 0 ? (size_t)n : 0));
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? total : -errno;
		total += n;
		for (; count > 0 && (size_t)n >= m.msg_iov->iov_len; count--)
			n -= (ssize_t)m.msg_iov++->iov_len;
		if (count > 0) {
			m.msg_iov->iov_base = (char *)m.msg_iov->iov_base + n;
			m.msg_iov->iov_len -= (size_t)n;
		}
	}
	return total;
}

/* An iovec's bytes are not const, although what is sent is only read. */
static struct iovec part_of(const void *bytes, size_t len)
{
	return (struct iovec){ (void *)bytes, len };
}

/* Sends bytes, then a blob, which may be NULL. Keeps what the socket doesn't take at once. */
static void client_send_or_keep(
	struct client *c, const uint8_t *bytes, size_t len, struct blob *blob)
{
	struct iovec parts[] = { part_of(bytes, len),
		part_of(blob ? blob->at : NULL, blob ? blob->len : 0) };
	ssize_t n = c->state == CLIENT_READING ? client_send(c, parts, blob ? 2 : 1) : 0;
	size_t sent = n > 0 ? (size_t)n : 0, done = sent < len ? sent : len;
	int rc = 0;

	if (n < 0)
		client_lose(c, NULL);
	if (c->state >= CLIENT_LOST)
		return;
	if (done < len)
		rc = client_keep_bytes(c, bytes + done, len - done);
	if (rc == 0 && blob && sent - done < blob->len)
		rc = client_keep_blob(c, blob_hold(blob), sent - done);
	if (rc < 0)
		client_lose(c, "out of memory for what it does not read");
	else if (!TAILQ_EMPTY(&c->outbox) && c->state == CLIENT_READING)
		client_goto(c, CLIENT_WRITING);
}

static struct client *client_of(struct guest *g)
{
	return (struct client *)(void *)((char *)g - offsetof(struct client, guest));
}

void client_tell(struct guest *to, const void *bytes, size_t len)
{
	struct client *c = client_of(to);
	struct store *s = c->store;

	if (c == s->answering && bytes_add(&s->reply, &s->budget, bytes, len) == 0)
		return; /* behind what it has been answered before */
	if (c->unsent > 0 && c->unsent + len > UNREAD_MAX)
		client_lose(c, "it does not read what it is sent");
	client_send_or_keep(c, bytes, len, NULL);
}

void client_tell_large(struct guest *to, struct bytes *reply, struct blob *value)
{
	client_send_or_keep(client_of(to), reply->at, reply->len, value);
	reply->len = 0;
}

static void client_flush(struct client *c)
{
	struct store *s = c->store;

	if (s->reply.len > 0)
		client_send_or_keep(c, s->reply.at, s->reply.len, NULL);
	bytes_trim(&s->reply, &s->budget, KEEP);
}

/* Answers what is whole, as long as the client takes the answers and the turn is not over. Returns
 * how many bytes that was, or negative errno: nothing good will come of this client. */
static long client_answer(struct client *c, const uint8_t *bytes, size_t len, struct failure *why)
{
	struct store *s = c->store;
	struct request r;
	size_t done = 0;
	int rc = 1;

	s->answering = c;
	while (done < len && c->state == CLIENT_READING) {
		if (is_turn_over(c)) {
			c->unfinished = true;
			break;
		}
		rc = scan_next(&c->scan, bytes + done, len - done, &r, why);
		if (rc > 0) {
			s->spoke += !c->spoke;
			c->spoke = true;
			rc = answer(&s->space, &c->guest, &r, &s->reply, why) < 0 ? -1 : 1;
		}
		if (rc <= 0)
			break;
		client_spend(c, STORE_REQUEST_COST * (r.count > 0 ? r.count : 1));
		done += r.len;
		if (s->reply.len >= FLUSH_AT)
			client_flush(c);
	}
	if (rc >= 0)
		client_flush(c);
	bytes_trim(&s->reply, &s->budget, KEEP);
	s->answering = NULL;
	return rc < 0 ? why->code : (long)done;
}

/* Answers what the inbox holds. Negative errno as above. */
static long client_answer_inbox(struct client *c, struct failure *why)
{
	long done = client_answer(c, c->inbox.at, c->inbox.len, why);

	if (done < 0)
		return done;
	bytes_drop(&c->inbox, (size_t)done);
	if (c->inbox.len == 0)
		bytes_trim(&c->inbox, &c->store->budget, 0);
	return 0;
}

static int client_keep(struct client *c, const uint8_t *bytes, size_t len, struct failure *why)
{
	if (len == 0 || bytes_add(&c->inbox, &c->store->budget, bytes, len) == 0)
		return 0;
	return failure_set(why, -ENOMEM, "out of memory for its request (%s): the store is full",
		query_name(c->scan.query));
}

static void client_receive(struct client *c, const uint8_t *bytes, size_t len)
{
	struct failure why = { 0 };
	long rc = 0;

	if (c->inbox.len == 0) { /* most requests are read whole, and need no memory */
		rc = client_answer(c, bytes, len, &why);
		if (rc >= 0)
			rc = client_keep(c, bytes + rc, len - (size_t)rc, &why);
	} else {
		rc = client_keep(c, bytes, len, &why);
		if (rc == 0)
			rc = client_answer_inbox(c, &why);
	}
	if (rc < 0)
		client_lose(c, why.text);
}

/* Reads all that has come: SET has no reply, so whoever called it may tell others at once, and who
 * then asks must not be told the value before, only because one read does not take the new one
 * whole. Torch's own server reads on as well. False: it has gone. */
static bool client_read(struct client *c)
{
	ssize_t n;

	do {
		if (is_turn_over(c)) {
			c->unfinished = true;
			return true;
		}
		n = recv(c->fd, c->store->room, CLIENT_READ_SIZE, 0);
		client_spend(c, STORE_CALL_COST + (n > 0 ? (size_t)n : 0));
		if (n <= 0)
			return n < 0 && (errno == EAGAIN || errno == EINTR);
		client_receive(c, (const uint8_t *)c->store->room, (size_t)n);
	} while (c->state == CLIENT_READING && !c->unfinished &&
		(c->inbox.len > 0 || n == CLIENT_READ_SIZE));
	return true;
}

/* Sends what its socket did not take before, then answers what it has asked meanwhile. */
static void client_write(struct client *c)
{
	struct failure why = { 0 };
	struct iovec parts[PARTS];
	size_t count = 0;
	struct unsent *u;
	ssize_t n;

	TAILQ_FOREACH(u, &c->outbox, of_client)
	{
		if (count == PARTS)
			break;
		parts[count++] = part_of(u->blob->at + u->sent, u->blob->len - u->sent);
	}
	n = client_send(c, parts, count);
	if (n < 0) {
		client_lose(c, NULL);
		return;
	}
	while ((u = TAILQ_FIRST(&c->outbox)) && (size_t)n >= u->blob->len - u->sent) {
		n -= (ssize_t)(u->blob->len - u->sent);
		client_drop_first(c);
	}
	if (u) {
		u->sent += (size_t)n;
		c->unsent -= (size_t)n;
		return;
	}
	client_goto(c, CLIENT_READING);
	if (client_answer_inbox(c, &why) < 0)
		client_lose(c, why.text);
}

/* Writes, answers and reads until the client has no more work, or the turn is over. */
static void client_serve(struct client *c)
{
	struct failure why = { 0 };
	bool more = true;

	do {
		bool unfinished = c->unfinished, wrote = c->state == CLIENT_WRITING;

		c->unfinished = false;
		if (wrote)
			client_write(c);
		else if (unfinished && c->inbox.len > 0 && client_answer_inbox(c, &why) < 0)
			client_lose(c, why.text);
		/* what came while it was sent something has its turn when it is polled */
		if (c->state == CLIENT_READING && !c->unfinished && (!wrote || c->broken))
			more = client_read(c);
	} while (more && c->broken && c->state < CLIENT_LOST && !is_turn_over(c));
	if (!more)
		client_leave(c);
	else if (c->state < CLIENT_LOST && (c->broken || c->unfinished))
		client_wait(c);
	else if (c->state < CLIENT_LOST)
		c->served = 0;
	let_lost_leave(c->store);
}

void client_resume(struct client *c)
{
	TAILQ_REMOVE(&c->store->waiting, c, of_waiting);
	c->waiting = false;
	client_serve(c);
}

/* A negative status: the connection broke, and libuv has stopped polling it. */
static void on_event(uv_poll_t *poll, int status, int events)
{
	struct client *c = poll->data;

	(void)events;
	c->broken = status < 0;
	if (c->waiting)
		return;
	c->served = 0; /* what it was sent meanwhile was no turn of its own */
	if (is_turn_over(c) || !TAILQ_EMPTY(&c->store->waiting))
		client_wait(c);
	else
		client_serve(c);
}

int client_open(struct store *s, int fd)
{
	struct client *c = budget_alloc(&s->budget, sizeof *c);
	const int on = 1;
	int rc = -ENOMEM;

	if (c) {
		*c = (struct client){ .fd = fd, .store = s };
		TAILQ_INIT(&c->outbox);
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
