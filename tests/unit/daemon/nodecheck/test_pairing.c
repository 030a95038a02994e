/* test_pairing.c - who is to blame for bad pairs. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/nodecheck/pairing.h"

enum { MEMBERS_MAX = 40, PAIRS_MAX = MEMBERS_MAX * PAIRING_ROUNDS_MAX };

struct world {
	unsigned members;
	bool bad[MEMBERS_MAX];
	bool link[MEMBERS_MAX][MEMBERS_MAX]; /* is bad; a < b */
};

struct trial_run {
	struct pair done[PAIRS_MAX];
	size_t count;
	unsigned rounds;
	enum member_state states[MEMBERS_MAX];
};

static void try_pairs(const struct world *w, struct trial_run *r)
{
	bool busy[MEMBERS_MAX];
	size_t n;

	memset(r, 0, sizeof *r);
	while ((n = pairing_next(r->done, r->count, w->members, r->rounds, r->states, busy,
			r->done + r->count)) > 0) {
		bool seen[MEMBERS_MAX] = { false };

		assert_true(n <= w->members / 2);
		for (size_t i = 0; i < n; i++) {
			struct pair *p = &r->done[r->count + i];
			unsigned low = p->a < p->b ? p->a : p->b, high = p->a < p->b ? p->b : p->a;

			assert_true(low < high && high < w->members);
			assert_false(seen[low] || seen[high]); /* nobody twice in a round */
			seen[low] = seen[high] = true;
			p->result = w->bad[low] || w->bad[high] || w->link[low][high] ? PAIR_BAD :
											PAIR_GOOD;
		}
		r->count += n;
		r->rounds++;
	}
	pairing_judge(r->done, r->count, w->members, r->states);
}

static const struct pairing_row {
	const char *says;
	unsigned members;
	int bad[4];
	int link[2];
	unsigned rounds_max;
	enum member_state others;
} rows[] = {
	{ "two good ones need one round", 2, { -1 }, { -1 }, 1, MEMBER_GOOD },
	{ "good ones need two rounds", 16, { -1 }, { -1 }, 2, MEMBER_GOOD },
	{ "one of 3", 3, { 1, -1 }, { -1 }, 3, MEMBER_GOOD },
	{ "one of 4", 4, { 0, -1 }, { -1 }, 3, MEMBER_GOOD },
	{ "the last of an odd number", 9, { 8, -1 }, { -1 }, 4, MEMBER_GOOD },
	{ "one of many", 40, { 17, -1 }, { -1 }, 3, MEMBER_GOOD },
	{ "two of 4", 4, { 1, 2, -1 }, { -1 }, 5, MEMBER_GOOD },
	{ "two neighbours of 8", 8, { 4, 5, -1 }, { -1 }, 5, MEMBER_GOOD },
	{ "four of 12", 12, { 0, 3, 6, 11 }, { -1 }, 6, MEMBER_GOOD },
	{ "a link convicts neither end", 8, { -1 }, { 0, 7 }, 4, MEMBER_GOOD },
	{ "of two that can't work together nobody is convicted", 2, { 0, -1 }, { -1 }, 1,
		MEMBER_OPEN },
	{ "where nothing works nobody is convicted", 4, { 0, 1, 2, 3 }, { -1 }, 8, MEMBER_OPEN },
	{ "one alone is no pair", 1, { -1 }, { -1 }, 0, MEMBER_OPEN },
};

static void test_row(void **state)
{
	const struct pairing_row *row = *state;
	struct world w = { .members = row->members };
	struct trial_run r;

	for (size_t i = 0; i < 4 && row->bad[i] >= 0; i++)
		w.bad[row->bad[i]] = true;
	if (row->link[0] >= 0)
		w.link[row->link[0]][row->link[1]] = true;
	try_pairs(&w, &r);
	assert_true(r.rounds <= row->rounds_max);
	for (unsigned m = 0; m < w.members; m++)
		assert_int_equal(r.states[m],
			row->others == MEMBER_OPEN ? MEMBER_OPEN :
				w.bad[m]           ? MEMBER_BAD :
						     MEMBER_GOOD);
}

/* A quarter of all at random: exactly these are convicted, whoever meets whom. */
static void test_random(void **state)
{
	(void)state;
	srand(18);
	for (unsigned turn = 0; turn < 3000; turn++) {
		struct world w = { .members = 6 + (unsigned)rand() % (MEMBERS_MAX - 6) };
		struct trial_run r;

		for (unsigned k = 0; k < w.members / 4; k++)
			w.bad[(unsigned)rand() % w.members] = true;
		try_pairs(&w, &r);
		for (unsigned m = 0; m < w.members; m++)
			assert_int_equal(r.states[m], w.bad[m] ? MEMBER_BAD : MEMBER_GOOD);
	}
}

/* Whatever is bad: nobody is convicted who has a good pair, or has met fewer than two good ones. */
static void test_nobody_innocent(void **state)
{
	(void)state;
	srand(81);
	for (unsigned turn = 0; turn < 3000; turn++) {
		struct world w = { .members = 2 + (unsigned)rand() % 10 };
		struct trial_run r;

		for (unsigned a = 0; a < w.members; a++) {
			w.bad[a] = rand() % 3 == 0;
			for (unsigned b = a + 1; b < w.members; b++)
				w.link[a][b] = rand() % 5 == 0;
		}
		try_pairs(&w, &r);
		for (size_t i = 0; i < r.count; i++)
			if (r.done[i].result == PAIR_GOOD) {
				assert_int_equal(r.states[r.done[i].a], MEMBER_GOOD);
				assert_int_equal(r.states[r.done[i].b], MEMBER_GOOD);
			}
		for (unsigned m = 0; m < w.members; m++)
			if (w.bad[m])
				assert_int_not_equal(r.states[m], MEMBER_GOOD);
	}
}

static void test_unknown(void **state)
{
	const struct pair done[] = { { 0, 1, PAIR_UNKNOWN }, { 2, 3, PAIR_GOOD },
		{ 0, 2, PAIR_BAD }, { 2, 0, PAIR_BAD }, { 1, 3, PAIR_GOOD } };
	enum member_state states[4];

	(void)state;
	pairing_judge(done, sizeof done / sizeof *done, 4, states);
	assert_int_equal(states[0], MEMBER_OPEN); /* bad with one partner, if twice */
	assert_int_equal(states[1], MEMBER_GOOD);
}

TESTS(pairing)
{
	struct suite s = { .count = 0 };

	SUITE_ROWS(&s, test_row, rows);
	suite_add(&s, "exactly the bad ones of a quarter", test_random, NULL, NULL);
	suite_add(&s, "nobody with a good pair is convicted", test_nobody_innocent, NULL, NULL);
	suite_add(&s, "what could not run, or is seen twice, convicts nobody", test_unknown, NULL,
		NULL);
	return suite_run(&s);
}
