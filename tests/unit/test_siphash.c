/* test_siphash.c - the vectors of the paper's authors. */
#include "tests/unit/unit.h"

#include "daemon/store/siphash.h"

static const struct vector_row {
	const char *says;
	size_t len;
	uint64_t hash;
} vectors[] = {
	{ "of nothing", 0, 0x726fdb47dd0e0e31 },
	{ "of one byte", 1, 0x74f839c593dc67fd },
	{ "of seven bytes", 7, 0xab0200f58b01d137 },
	{ "of eight bytes: one word", 8, 0x93f5f5799a932462 },
	{ "of fifteen bytes", 15, 0xa129ca6149be45e5 },
};

static void test_vector(void **state)
{
	const struct vector_row *row = *state;
	uint8_t key[SIPHASH_KEY_SIZE], bytes[16];

	for (uint8_t i = 0; i < 16; i++)
		key[i] = bytes[i] = i;
	assert_true(siphash(key, bytes, row->len) == row->hash);
}

int main(void)
{
	static struct suite s;

	SUITE_ROWS(&s, test_vector, vectors);
	return suite_run(&s);
}
