/* card.c - see card.h. The bytes, numbers with the higher byte first:
 *
 *   version 1, port 2, key 32, count 1, and for each address: length 1, text without a NUL */
#include "daemon/meet/card.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/address.h"
#include "common/failure.h"

enum { VERSION = 1, HEAD_BYTES = 4 + CARD_KEY_BYTES };

_Static_assert(CARD_ADDRESS_ROOM == INET6_ADDRSTRLEN, "an address fits");

int card_add(struct card *c, const char *address)
{
	size_t len = strlen(address);
	struct address ignored;

	if (len >= CARD_ADDRESS_ROOM || address_parse(address, 0, &ignored) < 0)
		return -EINVAL;
	if (c->count >= CARD_ADDRESSES_MAX)
		return -ENOSPC;
	memcpy(c->address[c->count++], address, len + 1);
	return 0;
}

size_t card_encode(const struct card *c, unsigned char *ret)
{
	unsigned char *at = ret + HEAD_BYTES;

	if (c->port < 1 || c->port > UINT16_MAX || c->count < 1 || c->count > CARD_ADDRESSES_MAX)
		return 0;
	ret[0] = VERSION;
	ret[1] = (unsigned char)(c->port >> 8);
	ret[2] = (unsigned char)c->port;
	memcpy(ret + 3, c->key, CARD_KEY_BYTES);
	ret[HEAD_BYTES - 1] = (unsigned char)c->count;
	for (unsigned i = 0; i < c->count; i++) {
		size_t len = strlen(c->address[i]);

		*at++ = (unsigned char)len;
		memcpy(at, c->address[i], len);
		at += len;
	}
	return (size_t)(at - ret);
}

/* The addresses, to the last byte. */
static bool read_addresses(
	const unsigned char *at, const unsigned char *end, unsigned count, struct card *c)
{
	for (unsigned i = 0; i < count; i++) {
		char text[CARD_ADDRESS_ROOM] = "";
		size_t len = at < end ? *at++ : 0;

		if (len == 0 || len >= sizeof text || len > (size_t)(end - at))
			return false;
		memcpy(text, at, len);
		at += len;
		if (strlen(text) != len || card_add(c, text) < 0)
			return false;
	}
	return at == end;
}

int card_decode(const void *bytes, size_t len, struct card *ret, struct failure *why)
{
	const unsigned char *at = bytes;
	struct card c = { 0 };

	if (len > 0 && at[0] != VERSION)
		return failure_set(why, -EPROTO,
			"node rank 0's launchd is of another version (its card has version %u, "
			"this launchd's %u)",
			(unsigned)at[0], (unsigned)VERSION);
	if (len >= HEAD_BYTES) {
		c.port = (unsigned)at[1] << 8 | at[2];
		memcpy(c.key, at + 3, CARD_KEY_BYTES);
	}
	if (c.port == 0 || at[HEAD_BYTES - 1] == 0 ||
		!read_addresses(at + HEAD_BYTES, at + len, at[HEAD_BYTES - 1], &c))
		return failure_set(why, -EPROTO,
			"node rank 0's launchd sent a malformed card (%zu bytes)", len);
	*ret = c;
	return 0;
}
