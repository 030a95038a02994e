/* datagram.h - a beat, as bytes. Pure.
 *
 *   "LNCB" | u8 flags | u8[3] 0 | u64 session | u64 sequence | u64 sent | u64 echo | u64 received
 *   | tag, by UDP only
 *
 * The tag is keyed BLAKE2b, as in frame.h, over all before it; without a key, the session's token.
 */
#ifndef LAUNCHD_DAEMON_CLUSTER_DATAGRAM_H
#define LAUNCHD_DAEMON_CLUSTER_DATAGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/cluster/frame.h"

struct sodium;

enum {
	BEAT_BODY = 48,
	BEAT_DATAGRAM = BEAT_BODY + FRAME_TAG,
};

struct beat_body {
	uint64_t session;
	uint64_t sequence;    /* greater than in all beats before; 0 is none */
	uint64_t sent_ns;     /* all times: the clock of whoever is named */
	uint64_t echo_ns;     /* sent_ns of the peer's last beat; 0: none has come */
	uint64_t received_ns; /* when that came, the sender's clock */
	bool udp_heard;       /* a datagram of the peer's came not long ago */
};

void beat_body_write(const struct beat_body *b, unsigned char ret[BEAT_BODY]);

/* 0, or -EPROTO. */
int beat_body_read(const unsigned char *bytes, size_t len, struct beat_body *ret);

/* Writes the tag behind a body. secret: the key with sodium, the token (FRAME_TAG bytes) without.
 */
void beat_seal(const struct sodium *sodium, const unsigned char *secret,
	unsigned char datagram[BEAT_DATAGRAM]);

/* Whether the tag is right; takes the same time wherever it is wrong. */
bool beat_is_sealed(const struct sodium *sodium, const unsigned char *secret,
	const unsigned char datagram[BEAT_DATAGRAM]);

#endif
