/* test_wire.c - fields of messages: what is written is read, and nothing beyond the end. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/net/wire.h"

static void put_all(struct wire_out *w)
{
	wire_put_u8(w, 0xfe);
	wire_put_u16(w, 0xfedc);
	wire_put_u32(w, 0xfedcba98);
	wire_put_u64(w, UINT64_C(0xfedcba9876543210));
	wire_put_u64(w, (uint64_t)INT64_MIN);
	wire_put_bytes(w, "node7", 5);
	wire_put_bytes(w, NULL, 0);
	wire_put_bytes(w, "a\0b", 3);
	wire_put_raw(w, "xyz", 3);
}

static const unsigned char all_bytes[] =
	"\xfe\xdc\xfe\x98\xba\xdc\xfe\x10\x32\x54\x76\x98\xba\xdc\xfe"
	"\0\0\0\0\0\0\0\x80\5\0\0\0node7\0\0\0\0\3\0\0\0a\0bxyz";

enum { ALL = sizeof all_bytes - 1 };

static void test_layout(void **state)
{
	struct wire_out w = { 0 };

	(void)state;
	put_all(&w);
	assert_false(w.failed);
	assert_int_equal(w.len, ALL);
	assert_memory_equal(w.at, all_bytes, ALL);
	wire_out_done(&w);
	assert_null(w.at);
}

/* Reads all of it; the bytes lie in memory of their own size. */
static bool get_all(size_t len)
{
	unsigned char *exact = malloc(len + (len == 0));
	struct wire_in w;
	char name[6] = "old", none[1];
	size_t n = 9;
	bool same = true, is_read;

	assert_non_null(exact);
	memcpy(exact, all_bytes, len);
	w = wire_from(exact, len);
	same = wire_get_u8(&w) == 0xfe && same;
	same = wire_get_u16(&w) == 0xfedc && same;
	same = wire_get_u32(&w) == 0xfedcba98 && same;
	same = wire_get_u64(&w) == UINT64_C(0xfedcba9876543210) && same;
	same = wire_get_u64(&w) == (uint64_t)INT64_MIN && same;
	wire_get_string(&w, name, sizeof name);
	wire_get_string(&w, none, sizeof none);
	same = strcmp(name, w.failed ? "" : "node7") == 0 && none[0] == '\0' && same;
	(void)wire_get_bytes(&w, 3, &n);
	same = n == (w.failed ? 0 : 3) && same;
	same = (wire_get_raw(&w, 3) != NULL) == !w.failed && same;
	is_read = wire_is_read(&w);
	if (is_read)
		assert_true(same);
	free(exact);
	return is_read;
}

static void test_round(void **state)
{
	(void)state;
	assert_true(get_all(ALL));
}

static void test_cut_fails(void **state)
{
	(void)state;
	for (size_t len = 0; len < ALL; len++)
		assert_false(get_all(len));
}

static void test_sticky(void **state)
{
	struct wire_in w = wire_from("\1\2\3", 3);

	(void)state;
	assert_int_equal(wire_get_u32(&w), 0);
	assert_int_equal(wire_get_u8(&w), 0); /* there is one, but the message is broken */
	assert_false(wire_is_read(&w));
}

static void test_left_over(void **state)
{
	struct wire_in w = wire_from("\1\2", 2);

	(void)state;
	assert_int_equal(wire_get_u8(&w), 1);
	assert_false(wire_is_read(&w));
}

static const struct string_row {
	const char *says;
	const char *bytes;
	size_t len;
	const char *text; /* NULL: it fails */
} strings[] = {
	{ "a string that just fits", "\3\0\0\0abc", 7, "abc" },
	{ "a string too long for its place", "\4\0\0\0abcd", 8, NULL },
	{ "a string with a NUL in it", "\3\0\0\0a\0c", 7, NULL },
	{ "a string longer than the message", "\3\0\0\0ab", 6, NULL },
	{ "a string of 4 GiB",
		"\xff\xff\xff\xff"
		"ab",
		6, NULL },
	{ "an empty string", "\0\0\0\0", 4, "" },
};

static void test_string(void **state)
{
	const struct string_row *row = *state;
	struct wire_in w = wire_from(row->bytes, row->len);
	char text[4] = "old";

	wire_get_string(&w, text, sizeof text);
	assert_int_equal(wire_is_read(&w), row->text != NULL);
	assert_string_equal(text, row->text ? row->text : "");
}

static void test_fixed(void **state)
{
	unsigned char room[4] = { 0 };
	struct wire_out w = wire_fixed(room, 3);

	(void)state;
	wire_put_u16(&w, 0x0201);
	assert_false(w.failed);
	wire_put_u16(&w, 0x0403);
	assert_true(w.failed);
	wire_put_u8(&w, 9); /* it would fit, but the message is broken */
	assert_int_equal(w.len, 2);
	assert_memory_equal(room, "\1\2\0\0", 4);
	wire_out_done(&w);
}

static void test_largest(void **state)
{
	unsigned char *big = calloc(1, WIRE_MAX);
	struct wire_out w = { 0 };

	(void)state;
	assert_non_null(big);
	wire_put_bytes(&w, big, WIRE_MAX - 4);
	assert_false(w.failed);
	assert_int_equal(w.len, WIRE_MAX);
	wire_put_u8(&w, 1);
	assert_true(w.failed);
	wire_out_done(&w);
	wire_put_bytes(&w, big, (size_t)WIRE_MAX + 1);
	assert_true(w.failed);
	assert_int_equal(w.len, 0);
	wire_out_done(&w);
	free(big);
}

TESTS(wire)
{
	static struct suite s;

	suite_add(
		&s, "integers are little-endian, texts have their length", test_layout, NULL, NULL);
	suite_add(&s, "what is written is read", test_round, NULL, NULL);
	suite_add(&s, "a message that is cut anywhere fails", test_cut_fails, NULL, NULL);
	suite_add(&s, "after a failure everything is 0", test_sticky, NULL, NULL);
	suite_add(&s, "bytes left over are no success", test_left_over, NULL, NULL);
	suite_add(&s, "a message in a fixed room does not grow", test_fixed, NULL, NULL);
	suite_add(&s, "a message has at most WIRE_MAX bytes", test_largest, NULL, NULL);
	SUITE_ROWS(&s, test_string, strings);
	return suite_run(&s);
}
