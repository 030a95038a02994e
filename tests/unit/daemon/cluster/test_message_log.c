/* test_message_log.c - workers' lines between launchers, and the room for them. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cluster/message.h"
#include "daemon/net/wire.h"
#include "tests/unit/daemon/cluster/message_fixture.h"

static void test_log(void **state)
{
	static const size_t lens[] = { 1, 93, MESSAGE_LOG_MAX };
	static char bytes[MESSAGE_LOG_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (char)(i * 7); /* any byte: NUL, too */
	for (size_t i = 0; i < 3; i++) {
		for (int stream = 1; stream <= 2; stream++) {
			struct wire_out w = { 0 };
			struct message m;
			const char *got;
			size_t len;
			int from;

			message_put_log(&w, stream, bytes, lens[i]);
			m = message_of(&w);
			assert_int_equal(message_get_log(m.at, m.len, &from, &got, &len), 0);
			assert_int_equal(from, stream);
			assert_int_equal(len, lens[i]);
			assert_memory_equal(got, bytes, len);
			free(m.at);
		}
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
	const char *got = NULL;
	size_t len = 77;
	int stream = 77;

	assert_non_null(exact);
	if (row->len > 0)
		exact[0] = row->first;
	assert_int_equal(message_get_log(exact, row->len, &stream, &got, &len), -EPROTO);
	assert_null(got);
	assert_int_equal(len, 77);
	assert_int_equal(stream, 77);
	free(exact);
}

static void test_room(void **state)
{
	static const size_t rooms[] = { 1, 4096, MESSAGE_LOG_ROOM_MAX };
	unsigned char none[4] = { 0 }, huge[4] = { 1, 0, 1, 0 };
	size_t got = 77;

	(void)state;
	assert_int_equal(message_get_log_room(none, sizeof none, &got), -EPROTO);
	assert_int_equal(message_get_log_room(huge, sizeof huge, &got), -EPROTO); /* 64 KiB + 1 */
	assert_int_equal(got, 77);
	for (size_t i = 0; i < 3; i++) {
		struct wire_out w = { 0 };
		struct message m;

		message_put_log_room(&w, rooms[i]);
		m = message_of(&w);
		assert_int_equal(message_get_log_room(m.at, m.len, &got), 0);
		assert_int_equal(got, rooms[i]);
		assert_whole(MESSAGE_LOG_ROOM, &m);
	}
}

int main(void)
{
	static struct suite s;

	suite_add(&s, "any bytes of either stream", test_log, NULL, NULL);
	SUITE_ROWS(&s, test_bad, bad);
	suite_add(&s, "room", test_room, NULL, NULL);
	return suite_run(&s);
}
