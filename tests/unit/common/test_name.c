/* test_name.c - names as users write them, and how far they are from the right ones. */
#include "tests/unit/unit.h"

#include <string.h>

#include "common/name.h"

static const struct same_row {
	const char *says, *name, *text;
	bool begins, equal;
} same[] = {
	{ "the same", "nnodes", "nnodes", true, true },
	{ "a dash is an underscore", "nproc_per_node", "nproc-per-node", true, true },
	{ "an underscore is a dash", "rdzv-id", "rdzv_id", true, true },
	{ "mixed spellings", "nproc_per_node", "nproc_per-node", true, true },
	{ "a beginning", "nnodes", "nn", true, false },
	{ "nothing begins everything", "nnodes", "", true, false },
	{ "longer than the name", "nnodes", "nnodesx", false, false },
	{ "case counts", "nnodes", "Nnodes", false, false },
	{ "a blank is no dash", "rdzv-id", "rdzv id", false, false },
};

static void test_same(void **state)
{
	const struct same_row *row = *state;
	size_t len = strlen(row->text);

	assert_int_equal(name_begins(row->name, row->text, len), row->begins);
	assert_int_equal(name_equal(row->name, row->text, len), row->equal);
}

static void test_len(void **state)
{
	(void)state;
	assert_true(name_equal("nnodes", "nnodes=2", 6));
	assert_false(name_equal("nnodes", "nnodes=2", 7));
}

static const struct distance_row {
	const char *says, *name, *text;
	size_t limit, distance;
} distances[] = {
	{ "equal names", "nnodes", "nnodes", 3, 0 },
	{ "spelled the other way", "rdzv-id", "rdzv_id", 3, 0 },
	{ "a letter too few", "nnodes", "nodes", 3, 1 },
	{ "a letter too many", "nnodes", "nnnodes", 3, 1 },
	{ "another letter", "nnodes", "nnides", 3, 1 },
	{ "two neighbours exchanged", "nnodes", "nndoes", 3, 1 },
	{ "the first two exchanged", "stdin", "tsdin", 3, 1 },
	{ "two changes", "nnodes", "nnide", 3, 2 },
	{ "nothing at all", "role", "", 9, 4 },
	{ "all of a name", "", "role", 9, 4 },
	{ "beyond the limit is told as one above it", "nnodes", "master_addr", 3, 4 },
	{ "as long as can be compared", "nnodesnnodesnnodesnnodesnnodesnnodesnnodesnnodes",
		"nnodesnnodesnnodesnnodesnnodesnnodesnnodesnnides", 40, 1 },
	{ "a text too long to compare is beyond any limit", "nnodes",
		"nnodesnnodesnnodesnnodesnnodesnnodesnnodesnnodesn", 40, 41 },
};

static void test_distance(void **state)
{
	const struct distance_row *row = *state;

	assert_int_equal(
		name_distance(row->name, row->text, strlen(row->text), row->limit), row->distance);
}

static const struct identifier_row {
	const char *says, *text;
	bool is;
} identifiers[] = {
	{ "letters", "Ab", true },
	{ "digits and '_'", "_1a_2", true },
	{ "a digit first", "1a", false },
	{ "a dash", "a-b", false },
	{ "a function of bash", "BASH_FUNC_m%%", false },
	{ "not ASCII", "\xc3\xa4", false },
	{ "nothing", "", false },
};

static void test_identifier(void **state)
{
	const struct identifier_row *row = *state;

	assert_int_equal(name_is_identifier(row->text, strlen(row->text)), row->is);
}

TESTS(name)
{
	static struct suite s;

	SUITE_ROWS(&s, test_same, same);
	SUITE_ROWS(&s, test_identifier, identifiers);
	SUITE_ROWS(&s, test_distance, distances);
	suite_add(&s, "only the given length is read", test_len, NULL, NULL);
	return suite_run(&s);
}
