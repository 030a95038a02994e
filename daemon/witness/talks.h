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
	unsigned store_port; /* the owner's, as is node; 0: there is no store */
	unsigned node;       /* this node's rank, as each has loopback addresses of its own */

	/* private: sockets by inode */
	struct socket_seen *seen;
	size_t count;
	bool kids; /* those of children are among them */
};

/* Adds to each worker's sample its latest connections, but those with the store, and how much went
 * over all of its sockets. kids: over those of its children, too. 0, or negative errno: nothing is
 * known of them. */
int talks_add(struct talks *t, struct looked *workers, struct worker_sample *samples,
	unsigned count, bool kids);

/* Frees. */
void talks_done(struct talks *t);

#endif
