/* test_script.c - the training script of a file, its arguments, and which source wins. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "config/script.h"
#include "config/sources.h"

static const struct row {
	const char *says, *system, *file, *argv[4];
	const char *script; /* and its words */
	const char *args[5];
	const char *shown, *where; /* of args; NULL: none */
} rows[] = {
	{ "none at all", "", "", { "launchd" }, NULL, { NULL }, NULL, NULL },
	{ "a file's script", "", "[launchd]\nscript = a.py\n", { "launchd" }, "a.py", { NULL },
		NULL, NULL },
	{ "its words, as a shell splits them", "",
		"[launchd]\nscript = a.py\nargs = --lr 1e-4 'a b' c\\ d\n", { "launchd" }, "a.py",
		{ "--lr", "1e-4", "a b", "c d" }, "--lr 1e-4 'a b' 'c d'", "f:3" },
	{ "a value that is quoted as a whole, an empty word, a hash in quotes", "",
		"[launchd]\nscript = a.py\nargs = \"a b\" '' '#c'\n", { "launchd" }, "a.py",
		{ "a b", "", "#c" }, "'a b' '' '#c'", "f:3" },
	{ "lines add up", "", "[launchd]\nargs = a\nscript = a.py\nargs = b\nargs = c\n",
		{ "launchd" }, "a.py", { "a", "b", "c" }, "a b c", "f:2-5" },
	{ "the command line's script has its own", "", "[launchd]\nscript = a.py\nargs = a b\n",
		{ "launchd", "b.py", "c" }, "b.py", { "c" }, NULL, NULL },
	{ "and none of the file's", "", "[launchd]\nscript = a.py\nargs = a b\n",
		{ "launchd", "b.py" }, "b.py", { NULL }, NULL, NULL },
	{ "args of the stronger file, none of the weaker one", "[launchd]\nargs = a b\n",
		"[launchd]\nscript = a.py\nargs = c\n", { "launchd" }, "a.py", { "c" }, "c",
		"f:3" },
	{ "a script replaces a weaker file's script and args",
		"[launchd]\nscript = s.py\nargs = a b\n", "[launchd]\nscript = a.py\n",
		{ "launchd" }, "a.py", { NULL }, NULL, NULL },
	{ "args for a weaker file's script", "[launchd]\nscript = s.py\n", "[launchd]\nargs = a\n",
		{ "launchd" }, "s.py", { "a" }, "a", "f:2" },
	{ "weaker args replace none", "[launchd]\nscript = s.py\nargs = a b\n",
		"[launchd]\nargs = a\n", { "launchd" }, "s.py", { "a" }, "a", "f:2" },
};

static void test_settle(void **state)
{
	const struct row *row = *state;
	struct settings_fixture b;
	size_t n = 0;

	settings_fixture_make(&b, false);
	assert_outcome(settings_read_argv(&b.s, row->argv, &b.why), 0, &b.why, NULL);
	assert_outcome(
		settings_read_ini(&b.s, row->file, strlen(row->file), "f", LEVEL_FILE, &b.why), 0,
		&b.why, NULL);
	assert_outcome(settings_read_ini(&b.s, row->system, strlen(row->system), "s",
			       LEVEL_SYSTEM_FILE, &b.why),
		0, &b.why, NULL);
	script_settle(&b.s);
	assert_int_equal(b.s.script == NULL, row->script == NULL);
	if (row->script)
		assert_string_equal(b.s.script, row->script);
	for (; n < 5 && row->args[n]; n++) {
		assert_true(n < b.s.args.count);
		assert_string_equal(b.s.args.at[n], row->args[n]);
	}
	assert_int_equal(b.s.args.count, n);
	assert_int_equal(b.s.value[SET_ARGS].from.level == LEVEL_NONE, row->where == NULL);
	if (row->where) {
		assert_string_equal(settings_text(&b.s, SET_ARGS), row->shown);
		assert_string_equal(settings_where(&b.s, SET_ARGS), row->where);
	}
	settings_fixture_done(&b);
}

TESTS(script)
{
	static struct suite s;

	SUITE_ROWS(&s, test_settle, rows);
	return suite_run(&s);
}
