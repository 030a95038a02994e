/* test_vec.c - lists of strings, and environments. */
#include "tests/unit/unit.h"

#include "common/vec.h"

static void test_empty(void **state)
{
	struct vec v = { 0 };

	(void)state;
	assert_non_null(vec_argv(&v));
	assert_null(vec_argv(&v)[0]);
}

static void test_grows(void **state)
{
	struct arena a = { 0 };
	struct vec v = { 0 };

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		vec_add(&a, &v, arena_printf(&a, "%u", i));
		assert_int_equal(v.count, i + 1);
		assert_null(v.at[v.count]);
	}
	for (unsigned i = 0; i < 1000; i++)
		assert_string_equal(vec_argv(&v)[i], arena_printf(&a, "%u", i));
	arena_done(&a);
}

static void test_all(void **state)
{
	static const char *const list[] = { "a", "", "c", NULL };
	struct arena a = { 0 };
	struct vec v = { 0 };

	(void)state;
	vec_add_all(&a, &v, NULL);
	assert_int_equal(v.count, 0);
	vec_add_all(&a, &v, list);
	vec_add_all(&a, &v, list);
	assert_int_equal(v.count, 6);
	assert_string_equal(v.at[4], "");
	arena_done(&a);
}

static const char *const environment[] = { "PATH=/bin", "EMPTY=", "A=b=c", "NOTHING", "PATHS=/sbin",
	"PATH=/second", NULL };

static const struct get_row {
	const char *says, *name, *value;
} gets[] = {
	{ "the first of two of a name counts", "PATH", "/bin" },
	{ "a name that begins with another", "PATHS", "/sbin" },
	{ "set to nothing is set", "EMPTY", "" },
	{ "the value may hold '='", "A", "b=c" },
	{ "an entry without '=' is no variable", "NOTHING", NULL },
	{ "case counts", "path", NULL },
	{ "a beginning is not the name", "PAT", NULL },
	{ "not there", "HOME", NULL },
};

static void test_get(void **state)
{
	const struct get_row *row = *state;
	const char *value = env_get(environment, row->name);

	if (row->value)
		assert_string_equal(value, row->value);
	else
		assert_null(value);
	assert_null(env_get(NULL, row->name));
}

static void test_name_length(void **state)
{
	(void)state;
	assert_int_equal(env_name_length("PATH=/bin"), 4);
	assert_int_equal(env_name_length("A=b=c"), 1);
	assert_int_equal(env_name_length("NOTHING"), 7);
	assert_int_equal(env_name_length("=x"), 0);
}

TESTS(vec)
{
	static struct suite s;

	suite_add(&s, "an empty list is an argv", test_empty, NULL, NULL);
	suite_add(&s, "a list grows and always ends with NULL", test_grows, NULL, NULL);
	suite_add(&s, "lists are added whole, NULL is an empty one", test_all, NULL, NULL);
	suite_add(&s, "the name ends at the first '='", test_name_length, NULL, NULL);
	SUITE_ROWS(&s, test_get, gets);
	return suite_run(&s);
}
