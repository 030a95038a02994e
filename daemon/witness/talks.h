/* talks.h - what this node's workers last said over TCP, by the kernel's sock_diag(7): to see other
 * processes' sockets of one's own network namespace needs no privilege. To be called in a process
 * that may hang. */
#ifndef LAUNCHD_DAEMON_WITNESS_TALKS_H
#define LAUNCHD_DAEMON_WITNESS_TALKS_H

#include <stdint.h>

#include "daemon/witness/look_at_worker.h"

/* Adds to each worker's sample its latest connections, but those with the store, whose port is
 * store_port (0: there is none). node: this node's rank, as each has loopback addresses of its own.
 * 0, or negative errno: nothing is known of them. */
int talks_add(const struct looked *workers, struct worker_sample *samples, unsigned count,
	unsigned store_port, unsigned node);

#endif
