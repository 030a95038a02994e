/* test_credit.c - how much of a node's output may be on its way, at both ends. */
#include "tests/unit/unit.h"

#include "daemon/cluster/credit.h"
#include "daemon/cluster/message.h"

enum { WHOLE = 64 << 10, SMALL = 1 << 10, STEPS = 200000 };

static const struct share_row {
	const char *says;
	unsigned nodes;
	size_t whole;
} shares[] = {
	{ "nobody's is the most", 0, WHOLE },
	{ "of one other node", 1, WHOLE },
	{ "as many as have the most", 256, WHOLE },
	{ "one more has less", 257, CREDIT_TOTAL / 257 },
	{ "1,000 nodes share", 1000, CREDIT_TOTAL / 1000 },
	{ "as many as have the least", CREDIT_TOTAL / CREDIT_MIN, CREDIT_MIN },
	{ "more don't have less", 1000000, CREDIT_MIN },
};

static void test_share(void **state)
{
	const struct share_row *row = *state;

	assert_int_equal(credit_for(row->nodes), row->whole);
	assert_true(row->whole <= MESSAGE_LOG_ROOM_MAX);
	if (row->nodes <= CREDIT_TOTAL / CREDIT_MIN)
		assert_true(row->nodes * row->whole <= CREDIT_TOTAL);
}

static const struct room_row {
	const char *says;
	size_t whole, left, room;
} rooms[] = {
	{ "none was given", 0, 0, 0 },
	{ "all of it is a message's worth", WHOLE, WHOLE, MESSAGE_LOG_MAX },
	{ "a quarter", WHOLE, WHOLE / 4, WHOLE / 4 },
	{ "less than a quarter is waited for", WHOLE, WHOLE / 4 - 1, 0 },
	{ "all of little", SMALL, SMALL, SMALL },
	{ "half of little", SMALL, SMALL / 2, SMALL / 2 },
	{ "nothing of little", SMALL, 0, 0 },
};

static void test_room(void **state)
{
	const struct room_row *row = *state;
	const struct credit c = { .whole = row->whole, .left = row->left };

	assert_int_equal(credit_room(&c), row->room);
}

static void test_spend(void **state)
{
	struct credit c = credit_open(100);

	(void)state;
	assert_true(credit_spend(&c, 60));
	assert_false(credit_spend(&c, 41));
	assert_int_equal(c.left, 40);
	assert_true(credit_spend(&c, 40));
	assert_int_equal(c.left, 0);
	assert_false(credit_spend(&c, 1));
	assert_true(credit_spend(&c, 0));
}

static void test_take(void **state)
{
	struct credit c = credit_open(100);

	(void)state;
	assert_true(credit_spend(&c, 100));
	assert_int_equal(credit_take(&c, 24), 0); /* less than a quarter waits */
	assert_int_equal(c.left, 0);
	assert_int_equal(credit_take(&c, 1), 25);
	assert_int_equal(c.left, 25);
	assert_int_equal(c.taken, 0);
	assert_int_equal(credit_take(&c, 75), 75);
	assert_int_equal(c.left, 100);
}

static void test_give(void **state)
{
	struct credit c = credit_open(100), none = { 0 };

	(void)state;
	assert_false(credit_give(&c, 1)); /* nothing is used */
	assert_true(credit_spend(&c, 50));
	assert_false(credit_give(&c, 51));
	assert_int_equal(c.left, 50);
	assert_true(credit_give(&c, 50));
	assert_int_equal(c.left, 100);
	assert_false(credit_give(&none, 1));
}

static uint64_t seed;

/* Both ends and what is between them, in any order: never more than the whole is on its way, and
 * it never comes to a stop that the console has not caused. */
static void test_flow(void **state)
{
	static const unsigned nodes[] = { 1, 300, 1000, 20000 };

	(void)state;
	for (seed = 1; seed < 9; seed++) {
		uint64_t first = seed;
		struct credit sender = credit_open(credit_for(nodes[first % 4])), hub = sender;
		size_t under_way = 0, held = 0, back = 0;

		for (int i = 0; i < STEPS; i++) {
			size_t room = credit_room(&sender), n;

			if (draw(&seed, 3) == 0 && room > 0) {
				n = 1 + draw(&seed, room);
				assert_true(credit_spend(&sender, n));
				under_way += n;
			} else if (draw(&seed, 2) == 0 && under_way > 0) {
				n = 1 + draw(&seed, under_way);
				assert_true(credit_spend(&hub, n));
				under_way -= n;
				held += n;
			} else if (draw(&seed, 2) == 0 && held > 0) {
				n = 1 + draw(&seed, held);
				held -= n;
				back += credit_take(&hub, n);
			} else if (back > 0) {
				assert_true(credit_give(&sender, back));
				back = 0;
			}
			assert_true(
				under_way + held + back + hub.taken + sender.left == sender.whole);
		}
		assert_true(credit_spend(&hub, under_way));
		back += credit_take(&hub, held + under_way);
		assert_true(credit_give(&sender, back));
		assert_true(credit_room(&sender) > 0);
		seed = first;
	}
}

TESTS(credit)
{
	static struct suite s;

	SUITE_ROWS(&s, test_share, shares);
	SUITE_ROWS(&s, test_room, rooms);
	suite_add(&s, "no more is spent than is left", test_spend, NULL, NULL);
	suite_add(&s, "what is taken is given back in quarters", test_take, NULL, NULL);
	suite_add(&s, "no more is given back than was spent", test_give, NULL, NULL);
	suite_add(&s, "both ends in any order", test_flow, NULL, NULL);
	return suite_run(&s);
}
