/* test_card.c - a card comes back as it went, and nothing else is taken for one. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/meet/card.h"

static const char longest[] = "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255";

static const struct add_row {
	const char *says, *address;
	unsigned before;
	int rc;
} adds[] = {
	{ "IPv4", "10.0.0.1", 0, 0 },
	{ "IPv6", "2001:db8::1", 0, 0 },
	{ "the longest text", longest, 0, 0 },
	{ "the last one that fits", "10.0.0.1", CARD_ADDRESSES_MAX - 1, 0 },
	{ "one more", "10.0.0.1", CARD_ADDRESSES_MAX, -ENOSPC },
	{ "a name", "node1", 0, -EINVAL },
	{ "nothing", "", 0, -EINVAL },
	{ "an interface of this node", "fe80::1%eth0", 0, -EINVAL },
	{ "with a port", "10.0.0.1:1", 0, -EINVAL },
	{ "much too long",
		"0000000000000000000000000000000000000000000000000000000000000000000000000000", 0,
		-EINVAL },
};

static void test_add(void **state)
{
	const struct add_row *row = *state;
	struct card c = { .count = row->before };

	assert_int_equal(card_add(&c, row->address), row->rc);
	assert_int_equal(c.count, row->before + (row->rc == 0));
	if (row->rc == 0)
		assert_string_equal(c.address[row->before], row->address);
}

static void fill(struct card *c, unsigned count)
{
	*c = (struct card){ .port = 0x1234 };
	for (unsigned i = 0; i < CARD_KEY_BYTES; i++)
		c->key[i] = (unsigned char)(i * 7);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(card_add(c, i == 1 ? "10.1.2.3" : longest), 0);
}

static void test_there_and_back(void **state)
{
	unsigned char bytes[CARD_BYTES_MAX];
	struct card c, back = { 0 };
	struct failure why = { 0 };

	(void)state;
	for (unsigned count = 1; count <= CARD_ADDRESSES_MAX; count++) {
		size_t len;

		fill(&c, count);
		len = card_encode(&c, bytes);
		assert_in_range(len, 1, CARD_BYTES_MAX);
		assert_outcome(card_decode(bytes, len, &back, &why), 0, &why, NULL);
		assert_memory_equal(&back, &c, sizeof c);
	}
}

/* In memory of its own length, so that a read beyond it is seen by a sanitizer or valgrind. */
static int decode(const unsigned char *bytes, size_t len, struct card *ret, struct failure *why)
{
	unsigned char *copy = malloc(len ? len : 1);
	int rc;

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	rc = card_decode(copy, len, ret, why);
	free(copy);
	return rc;
}

static void test_cut_or_longer(void **state)
{
	unsigned char bytes[CARD_BYTES_MAX + 1] = { 0 };
	struct card c, untouched = { 0 }, back = { 0 };
	size_t len;

	(void)state;
	fill(&c, 3);
	len = card_encode(&c, bytes);
	for (size_t n = 0; n <= len + 1; n++) {
		struct failure why = { 0 };

		if (n == len)
			continue;
		assert_outcome(decode(bytes, n, &back, &why), -EPROTO, &why, "a malformed card");
		assert_memory_equal(&back, &untouched, sizeof back);
	}
}

/* Whatever any one byte becomes: refused, or a card that goes and comes again. */
static void test_every_byte(void **state)
{
	unsigned char bytes[CARD_BYTES_MAX], again[CARD_BYTES_MAX];
	struct card c;
	size_t len;

	(void)state;
	fill(&c, 3);
	len = card_encode(&c, bytes);
	for (size_t at = 0; at < len; at++)
		for (unsigned value = 0; value < 256; value++) {
			unsigned char before = bytes[at];
			struct failure why = { 0 };
			struct card back;

			bytes[at] = (unsigned char)value;
			if (decode(bytes, len, &back, &why) == 0) {
				assert_int_equal(card_encode(&back, again), len);
				assert_memory_equal(again, bytes, len);
			}
			bytes[at] = before;
		}
}

static const struct bytes_row {
	const char *says;
	size_t at;
	unsigned char value;
	const char *part;
} changed[] = {
	{ "another version", 0, 2, "another version (its card has version 2, this launchd's 1)" },
	{ "no address", 35, 0, "a malformed card" },
	{ "more addresses than there are", 35, 2, "a malformed card" },
	{ "more addresses than fit", 35, 255, "a malformed card" },
	{ "an empty address", 36, 0, "a malformed card" },
	{ "an address that ends behind the card", 36, 46, "a malformed card" },
	{ "a longer address than there is", 36, 255, "a malformed card" },
	{ "a NUL in an address", 37 + 4, 0, "a malformed card" },
	{ "a letter in an address", 37 + 4, 'x', "a malformed card" },
};

static void test_changed(void **state)
{
	const struct bytes_row *row = *state;
	unsigned char bytes[CARD_BYTES_MAX];
	struct card c, back;
	struct failure why = { 0 };
	size_t len;

	fill(&c, 1);
	len = card_encode(&c, bytes);
	bytes[row->at] = row->value;
	assert_outcome(decode(bytes, len, &back, &why), -EPROTO, &why, row->part);
}

static const struct bad_row {
	const char *says;
	unsigned port, count;
} bad[] = {
	{ "no port", 0, 1 },
	{ "a port that is none", 65536, 1 },
	{ "nowhere to go", 1, 0 },
	{ "too many addresses", 1, CARD_ADDRESSES_MAX + 1 },
};

static void test_can_not_travel(void **state)
{
	const struct bad_row *row = *state;
	unsigned char bytes[CARD_BYTES_MAX];
	struct card c = { .port = row->port, .count = row->count };

	assert_int_equal(card_encode(&c, bytes), 0);
}

TESTS(card)
{
	static struct suite s;

	SUITE_ROWS(&s, test_add, adds);
	SUITE_ROWS(&s, test_changed, changed);
	SUITE_ROWS(&s, test_can_not_travel, bad);
	suite_add(&s, "it comes back as it went", test_there_and_back, NULL, NULL);
	suite_add(&s, "cut anywhere, or longer, it is none", test_cut_or_longer, NULL, NULL);
	suite_add(&s, "no byte makes it something else", test_every_byte, NULL, NULL);
	return suite_run(&s);
}
