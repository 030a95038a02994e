/* handshake.c - see handshake.h */
#include "daemon/net/handshake.h"

#include <errno.h>
#include <string.h>

#include "daemon/net/sodium.h"

static const char magic[] = "LNCHD";

enum { MAGIC = sizeof magic - 1 };

void hello_put(struct wire_out *w, const struct hello *h)
{
	wire_put_raw(w, magic, MAGIC);
	wire_put_u16(w, h->version);
	wire_put_u8(w, h->keyed);
	wire_put_raw(w, h->nonce, sizeof h->nonce);
}

int hello_get(const struct frame *f, struct hello *ret)
{
	struct wire_in w = wire_from(f->payload, f->len);
	const unsigned char *m = wire_get_raw(&w, MAGIC);
	struct hello h = { .version = wire_get_u16(&w) };
	uint8_t keyed = wire_get_u8(&w);
	const unsigned char *nonce = wire_get_raw(&w, sizeof h.nonce);

	if (f->type != FRAME_HELLO || w.failed || memcmp(m, magic, MAGIC) != 0)
		return -EPROTO;
	if (h.version == HANDSHAKE_VERSION && (keyed > 1 || !wire_is_read(&w)))
		return -EPROTO;
	h.keyed = keyed == 1;
	memcpy(h.nonce, nonce, sizeof h.nonce);
	*ret = h;
	return 0;
}

void ready_put(struct wire_out *w, const struct ready *r)
{
	wire_put_u64(w, r->session);
	wire_put_raw(w, r->token, sizeof r->token);
	wire_put_u8(w, r->udp);
	wire_put_u32(w, r->timeout_ms);
	wire_put_u64(w, r->taken);
}

int ready_get(const struct frame *f, struct ready *ret)
{
	struct wire_in w = wire_from(f->payload, f->len);
	struct ready r = { .session = wire_get_u64(&w) };
	const unsigned char *token = wire_get_raw(&w, sizeof r.token);
	uint8_t udp = wire_get_u8(&w);

	r.timeout_ms = wire_get_u32(&w);
	r.taken = wire_get_u64(&w);
	if (f->type != FRAME_READY || !wire_is_read(&w) || udp > 1)
		return -EPROTO;
	r.udp = udp == 1;
	memcpy(r.token, token, sizeof r.token);
	*ret = r;
	return 0;
}

enum { LABEL = 8, SEED = LABEL + 2 * HANDSHAKE_NONCE };

void handshake_derive(const struct sodium *sodium, const unsigned char key[FRAME_KEY],
	const unsigned char dialer[HANDSHAKE_NONCE], const unsigned char hub[HANDSHAKE_NONCE],
	struct handshake_keys *ret)
{
	const struct {
		char label[LABEL];
		unsigned char *to;
	} keys[] = {
		{ "c2s", ret->c2s },
		{ "s2c", ret->s2c },
		{ "c2sbeat", ret->c2s_beat },
		{ "s2cbeat", ret->s2c_beat },
	};
	unsigned char seed[SEED];

	memcpy(seed + LABEL, dialer, HANDSHAKE_NONCE);
	memcpy(seed + LABEL + HANDSHAKE_NONCE, hub, HANDSHAKE_NONCE);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		memcpy(seed, keys[i].label, LABEL);
		(void)sodium->generichash(keys[i].to, FRAME_KEY, seed, SEED, key, FRAME_KEY);
	}
}
