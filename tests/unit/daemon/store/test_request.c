/* test_request.c - where a request ends, however its bytes come, and which ones are none. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "common/text.h"
#include "daemon/store/request.h"
#include "tests/unit/daemon/store/store_sim.h"

#define A    STORE_DIALECT_A
#define C    STORE_DIALECT_C
#define D    STORE_DIALECT_D
#define NONE STORE_DIALECT_NONE

static const struct whole_row {
	const char *says, *request;
	enum store_dialect dialect;
	enum query query;
	uint64_t count;
} wholes[] = {
	{ "no argument", "GETNUMKEYS", D, QUERY_GETNUMKEYS, 1 },
	{ "a key", "GET k", C, QUERY_GET, 1 },
	{ "a key and a value", "SET k v", A, QUERY_SET, 1 },
	{ "an empty key and an empty value", "SET *0 *0", D, QUERY_SET, 1 },
	{ "a key and two values", "COMPARE_SET k v w", D, QUERY_COMPARE_SET, 1 },
	{ "a key and a number", "ADD k #7", C, QUERY_ADD, 1 },
	{ "several keys", "WAIT @3 a b c", A, QUERY_WAIT, 3 },
	{ "no keys at all", "CHECK @0", D, QUERY_CHECK, 0 },
	{ "several pairs", "MULTI_SET @2 a 1 b 2", D, QUERY_MULTI_SET, 2 },
	{ "only old clients watch keys", "WATCH_KEY k", A, QUERY_WATCH_KEY, 1 },
	{ "the largest key", "GET *8192", C, QUERY_GET, 1 },
};

/* A client of that dialect has begun. */
static void begin(struct scan *s, enum store_dialect dialect)
{
	static const uint8_t hello[] = { 0x00, 0xce, 0xf7, 0x85, 0x3c };
	struct failure why = { 0 };
	struct request r;

	scan_init(s, dialect == D ? NONE : dialect);
	if (dialect == D)
		assert_int_equal(scan_next(s, hello, sizeof hello, &r, &why), 1);
}

static void test_whole(void **state)
{
	const struct whole_row *row = *state;
	struct failure why = { 0 };
	struct text bytes = { 0 };
	struct request r;
	struct scan s;

	begin(&s, row->dialect);
	wire_request(&bytes, row->dialect, row->request);
	for (size_t len = 1; len < bytes.len; len++)
		assert_int_equal(scan_next(&s, (const uint8_t *)bytes.at, len, &r, &why), 0);
	assert_int_equal(scan_next(&s, (const uint8_t *)bytes.at, bytes.len, &r, &why), 1);
	assert_int_equal(r.query, row->query);
	assert_int_equal(r.dialect, row->dialect);
	assert_int_equal(r.count, row->count);
	assert_int_equal(r.len, bytes.len);
	text_done(&bytes);
}

static const struct refused_row {
	const char *says;
	enum store_dialect dialect;
	const char *bytes;
	size_t len;
	const char *part;
} refused[] = {
	{ "a number that means nothing", D, "\x13", 1, "sent an unknown query, 19" },
	{ "a greeting in the middle", D, "\x00", 1, "sent an unknown query, 0" },
	{ "a query that old clients don't have", A, "\x0d", 1, "sent an unknown query, 13" },
	{ "a key that is too long", C, "\x02\x01\x20\0\0\0\0\0\0", 9,
		"its GET has a key of 8193 bytes, but the limit is 8192" },
	{ "a value that is too long", D, "\x01\x01\0\0\0\0\0\0\0k\x01\0\x80\0\0\0\0\0", 18,
		"its SET has a value of 8388609" },
	{ "too many keys", A, "\x05\x01\0\x02\0\0\0\0\0", 9, "its WAIT has 131073 keys" },
	{ "another protocol", NONE, "GET / HTTP/1.1", 14,
		"it does not begin as clients of torch 2.2 and later" },
};

static void test_refused(void **state)
{
	const struct refused_row *row = *state;
	struct failure why = { 0 };
	struct request r;
	struct scan s;

	begin(&s, row->dialect);
	assert_outcome(scan_next(&s, (const uint8_t *)row->bytes, row->len, &r, &why), -EPROTO,
		&why, row->part);
}

static void test_arguments(void **state)
{
	struct text bytes = { 0 };
	struct failure why = { 0 };
	struct request r;
	const uint8_t *at;
	struct span key;
	struct scan s;

	(void)state;
	begin(&s, C);
	wire_request(&bytes, C, "ADD name #-3");
	assert_int_equal(scan_next(&s, (const uint8_t *)bytes.at, bytes.len, &r, &why), 1);
	at = r.args;
	key = request_span(&at);
	assert_int_equal(key.len, 4);
	assert_memory_equal(key.at, "name", 4);
	assert_int_equal(request_number(&at), -3);
	assert_string_equal(query_name(r.query), "ADD");
	text_done(&bytes);
}

TESTS(request)
{
	static struct suite s;

	SUITE_ROWS(&s, test_whole, wholes);
	SUITE_ROWS(&s, test_refused, refused);
	suite_add(&s, "its arguments, one by one", test_arguments, NULL, NULL);
	return suite_run(&s);
}
