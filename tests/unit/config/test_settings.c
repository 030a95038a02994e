/* test_settings.c - the precedence of values, changes of the environment, names of settings. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "config/settings.h"

/* Every pair of levels, in both orders. */
static void test_levels(void **state)
{
	(void)state;
	for (int first = LEVEL_DEFAULT; first <= LEVEL_COMMAND_LINE; first++)
		for (int second = LEVEL_DEFAULT; second <= LEVEL_COMMAND_LINE; second++) {
			struct settings_fixture b;
			bool replaced = second >= first;

			settings_fixture_make(&b, false);
			settings_fixture_put_at(&b, SET_NNODES, "1", (enum level)first, "first");
			settings_fixture_put_at(&b, SET_NNODES, "2", (enum level)second, "second");
			assert_string_equal(settings_text(&b.s, SET_NNODES), replaced ? "2" : "1");
			assert_int_equal(settings_number(&b.s, SET_NNODES), replaced ? 2 : 1);
			assert_string_equal(
				settings_where(&b.s, SET_NNODES), replaced ? "second" : "first");
			settings_fixture_done(&b);
		}
}

static const struct torchrun_row {
	const char *says;
	bool as_torchrun;
	const char *use_env, *expand_args;
} torchruns[] = {
	{ "as launchd: an argument --local_rank, arguments as they are", false, "0", "0" },
	{ "as torchrun: environment only, arguments are templates", true, "1", "1" },
};

static void test_torchrun(void **state)
{
	const struct torchrun_row *row = *state;
	struct settings_fixture b;

	settings_fixture_make(&b, row->as_torchrun);
	assert_string_equal(settings_text(&b.s, SET_USE_ENV), row->use_env);
	assert_string_equal(settings_text(&b.s, SET_EXPAND_ARGS), row->expand_args);
	assert_false(settings_given(&b.s, SET_USE_ENV));
	assert_outcome(settings_check(&b.s, &b.notes, &b.why), 0, &b.why, NULL);
	assert_null(b.notes.first);
	settings_fixture_done(&b);
}

/* --env and --unset-env: one change a name. */
static const struct env_row {
	const char *says;
	struct {
		const char *name, *value;
		enum level level;
	} put[3]; /* ends with name NULL */
	int rc;
	const char *part; /* of the sentence; or the value that counts, NULL: removed */
} envs[] = {
	{ "set", { { "A", "1", LEVEL_FILE } }, 0, "1" },
	{ "set to nothing", { { "A", "", LEVEL_FILE } }, 0, "" },
	{ "removed", { { "A", NULL, LEVEL_FILE } }, 0, NULL },
	{ "the last one wins", { { "A", "1", LEVEL_FILE }, { "A", "2", LEVEL_FILE } }, 0, "2" },
	{ "removing what was set", { { "A", "1", LEVEL_FILE }, { "A", NULL, LEVEL_FILE } }, 0,
		NULL },
	{ "setting what was removed", { { "A", NULL, LEVEL_FILE }, { "A", "1", LEVEL_FILE } }, 0,
		"1" },
	{ "the higher level wins, also if it comes first",
		{ { "A", "1", LEVEL_COMMAND_LINE }, { "A", "2", LEVEL_FILE } }, 0, "1" },
	{ "the higher level wins if it comes last",
		{ { "A", "1", LEVEL_SYSTEM_FILE }, { "A", NULL, LEVEL_FILE } }, 0, NULL },
	{ "no name", { { "", "1", LEVEL_FILE } }, -EINVAL, "is not a valid variable name" },
	{ "a name with '='", { { "A=B", NULL, LEVEL_FILE } }, -EINVAL, "\"A=B\"" },
	{ "RANK is launchd's", { { "RANK", "1", LEVEL_FILE } }, -EINVAL, "--node_rank" },
	{ "the job's key is never the workers'", { { "LAUNCHD_KEY", "x", LEVEL_FILE } }, -EINVAL,
		"workers never see it" },
	{ "removing the job's key, which happens anyway", { { "LAUNCHD_KEY", NULL, LEVEL_FILE } },
		0, NULL },
	{ "removing WORLD_SIZE", { { "WORLD_SIZE", NULL, LEVEL_FILE } }, -EINVAL, "WORLD_SIZE" },
	{ "MASTER_ADDR has its flag", { { "MASTER_ADDR", "h", LEVEL_FILE } }, -EINVAL,
		"--master_addr" },
	{ "TORCHELASTIC_RUN_ID has its flag", { { "TORCHELASTIC_RUN_ID", "h", LEVEL_FILE } },
		-EINVAL, "--rdzv-id" },
	{ "a name that only begins as one of launchd's", { { "RANKS", "1", LEVEL_FILE } }, 0, "1" },
	{ "OMP_NUM_THREADS is the user's", { { "OMP_NUM_THREADS", "4", LEVEL_FILE } }, 0, "4" },
};

static void test_env(void **state)
{
	const struct env_row *row = *state;
	struct settings_fixture b;
	int rc = 0;

	settings_fixture_make(&b, false);
	for (size_t i = 0; i < 3 && row->put[i].name && rc == 0; i++)
		rc = settings_put_env(&b.s, row->put[i].name, row->put[i].value,
			(struct origin){ row->put[i].level, "--here" }, &b.why);
	assert_outcome(rc, row->rc, &b.why, rc < 0 ? row->part : NULL);
	if (rc == 0) {
		assert_non_null(b.s.env);
		assert_null(b.s.env->next);
		assert_string_equal(b.s.env->name, row->put[0].name);
		assert_true((b.s.env->value == NULL) == (row->part == NULL));
		if (row->part)
			assert_string_equal(b.s.env->value, row->part);
	} else {
		assert_null(b.s.env);
	}
	settings_fixture_done(&b);
}

static const struct list_row {
	const char *says;
	enum setting_id id;
	const char *text;
	int rc;
	const char *names; /* in order */
} lists[] = {
	{ "one name to remove", SET_UNSET_ENV, "A", 0, "A " },
	{ "several", SET_UNSET_ENV, "A,B,C", 0, "A B C " },
	{ "blanks around them", SET_UNSET_ENV, " A , B ", 0, "A B " },
	{ "one of them twice", SET_UNSET_ENV, "A,B,A", 0, "A B " },
	{ "a comma too many", SET_UNSET_ENV, "A,", -EINVAL, NULL },
	{ "nothing", SET_UNSET_ENV, "", -EINVAL, NULL },
	{ "only a blank", SET_UNSET_ENV, " ", -EINVAL, NULL },
	{ "a value where a name belongs", SET_UNSET_ENV, "A=1", -EINVAL, NULL },
	{ "NAME=VALUE", SET_ENV, "A=1", 0, "A " },
	{ "a value with '=' and commas", SET_ENV, "A=b=c,d", 0, "A " },
	{ "no value", SET_ENV, "A", -EINVAL, NULL },
	{ "no name", SET_ENV, "=1", -EINVAL, NULL },
};

static void test_list(void **state)
{
	const struct list_row *row = *state;
	const char *names = "";
	struct settings_fixture b;
	int rc;

	settings_fixture_make(&b, false);
	rc = settings_put(
		&b.s, row->id, row->text, (struct origin){ LEVEL_FILE, "--here" }, &b.why);
	assert_outcome(rc, row->rc, &b.why, rc < 0 ? "--here" : NULL);
	for (const struct env_change *c = b.s.env; c; c = c->next)
		names = arena_printf(&b.arena, "%s%s ", names, c->name);
	if (rc == 0)
		assert_string_equal(names, row->names);
	settings_fixture_done(&b);
}

static const struct find_row {
	const char *says, *name;
	enum setting_id id;
	const char *nearest;
} finds[] = {
	{ "a name", "nnodes", SET_NNODES, "nnodes" },
	{ "the other spelling", "nproc-per-node", SET_NPROC_PER_NODE, "nproc_per_node" },
	{ "a letter too many", "nnnodes", SETTING_COUNT, "nnodes" },
	{ "two of eleven letters wrong", "mester_aqdr", SETTING_COUNT, "master_addr" },
	{ "three of them", "mester_aqqr", SETTING_COUNT, NULL },
	{ "far from any", "xyzzyxyzzy", SETTING_COUNT, NULL },
	{ "too short to guess from", "x", SETTING_COUNT, NULL },
	{ "nothing", "", SETTING_COUNT, NULL },
};

static void test_find(void **state)
{
	const struct find_row *row = *state;
	const char *nearest = settings_nearest(row->name, strlen(row->name));

	assert_int_equal(settings_find(row->name, strlen(row->name)), row->id);
	assert_true((nearest == NULL) == (row->nearest == NULL));
	if (nearest)
		assert_string_equal(nearest, row->nearest);
}

static void test_choice(void **state)
{
	const struct origin from = { LEVEL_COMMAND_LINE, "--store" };
	struct settings_fixture b;

	(void)state;
	settings_fixture_make(&b, false);
	assert_true(settings_is(&b.s, SET_CONTROL, "required"));
	assert_false(settings_is(&b.s, SET_CONTROL, "off"));
	assert_false(settings_is(&b.s, SET_STORE, "agent")); /* has no default */
	assert_int_equal(settings_put(&b.s, SET_STORE, "agent", from, &b.why), 0);
	assert_true(settings_is(&b.s, SET_STORE, "agent"));
	settings_fixture_done(&b);
}

TESTS(settings)
{
	static struct suite s;

	SUITE_ROWS(&s, test_torchrun, torchruns);
	SUITE_ROWS(&s, test_env, envs);
	SUITE_ROWS(&s, test_list, lists);
	SUITE_ROWS(&s, test_find, finds);
	suite_add(&s, "a value replaces one of the same or of a lower level", test_levels, NULL,
		NULL);
	suite_add(&s, "a choice, by its name", test_choice, NULL, NULL);
	return suite_run(&s);
}
