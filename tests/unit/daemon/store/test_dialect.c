/* test_dialect.c - what a version of torch speaks. */
#include "tests/unit/unit.h"

#include <errno.h>

#include "daemon/store/dialect.h"

static const struct version_row {
	const char *says, *version;
	int rc;
	enum store_dialect dialect;
} versions[] = {
	{ "1.13", "1.13.1", 0, STORE_DIALECT_A },
	{ "1.13 of Debian", "1.13.0a0+gitd922c29", 0, STORE_DIALECT_A },
	{ "2.0", "2.0.1+cu118", 0, STORE_DIALECT_A },
	{ "2.1", "2.1.2", 0, STORE_DIALECT_C },
	{ "2.2", "2.2.0", 0, STORE_DIALECT_NONE },
	{ "2.15, which is above 2.2", "2.15.0+cu132", 0, STORE_DIALECT_NONE },
	{ "3.0", "3.0.0", 0, STORE_DIALECT_NONE },
	{ "1.12", "1.12.1", -ENOTSUP, STORE_DIALECT_D },
	{ "0.4", "0.4.1", -ENOTSUP, STORE_DIALECT_D },
	{ "no number", "main", -EINVAL, STORE_DIALECT_D },
	{ "nothing", "", -EINVAL, STORE_DIALECT_D },
	{ "half of it", "2", -EINVAL, STORE_DIALECT_D },
	{ "half of it and a point", "2.", -EINVAL, STORE_DIALECT_D },
	{ "a sign", "2.-1", -EINVAL, STORE_DIALECT_D },
	{ "numbers without end", "2.99999999999999999999", -EINVAL, STORE_DIALECT_D },
};

static void test_version(void **state)
{
	const struct version_row *row = *state;
	enum store_dialect d = STORE_DIALECT_D; /* stays on failure */

	assert_int_equal(store_dialect_of(row->version, &d), row->rc);
	assert_int_equal(d, row->dialect);
}

TESTS(dialect)
{
	static struct suite s;

	SUITE_ROWS(&s, test_version, versions);
	return suite_run(&s);
}
