/* test_sodium.c - libsodium, there or not. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "daemon/net/sodium.h"

static void test_known_answer(void **state)
{
	/* BLAKE2b-256 of "abc" */
	static const unsigned char expected[32] =
		"\xbd\xdd\x81\x3c\x63\x42\x39\x72\x31\x71\xef\x3f\xee\x98\x57\x9b"
		"\x94\x96\x4e\x3b\xb1\xcb\x3e\x42\x72\x62\xc8\xc0\x68\xd5\x23\x19";
	unsigned char plain[32], keyed[32];
	struct failure why = { 0 };
	struct sodium s;

	(void)state;
	assert_outcome(sodium_load(&s, &why), 0, &why, NULL);
	assert_int_equal(
		s.generichash(plain, sizeof plain, (const unsigned char *)"abc", 3, NULL, 0), 0);
	assert_memory_equal(plain, expected, sizeof expected);
	assert_int_equal(s.generichash(keyed, sizeof keyed, (const unsigned char *)"abc", 3, plain,
				 sizeof plain),
		0);
	assert_int_not_equal(s.memcmp(plain, keyed, sizeof plain), 0);
	assert_int_equal(s.memcmp(plain, expected, sizeof plain), 0);
}

static void test_twice(void **state)
{
	struct failure why = { 0 };
	struct sodium s;

	(void)state;
	assert_outcome(sodium_load(&s, &why), 0, &why, NULL);
	assert_outcome(sodium_load(&s, &why), 0, &why, NULL);
}

static const struct name_row {
	const char *says, *name;
	int rc;
	const char *part;
} names[] = {
	{ "a library that is not there", "libnothing.so.0", -ELIBACC,
		"libsodium: libnothing.so.0: cannot open" },
	{ "who needs it, and where to get it", "libnothing.so.0", -ELIBACC,
		"(a key needs it; Debian's package is libsodium23)" },
	{ "a library that is another one", "libcjson.so.1", -ELIBBAD,
		"libsodium: libcjson.so.1 has no sodium_init" },
};

static void test_refused(void **state)
{
	const struct name_row *row = *state;
	struct sodium untouched = { 0 }, s = { 0 };
	struct failure why = { 0 };

	assert_outcome(sodium_load_from(row->name, &s, &why), row->rc, &why, row->part);
	assert_memory_equal(&s, &untouched, sizeof s);
}

TESTS(sodium)
{
	static struct suite s;

	suite_add(&s, "it hashes as BLAKE2b does, with a key or without", test_known_answer, NULL,
		NULL);
	suite_add(&s, "it can be loaded twice", test_twice, NULL, NULL);
	SUITE_ROWS(&s, test_refused, names);
	return suite_run(&s);
}
