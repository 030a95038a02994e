/* test_links_rounds.c - who meets whom. */
#include "tests/unit/unit.h"

#include "daemon/check/links_rounds.h"

static const struct count_row {
	const char *says;
	unsigned nnodes, rounds;
} counts[] = {
	{ "nobody is there", 0, 0 },
	{ "one node meets nobody", 1, 0 },
	{ "two meet once", 2, 1 },
	{ "three need three rounds, as one rests in each", 3, 3 },
	{ "four", 4, 3 },
	{ "seven", 7, 6 },
	{ "sixteen", 16, 6 },
	{ "a thousand", 1000, 6 },
};

static void test_count(void **state)
{
	const struct count_row *row = *state;

	assert_int_equal(links_rounds(row->nnodes), row->rounds);
}

static const struct size_row {
	const char *says;
	unsigned nnodes;
} sizes[] = {
	{ "2 nodes", 2 },
	{ "3 nodes", 3 },
	{ "4 nodes", 4 },
	{ "5 nodes", 5 },
	{ "6 nodes", 6 },
	{ "7 nodes", 7 },
	{ "8 nodes", 8 },
	{ "9 nodes", 9 },
	{ "15 nodes", 15 },
	{ "16 nodes", 16 },
	{ "17 nodes", 17 },
	{ "64 nodes", 64 },
	{ "999 nodes", 999 },
	{ "1000 nodes", 1000 },
	{ "65536 nodes", 65536 },
};

static void test_pairs_are_mutual_and_new(void **state)
{
	const struct size_row *row = *state;
	unsigned rounds = links_rounds(row->nnodes);

	for (unsigned node = 0; node < row->nnodes; node++) {
		unsigned idle = 0;
		int met[LINKS_ROUNDS_MAX];

		for (unsigned round = 0; round < rounds; round++) {
			met[round] = links_partner(row->nnodes, round, node);
			idle += met[round] < 0;
			if (met[round] < 0)
				continue;
			assert_true(met[round] < (int)row->nnodes);
			assert_int_not_equal(met[round], node);
			assert_int_equal(
				links_partner(row->nnodes, round, (unsigned)met[round]), node);
			for (unsigned before = 0; before < round; before++)
				assert_int_not_equal(met[before], met[round]);
		}
		assert_true(idle <= row->nnodes % 2);
	}
}

/* All of a node's partners in a rack that is bad by itself would tell nothing of the node. */
static void test_partners_lie_apart(void **state)
{
	(void)state;
	for (unsigned node = 0; node < 1000; node++) {
		unsigned halves[2] = { 0 };

		for (unsigned round = 0; round < links_rounds(1000); round++)
			halves[links_partner(1000, round, node) / 500]++;
		assert_true(halves[0] >= 2 && halves[1] >= 2);
	}
}

TESTS(links_rounds)
{
	static struct suite s;

	SUITE_ROWS(&s, test_count, counts);
	SUITE_ROWS(&s, test_pairs_are_mutual_and_new, sizes);
	suite_add(&s, "partners are of both halves", test_partners_lie_apart, NULL, NULL);
	return suite_run(&s);
}
