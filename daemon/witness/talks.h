/* talks.h - what this node's workers last said over TCP, by the kernel's sock_diag(7): to see other
 * processes' sockets of one's own network namespace needs no privilege. To be called in a process
 * that may hang. */
#ifndef LAUNCHD_DAEMON_WITNESS_TALKS_H
#define LAUNCHD_DAEMON_WITNESS_TALKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/witness/look_at_worker.h"

struct socket_seen;

/* What a look needs to know of the one before. Begins as { 0 }. */
struct talks {
	/* the owner's */
	unsigned store_port; /* 0: there is no store */
	unsigned node;       /* this node's rank: each node has its own loopback addresses */

	/* private: sockets by inode */
	struct socket_seen *seen;
	size_t count;
};

/* Adds to each worker's sample its latest connections without the store's, and how many bytes went
 * over its own sockets and its children's. 0, or negative errno: then both are unknown. */
int talks_add(
	struct talks *t, struct looked *workers, struct worker_sample *samples, unsigned count);

/* Frees. */
void talks_done(struct talks *t);

#endif
