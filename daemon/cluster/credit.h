/* credit.h - how many bytes of its workers' output a node may have on the way to node rank 0's
 * console: what is sent uses it up, what the console has taken gives it back. So the memory for it
 * is bounded at node rank 0, however slow its console, and no node has the others' part. Pure.
 *
 * Both ends keep it. It is given back in quarters at least, and the sender waits until it has as
 * much: a slow console does not make for many small messages. */
#ifndef LAUNCHD_DAEMON_CLUSTER_CREDIT_H
#define LAUNCHD_DAEMON_CLUSTER_CREDIT_H

#include <stdbool.h>
#include <stddef.h>

enum {
	CREDIT_TOTAL = 16 << 20, /* of all nodes, as long as each has the least */
	CREDIT_MIN = 1 << 10,
};

struct credit {
	size_t whole; /* 0: none was given, or it was withdrawn */
	size_t left;  /* bytes that may still be sent */
	size_t taken; /* at node rank 0: by the console, but not given back yet */
};

/* Of each of so many nodes: CREDIT_MIN to MESSAGE_LOG_ROOM_MAX. */
size_t credit_for(unsigned nodes);

/* All of it is left. */
struct credit credit_open(size_t whole);

/* The bytes that may be sent at once, in one message: 0, or at least a quarter of the whole, but
 * never more than MESSAGE_LOG_MAX. When the console has taken all that was sent, it is not 0. */
size_t credit_room(const struct credit *c);

/* Bytes are sent, or have come. False, and nothing spent: there is not so much left. */
bool credit_spend(struct credit *c, size_t len);

/* At node rank 0: the console has taken bytes that had come. Returns what is given back now. */
size_t credit_take(struct credit *c, size_t len);

/* At the sender: some was given back. False, and nothing changed: more than was used. */
bool credit_give(struct credit *c, size_t len);

#endif
