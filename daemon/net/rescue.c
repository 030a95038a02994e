/* rescue.c - see rescue.h */
#include "daemon/net/rescue.h"

#include <string.h>

#include "daemon/net/death_notice.h"

static const uint64_t MS = 1000000;

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Some of the peer's stream is missing, by what it said last. */
static void note_missing(struct link *l, uint64_t now)
{
	struct link_beats *b = &l->beats;

	if (l->taken >= b->peer_sent) {
		b->missing_ns = 0;
	} else if (b->missing_ns == 0 || b->missing_at != l->taken) {
		b->missing_ns = now;
		b->missing_at = l->taken;
	}
}

/* Whether so much was heard of the peer since then that it would have said more by now: a beat may
 * have been on its way, and the next one tells. Else it is silence that it is to be blamed for. */
static bool is_heard_since(const struct link *l, uint64_t then)
{
	return l->heard_ns > then + BEAT_LATE * l->beats.interval_ns;
}

uint64_t rescue_note_trouble(const struct beat *b, struct link *l, uint64_t now)
{
	uint64_t since = later(l->heard_ns, b->fresh_ns);

	note_missing(l, now);
	l->beats.trouble = TROUBLE_SILENT;
	if (l->unacked_ns != 0 && is_heard_since(l, l->unacked_ns) &&
		later(l->unacked_ns, b->fresh_ns) < since) {
		since = later(l->unacked_ns, b->fresh_ns);
		l->beats.trouble = TROUBLE_UNACKED;
	}
	if (l->beats.missing_ns != 0 && is_heard_since(l, l->beats.missing_ns) &&
		later(l->beats.missing_ns, b->fresh_ns) < since) {
		since = later(l->beats.missing_ns, b->fresh_ns);
		l->beats.trouble = TROUBLE_MISSING;
	}
	return since;
}

/* What is kept, in pieces, as far as the window goes and they have not gone out in this round. */
static void send_pieces(struct beat *b, struct link *l)
{
	uint64_t end = kept_sent(&l->kept), most = l->kept.acked + RESCUE_WINDOW * PIECE_BYTES;
	unsigned char bytes[PIECE_BYTES], datagram[PIECE_DATAGRAM];
	uint64_t at = later(l->beats.piece_at, l->kept.acked);

	while (at < end && at < most) {
		struct piece p = { .session = l->session, .at = at, .bytes = bytes };

		p.len = kept_read(&l->kept, at, bytes, sizeof bytes);
		beat_send_datagram(b, l, datagram, piece_write(&p, datagram));
		at += p.len;
	}
	l->beats.piece_at = at;
}

/* Pieces where they are due. Where there is no UDP, none: beats find out whether there is. */
static uint64_t look_at_pieces(struct beat *b, struct link *l, uint64_t now)
{
	struct link_beats *k = &l->beats;
	uint64_t due = later(l->unacked_ns, b->fresh_ns) + RESCUE_LATE * l->beats.interval_ns;

	if (l->unacked_ns == 0 ||
		!(beat_is_recent(l, k->udp_ns, now) || beat_is_recent(l, k->udp_heard_ns, now))) {
		k->piece_at = k->piece_ns = k->piece_wait_ns = 0;
		return UINT64_MAX;
	}
	if (link_is_behind(l))
		due = now;
	if (due > now)
		return due;
	if (now >= k->piece_ns) {
		k->piece_at = 0; /* all of them again */
		k->piece_wait_ns = k->piece_wait_ns ? 2 * k->piece_wait_ns :
						      l->beats.interval_ns / RESCUE_PARTS;
		if (k->piece_wait_ns > l->beats.interval_ns)
			k->piece_wait_ns = l->beats.interval_ns;
		k->piece_ns = now + k->piece_wait_ns;
	}
	send_pieces(b, l);
	return k->piece_ns;
}

void rescue_acknowledged(struct beat *b, struct link *l)
{
	if (l->beats.piece_ns == 0)
		return;
	l->beats.piece_wait_ns = l->beats.interval_ns / RESCUE_PARTS;
	l->beats.piece_ns = uv_hrtime() + l->beats.piece_wait_ns;
	send_pieces(b, l);
}

/* A connection that broke and no sign of life since then: the peer's process has died, as it seemed
 * at first. Where the hub's kernel says that nobody is at its port any more, at once; a firewall
 * may say that, too, of a way that was never open. */
static bool is_dead(const struct beat *b, const struct link *l, uint64_t now)
{
	const struct link_beats *k = &l->beats;
	bool by_udp = beat_is_recent(l, k->udp_ns, now);
	uint64_t beats = by_udp ? RESCUE_BROKEN : RESCUE_BROKEN_TCP;

	if (l->tcp)
		return false;
	if (!l->is_hub && (by_udp ? k->refused : l->fresh_refused))
		return true;
	if (l->state == LINK_DRAINING)
		return !by_udp;
	return l->heard_ns <= l->broke_ns &&
		now >= later(l->broke_ns, b->fresh_ns) + beats * l->beats.interval_ns;
}

static void look_at_dialing(struct beat *b, struct link *l, uint64_t now)
{
	uint64_t late = RESCUE_DIAL * l->beats.interval_ns;

	if (l->is_hub || l->state != LINK_OPEN || l->fresh || now < l->beats.dial_ns ||
		(l->tcp && now - rescue_note_trouble(b, l, now) < late))
		return;
	l->beats.dial_ns = now + (l->tcp ? late : l->beats.interval_ns);
	link_redial(l);
}

/* One key for each direction, as it is with beats. */
static void key_of(const struct link *l, const unsigned char *beats, unsigned char ret[NOTICE_KEY])
{
	notice_key(l->auth->sodium, l->auth->keyed ? beats : l->token, ret);
}

/* The number of the socket that the peer hears us by, which the guard has or gets. */
static int lend(struct beat *b, struct link *l)
{
	uv_udp_t *udp = l->is_hub ? &b->udp[l->beats.socket] : &l->udp;
	int *lent = l->is_hub ? &b->lent[l->beats.socket] : &l->beats.lent;
	uv_os_fd_t fd;

	if (*lent == 0 && uv_fileno((const uv_handle_t *)udp, &fd) == 0)
		*lent = death_notice_lend(b->death_notice, fd) + 1;
	return *lent - 1;
}

/* Puts it into the book; also where it is not reached by UDP, or not yet. */
static void enter(struct beat *b, struct link *l)
{
	static const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	struct death_notice_peer p = { .to = &nowhere, .session = l->session };
	bool reached = l->is_hub ? l->beats.from.ss_family != AF_UNSPEC : l->has_udp;
	int socket = reached ? lend(b, l) : -1;

	if (socket >= 0) {
		p.to = (const struct sockaddr *)(l->is_hub ? &l->beats.from : &l->peer_address);
		p.socket = (unsigned)socket;
	}
	key_of(l, l->beat_out, p.key);
	l->beats.place = death_notice_add(b->death_notice, &p) + 1;
	explicit_bzero(p.key, sizeof p.key);
}

void beat_entrust(struct beat *b, struct link *l)
{
	if (!l->beats.watcher || l->beats.entrusted)
		return;
	l->beats.entrusted = true;
	if (b->death_notice)
		enter(b, l);
	if (!l->is_hub && l->beats.udp_ns == 0)
		beat_answer(b, l); /* the first may have come before the hub knew of this link */
}

void rescue_moved(struct beat *b, struct link *l)
{
	int old = l->beats.place - 1;

	if (!l->beats.entrusted || !b->death_notice)
		return;
	enter(b, l);
	death_notice_drop(b->death_notice, old);
}

void rescue_withdraw(struct beat *b, struct link *l)
{
	if (l->beats.entrusted && b->death_notice)
		death_notice_drop(b->death_notice, l->beats.place - 1);
	l->beats.entrusted = false;
}

static void answer(const struct link *l, const struct notice *heard,
	const unsigned char key[NOTICE_KEY], uv_udp_t *udp, const struct sockaddr *from)
{
	unsigned char datagram[NOTICE_DATAGRAM];
	uv_buf_t buf = uv_buf_init((char *)datagram, sizeof datagram);
	struct notice n = *heard;

	n.answer = true;
	notice_write(&n, key, datagram);
	(void)uv_udp_try_send(udp, &buf, 1, l->is_hub ? from : NULL);
}

bool rescue_take_notice(struct link *l, const unsigned char *bytes, size_t len, uv_udp_t *udp,
	const struct sockaddr *from)
{
	unsigned char key[NOTICE_KEY];
	uint64_t session;
	struct notice n;

	/* a key is a hash of its own: not for what can't be one */
	if (l->state != LINK_OPEN || notice_session(bytes, len, &session) < 0 ||
		session != l->session)
		return false;
	key_of(l, l->beat_in, key);
	if (notice_read(bytes, len, key, &n) < 0 || n.answer)
		return false;
	answer(l, &n, key, udp, from);
	if (l->beats.notice_ns == 0)
		l->beats.notice_ns = uv_hrtime();
	l->killed_by = n.signal;
	l->agreed = l->agreed || n.kind == NOTICE_AGREED;
	l->beats.watcher->on_change(l);
	return true;
}

/* The guard has said all, or there is none, or none that could be heard. What the peer said last
 * may still lie in the connection, whose end comes after it. */
static bool is_all_told(const struct link *l)
{
	const struct link_beats *k = &l->beats;

	if (l->killed_by)
		return l->agreed && !l->tcp;
	return k->refused || !beat_is_recent(l, k->udp_ns, l->broke_ns);
}

bool rescue_awaits_guard(const struct link *l, uint64_t *ret_due_ns)
{
	if (!l->killed_by && !l->eof)
		return false;
	if (is_all_told(l))
		*ret_due_ns = 0;
	else if (l->killed_by)
		*ret_due_ns = l->beats.notice_ns + RESCUE_ROUNDS_MS * MS;
	else
		*ret_due_ns = l->broke_ns + RESCUE_GUARD_MS * MS;
	return true;
}

/* A dialer's own datagram brings word of a hub's host where nobody is at that port any more. */
static uint64_t look_at_guard(struct beat *b, struct link *l, uint64_t now, uint64_t due)
{
	if (due <= now) {
		link_give_up(l);
		return UINT64_MAX;
	}
	if (!l->is_hub && !l->killed_by && !l->beats.asked) {
		l->beats.asked = true;
		beat_answer(b, l);
	}
	return due;
}

uint64_t rescue_look(struct beat *b, struct link *l, uint64_t now)
{
	uint64_t due;

	if (rescue_awaits_guard(l, &due))
		return look_at_guard(b, l, now, due);
	if (is_dead(b, l, now)) {
		link_give_up(l);
		return UINT64_MAX;
	}
	if (l->tcp)
		l->beats.refused = l->fresh_refused = false;
	look_at_dialing(b, l, now);
	if (l->taken - l->told >= LINK_ACK_BYTES)
		beat_send(b, l);
	return l->beats.watcher ? look_at_pieces(b, l, now) : UINT64_MAX;
}

void rescue_take(struct beat *b, struct link *l, const struct piece *p)
{
	bool in_reach = p->at <= l->taken;

	if (link_take(l, p->at, p->bytes, p->len))
		l->heard_ns = uv_hrtime();
	if (in_reach && l->beats.watcher)
		beat_answer(b, l);
}

void rescue_farewell(struct beat *b, struct link *l)
{
	for (int i = 0; i < RESCUE_FAREWELLS; i++)
		beat_answer(b, l);
}
