/* credit.h - flow control for workers' output on its way to node rank 0's console: how many bytes
 * of it a node may have in flight. Sending uses credit up, and the console returns it by writing.
 * So the memory at node rank 0 is bounded, however slow its console, and no node can take another's
 * share. Pure.
 *
 * Both ends count. Credit is returned in quarters of the whole, and the sender waits until it has a
 * quarter, so that a slow console does not cause many small messages. */
#ifndef LAUNCHD_DAEMON_CLUSTER_CREDIT_H
#define LAUNCHD_DAEMON_CLUSTER_CREDIT_H

#include <stdbool.h>
#include <stddef.h>

enum {
	CREDIT_TOTAL = 16 << 20, /* of all nodes, as long as each has the least */
	CREDIT_MIN = 1 << 10,
};

struct credit {
	size_t whole; /* 0: none was granted, or it was withdrawn */
	size_t left;  /* bytes that may still be sent */
	size_t taken; /* at node rank 0: written to the console, but not returned yet */
};

/* Each node's share among so many: CREDIT_MIN to MESSAGE_LOG_ROOM_MAX. */
size_t credit_for(unsigned nodes);

/* All of it is left. */
struct credit credit_open(size_t whole);

/* How many bytes may be sent now, in one message: 0, or at least a quarter of the whole, but at
 * most MESSAGE_LOG_MAX. Not 0 once the console has written all that was sent. */
size_t credit_room(const struct credit *c);

/* Bytes are sent, or have arrived. False, and nothing is spent: there isn't enough left. */
bool credit_spend(struct credit *c, size_t len);

/* At node rank 0: the console has written bytes that had arrived. Returns what is to be returned
 * now. */
size_t credit_take(struct credit *c, size_t len);

/* At the sender: credit was returned. False, and nothing changed: more than was used. */
bool credit_give(struct credit *c, size_t len);

#endif
