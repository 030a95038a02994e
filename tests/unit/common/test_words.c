/* test_words.c - a command in one text, as a shell reads it, and lists with commas. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "common/vec.h"
#include "common/words.h"

static const struct words_row {
	const char *says, *text;
	const char *words[5]; /* ends with NULL */
	const char *fault;    /* NULL: none */
} rows[] = {
	{ "nothing", "", { NULL }, NULL },
	{ "blanks only", " \t\n ", { NULL }, NULL },
	{ "one word", "gdb", { "gdb" }, NULL },
	{ "several words", "nsys profile -o out", { "nsys", "profile", "-o", "out" }, NULL },
	{ "blanks of all kinds around them", "  a\tb\n\nc ", { "a", "b", "c" }, NULL },
	{ "single quotes keep all", "'a b' '\\$\"'", { "a b", "\\$\"" }, NULL },
	{ "double quotes keep blanks", "\"a  b\"", { "a  b" }, NULL },
	{ "quotes within a word join", "a'b c'd\"e f\"", { "ab cde f" }, NULL },
	{ "quotes of the other kind are letters", "\"it's\" 'say \"x\"'", { "it's", "say \"x\"" },
		NULL },
	{ "empty quotes are an empty word", "a '' \"\" b", { "a", "", "", "b" }, NULL },
	{ "empty quotes beside letters are nothing", "''a\"\"", { "a" }, NULL },
	{ "a backslash takes the meaning", "a\\ b \\' \\\" \\\\", { "a b", "'", "\"", "\\" },
		NULL },
	{ "a backslash before a letter goes", "\\a\\b", { "ab" }, NULL },
	{ "in double quotes it takes the meaning of four", "\"\\\\ \\\" \\$ \\`\"", { "\\ \" $ `" },
		NULL },
	{ "in double quotes it stays before others", "\"\\a \\' \\ \"", { "\\a \\' \\ " }, NULL },
	{ "in single quotes it is a letter", "'a\\'", { "a\\" }, NULL },
	{ "a quote in single quotes, as shells have it", "'it'\\''s'", { "it's" }, NULL },
	{ "a line that goes on", "a\\\nb \\\n c \\\n", { "ab", "c" }, NULL },
	{ "a line that goes on in double quotes", "\"a\\\nb\"", { "ab" }, NULL },
	{ "a line's end in quotes stays", "'a\nb'", { "a\nb" }, NULL },
	{ "nothing is expanded", "$HOME ~ *.py $(x)", { "$HOME", "~", "*.py", "$(x)" }, NULL },
	{ "operators are letters", "a>b |c;d #e", { "a>b", "|c;d", "#e" }, NULL },
	{ "letters beyond ASCII", "\xc3\xa9 \xff'\xfe '", { "\xc3\xa9", "\xff\xfe " }, NULL },
	{ "an open single quote", "a 'b c", { NULL }, "unmatched '" },
	{ "an open double quote", "a \"b c", { NULL }, "unmatched \"" },
	{ "a double quote that a backslash keeps open", "\"a\\\"", { NULL }, "unmatched \"" },
	{ "a backslash at the end of double quotes", "\"a\\", { NULL }, "unmatched \"" },
	{ "a backslash at the end", "a b\\", { NULL }, "trailing backslash" },
	{ "a lone quote", "'", { NULL }, "unmatched '" },
};

static void test_words(void **state)
{
	const struct words_row *row = *state;
	struct vec words = { 0 };
	const char *fault = NULL;
	struct arena a = { 0 };
	size_t count = 0;

	vec_add(&a, &words, "before");
	assert_int_equal(words_split(row->text, &a, &words, &fault), row->fault ? -EINVAL : 0);
	while (count < 5 && row->words[count])
		count++;
	assert_int_equal(words.count, 1 + count);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(words.at[1 + i], row->words[i]);
	if (row->fault)
		assert_string_equal(fault, row->fault);
	else
		assert_null(fault);
	assert_false(arena_failed(&a));
	arena_done(&a);
}

static const struct list_row {
	const char *says, *list;
	const char *entries[5]; /* ends with NULL */
} lists[] = {
	{ "an empty list", "", { "" } },
	{ "one entry", "HUP", { "HUP" } },
	{ "several", "HUP,USR1,USR2", { "HUP", "USR1", "USR2" } },
	{ "blanks around entries", " HUP , USR1 ", { "HUP", "USR1" } },
	{ "blanks within one", "a b,c", { "a b", "c" } },
	{ "an empty one between", "a,,b", { "a", "", "b" } },
	{ "one of blanks", "a, ,b", { "a", "", "b" } },
	{ "nothing behind the last comma", "a,", { "a", "" } },
};

static void test_list(void **state)
{
	const struct list_row *row = *state;
	const char *at = row->list;

	for (size_t i = 0; i < 5 && row->entries[i]; i++) {
		const char *entry;
		size_t len = list_next(&at, &entry);

		assert_int_equal(len, strlen(row->entries[i]));
		assert_memory_equal(entry, row->entries[i], len);
	}
	assert_string_equal(at, "");
}

static const struct name_row {
	const char *says, *text, *name;
	bool has;
} names[] = {
	{ "a word", "NVIDIA H200 NVL", "H200", true },
	{ "in another case", "nvidia h200", "H200", true },
	{ "several words", "NVIDIA H200 NVL", "H200 NVL", true },
	{ "the end of a longer word", "NVIDIA GH200 480GB", "H200", false },
	{ "the beginning of a longer word", "NVIDIA H2000", "H200", false },
	{ "once in a longer word, then as a word", "GH200 H200", "H200", true },
	{ "between other marks", "Tesla V100-SXM2-32GB", "V100", true },
	{ "a name that ends with a mark", "A100-SXM4-80GB", "A100-", true },
	{ "no name", "H100", "", false },
	{ "no text", "", "H100", false },
};

static void test_name_in_text(void **state)
{
	const struct name_row *row = *state;

	assert_int_equal(words_have(row->text, row->name), row->has);
}

TESTS(words)
{
	static struct suite s;

	SUITE_ROWS(&s, test_words, rows);
	SUITE_ROWS(&s, test_list, lists);
	SUITE_ROWS(&s, test_name_in_text, names);
	return suite_run(&s);
}
