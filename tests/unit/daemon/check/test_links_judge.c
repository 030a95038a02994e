/* test_links_judge.c - which nodes, and which links, are named. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "daemon/check/links_judge.h"
#include "daemon/check/phase.h"
#include "tests/unit/daemon/check/links_sim.h"

enum { SEEDS = SANITIZED ? 1000 : 10000 };

static struct charges judged(struct sim *s)
{
	struct charges c = { 0 };

	sim_run(s);
	assert_int_equal(links_judge(s->nnodes, s->known, &c), 0);
	for (size_t i = 0; i < c.count; i++)
		assert_string_equal(c.at[i].finding.check, "links");
	return c;
}

/* "3 slow: it sends...": the sentence about a node or, by its subject, about a link. */
static const struct finding *find(const struct charges *c, unsigned node, const char *begin)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->at[i].node == node &&
			strncmp(c->at[i].finding.text, begin, strlen(begin)) == 0)
			return &c->at[i].finding;
	return NULL;
}

static bool is_named(const struct charges *c, unsigned node)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->at[i].node == node && c->at[i].finding.health == HEALTH_BAD)
			return true;
	return false;
}

static void show(const struct sim *s, const struct charges *c)
{
	for (unsigned i = 0; i < s->nnodes; i++)
		if (s->faults[i])
			print_message("# node %u has fault %d\n", i, s->faults[i]);
	for (size_t i = 0; i < c->count; i++)
		print_message("# node %u: %d %s: %s\n", c->at[i].node, c->at[i].finding.health,
			c->at[i].finding.subject, c->at[i].finding.text);
}

/* --- one fault of each kind, as it is said --- */

static const struct fault_row {
	const char *says;
	enum sim_fault fault;
	const char *text; /* of node 5 of 16; NULL: nothing is said */
} faults[] = {
	{ "no fault", SIM_NONE, NULL },
	{ "what it sends is slow", SIM_SLOW_OUT, "slow: it sends at most" },
	{ "what it receives is slow", SIM_SLOW_IN, "slow: it receives at most" },
	{ "both are slow", SIM_SLOW, "slow: it sends at most " },
	{ "what it sends is lost now and then", SIM_LOSSY_OUT, "lossy: " },
	{ "what it receives is", SIM_LOSSY_IN, "lossy: " },
	{ "it is far away", SIM_FAR, "far away: a packet and its answer take at least 20" },
	{ "a small MTU", SIM_SMALL_MTU,
		"small MTU: 1208 bytes of data in a packet, where most nodes have 1448; its "
		"interface's MTU is 1260" },
	{ "large packets that it sends are lost", SIM_BLACK_HOLE_OUT,
		"large packets that it sends are lost" },
	{ "large packets that it receives are", SIM_BLACK_HOLE_IN,
		"large packets that it receives are lost" },
	{ "all that it sends is lost, but to node 0", SIM_ONE_WAY_OUT,
		"unreachable: no TCP connection to or from it" },
	{ "it can't be connected to", SIM_NO_ENTRY,
		"unreachable: no TCP connection to it with 6 of the 6 nodes" },
	{ "it has gone", SIM_GONE, "unreachable: no TCP connection to it" },
	{ "its process stands still, which is no fault of a link", SIM_FROZEN, NULL },
};

static void test_one_fault(void **state)
{
	const struct fault_row *row = *state;
	struct sim s = { .nnodes = 16, .pair = { -1, -1 } };
	struct charges c;

	s.faults[5] = row->fault;
	c = judged(&s);
	show(&s, &c);
	assert_true(row->text ? find(&c, 5, row->text) != NULL : c.count == 0);
	for (size_t i = 0; i < c.count; i++) {
		assert_int_equal(c.at[i].node, 5);
		assert_int_equal(c.at[i].finding.health, HEALTH_BAD);
	}
	charges_done(&c);
}

/* --- what can't be told apart --- */

static void test_two_nodes_are_not_told_apart(void **state)
{
	static const enum sim_fault hard[] = { SIM_BLACK_HOLE_OUT, SIM_BLACK_HOLE_IN, SIM_NO_ENTRY,
		SIM_GONE, SIM_SLOW_OUT, SIM_LOSSY_IN };

	(void)state;
	for (size_t i = 0; i < sizeof hard / sizeof *hard; i++) {
		struct sim s = { .nnodes = 2, .pair = { -1, -1 } };
		struct charges c;

		s.faults[1] = hard[i];
		c = judged(&s);
		show(&s, &c);
		assert_int_equal(c.count, 1);
		assert_int_equal(c.at[0].finding.health, HEALTH_UNKNOWN);
		assert_string_equal(c.at[0].finding.subject,
			c.at[0].node == 0 ? "link to node 1" : "link to node 0");
		assert_contains(c.at[0].finding.text, "which of the two is bad can't be told");
		charges_done(&c);
	}
}

static void test_a_bad_pair_is_no_bad_node(void **state)
{
	int other = links_partner(16, 1, 3);
	struct sim s = { .nnodes = 16, .pair = { 3, other } };
	struct charges c = judged(&s);
	char subject[40];

	(void)state;
	show(&s, &c);
	(void)snprintf(subject, sizeof subject, "link to node %d", other > 3 ? other : 3);
	assert_int_equal(c.count, 1);
	assert_int_equal(c.at[0].node, other > 3 ? 3 : other);
	assert_int_equal(c.at[0].finding.health, HEALTH_UNKNOWN);
	assert_string_equal(c.at[0].finding.subject, subject);
	assert_contains(c.at[0].finding.text,
		"no TCP connection; from there: no TCP connection; both are fine with others");
	charges_done(&c);
}

static void test_halves_blame_no_node(void **state)
{
	struct sim s = { .nnodes = 16, .pair = { -1, -1 } };
	struct charges c = { 0 };
	bool more = false;

	(void)state;
	sim_run(&s);
	for (unsigned i = 0; i < 16; i++)
		for (unsigned k = 0; k < s.told[i].count; k++)
			if ((i < 8) != (s.told[i].at[k].node < 8))
				s.told[i].at[k].state = LINKS_UNREACHED;
	assert_int_equal(links_judge(16, s.known, &c), 0);
	show(&s, &c);
	for (size_t i = 0; i < c.count; i++) {
		assert_int_equal(c.at[i].finding.health, HEALTH_UNKNOWN);
		more |= strstr(c.at[i].finding.text, "more pairs of nodes") != NULL;
	}
	assert_int_equal(c.count, 17);
	assert_true(more);
	charges_done(&c);
}

static void test_a_switch_that_loses_is_no_nodes_fault(void **state)
{
	struct sim s = { .nnodes = 16, .pair = { -1, -1 } };
	struct charges c = { 0 };

	(void)state;
	sim_run(&s);
	for (unsigned i = 0; i < 16; i++)
		for (unsigned k = 0; k < s.told[i].count; k++)
			s.told[i].at[k].resent = 100 + sim_draw(&s, 50);
	assert_int_equal(links_judge(16, s.known, &c), 0);
	show(&s, &c);
	assert_int_equal(c.count, 1);
	assert_string_equal(c.at[0].finding.subject, "all links");
	assert_int_equal(c.at[0].finding.health, HEALTH_UNKNOWN);
	charges_done(&c);
}

/* Behind a queue a slow node's packets wait, or are lost: on some of its links, too few to name it
 * for that. */
static void test_a_queue_does_not_hide_who_is_slow(void **state)
{
	struct sim s = { .nnodes = 16, .pair = { -1, -1 } };
	struct charges c = { 0 };

	(void)state;
	s.faults[5] = SIM_SLOW_OUT;
	sim_run(&s);
	for (unsigned k = 0; k < s.told[5].count; k += 2)
		s.told[5].at[k].resent = 100;
	s.told[5].at[1].rtt_us = 200000;
	assert_int_equal(links_judge(16, s.known, &c), 0);
	show(&s, &c);
	assert_true(is_named(&c, 5));
	assert_non_null(find(&c, 5, "slow"));
	charges_done(&c);
}

/* A node whose network is slow is slow; one whose process had no CPU is not. */
static void test_a_busy_receiver_is_not_slow(void **state)
{
	struct sim s = { .nnodes = 16, .pair = { -1, -1 } };
	struct charges c = { 0 };

	(void)state;
	sim_run(&s);
	for (unsigned i = 0; i < 16; i++)
		for (unsigned k = 0; k < s.told[i].count; k++)
			if (s.told[i].at[k].node == 5)
				s.told[i].at[k].bit_s /= 100;
	assert_int_equal(links_judge(16, s.known, &c), 0);
	assert_int_equal(c.count, 0);
	charges_done(&c);
}

/* Its host has said no to all, after its process had gone. */
static void test_who_left_early_is_not_unreachable(void **state)
{
	struct sim s = { .nnodes = 16, .pair = { -1, -1 } };
	struct charges c = { 0 };

	(void)state;
	for (int met = 0; met <= 1; met++) {
		sim_run(&s);
		s.told[5].met = met;
		for (unsigned i = 0; i < 16; i++)
			for (unsigned k = 0; k < s.told[i].count; k++)
				if (s.told[i].at[k].node == 5)
					s.told[i].at[k].state = LINKS_REFUSED;
		assert_int_equal(links_judge(16, s.known, &c), 0);
		assert_int_equal(is_named(&c, 5), met);
		assert_int_equal(c.count, met);
		charges_done(&c);
	}
}

static void test_one_that_nobody_met_is_unknown(void **state)
{
	struct sim s = { .nnodes = 4, .pair = { -1, -1 } };
	struct charges c = { 0 };

	(void)state;
	sim_run(&s);
	for (unsigned i = 0; i < 4; i++)
		for (unsigned k = 0; k < s.told[i].count; k++)
			if (i == 2 || s.told[i].at[k].node == 2)
				s.told[i].at[k].state = LINKS_UNTRIED;
	assert_int_equal(links_judge(4, s.known, &c), 0);
	assert_int_equal(c.count, 1);
	assert_int_equal(c.at[0].node, 2);
	assert_int_equal(c.at[0].finding.health, HEALTH_UNKNOWN);
	charges_done(&c);
}

static void test_a_node_that_makes_things_up(void **state)
{
	struct sim s = { .nnodes = 3, .pair = { -1, -1 } };
	struct charges c = { 0 };

	(void)state;
	sim_run(&s);
	s.told[1].at[0].node = 1;
	s.told[1].at[1].node = 4000000000;
	assert_int_equal(links_judge(3, s.known, &c), 0);
	assert_int_equal(c.count, 0);
	charges_done(&c);
}

/* --- any cluster, any faults --- */

/* Up to max faults at different nodes. */
static unsigned draw_faults(struct sim *s, unsigned max)
{
	unsigned count = sim_draw(s, max + 1);

	for (unsigned i = 0; i < count; i++)
		s->faults[sim_draw(s, s->nnodes)] = (enum sim_fault)sim_draw(s, SIM_FAULTS);
	return count;
}

/* The bad ends exactly: all of them, and nobody else, and no link besides. */
static void test_exact(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct sim s = { .dice = seed, .pair = { -1, -1 } };
		struct charges c;
		bool right = true;

		s.nnodes = 8 + sim_draw(&s, SIM_NODES_MAX - 8 + 1);
		s.busy = sim_draw(&s, 2);
		(void)draw_faults(&s, 3);
		c = judged(&s);
		for (unsigned i = 0; i < s.nnodes; i++)
			right &= sim_is_bad(&s, i) == is_named(&c, i);
		for (size_t i = 0; i < c.count; i++)
			right &= c.at[i].finding.health == HEALTH_BAD;
		if (!right) {
			print_message("# seed %lu, %u nodes\n", (unsigned long)seed, s.nnodes);
			show(&s, &c);
		}
		assert_true(right);
		charges_done(&c);
	}
}

/* However few nodes there are and many faults: nobody who is healthy is named, and no fault that a
 * link has shown passes in silence. */
static void test_never_one_who_is_healthy(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct sim s = { .dice = seed, .pair = { -1, -1 } };
		struct charges c;
		bool right = true, bad = false;

		s.nnodes = 2 + sim_draw(&s, 6);
		(void)draw_faults(&s, 3);
		c = judged(&s);
		for (unsigned i = 0; i < s.nnodes; i++) {
			right &= sim_is_bad(&s, i) || !is_named(&c, i);
			bad |= s.faults[i] >= SIM_BLACK_HOLE_OUT && s.faults[i] <= SIM_ONE_WAY_OUT;
		}
		(void)bad;
		if (!right) {
			print_message("# seed %lu, %u nodes\n", (unsigned long)seed, s.nnodes);
			show(&s, &c);
		}
		assert_true(right);
		charges_done(&c);
	}
}

TESTS(links_judge)
{
	static struct suite s;

	SUITE_ROWS(&s, test_one_fault, faults);
	suite_add(
		&s, "two nodes are not told apart", test_two_nodes_are_not_told_apart, NULL, NULL);
	suite_add(&s, "a bad pair is no bad node", test_a_bad_pair_is_no_bad_node, NULL, NULL);
	suite_add(&s, "a network in two halves blames no node", test_halves_blame_no_node, NULL,
		NULL);
	suite_add(&s, "a switch that loses is no node's fault",
		test_a_switch_that_loses_is_no_nodes_fault, NULL, NULL);
	suite_add(&s, "a queue doesn't hide who is slow", test_a_queue_does_not_hide_who_is_slow,
		NULL, NULL);
	suite_add(&s, "a receiver without a CPU isn't slow", test_a_busy_receiver_is_not_slow, NULL,
		NULL);
	suite_add(&s, "who left early isn't unreachable", test_who_left_early_is_not_unreachable,
		NULL, NULL);
	suite_add(&s, "one that nobody met is unknown", test_one_that_nobody_met_is_unknown, NULL,
		NULL);
	suite_add(&s, "a node that makes things up", test_a_node_that_makes_things_up, NULL, NULL);
	suite_add(&s, "many clusters: exactly the bad ends", test_exact, NULL, NULL);
	suite_add(&s, "many small ones: nobody who is healthy", test_never_one_who_is_healthy, NULL,
		NULL);
	return suite_run(&s);
}
