/* datagram.h - what goes by UDP, as bytes: beats, pieces of a link's stream, and a guard's notice
 * of its supervisor's death. Pure.
 *
 *   "LNCB" | u8 flags | u8[3] 0 | u64 session | u64 sequence | u64 sent | u64 echo | u64 received
 *   | u64 bytes sent | u64 bytes taken | tag, by UDP only
 *
 *   "LNCP" | u64 session | u64 where in the stream | 1 to PIECE_BYTES bytes of it | tag
 *
 * The tag is keyed BLAKE2b, as in frame.h, over all before it; without a key, the session's token.
 * A piece has no sequence number: a duplicate brings nothing new.
 *
 *   "LNCD" | u8 kind | u8 0 or, as the answer, 1 | u8 signal | u8 0 | u64 session | u64 tag
 *
 * A notice's tag is SipHash-2-4 of all before it, as a guard has no libsodium. Its key is derived
 * from the one for beats, so it belongs to this session and direction. Without a key it is the
 * token.
 */
#ifndef LAUNCHD_DAEMON_NET_DATAGRAM_H
#define LAUNCHD_DAEMON_NET_DATAGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/siphash.h"
#include "daemon/net/frame.h"

struct sodium;

enum {
	BEAT_BODY = 64,
	BEAT_DATAGRAM = BEAT_BODY + FRAME_TAG,
	PIECE_BYTES = 160,
	PIECE_HEAD = 20,
	/* below 250 bytes with the headers of IPv6 and UDP: some paths drop large packets */
	PIECE_DATAGRAM = PIECE_HEAD + PIECE_BYTES + FRAME_TAG,
	DATAGRAM_MAX = PIECE_DATAGRAM,
	NOTICE_KEY = SIPHASH_KEY_SIZE,
	NOTICE_DATAGRAM = 24,
};

struct beat_body {
	uint64_t session;
	uint64_t sequence;    /* greater than in all beats before; 0 is none */
	uint64_t sent_ns;     /* all times: the clock of whoever is named */
	uint64_t echo_ns;     /* sent_ns of the peer's last beat; 0: none has come */
	uint64_t received_ns; /* when that came, the sender's clock */
	uint64_t sent;        /* bytes of the sender's stream, in this very moment */
	uint64_t taken;       /* bytes of the peer's stream that have come, without a gap */
	bool udp_heard;       /* a datagram of the peer's came not long ago */
	bool tcp_behind;      /* pieces brought what TCP has not brought yet */
	bool lost;            /* the sender takes the peer for lost: its last beat */
};

struct piece {
	uint64_t session, at;
	const unsigned char *bytes; /* in the datagram, or the sender's */
	size_t len;                 /* 1 to PIECE_BYTES */
};

enum notice_kind {
	NOTICE_KILLED = 1, /* the process at this end of the session was killed */
	NOTICE_AGREED,     /* and all whom that concerns have answered */
	NOTICE_KINDS,
};

struct notice {
	enum notice_kind kind;
	bool answer; /* the other end's: it has heard that */
	int signal;
	uint64_t session;
};

void beat_body_write(const struct beat_body *b, unsigned char ret[BEAT_BODY]);

/* 0, or -EPROTO. */
int beat_body_read(const unsigned char *bytes, size_t len, struct beat_body *ret);

/* All but the tag; returns how many bytes that are. */
size_t piece_write(const struct piece *p, unsigned char ret[PIECE_DATAGRAM]);

/* Of a datagram, whose tag is not looked at. 0, or -EPROTO. */
int piece_read(const unsigned char *datagram, size_t len, struct piece *ret);

/* The key of notices, of the one for beats; without sodium of the token. */
void notice_key(
	const struct sodium *sodium, const unsigned char *secret, unsigned char ret[NOTICE_KEY]);

/* With its tag. */
void notice_write(const struct notice *n, const unsigned char key[NOTICE_KEY],
	unsigned char ret[NOTICE_DATAGRAM]);

/* The session of what may be a notice, whose tag is not looked at. 0, or -EPROTO. */
int notice_session(const unsigned char *datagram, size_t len, uint64_t *ret);

/* 0, or -EPROTO: it is none, or its tag is wrong. */
int notice_read(const unsigned char *datagram, size_t len, const unsigned char key[NOTICE_KEY],
	struct notice *ret);

/* Writes the tag behind len bytes. secret: the key with sodium, the token (FRAME_TAG bytes)
 * without. */
void datagram_seal(const struct sodium *sodium, const unsigned char *secret,
	unsigned char *datagram, size_t len);

/* Whether the tag behind len bytes, of DATAGRAM_MAX with the tag at most, is right; takes the same
 * time wherever it is wrong. */
bool datagram_is_sealed(const struct sodium *sodium, const unsigned char *secret,
	const unsigned char *datagram, size_t len);

#endif
