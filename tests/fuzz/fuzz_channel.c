/* fuzz_channel.c - whatever comes over the control channel: frames in any pieces, the handshake,
 * beats, pieces, and the fields of messages.
 *
 * The first byte says in what pieces the rest comes and whether there is a key. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/failure.h"
#include "daemon/net/datagram.h"
#include "daemon/net/frame.h"
#include "daemon/net/handshake.h"
#include "daemon/net/sodium.h"

static struct sodium sodium;

static const struct sodium *load(void)
{
	struct failure why = { 0 };

	if (!sodium.generichash)
		PROMISE(sodium_load(&sodium, &why) == 0);
	return &sodium;
}

static void feed(struct frame_stream *s, const uint8_t *bytes, size_t len)
{
	while (len > 0) {
		unsigned char *at;
		size_t room, n;

		PROMISE(frame_stream_room(s, &at, &room) == 0 && room > 0);
		n = len < room ? len : room;
		memcpy(at, bytes, n);
		frame_stream_fed(s, n);
		bytes += n;
		len -= n;
	}
}

/* Takes fields as the bytes themselves ask for; nothing is read beyond the end. */
static void read_fields(const unsigned char *bytes, size_t len)
{
	unsigned char *exact = malloc(len + (len == 0));
	struct wire_in w;
	char text[16];
	size_t n = 0;

	PROMISE(exact != NULL);
	if (len > 0)
		memcpy(exact, bytes, len);
	w = wire_from(exact, len);
	while (!w.failed && w.left > 0) {
		uint8_t kind = wire_get_u8(&w);
		size_t before = w.left;

		if (kind % 7 == 0)
			wire_get_string(&w, text, 1 + kind % sizeof text);
		else if (kind % 7 == 1)
			PROMISE((wire_get_bytes(&w, kind, &n) != NULL) == !w.failed && n <= kind);
		else if (kind % 7 == 2)
			(void)wire_get_u16(&w);
		else if (kind % 7 == 3)
			(void)wire_get_u32(&w);
		else if (kind % 7 == 4)
			(void)wire_get_u64(&w);
		else
			(void)wire_get_raw(&w, kind % 3);
		PROMISE(w.left <= before && w.at + w.left == exact + len);
	}
	free(exact);
}

static void check_hello(const struct frame *f)
{
	struct wire_out w = { 0 };
	struct frame ours = *f;
	struct hello h, again;
	bool same;

	if (hello_get(f, &h) < 0)
		return;
	/* the committed ones are of whichever version: what they are in ours is tried, too */
	same = h.version == HANDSHAKE_VERSION;
	h.version = HANDSHAKE_VERSION;
	hello_put(&w, &h);
	PROMISE(!same || (w.len == f->len && memcmp(w.at, f->payload, f->len) == 0));
	ours.payload = w.at;
	ours.len = w.len;
	PROMISE(hello_get(&ours, &again) == 0 && again.keyed == h.keyed);
	PROMISE(memcmp(again.nonce, h.nonce, sizeof h.nonce) == 0);
	wire_out_done(&w);
}

static void check_ready(const struct frame *f)
{
	struct wire_out w = { 0 };
	struct ready r;

	if (ready_get(f, &r) < 0)
		return;
	ready_put(&w, &r);
	PROMISE(w.len == f->len && memcmp(w.at, f->payload, f->len) == 0);
	wire_out_done(&w);
}

static void check_beat(const struct frame *f)
{
	unsigned char bytes[BEAT_BODY];
	struct beat_body b;

	if (beat_body_read(f->payload, f->len, &b) < 0)
		return;
	beat_body_write(&b, bytes);
	PROMISE(f->len == BEAT_BODY && memcmp(bytes, f->payload, BEAT_BODY) == 0);
}

/* The input as a datagram. */
static void check_piece(const uint8_t *bytes, size_t len)
{
	unsigned char again[PIECE_DATAGRAM];
	struct piece p;

	if (piece_read(bytes, len, &p) < 0)
		return;
	PROMISE(p.len > 0 && p.len <= PIECE_BYTES && p.bytes + p.len + FRAME_TAG == bytes + len);
	PROMISE(piece_write(&p, again) + FRAME_TAG == len);
	PROMISE(memcmp(again, bytes, len - FRAME_TAG) == 0);
}

static void check_frame(const struct frame *f)
{
	PROMISE(f->type < FRAME_TYPES && f->len <= FRAME_EARLY_MAX);
	check_hello(f);
	check_ready(f);
	check_beat(f);
	read_fields(f->payload, f->len);
}

/* The frames of the input in pieces; how many, and how they end. */
static size_t decode(const uint8_t *bytes, size_t len, size_t piece, bool keyed, int *ret_rc)
{
	struct frame_stream s = { .max = FRAME_EARLY_MAX };
	struct frame f;
	size_t count = 0;
	int rc = 0;

	s.key.sodium = keyed ? load() : NULL;
	for (size_t at = 0; rc == 0 && at < len; at += piece) {
		feed(&s, bytes + at, len - at < piece ? len - at : piece);
		while ((rc = frame_stream_next(&s, &f)) > 0) {
			check_frame(&f);
			count++;
		}
		PROMISE(rc < 0 || s.room <= 2 * (s.end - s.begin) + (8 << 10));
	}
	PROMISE(rc == 0 || rc == -EPROTO || rc == -EMSGSIZE || rc == -EBADMSG);
	frame_stream_done(&s);
	*ret_rc = rc;
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	int whole = 0, pieces = 0;
	size_t count;
	bool keyed;

	if (len == 0)
		return 0;
	check_piece(bytes + 1, len - 1);
	keyed = bytes[0] & 1;
	count = decode(bytes + 1, len - 1, len, keyed, &whole);
	PROMISE(count == decode(bytes + 1, len - 1, 1 + bytes[0] / 2u, keyed, &pieces));
	PROMISE(whole == pieces);
	read_fields(bytes, len);
	return 0;
}
