/* rounds.h - texts that a helper's child tells its parent one after the other, in the memory that
 * both share. One is written while the one before may be read: whoever reads is done long before
 * the one after that begins. */
#ifndef LAUNCHD_DAEMON_RUN_ROUNDS_H
#define LAUNCHD_DAEMON_RUN_ROUNDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text;

/* The last member of what is shared, which begins as zeros: room for two texts lies behind it. */
struct rounds {
	_Atomic uint64_t at_ms; /* when the latest was told; 0: none was */
	_Atomic unsigned whole; /* how many were; private, as is the rest */
	size_t len[2];
};

/* In the child: tells one, of room bytes at the most. Longer ones, and those that have failed, are
 * not told. */
void rounds_tell(struct rounds *r, size_t room, const struct text *t, uint64_t now_ms);

/* In the parent: adds the latest. *taken is how many there were at the last call, 0 at first.
 * False: there is no new one. */
bool rounds_take(const struct rounds *r, size_t room, unsigned *taken, struct text *out);

#endif
