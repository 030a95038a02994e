/* test_known.c - what must come of a check's values is what comes of them. */
#include "tests/unit/unit.h"

#include "daemon/nodecheck/known.h"

enum { SIZE = 192 };

static void test_product(void **state)
{
	struct known_inner_sums sums = known_inner_sums(SIZE);
	int most = 0;

	(void)state;
	for (unsigned i = 0; i < SIZE; i++)
		for (unsigned j = 0; j < SIZE; j++) {
			int sum = 0;

			for (unsigned k = 0; k < SIZE; k++)
				sum += known_a(i, k) * known_b(k, j);
			assert_int_equal(sum, known_product(sums, i, j));
			most = sum > most ? sum : most;
		}
	assert_true(most > SIZE / 2); /* not all zeros */
}

/* Half precision has all whole numbers up to 2048, single precision those up to 2^24. */
static void test_exact(void **state)
{
	struct known_inner_sums sums = known_inner_sums(8192);

	(void)state;
	for (unsigned i = 0; i < 8192; i++) {
		assert_in_range(known_a(i, i) + 6, 0, 12);
		assert_in_range(known_b(i, i) + 6, 0, 12);
		assert_in_range(known_product(sums, i, 8191 - i) + (1 << 19), 0, 1 << 20);
	}
}

static void test_sum(void **state)
{
	static const uint32_t ranks[] = { 1, 2, 3, 16, 8192 };

	(void)state;
	for (size_t r = 0; r < sizeof ranks / sizeof *ranks; r++)
		for (uint64_t i = 0; i < 64; i++) {
			uint32_t sum = 0;

			for (uint32_t rank = 0; rank < ranks[r]; rank++)
				sum += known_share(rank, i);
			assert_true(sum == known_sum(ranks[r], i));
		}
}

static void test_words(void **state)
{
	const uint64_t seed = 0x9e3779b97f4a7c15;
	uint64_t all = 0;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		assert_true(known_word(seed, i) == ~known_word(~seed, i));
		assert_true(known_word(seed, i) != known_word(seed, i + 1));
		all |= known_word(seed, i);
	}
	assert_true(all == UINT64_MAX);
}

TESTS(known)
{
	struct suite s = { .count = 0 };

	suite_add(&s, "a product of matrices is what it is said to be", test_product, NULL, NULL);
	suite_add(
		&s, "all numbers are whole and small enough for any unit", test_exact, NULL, NULL);
	suite_add(&s, "a sum over ranks is what it is said to be", test_sum, NULL, NULL);
	suite_add(&s, "each bit of memory is written both ways", test_words, NULL, NULL);
	return suite_run(&s);
}
