/* clock.c - see clock.h */
#include "daemon/net/clock.h"

enum { TIME_BITS = 61 }; /* 73 years: sums of such times and their differences fit */

/* How far two clocks may drift apart in so many ns; rounded up. */
static int64_t drift(uint64_t ns)
{
	return (int64_t)(ns / (1000000 / CLOCK_DRIFT_PPM)) + 1;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

bool clock_add_sample(struct clock_offset *c, uint64_t t0, uint64_t t1, uint64_t t2, uint64_t t3)
{
	int64_t slack, low, high;

	if (((t0 | t1 | t2 | t3) >> TIME_BITS) != 0 || t3 < t0 || t2 < t1)
		return false;
	/* the question left before it arrived, and so did the answer, up to t3 - t0 ago */
	slack = drift(t3 - t0);
	low = (int64_t)t2 - (int64_t)t3 - slack;
	high = (int64_t)t1 - (int64_t)t0 + slack;
	if (low > high)
		return false;
	if (c->known) {
		int64_t widened = drift(distance(t3, c->at));
		int64_t both_low = c->low - widened > low ? c->low - widened : low;
		int64_t both_high = c->high + widened < high ? c->high + widened : high;

		if (both_low <= both_high) {
			low = both_low;
			high = both_high;
		}
	}
	*c = (struct clock_offset){ true, low, high, t3,
		t3 - t0 > t2 - t1 ? t3 - t0 - (t2 - t1) : 0 };
	return true;
}

int64_t clock_offset_ns(const struct clock_offset *c)
{
	return c->low + (c->high - c->low) / 2;
}

uint64_t clock_error_ns(const struct clock_offset *c, uint64_t ours)
{
	if (!c->known)
		return UINT64_MAX;
	return (uint64_t)(c->high - c->low) / 2 + 1 + (uint64_t)drift(distance(ours, c->at));
}
