/* datagram.c - see datagram.h */
#include "daemon/net/datagram.h"

#include <errno.h>
#include <string.h>

#include "daemon/net/sodium.h"
#include "daemon/net/wire.h"

enum { NOTICE_SIGNAL_MAX = 127 };

static const char beat_magic[4] = { 'L', 'N', 'C', 'B' };
static const char piece_magic[4] = { 'L', 'N', 'C', 'P' };
static const char notice_magic[4] = { 'L', 'N', 'C', 'D' };

enum { UDP_HEARD = 1, TCP_BEHIND = 2, LOST = 4, FLAGS = UDP_HEARD | TCP_BEHIND | LOST };

void beat_body_write(const struct beat_body *b, unsigned char ret[BEAT_BODY])
{
	struct wire_out w = wire_fixed(ret, BEAT_BODY);

	wire_put_raw(&w, beat_magic, sizeof beat_magic);
	wire_put_u32(&w,
		(b->udp_heard ? UDP_HEARD : 0) | (b->tcp_behind ? TCP_BEHIND : 0) |
			(b->lost ? LOST : 0));
	wire_put_u64(&w, b->session);
	wire_put_u64(&w, b->sequence);
	wire_put_u64(&w, b->sent_ns);
	wire_put_u64(&w, b->echo_ns);
	wire_put_u64(&w, b->received_ns);
	wire_put_u64(&w, b->sent);
	wire_put_u64(&w, b->taken);
}

int beat_body_read(const unsigned char *bytes, size_t len, struct beat_body *ret)
{
	struct wire_in w = wire_from(bytes, len);
	const unsigned char *m = wire_get_raw(&w, sizeof beat_magic);
	uint32_t flags = wire_get_u32(&w);
	struct beat_body b = { .udp_heard = flags & UDP_HEARD,
		.tcp_behind = flags & TCP_BEHIND,
		.lost = flags & LOST };

	b.session = wire_get_u64(&w);
	b.sequence = wire_get_u64(&w);
	b.sent_ns = wire_get_u64(&w);
	b.echo_ns = wire_get_u64(&w);
	b.received_ns = wire_get_u64(&w);
	b.sent = wire_get_u64(&w);
	b.taken = wire_get_u64(&w);
	if (!wire_is_read(&w) || memcmp(m, beat_magic, sizeof beat_magic) != 0 ||
		(flags & ~(uint32_t)FLAGS) != 0)
		return -EPROTO;
	*ret = b;
	return 0;
}

size_t piece_write(const struct piece *p, unsigned char ret[PIECE_DATAGRAM])
{
	struct wire_out w = wire_fixed(ret, PIECE_DATAGRAM);

	wire_put_raw(&w, piece_magic, sizeof piece_magic);
	wire_put_u64(&w, p->session);
	wire_put_u64(&w, p->at);
	wire_put_raw(&w, p->bytes, p->len);
	return w.len;
}

int piece_read(const unsigned char *datagram, size_t len, struct piece *ret)
{
	struct wire_in w = wire_from(datagram, len);
	const unsigned char *m = wire_get_raw(&w, sizeof piece_magic);
	struct piece p = { .session = wire_get_u64(&w) };

	p.at = wire_get_u64(&w);
	if (len <= PIECE_HEAD + FRAME_TAG || len > PIECE_DATAGRAM ||
		memcmp(m, piece_magic, sizeof piece_magic) != 0)
		return -EPROTO;
	p.bytes = w.at;
	p.len = len - PIECE_HEAD - FRAME_TAG;
	if (p.at + p.len < p.at)
		return -EPROTO;
	*ret = p;
	return 0;
}

void notice_key(
	const struct sodium *sodium, const unsigned char *secret, unsigned char ret[NOTICE_KEY])
{
	static const char what[] = "launchd notice";

	if (sodium)
		(void)sodium->generichash(ret, NOTICE_KEY, (const unsigned char *)what,
			sizeof what - 1, secret, FRAME_KEY);
	else
		memcpy(ret, secret, NOTICE_KEY);
}

void notice_write(const struct notice *n, const unsigned char key[NOTICE_KEY],
	unsigned char ret[NOTICE_DATAGRAM])
{
	struct wire_out w = wire_fixed(ret, NOTICE_DATAGRAM);

	wire_put_raw(&w, notice_magic, sizeof notice_magic);
	wire_put_u8(&w, (uint8_t)n->kind);
	wire_put_u8(&w, n->answer);
	wire_put_u8(&w, (uint8_t)n->signal);
	wire_put_u8(&w, 0);
	wire_put_u64(&w, n->session);
	wire_put_u64(&w, siphash(key, ret, w.len));
}

int notice_session(const unsigned char *datagram, size_t len, uint64_t *ret)
{
	struct wire_in w = wire_from(datagram, len);
	const unsigned char *m = wire_get_raw(&w, sizeof notice_magic);

	(void)wire_get_u32(&w);
	if (len != NOTICE_DATAGRAM || memcmp(m, notice_magic, sizeof notice_magic) != 0)
		return -EPROTO;
	*ret = wire_get_u64(&w);
	return 0;
}

int notice_read(const unsigned char *datagram, size_t len, const unsigned char key[NOTICE_KEY],
	struct notice *ret)
{
	const unsigned char *about = datagram + sizeof notice_magic;
	struct notice n;
	struct wire_in tag;
	uint64_t difference;

	if (notice_session(datagram, len, &n.session) < 0)
		return -EPROTO;
	tag = wire_from(datagram + len - sizeof(uint64_t), sizeof(uint64_t));
	difference = wire_get_u64(&tag) ^ siphash(key, datagram, len - sizeof(uint64_t));
	if (difference != 0 || about[0] < NOTICE_KILLED || about[0] >= NOTICE_KINDS ||
		about[1] > 1 || about[2] == 0 || about[2] > NOTICE_SIGNAL_MAX || about[3] != 0)
		return -EPROTO;
	n.kind = about[0];
	n.answer = about[1] == 1;
	n.signal = about[2];
	*ret = n;
	return 0;
}

void datagram_seal(const struct sodium *sodium, const unsigned char *secret,
	unsigned char *datagram, size_t len)
{
	if (sodium)
		(void)sodium->generichash(
			datagram + len, FRAME_TAG, datagram, len, secret, FRAME_KEY);
	else
		memcpy(datagram + len, secret, FRAME_TAG);
}

bool datagram_is_sealed(const struct sodium *sodium, const unsigned char *secret,
	const unsigned char *datagram, size_t len)
{
	unsigned char right[DATAGRAM_MAX];
	unsigned difference = 0;

	memcpy(right, datagram, len);
	datagram_seal(sodium, secret, right, len);
	for (size_t i = len; i < len + FRAME_TAG; i++)
		difference |= (unsigned)(right[i] ^ datagram[i]);
	return difference == 0;
}
