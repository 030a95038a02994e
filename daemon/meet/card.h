/* card.h - what node rank 0's launcher sends to the others through PMIx, and how it is encoded:
 * where it listens, and the job's key. Pure. */
#ifndef LAUNCHD_DAEMON_MEET_CARD_H
#define LAUNCHD_DAEMON_MEET_CARD_H

#include <stddef.h>

struct failure;

enum {
	CARD_KEY_BYTES = 32,
	CARD_ADDRESSES_MAX = 16,
	CARD_ADDRESS_ROOM = 46, /* INET6_ADDRSTRLEN */
	CARD_BYTES_MAX = 4 + CARD_KEY_BYTES + CARD_ADDRESSES_MAX * CARD_ADDRESS_ROOM,
};

struct card {
	unsigned port; /* 1 to 65535, of all addresses */
	unsigned char key[CARD_KEY_BYTES];
	unsigned count; /* 1 to CARD_ADDRESSES_MAX, best first */
	char address[CARD_ADDRESSES_MAX][CARD_ADDRESS_ROOM]; /* IPv4 or IPv6, as text */
};

/* Appends an address. -EINVAL: not an IP address; -ENOSPC: CARD_ADDRESSES_MAX are in it. */
int card_add(struct card *c, const char *address);

/* Writes at most CARD_BYTES_MAX bytes. Returns how many; 0: it lacks a port or an address. */
size_t card_encode(const struct card *c, unsigned char *ret);

/* Decodes any bytes. -EPROTO: not a card, or one of another version of launchd. */
int card_decode(const void *bytes, size_t len, struct card *ret, struct failure *why);

#endif
