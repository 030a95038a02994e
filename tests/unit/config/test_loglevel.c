/* test_loglevel.c - how much launchd says. */
#include "tests/unit/unit.h"

#include <errno.h>

#include "common/notes.h"
#include "config/loglevel.h"
#include "config/sources.h"

static const struct row {
	const char *says;
	const char *env[5];
	const char *argv[4];
	enum note_level least;
	const char *warning; /* NULL: there is none */
} rows[] = {
	{ "nothing is said about it", { NULL }, { NULL }, NOTE_INFO, NULL },
	{ "--quiet", { NULL }, { "--quiet", "x" }, NOTE_NONE, NULL },
	{ "--verbose", { NULL }, { "--verbose", "x" }, NOTE_VERBOSE, NULL },
	{ "the flag is above the variable", { "LAUNCHD_QUIET=1" }, { "--verbose", "x" },
		NOTE_VERBOSE, NULL },
	{ "and the other way", { "LAUNCHD_VERBOSE=1" }, { "--quiet", "x" }, NOTE_NONE, NULL },
	{ "DEBUG", { "LOGLEVEL=DEBUG" }, { NULL }, NOTE_VERBOSE, NULL },
	{ "INFO", { "LOGLEVEL=INFO" }, { NULL }, NOTE_INFO, NULL },
	{ "WARNING", { "LOGLEVEL=WARNING" }, { NULL }, NOTE_WARNING, NULL },
	{ "WARN", { "LOGLEVEL=WARN" }, { NULL }, NOTE_WARNING, NULL },
	{ "ERROR", { "LOGLEVEL=ERROR" }, { NULL }, NOTE_NONE, NULL },
	{ "CRITICAL", { "LOGLEVEL=CRITICAL" }, { NULL }, NOTE_NONE, NULL },
	{ "FATAL", { "LOGLEVEL=FATAL" }, { NULL }, NOTE_NONE, NULL },
	{ "NOTSET", { "LOGLEVEL=NOTSET" }, { NULL }, NOTE_VERBOSE, NULL },
	{ "small letters", { "LOGLEVEL=warning" }, { NULL }, NOTE_WARNING, NULL },
	{ "the number of DEBUG", { "LOGLEVEL=10" }, { NULL }, NOTE_VERBOSE, NULL },
	{ "a number above DEBUG", { "LOGLEVEL=11" }, { NULL }, NOTE_INFO, NULL },
	{ "the number of INFO", { "LOGLEVEL=20" }, { NULL }, NOTE_INFO, NULL },
	{ "the number of WARNING", { "LOGLEVEL=30" }, { NULL }, NOTE_WARNING, NULL },
	{ "a number above WARNING", { "LOGLEVEL=31" }, { NULL }, NOTE_NONE, NULL },
	{ "a large number", { "LOGLEVEL=4000000000" }, { NULL }, NOTE_NONE, NULL },
	{ "zero", { "LOGLEVEL=0" }, { NULL }, NOTE_VERBOSE, NULL },
	{ "an empty one", { "LOGLEVEL=" }, { NULL }, NOTE_INFO, NULL },
	{ "a name without a value", { "LOGLEVEL" }, { NULL }, NOTE_INFO, NULL },
	{ "another name that begins so", { "LOGLEVEL_X=ERROR", "LOGLEVE=DEBUG" }, { NULL },
		NOTE_INFO, NULL },
	{ "none of Python's", { "LOGLEVEL=loud" }, { NULL }, NOTE_INFO, "LOGLEVEL=loud" },
	{ "a negative number", { "LOGLEVEL=-10" }, { NULL }, NOTE_INFO, "LOGLEVEL=-10" },
	{ "a number with more behind it", { "LOGLEVEL=10x" }, { NULL }, NOTE_INFO, "LOGLEVEL=10x" },
	{ "--quiet is above DEBUG", { "LOGLEVEL=DEBUG" }, { "--quiet", "x" }, NOTE_NONE, NULL },
	{ "--verbose is above ERROR", { "LOGLEVEL=ERROR" }, { "--verbose", "x" }, NOTE_VERBOSE,
		NULL },
	{ "--verbose is above WARNING", { "LOGLEVEL=WARNING" }, { "--verbose", "x" }, NOTE_VERBOSE,
		NULL },
	{ "LAUNCHD_QUIET is above DEBUG", { "LAUNCHD_QUIET=1", "LOGLEVEL=DEBUG" }, { NULL },
		NOTE_NONE, NULL },
	{ "LAUNCHD_QUIET=0 is above ERROR", { "LOGLEVEL=ERROR", "LAUNCHD_QUIET=0" }, { NULL },
		NOTE_INFO, NULL },
	{ "LAUNCHD_QUIET=0 is above WARNING", { "LAUNCHD_QUIET=0", "LOGLEVEL=WARNING" }, { NULL },
		NOTE_INFO, NULL },
	{ "LAUNCHD_VERBOSE=0 says nothing about warnings",
		{ "LAUNCHD_VERBOSE=0", "LOGLEVEL=WARNING" }, { NULL }, NOTE_WARNING, NULL },
};

static void test_row(void **state)
{
	const struct row *row = *state;
	const char *argv[] = { "launchd", row->argv[0], row->argv[1], NULL };
	struct settings_fixture b;

	settings_fixture_make(&b, false);
	assert_int_equal(settings_read_argv(&b.s, argv, &b.why), 0);
	assert_int_equal(settings_read_environment(&b.s, row->env, &b.notes, &b.why), 0);
	assert_int_equal(settings_check(&b.s, &b.notes, &b.why), 0);
	assert_int_equal(loglevel_least(&b.s), row->least);
	assert_note(&b.notes, NOTE_WARNING, row->warning);
	settings_fixture_done(&b);
}

/* It is said in --dry-run where the level comes from. */
static void test_source(void **state)
{
	static const char *const env[] = { "LOGLEVEL=DEBUG", NULL };
	struct settings_fixture b;

	(void)state;
	settings_fixture_make(&b, false);
	assert_int_equal(settings_read_environment(&b.s, env, &b.notes, &b.why), 0);
	assert_string_equal(settings_where(&b.s, SET_VERBOSE), "LOGLEVEL");
	settings_fixture_done(&b);
}

/* /etc/launchd/launchd.conf is the node's, the variable the job's. */
static void test_system_file(void **state)
{
	static const char *const env[] = { "LOGLEVEL=INFO", NULL };
	const struct origin from = { LEVEL_SYSTEM_FILE, "/etc/launchd/launchd.conf:1" };
	struct settings_fixture b;

	(void)state;
	settings_fixture_make(&b, false);
	assert_int_equal(settings_put(&b.s, SET_QUIET, "1", from, &b.why), 0);
	assert_int_equal(loglevel_least(&b.s), NOTE_NONE);
	assert_int_equal(settings_read_environment(&b.s, env, &b.notes, &b.why), 0);
	assert_int_equal(loglevel_least(&b.s), NOTE_INFO);
	settings_fixture_done(&b);
}

TESTS(loglevel)
{
	static struct suite s;

	SUITE_ROWS(&s, test_row, rows);
	suite_add(&s, "it has a place", test_source, NULL, NULL);
	suite_add(&s, "it is above the system's file", test_system_file, NULL, NULL);
	return suite_run(&s);
}
