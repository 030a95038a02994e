/* test_budget.c - memory with a limit in total, and bytes that grow within it. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "daemon/store/budget.h"

static void test_resize(void **state)
{
	struct budget b = { .max = 1000 };
	char *at, *second;

	(void)state;
	at = budget_alloc(&b, 400);
	assert_non_null(at);
	assert_true(b.used > 400 && b.used < 450); /* with what malloc(3) needs beside it */
	memset(at, 'x', 400);
	assert_null(budget_alloc(&b, 600));
	second = budget_alloc(&b, 500);
	assert_non_null(second);
	assert_null(budget_resize(&b, at, 400, 500)); /* it stays as it was */
	assert_true(at[0] == 'x' && at[399] == 'x');
	budget_free(&b, second, 500);
	at = budget_resize(&b, at, 400, 900); /* what it gives up counts no more */
	assert_non_null(at);
	assert_true(at[399] == 'x');
	budget_free(&b, at, 900);
	budget_free(&b, NULL, 0);
	assert_int_equal(b.used, 0);
	assert_null(budget_alloc(&b, SIZE_MAX));
	assert_null(budget_alloc(&b, SIZE_MAX - 8));
	assert_int_equal(b.used, 0);
}

static void test_bytes(void **state)
{
	struct budget b = { .max = 4096 };
	struct bytes bytes = { 0 };

	(void)state;
	assert_int_equal(bytes_add(&bytes, &b, NULL, 0), 0);
	assert_int_equal(bytes_add(&bytes, &b, "abcdef", 6), 0);
	bytes_drop(&bytes, 0);
	bytes_drop(&bytes, 2);
	assert_int_equal(bytes_add(&bytes, &b, "gh", 2), 0);
	assert_int_equal(bytes.len, 6);
	assert_memory_equal(bytes.at, "cdefgh", 6);
	bytes_drop(&bytes, 6);
	assert_int_equal(bytes.len, 0);
	assert_true(bytes.room > 0);
	bytes_trim(&bytes, &b, bytes.room);
	assert_true(bytes.room > 0);
	bytes_trim(&bytes, &b, bytes.room - 1);
	assert_null(bytes.at);
	assert_int_equal(b.used, 0);
}

/* What is needed may fit where twice as much does not. */
static void test_bytes_at_the_limit(void **state)
{
	static const char many[4096];
	struct budget b = { .max = 4096 };
	struct bytes bytes = { 0 };

	(void)state;
	assert_int_equal(bytes_add(&bytes, &b, many, 2000), 0);
	assert_int_equal(bytes_add(&bytes, &b, many, 1900), 0);
	assert_int_equal(bytes.len, 3900);
	assert_int_equal(bytes_add(&bytes, &b, many, 400), -ENOMEM);
	assert_int_equal(bytes.len, 3900);
	assert_int_equal(bytes_reserve(&bytes, &b, SIZE_MAX - 10), -ENOMEM);
	bytes_done(&bytes, &b);
	assert_int_equal(b.used, 0);
}

/* Whoever holds a blob keeps the bytes that it had, whatever its first holder does to it. */
static void test_blob(void **state)
{
	static const char large[5000];
	struct budget b = { .max = 16384 };
	struct blob *own = NULL, *held;
	uint64_t used;

	(void)state;
	blob_drop(NULL, &b);
	assert_int_equal(blob_add(&own, &b, "abc", 3), 0);
	used = b.used;
	held = blob_hold(own);
	assert_int_equal(b.used, used);
	assert_int_equal(blob_add(&own, &b, "def", 3), 0);
	assert_memory_equal(own->at, "abcdef", 6);
	assert_int_equal(held->len, 3);
	blob_drop(held, &b);
	held = blob_hold(own);
	assert_int_equal(blob_set(&own, &b, "g", 1), 0);
	assert_memory_equal(own->at, "g", 1);
	assert_memory_equal(held->at, "abcdef", 6);
	blob_drop(held, &b);
	assert_int_equal(blob_set(&own, &b, large, sizeof large), 0);
	held = blob_hold(own);
	assert_int_equal(blob_set(&own, &b, large, sizeof large), 0);
	assert_int_equal(blob_add(&own, &b, large, 2 * sizeof large), -ENOMEM);
	assert_int_equal(own->len, sizeof large);
	blob_drop(held, &b);
	assert_int_equal(blob_set(&own, &b, "h", 1), 0);
	assert_true(b.used < sizeof large / 2 + 100);
	blob_drop(own, &b);
	assert_int_equal(b.used, 0);
}

TESTS(budget)
{
	static struct suite s;

	suite_add(&s, "memory up to the limit, and no further", test_resize, NULL, NULL);
	suite_add(&s, "bytes are added behind and dropped in front", test_bytes, NULL, NULL);
	suite_add(&s, "bytes grow up to the limit", test_bytes_at_the_limit, NULL, NULL);
	suite_add(&s, "a blob and its holders", test_blob, NULL, NULL);
	return suite_run(&s);
}
