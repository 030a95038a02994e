/* clock.h - a peer's clock beside ours, by NTP's four times, with an error that always covers the
 * truth. Pure.
 *
 * The state is an interval in which the difference of the clocks must lie, as no message arrives
 * before it was sent. Each sample narrows it and time widens it by CLOCK_DRIFT_PPM, so long and
 * asymmetric delays cost accuracy, never correctness. */
#ifndef LAUNCHD_DAEMON_NET_CLOCK_H
#define LAUNCHD_DAEMON_NET_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum { CLOCK_DRIFT_PPM = 100 }; /* that two clocks may drift apart */

/* { 0 }: nothing is known. */
struct clock_offset {
	bool known;
	int64_t low, high; /* ns, peer's minus ours, at the time `at` of our clock */
	uint64_t at;
	uint64_t trip_ns; /* the last round trip, without the time until the answer */
};

/* One round trip, in ns: sent at t0 (ours), received t1 and answered t2 (peer's), received t3
 * (ours). The answer may come long after the question. False: the times contradict each other, and
 * nothing is changed. A sample that contradicts what is known replaces it: a clock was set. */
bool clock_add_sample(struct clock_offset *c, uint64_t t0, uint64_t t1, uint64_t t2, uint64_t t3);

/* The peer's clock minus ours, ns; 0 where nothing is known. */
int64_t clock_offset_ns(const struct clock_offset *c);

/* How wrong clock_offset_ns() can be at this time of our clock, in either direction;
 * UINT64_MAX: nothing is known. */
uint64_t clock_error_ns(const struct clock_offset *c, uint64_t ours);

#endif
