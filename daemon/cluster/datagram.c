/* datagram.c - see datagram.h */
#include "daemon/cluster/datagram.h"

#include <errno.h>
#include <string.h>

#include "daemon/cluster/sodium.h"
#include "daemon/cluster/wire.h"

static const char magic[4] = { 'L', 'N', 'C', 'B' };

enum { UDP_HEARD = 1 };

void beat_body_write(const struct beat_body *b, unsigned char ret[BEAT_BODY])
{
	struct wire_out w = wire_fixed(ret, BEAT_BODY);

	wire_put_raw(&w, magic, sizeof magic);
	wire_put_u32(&w, b->udp_heard ? UDP_HEARD : 0);
	wire_put_u64(&w, b->session);
	wire_put_u64(&w, b->sequence);
	wire_put_u64(&w, b->sent_ns);
	wire_put_u64(&w, b->echo_ns);
	wire_put_u64(&w, b->received_ns);
}

int beat_body_read(const unsigned char *bytes, size_t len, struct beat_body *ret)
{
	struct wire_in w = wire_from(bytes, len);
	const unsigned char *m = wire_get_raw(&w, sizeof magic);
	uint32_t flags = wire_get_u32(&w);
	struct beat_body b = { .udp_heard = flags == UDP_HEARD };

	b.session = wire_get_u64(&w);
	b.sequence = wire_get_u64(&w);
	b.sent_ns = wire_get_u64(&w);
	b.echo_ns = wire_get_u64(&w);
	b.received_ns = wire_get_u64(&w);
	if (!wire_is_read(&w) || memcmp(m, magic, sizeof magic) != 0 || flags > UDP_HEARD)
		return -EPROTO;
	*ret = b;
	return 0;
}

void beat_seal(const struct sodium *sodium, const unsigned char *secret,
	unsigned char datagram[BEAT_DATAGRAM])
{
	if (sodium)
		(void)sodium->generichash(
			datagram + BEAT_BODY, FRAME_TAG, datagram, BEAT_BODY, secret, FRAME_KEY);
	else
		memcpy(datagram + BEAT_BODY, secret, FRAME_TAG);
}

bool beat_is_sealed(const struct sodium *sodium, const unsigned char *secret,
	const unsigned char datagram[BEAT_DATAGRAM])
{
	unsigned char right[BEAT_DATAGRAM];
	unsigned difference = 0;

	memcpy(right, datagram, BEAT_BODY);
	beat_seal(sodium, secret, right);
	for (size_t i = BEAT_BODY; i < BEAT_DATAGRAM; i++)
		difference |= (unsigned)(right[i] ^ datagram[i]);
	return difference == 0;
}
