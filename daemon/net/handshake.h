/* handshake.h - how a connection of the control channel begins. Pure.
 *
 *   dialer                                    hub
 *   HELLO magic, version, keyed, nonce  --->
 *                                       <---  HELLO the same
 *                                       <---  READY session, token, UDP, time-out   (with a tag)
 *   READY time-out  (with a tag)        --->
 *
 * Either side is ready once the other's READY has come with the right tag. The hub answers a HELLO
 * that it can't accept with its own, so that both ends know why.
 *
 * A dialer whose connection broke, or delivers nothing, makes another one for the same session: its
 * READY has the session, its token, and how many bytes of the hub's stream have arrived. The hub
 * answers with RESUME, how many of the dialer's have arrived, and both continue with the first byte
 * that the other one lacks, under the keys of the session. */
#ifndef LAUNCHD_DAEMON_NET_HANDSHAKE_H
#define LAUNCHD_DAEMON_NET_HANDSHAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/net/frame.h"

enum {
	HANDSHAKE_VERSION = 10,
	HANDSHAKE_NONCE = 16,
	HANDSHAKE_TOKEN = 16,
};

struct hello {
	uint16_t version;
	bool keyed;
	unsigned char nonce[HANDSHAKE_NONCE];
};

struct ready {
	/* the hub's number for this connection; from the dialer 0, or the one that it resumes */
	uint64_t session;
	unsigned char token[HANDSHAKE_TOKEN]; /* in the place of tags in beats without a key */
	bool udp;            /* the hub listens for beats by UDP at the number of its port */
	uint32_t timeout_ms; /* after which the sender takes a silent peer for lost */
	uint64_t taken;      /* of the stream that is resumed; 0 from the hub */
};

/* The four keys of a session. */
struct handshake_keys {
	unsigned char c2s[FRAME_KEY], s2c[FRAME_KEY];           /* of frames */
	unsigned char c2s_beat[FRAME_KEY], s2c_beat[FRAME_KEY]; /* of datagrams */
};

void hello_put(struct wire_out *w, const struct hello *h);

/* 0, or -EPROTO: not a HELLO. One of another version gives its version, and may be longer. */
int hello_get(const struct frame *f, struct hello *ret);

void ready_put(struct wire_out *w, const struct ready *r);

/* 0, or -EPROTO: not a READY. */
int ready_get(const struct frame *f, struct ready *ret);

/* From the job's key and both nonces. */
void handshake_derive(const struct sodium *sodium, const unsigned char key[FRAME_KEY],
	const unsigned char dialer[HANDSHAKE_NONCE], const unsigned char hub[HANDSHAKE_NONCE],
	struct handshake_keys *ret);

#endif
