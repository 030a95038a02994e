/* placement.h - which CPUs and which memory each worker of this node gets, and why. Pure.
 *
 * Cores are dealt out whole, so hardware threads of one core stay together; only those count that
 * this process may use. */
#ifndef LAUNCHD_DAEMON_PLACE_PLACEMENT_H
#define LAUNCHD_DAEMON_PLACE_PLACEMENT_H

#include "daemon/place/placing.h"

struct failure;

/* Decides. Memory is the arena's. -EINVAL: more cores than there are, lists for another number of
 * workers or with CPUs or nodes that aren't usable, a GPU's place where a worker has no GPU. */
int placement_make(
	const struct placing *in, struct arena *arena, struct placement *ret, struct failure *why);

#endif
