/* test_clock.c - the peer's clock: whatever the delays and the drift, the truth lies within the
 * error. */
#include "tests/unit/unit.h"

#include "daemon/net/clock.h"

enum { US = 1000, MS = 1000000 };
#define SECOND UINT64_C(1000000000)

static const struct sample_row {
	const char *says;
	uint64_t t0, t1, t2, t3;
	bool taken;
	int64_t offset;
	uint64_t error; /* without drift and rounding: at most 100 ns more */
	uint64_t trip;
} samples[] = {
	{ "equal delays", 1000000, 5200000, 5210000, 1410000, true, 4000000, 200000, 400000 },
	{ "no delay", 1000000, 5000000, 5000000, 1000000, true, 4000000, 0, 0 },
	{ "the peer's clock is behind", 9000000, 1100000, 1100000, 9200000, true, -8000000, 100000,
		200000 },
	{ "all delay on one way", 1000000, 1400000, 1400000, 1400000, true, 200000, 200000,
		400000 },
	{ "our times run backwards", 2000, 1000, 1000, 1000, false, 0, 0, 0 },
	{ "the peer's times run backwards", 1000, 2000, 1000, 2000, false, 0, 0, 0 },
	{ "the answer took longer than the round trip", 1000000, 5000000, 9000000, 1500000, false,
		0, 0, 0 },
	{ "a time beyond all clocks", 1000, UINT64_MAX, UINT64_MAX, 2000, false, 0, 0, 0 },
};

static void test_sample(void **state)
{
	const struct sample_row *row = *state;
	struct clock_offset c = { 0 };
	uint64_t error;

	assert_int_equal(clock_add_sample(&c, row->t0, row->t1, row->t2, row->t3), row->taken);
	assert_int_equal(c.known, row->taken);
	assert_int_equal(c.trip_ns, row->trip);
	assert_int_equal(clock_offset_ns(&c), row->offset);
	error = clock_error_ns(&c, row->t3);
	if (row->taken)
		assert_in_range(error, row->error, row->error + 100);
	else
		assert_true(error == UINT64_MAX);
}

/* The peer's clock at a time of ours, with a drift in ppm. */
static uint64_t peers(uint64_t ours, int64_t offset, int64_t ppm)
{
	return (uint64_t)((int64_t)ours + offset + (int64_t)ours / 1000000 * ppm);
}

static const struct walk_row {
	const char *says;
	int64_t offset, ppm;
	uint64_t there_max, back_max, gap;
} walks[] = {
	{ "short delays", 17, 0, 50 * US, 50 * US, SECOND },
	{ "delays of up to 200 ms, drift of 50 ppm", 86400 * (int64_t)SECOND, 50, 200 * MS,
		200 * MS, SECOND },
	{ "delays on one way only, drift of -50 ppm", -3600 * (int64_t)SECOND, -50, 300 * MS, 1,
		SECOND / 4 },
	{ "delays on the other way only", 12345678901, 50, 1, 300 * MS, SECOND / 4 },
	{ "samples every ten minutes", -5, -50, MS, 9 * MS, 600 * SECOND },
};

/* True at any moment, also long before and after the samples; and of use. */
static void test_walk(void **state)
{
	const struct walk_row *row = *state;
	uint64_t seed = 88172645463325252, now = 4000 * SECOND, best = UINT64_MAX;
	struct clock_offset c = { 0 };

	for (int i = 0; i < 20000; i++) {
		uint64_t there = 1 + draw(&seed, row->there_max),
			 back = 1 + draw(&seed, row->back_max);
		uint64_t held = draw(&seed, MS), t3 = now + there + held + back, at, error;
		int64_t truth, off;

		assert_true(clock_add_sample(&c, now, peers(now + there, row->offset, row->ppm),
			peers(now + there + held, row->offset, row->ppm), t3));
		at = t3 + draw(&seed, 10 * SECOND) - 5 * SECOND;
		truth = (int64_t)(peers(at, row->offset, row->ppm) - at);
		off = truth - clock_offset_ns(&c);
		error = clock_error_ns(&c, at);
		assert_true((uint64_t)(off < 0 ? -off : off) <= error);
		assert_true(clock_error_ns(&c, t3) <= (there + back) / 2 + (t3 - now) / 5000 + US);
		best = clock_error_ns(&c, t3) < best ? clock_error_ns(&c, t3) : best;
		now = t3 + draw(&seed, row->gap);
	}
	assert_true(best <= (row->there_max + row->back_max) / 4); /* of many samples the best */
}

static void test_unknown(void **state)
{
	struct clock_offset c = { 0 };

	(void)state;
	assert_int_equal(clock_offset_ns(&c), 0);
	assert_true(clock_error_ns(&c, 5) == UINT64_MAX);
}

static void test_ages(void **state)
{
	struct clock_offset c = { 0 };

	(void)state;
	assert_true(clock_add_sample(&c, SECOND, SECOND, SECOND, SECOND));
	assert_in_range(clock_error_ns(&c, 11 * SECOND), MS, MS + 100); /* 100 ppm of 10 s */
}

static void test_step(void **state)
{
	struct clock_offset c = { 0 };

	(void)state;
	assert_true(clock_add_sample(&c, SECOND, SECOND, SECOND, SECOND + MS));
	assert_true(clock_add_sample(&c, 2 * SECOND, 9 * SECOND, 9 * SECOND, 2 * SECOND + MS));
	assert_in_range(clock_offset_ns(&c), 7 * SECOND - MS, 7 * SECOND);
}

TESTS(clock)
{
	static struct suite s;

	SUITE_ROWS(&s, test_sample, samples);
	SUITE_ROWS(&s, test_walk, walks);
	suite_add(&s, "nothing is known before the first sample", test_unknown, NULL, NULL);
	suite_add(&s, "the error grows with time", test_ages, NULL, NULL);
	suite_add(&s, "a clock that was set is believed anew", test_step, NULL, NULL);
	return suite_run(&s);
}
