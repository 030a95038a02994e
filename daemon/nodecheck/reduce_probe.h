/* reduce_probe.h - one rank's part in an all-reduce of a group: right and fast. In the child of
 * part.h.
 *
 * The group meets in the store before the library has a chance to hang: each rank says that it is
 * there and how much memory it has, and the first one answers with the library's id and a size that
 * all have room for. So a rank that cannot even begin ends the step for its group at once. */
#ifndef LAUNCHD_DAEMON_NODECHECK_REDUCE_PROBE_H
#define LAUNCHD_DAEMON_NODECHECK_REDUCE_PROBE_H

#include <stdint.h>

#include "daemon/nodecheck/sighting.h"

struct collective_ops;
struct gpu_about;
struct gpu_ops;
struct visit;

struct reduce_group {
	const struct gpu_ops *gpu;
	const struct collective_ops *collective;
	struct visit *store;
	const char *keys;     /* those of this group, in this step, begin with it */
	unsigned rank, ranks; /* in the group */
	uint64_t bytes_max;
	int64_t until_ms; /* CLOCK_MONOTONIC */
	void (*tell)(const char *doing);
	void (*see)(const struct gpu_sight *s); /* before what may hang after a failure */
};

/* The GPU is open. What is found is in *ret; never fails. */
void reduce_probe(
	const struct reduce_group *g, const struct gpu_about *about, struct gpu_sight *ret);

/* Tells the group that this rank can't take part, so that nobody waits for it. */
void reduce_decline(const struct reduce_group *g);

#endif
