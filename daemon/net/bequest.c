/* bequest.c - see bequest.h */
#include "daemon/net/bequest.h"

#include <string.h>

#include "daemon/net/obituary.h"

static const uint64_t MS = 1000000;

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
		*lent = obituary_lend(b->obituary, fd) + 1;
	return *lent - 1;
}

/* Puts it into the book; also where it is not reached by UDP, or not yet. */
static void enter(struct beat *b, struct link *l)
{
	static const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	struct obituary_peer p = { .to = &nowhere, .session = l->session };
	bool reached = l->is_hub ? l->beats.from.ss_family != AF_UNSPEC : l->has_udp;
	int socket = reached ? lend(b, l) : -1;

	if (socket >= 0) {
		p.to = (const struct sockaddr *)(l->is_hub ? &l->beats.from : &l->peer_address);
		p.socket = (unsigned)socket;
	}
	key_of(l, l->beat_out, p.key);
	l->beats.place = obituary_add(b->obituary, &p) + 1;
	explicit_bzero(p.key, sizeof p.key);
}

void beat_bequeath(struct beat *b, struct link *l)
{
	if (!l->beats.watcher || l->beats.bequeathed)
		return;
	l->beats.bequeathed = true;
	if (b->obituary)
		enter(b, l);
	if (!l->is_hub && l->beats.udp_ns == 0)
		beat_answer(b, l); /* the first may have come before the hub knew of this link */
}

void bequest_move(struct beat *b, struct link *l)
{
	int old = l->beats.place - 1;

	if (!l->beats.bequeathed || !b->obituary)
		return;
	enter(b, l);
	obituary_drop(b->obituary, old);
}

void bequest_withdraw(struct beat *b, struct link *l)
{
	if (l->beats.bequeathed && b->obituary)
		obituary_drop(b->obituary, l->beats.place - 1);
	l->beats.bequeathed = false;
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

bool bequest_take(struct link *l, const unsigned char *bytes, size_t len, uv_udp_t *udp,
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

bool bequest_is_awaited(const struct link *l, uint64_t *ret_due_ns)
{
	if (!l->killed_by && !l->eof)
		return false;
	if (is_all_told(l))
		*ret_due_ns = 0;
	else if (l->killed_by)
		*ret_due_ns = l->beats.notice_ns + BEQUEST_ROUNDS_MS * MS;
	else
		*ret_due_ns = l->broke_ns + BEQUEST_WAIT_MS * MS;
	return true;
}
