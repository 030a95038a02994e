/* beat.c - see beat.h */
#include "daemon/net/beat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/fd.h"
#include "daemon/net/listener.h"
#include "daemon/net/rescue.h"

enum { MS = 1000000 };

static void on_timer(uv_timer_t *t);
static void arm(struct beat *b, uint64_t now, uint64_t soonest);
static void end(struct beat *b);

static struct link **bucket(const struct beat *b, uint64_t session)
{
	return &b->table[session & (b->buckets - 1)]; /* sessions are random */
}

struct link *beat_find(const struct beat *b, uint64_t session)
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

bool beat_is_recent(const struct link *l, uint64_t then, uint64_t now)
{
	return then != 0 && now - then < l->beats.interval_ns * BEAT_PARTS / 2;
}

/* Also counts while the machine is suspended. */
static uint64_t boot_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_BOOTTIME, &t); /* can't fail */
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Whether the gap is so long that others missed a whole time-out of beats, counted from the one
 * before. */
static bool is_long(const struct beat *b, uint64_t gap_ns)
{
	return gap_ns > (BEAT_PARTS - 1) * b->interval_ns;
}

static void note_awake(struct beat *b)
{
	uint64_t now = boot_ns();

	if (is_long(b, now - b->awake_ns)) {
		b->slept_ns = now - b->awake_ns;
		b->woke_ns = now;
	}
	b->awake_ns = now;
}

uint64_t beat_slept_ms(const struct beat *b)
{
	uint64_t now = boot_ns();

	/* after a suspension a socket's callback may run before the timer's */
	if (b->links > 0 && is_long(b, now - b->awake_ns))
		return (now - b->awake_ns) / MS;
	return b->slept_ns > 0 && now - b->woke_ns < timeout_of(b) ? b->slept_ns / MS : 0;
}

void beat_send_datagram(struct beat *b, struct link *l, unsigned char *datagram, size_t len)
{
	const struct sockaddr *to = NULL; /* a dialer's socket is connected */
	uv_udp_t *udp = &l->udp;
	uv_buf_t buf = uv_buf_init((char *)datagram, (unsigned)(len + FRAME_TAG));

	if (l->is_hub) {
		to = &l->beats.from.any;
		udp = &b->udp[l->beats.socket];
		if (to->sa_family == AF_UNSPEC)
			return;
	} else if (!l->has_udp)
		return;
	datagram_seal(l->auth->sodium, l->auth->keyed ? l->beat_out : l->token, datagram, len);
	if (uv_udp_try_send(udp, &buf, 1, to) == UV_ECONNREFUSED)
		l->beats.refused = true;
}

/* The peer relies on that for half of the time-out, and must then still have time to use TCP. */
static bool hears_udp(const struct link *l, uint64_t now)
{
	return l->beats.udp_ns != 0 &&
		now - l->beats.udp_ns < l->beats.interval_ns * BEAT_PARTS / 6;
}

/* A beat as of now. */
static void make_beat(struct link *l, unsigned char ret[BEAT_BODY])
{
	uint64_t now = uv_hrtime();
	const struct beat_body body = {
		.session = l->session,
		.sequence = ++l->beats.sent,
		.sent_ns = now,
		.echo_ns = l->beats.peer_sent_ns,
		.received_ns = l->beats.received_ns,
		.sent = kept_sent(&l->kept),
		.taken = l->taken,
		.udp_heard = hears_udp(l, now),
		.tcp_behind = l->taken > l->tcp_taken,
		.lost = l->beats.lost,
	};

	l->told = l->taken;
	beat_body_write(&body, ret);
}

static void send_by_udp(struct beat *b, struct link *l, unsigned char datagram[BEAT_DATAGRAM])
{
	make_beat(l, datagram);
	beat_send_datagram(b, l, datagram, BEAT_BODY);
}

void beat_answer(struct beat *b, struct link *l)
{
	unsigned char datagram[BEAT_DATAGRAM];

	send_by_udp(b, l, datagram);
}

void beat_send(struct beat *b, struct link *l)
{
	unsigned char datagram[BEAT_DATAGRAM];

	send_by_udp(b, l, datagram);
	if (!beat_is_recent(l, l->beats.udp_heard_ns, uv_hrtime()))
		(void)link_send_beat(l, datagram, BEAT_BODY);
}

/* May end the link. */
static void take_beat(struct link *l, const struct beat_body *body, uint64_t now)
{
	if (body->udp_heard)
		l->beats.udp_heard_ns = now;
	if (body->echo_ns != 0)
		(void)clock_add_sample(
			&l->clock, body->echo_ns, body->received_ns, body->sent_ns, now);
	if (body->sent_ns > l->beats.peer_sent_ns) {
		l->beats.behind = body->tcp_behind;
		l->beats.peer_sent_ns = body->sent_ns;
		l->beats.received_ns = now;
	}
	if (body->sent > l->beats.peer_sent)
		l->beats.peer_sent = body->sent;
	link_acknowledge(l, body->taken);
	if (body->lost)
		link_close(l, false, "its heartbeats arrive, but ours no longer reach it");
}

static void on_beat(struct link *l, const unsigned char *payload, size_t len)
{
	struct beat_body body;

	if (beat_body_read(payload, len, &body) == 0 && body.session == l->session)
		take_beat(l, &body, l->heard_ns);
}

static bool is_sealed(const struct link *l, const unsigned char *bytes, size_t len)
{
	return datagram_is_sealed(
		l->auth->sodium, l->auth->keyed ? l->beat_in : l->token, bytes, len);
}

/* Remembers where the hub's answers go. */
static void note_source(struct beat *b, struct link *l, const uv_udp_t *h, const struct address *a)
{
	unsigned socket = (unsigned)(h - b->udp);

	if (!l->is_hub || (socket == l->beats.socket && address_same(&l->beats.from, a)))
		return;
	l->beats.from = *a;
	l->beats.socket = socket;
	rescue_moved(b, l);
}

/* Takes a beat of this link. False: it is a duplicate, late, altered, or another link's. */
static bool take_beat_datagram(struct beat *b, struct link *l, const unsigned char *bytes,
	const uv_udp_t *h, const struct address *from)
{
	uint64_t acked = l->kept.acked, now = uv_hrtime();
	bool first = l->beats.udp_ns == 0;
	struct beat_body body;

	if (beat_body_read(bytes, BEAT_BODY, &body) < 0 || body.session != l->session ||
		body.sequence <= l->beats.seen || !is_sealed(l, bytes, BEAT_BODY))
		return false;
	note_source(b, l, h, from);
	l->beats.seen = body.sequence;
	l->beats.udp_ns = l->heard_ns = now;
	take_beat(l, &body, now);
	if (l->beats.watcher && l->kept.acked > acked)
		rescue_acknowledged(b, l);
	if (first && l->is_hub && l->beats.watcher)
		beat_answer(b, l); /* both ends know from the start that UDP works */
	return true;
}

/* Takes a piece of this link. A duplicate is no sign of life: anyone who has seen it may have sent
 * it. */
static bool take_piece(struct beat *b, struct link *l, const unsigned char *bytes, size_t len)
{
	struct piece p;

	if (piece_read(bytes, len, &p) < 0 || p.session != l->session ||
		!is_sealed(l, bytes, len - FRAME_TAG))
		return false;
	rescue_take(b, l, &p);
	return true;
}

/* The link of a datagram, by its session. NULL: unknown. */
static struct link *owner_of(const struct beat *b, const unsigned char *bytes, size_t len)
{
	struct beat_body body;
	uint64_t session;
	struct piece p;

	if (len == BEAT_DATAGRAM && beat_body_read(bytes, BEAT_BODY, &body) == 0)
		return beat_find(b, body.session);
	if (notice_session(bytes, len, &session) == 0)
		return beat_find(b, session);
	return piece_read(bytes, len, &p) == 0 ? beat_find(b, p.session) : NULL;
}

/* A datagram has come to handle h. only: the one link it may belong to; NULL: any. */
static void sort(struct beat *b, struct link *only, const uv_buf_t *buf, ssize_t n, uv_udp_t *h,
	const struct sockaddr *source)
{
	const struct address from = address_of(source);
	const unsigned char *bytes = (const unsigned char *)buf->base;
	size_t len = n > 0 ? (size_t)n : 0;
	struct link *l = only ? only : owner_of(b, bytes, len);

	if (!l ||
		(!(len == BEAT_DATAGRAM && take_beat_datagram(b, l, bytes, h, &from)) &&
			!rescue_take_notice(l, bytes, len, h, &from) &&
			!take_piece(b, l, bytes, len)))
		b->bad++;
}

static void on_room(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
	struct beat *b = h->data;

	(void)suggested;
	*buf = uv_buf_init((char *)b->buffer, sizeof b->buffer);
}

/* At the hub. */
static void on_datagram(
	uv_udp_t *h, ssize_t n, const uv_buf_t *buf, const struct sockaddr *from, unsigned flags)
{
	(void)flags;
	if (from) /* else nothing more, or an error caused by an earlier datagram of ours */
		sort(h->data, NULL, buf, n, h, from);
}

/* The timer does the rest, outside of the link's callbacks. */
static void on_change(struct link *l)
{
	struct beat *b = l->beats.of;

	if (!b->soon)
		(void)uv_timer_start(&b->timer, on_timer, 0, 0);
	b->soon = true;
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
		sort(l->beats.of, l, buf, n, h, from);
	if (n == UV_ECONNREFUSED) {
		l->beats.refused = true;
		on_change(l);
	}
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

/* Without a socket, beats go over the link. */
static void open_socket(struct link *l)
{
	const struct address *to = &l->peer_address;
	autoclose fd = -1;

	if (l->is_hub || !l->peer_udp || l->has_udp)
		return;
	fd = socket(to->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, &to->any, address_size(to)) < 0)
		return;
	link_adopt_udp(l, fd_take(&fd));
	(void)uv_udp_recv_start(&l->udp, on_answer_room, on_answer);
}

static void unwatch(struct link *l)
{
	struct beat *b = l->beats.of;
	struct link **at = bucket(b, l->session);

	note_awake(b);
	if (l->taken > l->tcp_taken)
		rescue_farewell(b, l);
	rescue_withdraw(b, l);
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
	if (b->links == 0 && b->closing)
		end(b);
}

static const struct link_watcher watcher = {
	.on_beat = on_beat, .on_change = on_change, .on_ending = unwatch
};

int beat_watch(struct beat *b, struct link *l)
{
	uint64_t now = uv_hrtime(), interval = interval_of(b->timeout_ms);

	if (l->beats.watcher || l->state != LINK_OPEN)
		return 0;
	if (grow(b) < 0)
		return -ENOMEM;
	if (b->links == 0)
		b->awake_ns = boot_ns();
	if (l->peer_timeout_ms != 0 && l->peer_timeout_ms < b->timeout_ms)
		interval = interval_of(l->peer_timeout_ms);
	l->beats = (struct link_beats){
		.watcher = &watcher, .of = b, .next = b->first, .interval_ns = interval
	};
	if (b->first)
		b->first->beats.previous = l;
	b->first = l;
	b->links++;
	chain(b, l);
	if (interval < b->interval_ns)
		b->interval_ns = interval;
	if (b->links == 1 || b->next_ns > now + b->interval_ns)
		b->next_ns = now + b->interval_ns;
	open_socket(l);
	arm(b, now, b->next_ns);
	beat_send(b, l); /* it tells the hub where to send its own */
	return 0;
}

/* Whether it is found silent for the time-out for the second time. Lowers *ret_soonest to when to
 * look again. */
static bool is_lost(struct beat *b, struct link *l, uint64_t now, uint64_t *ret_soonest)
{
	uint64_t deadline = rescue_note_trouble(b, l, now) + timeout_of(b), due;
	bool lost = false;

	/* draining has its own limit, and so has waiting for a dead peer's guard */
	if (now < deadline || l->state != LINK_OPEN || rescue_awaits_guard(l, &due)) {
		l->beats.suspect_ns = 0;
		l->beats.silent = false;
	} else if (l->beats.suspect_ns == 0 || l->beats.suspect_ns == now) {
		/* frames may already lie in the socket: they are read first */
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

/* Returns when to look again. Acting on a link may end any of them: then it starts again. */
static uint64_t look(struct beat *b, uint64_t now)
{
	uint64_t soonest = b->next_ns, due;
	struct link *l = b->first;

	while (l) {
		unsigned links = b->links;
		bool lost = is_lost(b, l, now, &soonest);

		if (lost)
			b->on_silent(b, l, (now - rescue_note_trouble(b, l, now)) / MS);
		else if ((due = rescue_look(b, l, now)) < soonest)
			soonest = due;
		l = lost || b->links != links ? b->first : l->beats.next;
	}
	return soonest;
}

static void on_timer(uv_timer_t *t)
{
	struct beat *b = t->data;
	uint64_t now = uv_hrtime();
	struct link *next;

	b->soon = false;
	note_awake(b);
	if (now > b->next_ns + BEAT_LATE * b->interval_ns)
		b->fresh_ns = now; /* we were suspended, so silence proves nothing */
	if (now >= b->next_ns) {
		for (struct link *l = b->first; l; l = next) {
			next = l->beats.next; /* a link that can't send ends */
			beat_send(b, l);
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
	(void)uv_timer_start(&b->timer, on_timer, b->soon ? 0 : ms ? ms : 1, 0);
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
	static const char *const troubles[] = {
		[TROUBLE_SILENT] = "nothing was heard from it",
		[TROUBLE_UNACKED] = "its heartbeats arrive, but it has received nothing",
		[TROUBLE_MISSING] = "its heartbeats arrive, but none of its messages did",
	};
	char why[96];

	(void)snprintf(why, sizeof why, "%s for %.1f s", troubles[l->beats.trouble],
		(double)silent_ms / 1000);
	l->beats.lost = true;
	rescue_farewell(b, l); /* it may still hear us, and would notice the end of TCP later */
	link_close(l, false, why);
}

static void end(struct beat *b)
{
	uv_close((uv_handle_t *)&b->timer, on_handle_closed);
	for (unsigned i = 0; i < b->sockets; i++)
		uv_close((uv_handle_t *)&b->udp[i], on_handle_closed);
}

void beat_close(struct beat *b)
{
	if (b->handles == 0 || b->closing)
		return;
	b->closing = true;
	if (!b->first)
		end(b);
}
