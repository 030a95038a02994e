/* test_monotonic.c - how long it is until a moment. */
#include "tests/unit/unit.h"

#include <limits.h>

#include "common/monotonic.h"

static void goes_forward(void **state)
{
	int64_t before = monotonic_ms(), after = monotonic_ms();

	(void)state;
	assert_true(before > 0 && before <= after);
}

static void a_moment_that_comes(void **state)
{
	int left = monotonic_left_ms(monotonic_ms() + 3600000);

	(void)state;
	assert_true(left > 0 && left <= 3600000);
}

static void one_that_is_over(void **state)
{
	(void)state;
	assert_int_equal(monotonic_left_ms(monotonic_ms()), 0);
	assert_int_equal(monotonic_left_ms(0), 0);
	assert_int_equal(monotonic_left_ms(INT64_MIN / 2), 0);
}

/* poll(2) takes an int. */
static void one_in_a_hundred_years(void **state)
{
	(void)state;
	assert_int_equal(monotonic_left_ms(INT64_MAX / 2), INT_MAX);
}

TESTS(monotonic)
{
	static struct suite s;

	suite_add(&s, "it goes forward", goes_forward, NULL, NULL);
	suite_add(&s, "a moment that comes", a_moment_that_comes, NULL, NULL);
	suite_add(&s, "one that is over", one_that_is_over, NULL, NULL);
	suite_add(&s, "one in a hundred years", one_in_a_hundred_years, NULL, NULL);
	return suite_run(&s);
}
