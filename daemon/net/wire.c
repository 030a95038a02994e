/* wire.c - see wire.h */
#include "daemon/net/wire.h"

#include <stdlib.h>
#include <string.h>

struct wire_out wire_fixed(void *at, size_t room)
{
	return (struct wire_out){ .at = at, .room = room, .fixed = true };
}

/* Room for len more bytes at the end, or NULL. */
static unsigned char *extend(struct wire_out *w, size_t len)
{
	size_t most = w->fixed ? w->room : WIRE_MAX;

	w->failed = w->failed || len > most - w->len;
	if (w->failed)
		return NULL;
	if (len > w->room - w->len) {
		size_t room = w->room ? w->room : 64;
		unsigned char *at;

		while (room - w->len < len)
			room *= 2;
		at = realloc(w->at, room);
		w->failed = !at;
		if (!at)
			return NULL;
		w->at = at;
		w->room = room;
	}
	w->len += len;
	return w->at + w->len - len;
}

void wire_put_int(struct wire_out *w, uint64_t value, size_t len)
{
	unsigned char *at = extend(w, len);

	for (size_t i = 0; at && i < len; i++)
		at[i] = (unsigned char)(value >> (8 * i));
}

void wire_put_u8(struct wire_out *w, uint8_t value)
{
	wire_put_int(w, value, 1);
}

void wire_put_u16(struct wire_out *w, uint16_t value)
{
	wire_put_int(w, value, 2);
}

void wire_put_u32(struct wire_out *w, uint32_t value)
{
	wire_put_int(w, value, 4);
}

void wire_put_u64(struct wire_out *w, uint64_t value)
{
	wire_put_int(w, value, 8);
}

void wire_put_raw(struct wire_out *w, const void *bytes, size_t len)
{
	unsigned char *at = extend(w, len);

	if (at && len > 0)
		memcpy(at, bytes, len);
}

void wire_put_bytes(struct wire_out *w, const void *bytes, size_t len)
{
	w->failed = w->failed || len > WIRE_MAX; /* its length fits an u32 */
	wire_put_u32(w, (uint32_t)len);
	wire_put_raw(w, bytes, len);
}

void wire_out_done(struct wire_out *w)
{
	if (!w->fixed)
		free(w->at);
	*w = (struct wire_out){ 0 };
}

struct wire_in wire_from(const void *bytes, size_t len)
{
	return (struct wire_in){ .at = bytes, .left = len };
}

const unsigned char *wire_get_raw(struct wire_in *w, size_t len)
{
	const unsigned char *at = w->at;

	w->failed = w->failed || len > w->left;
	if (w->failed)
		return NULL;
	if (len > 0) /* at may be NULL */
		w->at += len;
	w->left -= len;
	return at;
}

uint64_t wire_get_int(struct wire_in *w, size_t len)
{
	const unsigned char *at = wire_get_raw(w, len);
	uint64_t value = 0;

	for (size_t i = 0; at && i < len; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

uint8_t wire_get_u8(struct wire_in *w)
{
	return (uint8_t)wire_get_int(w, 1);
}

uint16_t wire_get_u16(struct wire_in *w)
{
	return (uint16_t)wire_get_int(w, 2);
}

uint32_t wire_get_u32(struct wire_in *w)
{
	return (uint32_t)wire_get_int(w, 4);
}

uint64_t wire_get_u64(struct wire_in *w)
{
	return wire_get_int(w, 8);
}

const unsigned char *wire_get_bytes(struct wire_in *w, size_t max, size_t *ret_len)
{
	size_t len = wire_get_u32(w);
	const unsigned char *at;

	w->failed = w->failed || len > max;
	at = wire_get_raw(w, len);
	*ret_len = w->failed ? 0 : len;
	return at;
}

void wire_get_string(struct wire_in *w, char *ret, size_t room)
{
	size_t len = 0;
	const unsigned char *at = wire_get_bytes(w, room - 1, &len);

	w->failed = w->failed || (len > 0 && memchr(at, '\0', len));
	if (w->failed)
		len = 0;
	if (len > 0)
		memcpy(ret, at, len);
	ret[len] = '\0';
}

bool wire_is_read(const struct wire_in *w)
{
	return !w->failed && w->left == 0;
}
