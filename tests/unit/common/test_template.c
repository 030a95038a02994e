/* test_template.c - templates; more of them, as arguments, in test_command. */
#include "tests/unit/unit.h"

#include <string.h>

#include "common/template.h"

/* What Python's string.Template(template).safe_substitute(a="1", ab="2", _c9="3", e="") makes. */
static const struct template_row {
	const char *says, *template, *expanded;
} rows[] = {
	{ "nothing", "", "" },
	{ "no placeholder", "a ab", "a ab" },
	{ "each name its value", "$a$ab${_c9}", "123" },
	{ "the longest name counts", "$ab ${a}b $abc", "2 1b $abc" },
	{ "a value that is empty", "[$e]", "[]" },
	{ "names that nobody knows", "$x${x}$A", "$x${x}$A" },
	{ "two dollars are one", "$$a$$$a", "$a$1" },
	{ "what is no name", "$ $9 ${ a} ${a $", "$ $9 ${ a} ${a $" },
	{ "a placeholder in braces that are none", "${$a}", "${1}" },
	{ "any other bytes", "\xff$a\xc3\xa9\n",
		"\xff"
		"1\xc3\xa9\n" },
};

static void test_template(void **state)
{
	const struct template_row *row = *state;
	const struct template_value values[] = { { "a", "1" }, { "ab", "2" }, { "_c9", "3" },
		{ "e", "" } };
	struct text out = { 0 };

	text_add(&out, "before:");
	template_expand(row->template, values, sizeof values / sizeof *values, &out);
	assert_memory_equal(out.at, "before:", 7);
	assert_string_equal(out.at + 7, row->expanded);
	text_done(&out);
}

/* A value is no template. */
static void test_value(void **state)
{
	const struct template_value value = { "a", "$a$$" };
	struct text out = { 0 };

	(void)state;
	template_expand("$a", &value, 1, &out);
	assert_string_equal(text_string(&out), "$a$$");
	text_done(&out);
	template_expand("$a", NULL, 0, &out);
	assert_string_equal(text_string(&out), "$a");
	text_done(&out);
}

static const struct unknown_row {
	const char *says, *template, *name; /* NULL: none */
} unknown[] = {
	{ "no name is unknown", "", NULL },
	{ "... of known ones", "$a-${ab}$_c9$e", NULL },
	{ "an unknown name", "$a ${abc} $x", "abc" },
	{ "an unknown name without braces", "$x", "x" },
	{ "the beginning of a known one", "${_c}", "_c" },
	{ "what is no name is not unknown", "$ $9 ${ a} ${x $$x", NULL },
	{ "behind a dollar sign", "$$$x", "x" },
};

static void test_unknown(void **state)
{
	const struct unknown_row *row = *state;
	size_t len = 0;
	const char *name = template_unknown(row->template, "a|ab|_c9|e", &len);

	assert_true((name == NULL) == (row->name == NULL));
	if (row->name) {
		assert_int_equal(len, strlen(row->name));
		assert_memory_equal(name, row->name, len);
	}
}

TESTS(template)
{
	static struct suite s;

	SUITE_ROWS(&s, test_template, rows);
	SUITE_ROWS(&s, test_unknown, unknown);
	suite_add(&s, "values are not read as templates", test_value, NULL, NULL);
	return suite_run(&s);
}
