/* test_columns.c - tables for people: widths, what is cut, and what a terminal must not obey. */
#include "tests/unit/unit.h"

#include "common/text.h"
#include "daemon/ctl/columns.h"

static const struct table_row {
	const char *says;
	unsigned count;
	const char *cells[10]; /* "" is none, too */
	size_t width;
	const char *text;
} tables[] = {
	{ "as wide as the widest", 2, { "A", "B", "long", "x", "s", "yy" }, 0,
		"A     B\nlong  x\ns     yy\n" },
	{ "nothing is a dash", 3, { "A", "B", "C", "", "b", "" }, 0, "A  B  C\n-  b  -\n" },
	{ "the last one is cut", 2, { "A", "B", "a", "0123456789" }, 8, "A  B\na  01234\n" },
	{ "to one character at least", 2, { "AAAAAA", "B", "a", "0123" }, 5,
		"AAAAAA  B\na       0\n" },
	{ "characters, not bytes", 2, { "\xc3\xa4\xc3\xb6", "B", "a", "\xe2\x82\xac\xe2\x82\xac" },
		5, "\xc3\xa4\xc3\xb6  B\na   \xe2\x82\xac\n" },
	{ "what a terminal would obey", 1, { "a\033[2Jb\rc" }, 0, "a\\x1b[2Jb\\x0dc\n" },
	{ "nothing", 2, { NULL }, 0, "" },
};

static void test_table(void **state)
{
	const struct table_row *row = *state;
	struct arena arena = { 0 };
	struct columns c = { .arena = &arena, .count = row->count };
	struct text out = { 0 };

	for (const char *const *cell = row->cells; *cell; cell++)
		columns_add(&c, *cell);
	columns_print(&c, row->width, &out);
	assert_string_equal(text_string(&out), row->text);
	text_done(&out);
	arena_done(&arena);
}

static void test_many(void **state)
{
	struct arena arena = { 0 };
	struct columns c = { .arena = &arena, .count = 3 };
	struct text out = { 0 };

	(void)state;
	for (int i = 0; i < 3 * 1000; i++)
		columns_add(&c, i % 3 == 1 ? NULL : "x");
	columns_print(&c, 0, &out);
	assert_int_equal(out.len, 1000 * 8);
	text_done(&out);
	arena_done(&arena);
}

TESTS(columns)
{
	struct suite s = { .count = 0 };

	SUITE_ROWS(&s, test_table, tables);
	suite_add(&s, "a thousand rows", test_many, NULL, NULL);
	return suite_run(&s);
}
