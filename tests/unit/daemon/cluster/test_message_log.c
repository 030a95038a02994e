/* test_message_log.c - workers' lines between launchers, and the room for them. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "daemon/cluster/message.h"
#include "tests/unit/daemon/cluster/message_fixture.h"

static void test_log(void **state)
{
	static const size_t lens[] = { 1, 93, MESSAGE_LOG_MAX };
	static char bytes[MESSAGE_LOG_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (char)(i * 7); /* any byte: NUL, too */
	for (size_t i = 0; i < 6; i++) {
		const struct message m = { MESSAGE_LOG,
			.log = { 1 + (int)(i % 2), bytes, lens[i / 2] } };
		struct bytes written = bytes_of(&m);
		struct arena arena = { 0 };
		struct message got;

		assert_int_equal(read_bytes(&written, &arena, &got), 0);
		assert_int_equal(got.log.stream, m.log.stream);
		assert_int_equal(got.log.len, m.log.len);
		assert_memory_equal(got.log.at, bytes, m.log.len);
		free(written.at);
	}
}

static const struct bad_row {
	const char *says;
	unsigned char first;
	size_t len;
} bad[] = {
	{ "a message without anything", 0, 0 },
	{ "no byte of a line", 1, 1 },
	{ "stream 0", 0, 2 },
	{ "stream 3", 3, 2 },
	{ "more than a message holds", 1, MESSAGE_LOG_MAX + 2 },
};

static void test_bad(void **state)
{
	const struct bad_row *row = *state;
	unsigned char *exact = calloc(1, row->len + (row->len == 0));
	struct message got = { MESSAGE_END, .log = { .stream = 77, .len = 77 } };
	struct arena arena = { 0 };

	assert_non_null(exact);
	if (row->len > 0)
		exact[0] = row->first;
	assert_int_equal(message_get(MESSAGE_LOG, exact, row->len, &arena, &got), -EPROTO);
	assert_int_equal(got.type, MESSAGE_END); /* it is as it was */
	assert_int_equal(got.log.stream, 77);
	assert_null(got.log.at);
	assert_int_equal(got.log.len, 77);
	free(exact);
}

static void test_room(void **state)
{
	static const size_t rooms[] = { 1, 4096, MESSAGE_LOG_ROOM_MAX };
	unsigned char none[4] = { 0 }, huge[4] = { 1, 0, 1, 0 }; /* 64 KiB + 1 */
	struct arena arena = { 0 };
	struct message got = { MESSAGE_END, .log_room = 77 };

	(void)state;
	assert_int_equal(message_get(MESSAGE_LOG_ROOM, none, sizeof none, &arena, &got), -EPROTO);
	assert_int_equal(message_get(MESSAGE_LOG_ROOM, huge, sizeof huge, &arena, &got), -EPROTO);
	assert_int_equal(got.type, MESSAGE_END);
	assert_int_equal(got.log_room, 77);
	for (size_t i = 0; i < 3; i++) {
		const struct message m = { MESSAGE_LOG_ROOM, .log_room = rooms[i] };

		assert_int_equal(read_again(&m, &arena).log_room, rooms[i]);
	}
}

TESTS(message_log)
{
	static struct suite s;

	suite_add(&s, "any bytes of either stream", test_log, NULL, NULL);
	SUITE_ROWS(&s, test_bad, bad);
	suite_add(&s, "room", test_room, NULL, NULL);
	return suite_run(&s);
}
