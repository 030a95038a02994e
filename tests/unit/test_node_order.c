/* test_node_order.c - which rank each node has, from what all of them say. */
#include "tests/unit/unit.h"

#include <errno.h>

#include "daemon/plan/node_order.h"

enum { NODES_MAX = 5 };

#define NODE(name, addr) \
	{ \
		name, addr, false, false, 0 \
	}
#define OWNER(name, addr) \
	{ \
		name, addr, true, false, 0 \
	}
#define ASKS(name, addr, rank) \
	{ \
		name, addr, false, true, rank \
	}

static const struct order_row {
	const char *says;
	struct node_claim nodes[NODES_MAX]; /* ends with name NULL */
	unsigned hub;
	int rc;
	unsigned ranks[NODES_MAX];
	const char *part[3]; /* of the sentence */
} rows[] = {
	{ "one node", { NODE("a", "10.0.0.1") }, 0, 0, { 0 }, { NULL } },
	{ "the owner first, the others by their numbers",
		{ NODE("node10", "10.0.0.1"), NODE("node2", "10.0.0.2"), OWNER("node9", "10.0.0.9"),
			NODE("node1", "10.0.0.3") },
		0, 0, { 3, 2, 0, 1 }, { NULL } },
	{ "without an owner the hub is first",
		{ NODE("a", "10.0.0.1"), NODE("b", "10.0.0.2"), NODE("c", "10.0.0.3") }, 2, 0,
		{ 1, 2, 0 }, { NULL } },
	{ "of two owners the hub is first",
		{ OWNER("a", "10.0.0.1"), OWNER("b", "10.0.0.2"), NODE("c", "10.0.0.3") }, 1, 0,
		{ 1, 0, 2 }, { NULL } },
	{ "an owner that is not the hub is first",
		{ NODE("a", "10.0.0.1"), OWNER("b", "10.0.0.2") }, 0, 0, { 1, 0 }, { NULL } },
	{ "equal names by addresses",
		{ OWNER("a", "10.0.0.1"), NODE("x", "10.0.0.10"), NODE("x", "10.0.0.9") }, 0, 0,
		{ 0, 2, 1 }, { NULL } },
	{ "nothing tells them apart but their place",
		{ NODE("x", "10.0.0.1"), NODE("x", "10.0.0.1"), NODE("x", "10.0.0.1") }, 1, 0,
		{ 1, 0, 2 }, { NULL } },
	{ "ranks asked for are given, the rest fills the gaps",
		{ ASKS("a", "10.0.0.1", 3), NODE("b", "10.0.0.2"), OWNER("c", "10.0.0.3"),
			ASKS("d", "10.0.0.4", 1) },
		0, 0, { 3, 2, 0, 1 }, { NULL } },
	{ "all ask, and the one that asks for 0 is the hub",
		{ ASKS("a", "10.0.0.1", 2), ASKS("b", "10.0.0.2", 0), ASKS("c", "10.0.0.3", 1) }, 1,
		0, { 2, 0, 1 }, { NULL } },
	{ "two nodes ask for one rank",
		{ OWNER("a", "10.0.0.1"), ASKS("b", "10.0.0.2", 1), ASKS("c", "10.0.0.3", 1) }, 0,
		-EINVAL, { 0 }, { "b (10.0.0.2) and c (10.0.0.3) both ask for node rank 1" } },
	{ "two nodes ask for rank 0", { ASKS("a", "10.0.0.1", 0), ASKS("b", "10.0.0.2", 0) }, 0,
		-EINVAL, { 0 }, { "both ask for node rank 0" } },
	{ "a node asks for rank 0 that is not at the endpoint",
		{ OWNER("a", "10.0.0.1"), ASKS("b", "10.0.0.2", 0) }, 0, -EINVAL, { 0 },
		{ "b (10.0.0.2) asks for node rank 0, but that is a (10.0.0.1)" } },
	{ "the hub asks for another rank", { ASKS("a", "10.0.0.1", 1), NODE("b", "10.0.0.2") }, 0,
		-EINVAL, { 0 }, { "a (10.0.0.1) asks for node rank 1", "node rank 0's" } },
	{ "a rank that the job does not have", { OWNER("a", "10.0.0.1"), ASKS("b", "10.0.0.2", 2) },
		0, -EINVAL, { 0 }, { "asks for node rank 2, but the job has 2 nodes" } },
};

static unsigned count_nodes(const struct order_row *row)
{
	unsigned count = 0;

	while (count < NODES_MAX && row->nodes[count].name)
		count++;
	return count;
}

static void test_order(void **state)
{
	const struct order_row *row = *state;
	unsigned ranks[NODES_MAX] = { 77, 77, 77, 77, 77 }, count = count_nodes(row);
	struct failure why = { 0 };
	struct arena a = { 0 };
	int rc = node_order(row->nodes, count, row->hub, &a, ranks, &why);

	assert_outcome(rc, row->rc, &why, row->part[0]);
	for (size_t i = 1; i < 3 && row->part[i]; i++)
		assert_contains(why.text, row->part[i]);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(ranks[i], rc < 0 ? 77 : row->ranks[i]);
	arena_done(&a);
}

/* The order in which nodes come changes nothing: all rotations of a table. */
static void test_any_order(void **state)
{
	static const struct node_claim nodes[NODES_MAX] = { NODE("n10", "10.0.0.5"),
		ASKS("n2", "10.0.0.2", 3), OWNER("n7", "10.0.0.7"), NODE("n1", "10.0.0.1"),
		NODE("n1", "10.0.0.11") };
	static const unsigned ranks[NODES_MAX] = { 4, 3, 0, 1, 2 };

	(void)state;
	for (unsigned by = 0; by < NODES_MAX; by++) {
		struct node_claim turned[NODES_MAX];
		unsigned found[NODES_MAX];
		struct failure why = { 0 };
		struct arena a = { 0 };

		for (unsigned i = 0; i < NODES_MAX; i++)
			turned[i] = nodes[(i + by) % NODES_MAX];
		assert_int_equal(node_order(turned, NODES_MAX, 0, &a, found, &why), 0);
		for (unsigned i = 0; i < NODES_MAX; i++)
			assert_int_equal(found[i], ranks[(i + by) % NODES_MAX]);
		arena_done(&a);
	}
}

int main(void)
{
	static struct suite s;

	SUITE_ROWS(&s, test_order, rows);
	suite_add(&s, "whoever comes first, the ranks are the same", test_any_order, NULL, NULL);
	return suite_run(&s);
}
