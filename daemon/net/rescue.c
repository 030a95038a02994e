/* rescue.c - see rescue.h */
#include "daemon/net/rescue.h"

#include <string.h>

#include "daemon/net/death_notice.h"
#include "daemon/os/secret.h"

static const uint64_t MS = 1000000;

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Notes whether bytes of the peer's stream are missing, according to its last beat. */
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

/* Whether the peer was heard long enough after that: a beat may have been in flight, and the next
 * one would have told. Otherwise the trouble is silence. */
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

/* Sends in pieces what is kept, as far as the window allows and not again in this round. */
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

/* Sends pieces if they are due, but only where UDP works, which beats find out. */
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
		k->piece_at = 0; /* start again with the first */
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

/* A connection broke and there was no sign of life since: the peer's process has died. If the
 * kernel of the hub's host says that its port is closed, at once; but a firewall may say that, too,
 * of UDP that never worked. */
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

/* One key for each direction, as for beats. */
static void key_of(const struct link *l, const unsigned char *beats, unsigned char ret[NOTICE_KEY])
{
	notice_key(l->auth->sodium, l->auth->keyed ? beats : l->token, ret);
}

/* The guard's number of the socket by which we reach the peer; lends it if the guard hasn't got
 * it. */
static int lend(struct beat *b, struct link *l)
{
	uv_udp_t *udp = l->is_hub ? &b->udp[l->beats.socket] : &l->udp;
	int *lent = l->is_hub ? &b->lent[l->beats.socket] : &l->beats.lent;
	uv_os_fd_t fd;

	if (*lent == 0 && uv_fileno((const uv_handle_t *)udp, &fd) == 0)
		*lent = death_notice_lend(b->death_notice, fd) + 1;
	return *lent - 1;
}

/* Enters the peer, even if it can't be reached by UDP, or not yet. */
static void enter(struct beat *b, struct link *l)
{
	struct death_notice_peer p = { .session = l->session };
	bool reached = l->is_hub ? address_size(&l->beats.from) > 0 : l->has_udp;
	int socket = reached ? lend(b, l) : -1;

	if (socket >= 0) {
		p.to = l->is_hub ? l->beats.from : l->peer_address;
		p.socket = (unsigned)socket;
	}
	key_of(l, l->beat_out, p.key);
	l->beats.place = death_notice_add(b->death_notice, &p) + 1;
	secret_wipe(p.key, sizeof p.key);
}

void beat_entrust(struct beat *b, struct link *l)
{
	if (!l->beats.watcher || l->beats.entrusted)
		return;
	l->beats.entrusted = true;
	if (b->death_notice)
		enter(b, l);
	/* the first one may have arrived before the hub knew this link */
	if (!l->is_hub && l->beats.udp_ns == 0)
		beat_answer(b, l);
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
	const unsigned char key[NOTICE_KEY], uv_udp_t *udp, const struct address *from)
{
	unsigned char datagram[NOTICE_DATAGRAM];
	uv_buf_t buf = uv_buf_init((char *)datagram, sizeof datagram);
	struct notice n = *heard;

	n.answer = true;
	notice_write(&n, key, datagram);
	(void)uv_udp_try_send(udp, &buf, 1, l->is_hub ? &from->any : NULL);
}

bool rescue_take_notice(struct link *l, const unsigned char *bytes, size_t len, uv_udp_t *udp,
	const struct address *from)
{
	unsigned char key[NOTICE_KEY];
	uint64_t session;
	struct notice n;

	/* deriving the key costs a hash: not for what can't be a notice */
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

/* The guard has told all, or can't be heard. The peer's last bytes may still be in the connection,
 * which is read to its end first. */
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

/* If the guard is gone, too, a datagram of the dialer's makes the hub's host answer that the port
 * is closed. */
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
