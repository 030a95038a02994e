/* compare.h - which of many nodes are not as the others are. Pure. */
#ifndef LAUNCHD_DAEMON_CHECK_COMPARE_H
#define LAUNCHD_DAEMON_CHECK_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

struct charges;

/* Values of one kind by node rank, NULL where one is not known: most have the same, and the others
 * are bad: "570.86.15, but 14 of 16 nodes have 580.65.06". Where no value is that of more than half
 * of them nobody knows who is right, and all are unknown. check: "driver_version". */
void compare_values(
	const char *check, const char *const *values, unsigned nnodes, struct charges *ret);

/* A node's time of day beside node rank 0's. */
struct compared_clock {
	bool known;
	int64_t ahead_us; /* negative: it is behind */
	uint64_t error_us;
};

/* Nodes whose time is not that of the others, by more than limit_us and what the measurement may be
 * wrong by: bad where more than half of the nodes agree with one another, else unknown. */
void compare_clocks(const struct compared_clock *clocks, unsigned nnodes, uint64_t limit_us,
	struct charges *ret);

#endif
