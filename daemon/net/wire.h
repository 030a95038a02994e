/* wire.h - fields of a message as bytes: little-endian integers, texts with their length. Pure.
 *
 * Both directions have a sticky error: after the first field that does not fit, nothing more is
 * written or read, and every value read is 0 or empty. Whoever writes or reads a whole message asks
 * once, at its end. */
#ifndef LAUNCHD_DAEMON_NET_WIRE_H
#define LAUNCHD_DAEMON_NET_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WIRE_MAX = 1 << 20 }; /* bytes of a message; the payload of a frame holds as many */

/* A message that is being made. { 0 }: grows as needed, to WIRE_MAX. */
struct wire_out {
	unsigned char *at; /* NULL while empty */
	size_t len, room;
	bool fixed;  /* `at` is the maker's memory and does not grow */
	bool failed; /* too long, or out of memory */
};

/* A message in memory of the caller's, of `room` bytes. */
struct wire_out wire_fixed(void *at, size_t room);

void wire_put_int(struct wire_out *w, uint64_t value, size_t len); /* of so many bytes */
void wire_put_u8(struct wire_out *w, uint8_t value);
void wire_put_u16(struct wire_out *w, uint16_t value);
void wire_put_u32(struct wire_out *w, uint32_t value);
void wire_put_u64(struct wire_out *w, uint64_t value);
void wire_put_raw(struct wire_out *w, const void *bytes, size_t len);   /* without a length */
void wire_put_bytes(struct wire_out *w, const void *bytes, size_t len); /* u32 length, bytes */

/* Frees the memory, unless it is fixed; empty again. */
void wire_out_done(struct wire_out *w);

/* A message that is being read; the bytes are the caller's and stay where they are. */
struct wire_in {
	const unsigned char *at;
	size_t left;
	bool failed; /* it ended too early, or a field was out of bounds */
};

struct wire_in wire_from(const void *bytes, size_t len);

uint64_t wire_get_int(struct wire_in *w, size_t len); /* of so many bytes */
uint8_t wire_get_u8(struct wire_in *w);
uint16_t wire_get_u16(struct wire_in *w);
uint32_t wire_get_u32(struct wire_in *w);
uint64_t wire_get_u64(struct wire_in *w);

/* len bytes without a length; they lie in the message. NULL, and failed, where there are fewer. */
const unsigned char *wire_get_raw(struct wire_in *w, size_t len);

/* What wire_put_bytes() wrote, at most max bytes: they lie in the message. NULL, and failed, where
 * there are fewer than announced or more than max; *ret_len is 0 then. */
const unsigned char *wire_get_bytes(struct wire_in *w, size_t max, size_t *ret_len);

/* What wire_put_bytes() wrote, as a string in ret, of which at most room - 1 bytes are filled.
 * A longer one, or one with a NUL in it, fails; ret is "" then. */
void wire_get_string(struct wire_in *w, char *ret, size_t room);

/* Nothing failed and nothing is left over. */
bool wire_is_read(const struct wire_in *w);

#endif
