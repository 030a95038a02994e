/* test_siphash.c - as CPython has it, whose hash of bytes it is with PYTHONHASHSEED=0: a key of
 * zeros. */
#include "tests/unit/unit.h"

#include <string.h>

#include "common/siphash.h"

static const struct vector_row {
	const char *says, *bytes;
	uint64_t hash;
} vectors[] = {
	{ "of one byte", "k", 0x342063e11d6c3cad },
	{ "of seven bytes", "seven b", 0xab2262fcb5199654 },
	{ "of eight bytes: one word", "eight by", 0xd54cf3f0e0ee2aad },
	{ "of fifteen bytes", "fifteen bytes 1", 0x680897e1a4ebdc83 },
	{ "of a key", "/default_pg/0//cpu//0/1", 0x7c45301da649a352 },
};

static void test_vector(void **state)
{
	const struct vector_row *row = *state;
	const uint8_t key[SIPHASH_KEY_SIZE] = { 0 };

	assert_true(siphash(key, (const uint8_t *)row->bytes, strlen(row->bytes)) == row->hash);
}

/* Each bit of the key matters, and so does the length. */
static void test_key(void **state)
{
	const uint8_t bytes[16] = { 0 };
	uint64_t before = 0;

	(void)state;
	for (size_t bit = 0; bit < 8 * SIPHASH_KEY_SIZE; bit++) {
		uint8_t key[SIPHASH_KEY_SIZE] = { 0 };
		uint64_t hash;

		key[bit / 8] = (uint8_t)(1U << bit % 8);
		hash = siphash(key, bytes, sizeof bytes);
		assert_true(hash != before);
		assert_true(hash != siphash(key, bytes, sizeof bytes - 1));
		before = hash;
	}
}

TESTS(siphash)
{
	static struct suite s;

	SUITE_ROWS(&s, test_vector, vectors);
	suite_add(&s, "the key and the length matter", test_key, NULL, NULL);
	return suite_run(&s);
}
