/* test_kept.c - what is sent and not acknowledged. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "daemon/net/kept.h"

static const char text[] = "0123456789abcdefghijklmnopqrstuvwxyz";

static void test_bytes(void **state)
{
	struct kept k = { 0 };
	char got[64];

	(void)state;
	assert_int_equal(kept_sent(&k), 0);
	assert_int_equal(kept_ack(&k, 1), -EPROTO);
	assert_int_equal(kept_add(&k, text, 10), 0);
	assert_int_equal(kept_add(&k, text + 10, 26), 0);
	assert_int_equal(kept_sent(&k), 36);
	assert_int_equal(kept_read(&k, 0, got, sizeof got), 36);
	assert_memory_equal(got, text, 36);
	assert_int_equal(kept_ack(&k, 12), 1);
	assert_int_equal(kept_ack(&k, 12), 0);
	assert_int_equal(kept_ack(&k, 3), 0);
	assert_int_equal(kept_ack(&k, 37), -EPROTO);
	assert_int_equal(kept_read(&k, 12, got, 5), 5);
	assert_memory_equal(got, text + 12, 5);
	assert_int_equal(kept_read(&k, 30, got, sizeof got), 6);
	assert_memory_equal(got, text + 30, 6);
	assert_int_equal(kept_read(&k, 36, got, sizeof got), 0);
	assert_int_equal(kept_ack(&k, 36), 1);
	assert_null(k.at); /* nothing is kept, and no memory */
	assert_int_equal(kept_sent(&k), 36);
	assert_int_equal(kept_add(&k, "", 0), 0);
	assert_null(k.at);
	kept_done(&k);
}

/* A long stream: memory is used again, and what is kept is right at each step. */
static void test_stream(void **state)
{
	struct kept k = { 0 };
	unsigned char bytes[700], got[8192];
	uint64_t sent = 0;
	uint32_t dice = 1;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		size_t len = (dice = dice * 1103515245 + 12345) >> 16 & 511;
		uint64_t upto = k.acked + ((dice >> 8 & 1023) % (kept_sent(&k) - k.acked + 1));
		bool is_more = upto > k.acked;

		for (size_t j = 0; j < len; j++)
			bytes[j] = (unsigned char)((sent + j) * 31 >> 3);
		assert_int_equal(kept_add(&k, bytes, len), 0);
		sent += len;
		assert_true(kept_sent(&k) == sent);
		assert_int_equal(kept_ack(&k, upto), is_more);
		if (kept_sent(&k) - k.acked > sizeof got)
			(void)kept_ack(&k, sent - 100);
		len = kept_read(&k, k.acked, got, sizeof got);
		assert_true(len == sent - k.acked);
		for (size_t j = 0; j < len; j += 97)
			assert_int_equal(got[j], (unsigned char)((k.acked + j) * 31 >> 3));
		assert_true(k.room <= 4 * sizeof got);
	}
	kept_done(&k);
}

/* What is kept moves to the front if it doesn't overlap itself there; otherwise to fresh memory. */
static void test_room(void **state)
{
	static const unsigned char byte = 'x';
	struct kept k = { 0 };
	unsigned char *at;

	(void)state;
	assert_int_equal(kept_add(&k, &byte, 1), 0);
	at = k.at;
	while (k.end < k.room)
		assert_int_equal(kept_add(&k, &byte, 1), 0);
	assert_ptr_equal(k.at, at);
	assert_int_equal(kept_ack(&k, k.room / 2), 1);
	assert_int_equal(kept_add(&k, &byte, 1), 0);
	assert_ptr_equal(k.at, at);
	while (k.end < k.room)
		assert_int_equal(kept_add(&k, &byte, 1), 0);
	assert_int_equal(kept_ack(&k, k.acked + k.room / 2 - 1), 1);
	assert_int_equal(kept_add(&k, &byte, 1), 0);
	assert_ptr_not_equal(k.at, at);
	kept_done(&k);
}

TESTS(kept)
{
	static struct suite s;

	suite_add(&s, "bytes are there until they are acknowledged", test_bytes, NULL, NULL);
	suite_add(&s, "memory is used again", test_room, NULL, NULL);
	suite_add(&s, "a long stream in little memory", test_stream, NULL, NULL);
	return suite_run(&s);
}
