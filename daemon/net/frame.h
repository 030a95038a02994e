/* frame.h - frames of the control channel: written, and cut out of a stream. Pure.
 *
 *   u32 length of the payload, little-endian | u8 type | u8 0 | u16 0 | payload | tag
 *
 * The tag, only on a keyed connection and after its HELLO: 16 bytes of BLAKE2b under the key of
 * this session and direction, over u64 number of the frame | header | payload. Numbers are not
 * sent: a frame that is dropped, replayed, reordered or reflected doesn't match its number. */
#ifndef LAUNCHD_DAEMON_NET_FRAME_H
#define LAUNCHD_DAEMON_NET_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/net/wire.h"

struct sodium;

enum {
	FRAME_HEADER = 8,
	FRAME_TAG = 16,
	FRAME_LEAD = 8, /* bytes of memory before a frame, for its number */
	FRAME_KEY = 32,
	FRAME_EARLY_MAX = 4096, /* of a payload before the handshake is over */
	FRAME_MAX = WIRE_MAX,   /* of a payload */
};

/* 0 to 15 are the transport's; the owner of a link has 16 to 255. */
enum frame_type {
	FRAME_HELLO = 1,
	FRAME_READY = 2, /* the first one with a tag: proves the key */
	FRAME_BEAT = 3,
	FRAME_PING = 4,
	FRAME_PONG = 5,
	FRAME_CLOSE = 6,  /* the last one: its sender ends the connection on purpose */
	FRAME_RESUME = 7, /* the hub's: from here on it is the connection of an older link */
	FRAME_OWNER = 16,
	FRAME_TYPES = 256,
};

/* One direction of one session. */
struct frame_key {
	const struct sodium *sodium; /* NULL: no tags */
	unsigned char bytes[FRAME_KEY];
	uint64_t number; /* of the next frame */
};

struct frame {
	unsigned type;
	const unsigned char *payload;
	size_t len;
};

/* The size of a frame on the wire. */
size_t frame_size(const struct frame_key *key, size_t len);

/* Writes a frame behind the first FRAME_LEAD bytes of `ret`, which holds FRAME_LEAD +
 * frame_size() bytes, and counts it. len is at most FRAME_MAX. Returns where it begins. */
unsigned char *frame_write(
	struct frame_key *key, unsigned type, const void *payload, size_t len, unsigned char *ret);

/* What has come and was not taken yet. No memory is held while that is nothing. */
struct frame_stream {
	struct frame_key key;
	size_t max;              /* payload bytes that are accepted */
	unsigned char *at;       /* NULL: nothing is there */
	size_t begin, end, room; /* of at: the bytes not taken yet, the memory */
};

/* Memory for the next bytes: at least one byte, freed by the stream. It grows with what has come,
 * not with what a header announces. -ENOMEM. */
int frame_stream_room(struct frame_stream *s, unsigned char **ret, size_t *ret_len);

/* So many bytes were put there (0: none, and the memory is not needed now). */
void frame_stream_fed(struct frame_stream *s, size_t len);

/* Takes the next frame. Its payload lies in the stream until the next call of any of these.
 * 1: *ret is one. 0: more bytes are needed; memory is cut to what is there.
 * -EBADMSG: the tag is wrong. -EMSGSIZE: the payload is longer than `max`. -EPROTO: not a frame.
 * After an error the stream is of no use. */
int frame_stream_next(struct frame_stream *s, struct frame *ret);

void frame_stream_done(struct frame_stream *s);

#endif
