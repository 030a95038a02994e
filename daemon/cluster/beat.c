/* beat.c - see beat.h */
#include "daemon/cluster/beat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/cluster/listener.h"

enum { MS = 1000000 };

static void arm(struct beat *b, uint64_t now, uint64_t soonest);

static struct link **bucket(const struct beat *b, uint64_t session)
{
	return &b->table[session & (b->buckets - 1)]; /* sessions are random */
}

static struct link *find(const struct beat *b, uint64_t session)
{
	struct link *l = b->buckets ? *bucket(b, session) : NULL;

	while (l && l->session != session)
		l = l->beats.chain;
	return l;
}

static void chain(struct beat *b, struct link *l)
{
	struct link **at = bucket(b, l->session);

	l->beats.chain = *at;
	*at = l;
}

static int grow(struct beat *b)
{
	size_t buckets = b->buckets ? 2 * b->buckets : 8;
	struct link **table;

	if (b->links < b->buckets)
		return 0;
	table = calloc(buckets, sizeof(struct link *));
	if (!table)
		return -ENOMEM;
	free(b->table);
	b->table = table;
	b->buckets = buckets;
	for (struct link *l = b->first; l; l = l->beats.next)
		chain(b, l);
	return 0;
}

static uint64_t interval_of(uint32_t timeout_ms)
{
	uint64_t ms = timeout_ms < BEAT_TIMEOUT_MIN_MS ? BEAT_TIMEOUT_MIN_MS : timeout_ms;

	return ms * MS / BEAT_PARTS;
}

static uint64_t timeout_of(const struct beat *b)
{
	return BEAT_PARTS * interval_of(b->timeout_ms);
}

/* What came half of the shorter time-out ago or earlier came too long ago to rely on. */
static bool is_recent(const struct beat *b, uint64_t then, uint64_t now)
{
	return then != 0 && now - then < b->interval_ns * BEAT_PARTS / 2;
}

/* By UDP, where the other end of it is known. */
static void send_datagram(struct beat *b, struct link *l, const unsigned char body[BEAT_BODY])
{
	const struct sockaddr *to = NULL; /* a dialer's socket is connected */
	unsigned char datagram[BEAT_DATAGRAM];
	uv_udp_t *udp = &l->udp;
	uv_buf_t buf = uv_buf_init((char *)datagram, sizeof datagram);

	if (l->is_hub) {
		to = (const struct sockaddr *)&l->beats.from;
		udp = &b->udp[l->beats.socket];
		if (to->sa_family == AF_UNSPEC)
			return;
	} else if (!l->has_udp)
		return;
	memcpy(datagram, body, BEAT_BODY);
	beat_seal(l->auth->sodium, l->auth->keyed ? l->beat_out : l->token, datagram);
	(void)uv_udp_try_send(udp, &buf, 1, to); /* may be lost, as any datagram */
}

static void send_beat(struct beat *b, struct link *l, uint64_t now)
{
	const struct beat_body body = {
		.session = l->session,
		.sequence = ++l->beats.sent,
		.sent_ns = now,
		.echo_ns = l->beats.peer_sent_ns,
		.received_ns = l->beats.received_ns,
		.udp_heard = is_recent(b, l->beats.udp_ns, now),
	};
	unsigned char bytes[BEAT_BODY];

	beat_body_write(&body, bytes);
	send_datagram(b, l, bytes);
	if (!is_recent(b, l->beats.udp_heard_ns, now))
		(void)link_send_beat(l, bytes, sizeof bytes);
}

static void take_beat(struct link *l, const struct beat_body *body, uint64_t now)
{
	if (body->udp_heard)
		l->beats.udp_heard_ns = now;
	if (body->echo_ns != 0)
		(void)clock_add_sample(
			&l->clock, body->echo_ns, body->received_ns, body->sent_ns, now);
	if (body->sent_ns > l->beats.peer_sent_ns) {
		l->beats.peer_sent_ns = body->sent_ns;
		l->beats.received_ns = now;
	}
}

static void on_beat(struct link *l, const unsigned char *payload, size_t len)
{
	struct beat_body body;

	if (beat_body_read(payload, len, &body) == 0 && body.session == l->session)
		take_beat(l, &body, l->heard_ns);
}

/* Whether it is a datagram of this link's. Those that come twice, late or altered are nobody's. */
static bool take_datagram(struct link *l, const unsigned char *bytes, const struct beat_body *body)
{
	uint64_t now = uv_hrtime();

	if (!l || body->session != l->session || body->sequence <= l->beats.seen ||
		!beat_is_sealed(l->auth->sodium, l->auth->keyed ? l->beat_in : l->token, bytes))
		return false;
	l->beats.seen = body->sequence;
	l->beats.udp_ns = l->heard_ns = now;
	take_beat(l, body, now);
	return true;
}

static void on_room(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
	struct beat *b = h->data;

	(void)suggested;
	*buf = uv_buf_init((char *)b->buffer, sizeof b->buffer);
}

/* Whose datagram it is; NULL, and counted, where nobody's. only: who may have it; NULL: anyone. */
static struct link *sort(struct beat *b, struct link *only, const uv_buf_t *buf, ssize_t n)
{
	const unsigned char *bytes = (const unsigned char *)buf->base;
	struct link *l = only;
	struct beat_body body;

	if (n == BEAT_DATAGRAM && beat_body_read(bytes, BEAT_BODY, &body) == 0) {
		l = only ? only : find(b, body.session);
		if (take_datagram(l, bytes, &body))
			return l;
	}
	b->bad++;
	return NULL;
}

/* At the hub. */
static void on_datagram(
	uv_udp_t *h, ssize_t n, const uv_buf_t *buf, const struct sockaddr *from, unsigned flags)
{
	struct beat *b = h->data;
	struct link *l;

	(void)flags;
	if (!from) /* nothing more, or an error that an earlier one of ours caused */
		return;
	l = sort(b, NULL, buf, n);
	if (l) {
		memcpy(&l->beats.from, from, address_size(from));
		l->beats.socket = (unsigned)(h - b->udp);
	}
}

/* At a dialer: the handle is the link's. */
static void on_answer_room(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
	struct beat *b = ((struct link *)h->data)->beats.of;

	(void)suggested;
	*buf = uv_buf_init((char *)b->buffer, sizeof b->buffer);
}

static void on_answer(
	uv_udp_t *h, ssize_t n, const uv_buf_t *buf, const struct sockaddr *from, unsigned flags)
{
	struct link *l = h->data;

	(void)flags;
	if (from)
		(void)sort(l->beats.of, l, buf, n);
}

static void on_handle_closed(uv_handle_t *h)
{
	struct beat *b = h->data;

	if (--b->handles > 0)
		return;
	free(b->table);
	b->table = NULL;
	b->buckets = 0;
	if (b->on_closed)
		b->on_closed(b);
}

/* No socket, no datagrams: beats travel over the link then. */
static void open_socket(struct link *l)
{
	const struct sockaddr *to = (const struct sockaddr *)&l->peer_address;
	autoclose fd = -1;

	if (l->is_hub || !l->peer_udp || l->has_udp)
		return;
	fd = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, to, address_size(to)) < 0)
		return;
	link_adopt_udp(l, fd_take(&fd));
	(void)uv_udp_recv_start(&l->udp, on_answer_room, on_answer);
}

static void unwatch(struct link *l)
{
	struct beat *b = l->beats.of;
	struct link **at = bucket(b, l->session);

	while (*at != l)
		at = &(*at)->beats.chain;
	*at = l->beats.chain;
	if (l->beats.next)
		l->beats.next->beats.previous = l->beats.previous;
	if (l->beats.previous)
		l->beats.previous->beats.next = l->beats.next;
	else
		b->first = l->beats.next;
	l->beats.next = l->beats.previous = l->beats.chain = NULL;
	l->beats.watcher = NULL;
	if (--b->links == 0) {
		(void)uv_timer_stop(&b->timer);
		b->interval_ns = interval_of(b->timeout_ms);
	}
	if (l->has_udp)
		(void)uv_udp_recv_stop(&l->udp);
}

static const struct link_watcher watcher = { .on_beat = on_beat, .on_ending = unwatch };

int beat_watch(struct beat *b, struct link *l)
{
	uint64_t now = uv_hrtime(), theirs = interval_of(l->peer_timeout_ms);

	if (l->beats.watcher || l->state != LINK_OPEN)
		return 0;
	if (grow(b) < 0)
		return -ENOMEM;
	l->beats = (struct link_beats){ .watcher = &watcher, .of = b, .next = b->first };
	if (b->first)
		b->first->beats.previous = l;
	b->first = l;
	b->links++;
	chain(b, l);
	if (l->peer_timeout_ms != 0 && theirs < b->interval_ns)
		b->interval_ns = theirs;
	if (b->links == 1 || b->next_ns > now + b->interval_ns)
		b->next_ns = now + b->interval_ns;
	open_socket(l);
	arm(b, now, b->next_ns);
	send_beat(b, l, now); /* the hub learns where to send its own */
	return 0;
}

/* Whether it is silent for the time-out, for the second time. *ret_soonest: when to look again. */
static bool is_lost(struct beat *b, struct link *l, uint64_t now, uint64_t *ret_soonest)
{
	uint64_t heard = l->heard_ns > b->fresh_ns ? l->heard_ns : b->fresh_ns;
	uint64_t deadline = heard + timeout_of(b);
	bool lost = false;

	if (now < deadline) {
		l->beats.suspect_ns = 0;
		l->beats.silent = false;
	} else if (l->beats.suspect_ns == 0 || l->beats.suspect_ns == now) {
		/* what has come already may lie in the socket: it has its turn first */
		l->beats.suspect_ns = now;
		deadline = now;
	} else {
		lost = !l->beats.silent;
		l->beats.silent = true;
		deadline = UINT64_MAX;
	}
	if (deadline < *ret_soonest)
		*ret_soonest = deadline;
	return lost;
}

/* When to look again. on_silent may end any link, so that each is followed by a new beginning. */
static uint64_t look(struct beat *b, uint64_t now)
{
	uint64_t soonest = b->next_ns;
	struct link *l = b->first;

	while (l) {
		bool lost = is_lost(b, l, now, &soonest);

		if (lost)
			b->on_silent(b, l, (now - l->heard_ns) / MS);
		l = lost ? b->first : l->beats.next;
	}
	return soonest;
}

static void on_timer(uv_timer_t *t)
{
	struct beat *b = t->data;
	uint64_t now = uv_hrtime();
	struct link *next;

	if (now > b->next_ns + BEAT_LATE * b->interval_ns)
		b->fresh_ns = now; /* we have slept, so nobody can be blamed for silence */
	if (now >= b->next_ns) {
		for (struct link *l = b->first; l; l = next) {
			next = l->beats.next; /* a link that can't send may end */
			send_beat(b, l, now);
		}
		b->next_ns = b->next_ns + b->interval_ns > now ? b->next_ns + b->interval_ns :
								 now + b->interval_ns;
	}
	arm(b, now, look(b, now));
}

static void arm(struct beat *b, uint64_t now, uint64_t soonest)
{
	uint64_t ms = soonest > now ? (soonest - now + MS - 1) / MS : 0;

	if (!b->first)
		return;
	uv_update_time(b->loop);
	(void)uv_timer_start(&b->timer, on_timer, ms ? ms : 1, 0);
}

void beat_open(struct beat *b, uv_loop_t *loop)
{
	b->loop = loop;
	(void)uv_timer_init(loop, &b->timer);
	b->timer.data = b;
	b->handles = 1;
	b->interval_ns = interval_of(b->timeout_ms);
}

void beat_hear(struct beat *b, struct listener *li)
{
	for (unsigned i = 0; i < li->count; i++) {
		if (li->udp[i] < 0)
			continue;
		(void)uv_udp_init(b->loop, &b->udp[b->sockets]);
		(void)uv_udp_open(&b->udp[b->sockets], fd_take(&li->udp[i]));
		b->udp[b->sockets].data = b;
		b->handles++;
		(void)uv_udp_recv_start(&b->udp[b->sockets], on_room, on_datagram);
		b->sockets++;
	}
}

void beat_drop(struct beat *b, struct link *l, uint64_t silent_ms)
{
	char why[64];

	(void)b;
	(void)snprintf(
		why, sizeof why, "nothing was heard of it for %.1f s", (double)silent_ms / 1000);
	link_close(l, false, why);
}

void beat_close(struct beat *b)
{
	if (b->handles == 0 || uv_is_closing((uv_handle_t *)&b->timer))
		return;
	while (b->first)
		unwatch(b->first);
	uv_close((uv_handle_t *)&b->timer, on_handle_closed);
	for (unsigned i = 0; i < b->sockets; i++)
		uv_close((uv_handle_t *)&b->udp[i], on_handle_closed);
}
