/* test_help.c - the table in print: --help, the man page's part, the example file. */
#include "tests/unit/unit.h"

#include <ctype.h>
#include <string.h>

#include "common/text.h"
#include "config/help.h"
#include "config/table.h"

static const struct row {
	const char *says;
	void (*print)(struct text *out);
	const char *part;
} rows[] = {
	{ "a flag without a value", help_text, "\n  --standalone                Run a job" },
	{ "a letter before its flag", help_text, "\n  -m, --module                The script" },
	{ "a value, and a help that begins on a line of its own", help_text,
		"\n  --nproc_per_node N|auto|cpu|gpu\n                              Workers to start" },
	{ "a default in brackets", help_text, "is 600, as torchrun's. [900]\n" },
	{ "a value that may be left out", help_text, "\n  --dry-run[=text|json]" },
	{ "a group's title", help_text, "\n\nRestarts:\n  --max-restarts N " },
	{ "the exit codes last", help_text, "\nExit codes: 0 all workers exited with 0;" },
	{ "an option in mdoc(7)", help_man, ".It Fl \\-max\\-restarts Ar N\n" },
	{ "its letter", help_man, ".It Fl m , Fl \\-module\n" },
	{ "a value that may be left out, in mdoc(7)", help_man,
		".It Fl \\-dry\\-run Ns Op = Ns Ar text|json\n" },
	{ "a sentence a line", help_man, "Needs \\-\\-use_env.\n" },
	{ "a default as a sentence", help_man, "\nDefault: 900.\n" },
	{ "a variable", help_man, "\nAlso set by\n.Ev PYTHON_EXEC .\n" },
	{ "a group as a subsection", help_man, ".Ss Limited or without effect\n" },
	{ "a section of files, in mdoc(7)", help_man_keys, ".Ss [cluster]\nMultiple nodes:\n.Bl " },
	{ "a key with its default", help_man_keys,
		".It Cm join\\-timeout\n.Ar SECONDS\n.Pq 900\n" },
	{ "a key that is yes or no", help_man_keys, ".It Cm use_env\n.Ar yes|no\n.Pq no\n" },
	{ "a key without its section's name", help_man_keys, ".It Cm hostfile\n.Ar FILE\n.El\n" },
	{ "a section of the file", help_ini, "\n\n[launchd]\n" },
	{ "a setting as a comment with its default", help_ini, "\n;join_timeout = 900\n" },
	{ "an empty default", help_ini, "\n;rdzv_endpoint = \n" },
	{ "a key that is no option", help_ini, "\n;args = \n" },
	{ "the workers' variables", help_ini, "\n[env]\n;NAME = value\n" },
};

/* '-' and '_' are the same to all readers, and to this test. */
static void unify(char *s)
{
	for (; *s; s++)
		*s = *s == '_' ? '-' : *s;
}

static void test_part(void **state)
{
	const struct row *row = *state;
	struct text out = { 0 };
	char part[256];

	row->print(&out);
	assert_false(out.failed);
	(void)strncpy(part, row->part, sizeof part - 1);
	part[sizeof part - 1] = '\0';
	unify(part);
	unify(out.at);
	assert_contains(text_string(&out), part);
	text_done(&out);
}

/* The longest line that --help has; of the file a reader takes 190 bytes. */
static size_t longest_line(const char *text)
{
	size_t longest = 0;

	for (size_t len; *text; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		longest = len > longest ? len : longest;
	}
	return longest;
}

static void test_widths(void **state)
{
	struct text help = { 0 }, ini = { 0 };

	(void)state;
	help_text(&help);
	help_ini(&ini);
	assert_true(longest_line(text_string(&help)) <= 110);
	assert_true(longest_line(text_string(&ini)) <= 120);
	text_done(&help);
	text_done(&ini);
}

/* What each setting is for is a sentence, but for those that say after their name why they have no
 * effect; --help has each of them once. */
static void test_sentences(void **state)
{
	struct text help = { 0 };

	(void)state;
	help_text(&help);
	for (int id = 0; id < SETTING_COUNT; id++) {
		const struct setting_row *row = &setting_rows[id];
		bool sentence = row->support == SUPPORTED;
		char flag[64] = "--";

		(void)strncat(flag, row->flag, sizeof flag - 3);
		if (!row->only_key)
			assert_contains(text_string(&help), flag);
		if (sentence != (row->help[strlen(row->help) - 1] == '.') ||
			sentence == (islower((unsigned char)*row->help) != 0))
			fail_msg("--%s: %s", row->flag, row->help);
	}
	text_done(&help);
}

TESTS(help)
{
	static struct suite s;

	SUITE_ROWS(&s, test_part, rows);
	suite_add(&s, "no line is too long", test_widths, NULL, NULL);
	suite_add(&s, "every setting has a sentence", test_sentences, NULL, NULL);
	return suite_run(&s);
}
