/* test_table.c - what every row of the table of settings must hold. */
#include "tests/unit/unit.h"

#include <ctype.h>
#include <string.h>

#include "common/name.h"

static void test_names(void **state)
{
	(void)state;
	for (int id = 0; id < SETTING_COUNT; id++) {
		const struct setting_row *row = &setting_rows[id];

		assert_non_null(row->flag);
		for (const char *p = row->flag; *p; p++)
			assert_true(islower((unsigned char)*p) || *p == '-' || *p == '_');
		for (int other = 0; other < id; other++) {
			const struct setting_row *o = &setting_rows[other];

			assert_false(name_equal(o->flag, row->flag, strlen(row->flag)));
			assert_true(!row->letter || row->letter != o->letter);
			assert_true(!row->variable || !o->variable ||
				strcmp(row->variable, o->variable) != 0);
		}
	}
}

static void test_defaults(void **state)
{
	(void)state;
	for (int id = 0; id < SETTING_COUNT; id++) {
		const struct setting_row *row = &setting_rows[id];
		struct settings_fixture b;

		settings_fixture_make(&b, false);
		if (row->by_default) {
			int rc = settings_put(&b.s, (enum setting_id)id, row->by_default,
				(struct origin){ LEVEL_COMMAND_LINE, row->flag }, &b.why);

			assert_outcome(rc, 0, &b.why, NULL);
		}
		assert_true(row->by_default != NULL || !settings_text(&b.s, (enum setting_id)id));
		assert_true(row->kind != KIND_FLAG || row->by_default);
		settings_fixture_done(&b);
	}
}

static void test_kinds(void **state)
{
	(void)state;
	for (int id = 0; id < SETTING_COUNT; id++) {
		const struct setting_row *row = &setting_rows[id];
		bool counts = row->kind == KIND_COUNT || row->kind == KIND_NPROC ||
			row->kind == KIND_NNODES;

		assert_true(row->kind == KIND_FLAG || row->metavar);
		assert_true((row->kind != KIND_CHOICE && row->kind != KIND_LISTS) || row->choices);
		assert_true(!counts || row->max > row->min);
		assert_true(row->kind != KIND_SIZE || (row->max > 0 && row->min == 0));
		assert_true(row->kind != KIND_RANKS || !row->by_default || !*row->by_default);
		assert_true(!row->optional || row->choices);
		assert_true(!row->pet || row->original);
		assert_true(!row->only_key || (!row->letter && !row->variable && !row->only_flag));
		assert_true((row->section == SECTION_ENV) == (row->kind == KIND_ENV));
		/* what is not supported at all is accepted at its default, what is ignored warns */
		assert_true(row->support != SUPPORT_IGNORED || !row->by_default ||
			row->kind == KIND_FLAG);
	}
}

static void test_keys(void **state)
{
	(void)state;
	for (int id = 0; id < SETTING_COUNT; id++) {
		const struct setting_row *row = &setting_rows[id];

		assert_true(settings_has_section(row->section));
		assert_non_null(setting_section_names[row->section]);
		assert_true((int)settings_find_key(row->section, settings_key(row),
				    strlen(settings_key(row))) == id);
	}
}

/* A row without help is one nobody can find. */
static void test_help(void **state)
{
	(void)state;
	for (int id = 0; id < SETTING_COUNT; id++) {
		const char *help = setting_rows[id].help;

		assert_true(help && *help);
		assert_null(strchr(help, '\n'));
	}
	for (int g = 0; g < GROUP_COUNT; g++)
		assert_true(setting_group_titles[g] && *setting_group_titles[g]);
}

TESTS(table)
{
	static struct suite s;

	suite_add(&s, "names, letters and variables are there once", test_names, NULL, NULL);
	suite_add(&s, "every default is a value of its setting", test_defaults, NULL, NULL);
	suite_add(&s, "every kind has what it needs", test_kinds, NULL, NULL);
	suite_add(&s, "a key is in its section once", test_keys, NULL, NULL);
	suite_add(&s, "every setting has help, every group a title", test_help, NULL, NULL);
	return suite_run(&s);
}
