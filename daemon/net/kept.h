/* kept.h - the end of a byte stream that was sent and is not acknowledged yet. Pure.
 *
 * Bytes are counted from the stream's beginning; no memory is held while all are acknowledged. */
#ifndef LAUNCHD_DAEMON_NET_KEPT_H
#define LAUNCHD_DAEMON_NET_KEPT_H

#include <stddef.h>
#include <stdint.h>

struct kept {
	unsigned char *at;       /* NULL: nothing is kept */
	size_t begin, end, room; /* of at: the bytes kept, the memory */
	uint64_t acked;          /* everything before this byte of the stream was acknowledged */
};

/* Where the stream ends: how many bytes were ever added. */
uint64_t kept_sent(const struct kept *k);

/* The stream goes on with these bytes, which are copied. -ENOMEM: it doesn't. */
int kept_add(struct kept *k, const void *bytes, size_t len);

/* Everything before `upto` is acknowledged. 1: more than before; 0: known already; -EPROTO: that
 * was never sent. */
int kept_ack(struct kept *k, uint64_t upto);

/* Copies up to `room` bytes from the byte `from` on, which is not acknowledged yet or the end.
 * Returns how many there are. */
size_t kept_read(const struct kept *k, uint64_t from, void *ret, size_t room);

void kept_done(struct kept *k);

#endif
