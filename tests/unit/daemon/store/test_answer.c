/* test_answer.c - every query of every dialect, from the bytes that come to those that go. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/daemon/store/store_sim.h"

enum { MEMORY = 64 << 20 };

/* Lines: "0> request" comes from client 0; "0< answer" is all that it has been sent; "0! part" it
 * is closed, with this in the sentence; "0x" it goes, and another one comes. */
#define HELLO "0> VALIDATE %0x3c85f7ce\n1> VALIDATE %0x3c85f7ce\n2> VALIDATE %0x3c85f7ce\n"
#define A     STORE_DIALECT_A
#define C     STORE_DIALECT_C
#define D     STORE_DIALECT_D

static const struct talk_row {
	const char *says;
	enum store_dialect dialect;
	const char *lines;
} talks[] = {
	{ "SET and GET", D, HELLO "0> SET k v\n0> GET k\n0< v\n" },
	{ "SET again replaces, longer and shorter", D,
		HELLO
		"0> SET k v\n0> SET k *100\n0> GET k\n0< *100\n0> SET k w\n0> GET k\n0< w\n" },
	{ "a large value gives its room back", D,
		HELLO "0> SET k *100000\n0> SET k w\n0> GET k\n0< w\n" },
	{ "a value may be empty, and so may a key", D,
		HELLO "0> SET '' ''\n0> GET ''\n0< ''\n0> GETNUMKEYS\n0< #1\n" },
	{ "a value of 8 MiB", D, HELLO "0> SET k *8388608\n0> GET k\n0< *8388608\n" },
	{ "a key of 8 KiB", D, HELLO "0> SET *8192 v\n0> GET *8192\n0< v\n" },
	{ "GET of nothing is empty", D, HELLO "0> GET k\n0< ''\n" },
	{ "GET of nothing ends a client of 2.1", C,
		"0> GET k\n0! GET names a key that does not exist\n" },
	{ "GET of nothing ends a client of 1.13", A, "0> GET k\n0! does not exist\n" },
	{ "COMPARE_SET of a new key, expecting nothing", D,
		HELLO "0> COMPARE_SET k '' v\n0< v\n0> GET k\n0< v\n" },
	{ "COMPARE_SET of a new key, expecting something, says what was expected", D,
		HELLO "0> COMPARE_SET k e v\n0< e\n0> GETNUMKEYS\n0< #0\n" },
	{ "COMPARE_SET of what is expected", D,
		HELLO "0> SET k e\n0> COMPARE_SET k e v\n0< v\n0> GET k\n0< v\n" },
	{ "COMPARE_SET of something else", D,
		HELLO "0> SET k o\n0> COMPARE_SET k e v\n0< o\n0> GET k\n0< o\n" },
	{ "COMPARE_SET of an empty value", D,
		HELLO "0> SET k ''\n0> COMPARE_SET k '' v\n0< v\n0> GET k\n0< v\n" },
	{ "COMPARE_SET that stores wakes, one that does not doesn't", D,
		HELLO
		"1> WAIT @1 k\n0> COMPARE_SET k e v\n0< e\n1<\n0> COMPARE_SET k '' v\n0< v\n1< $0\n" },
	{ "ADD makes a key, counts, and stores digits", D,
		HELLO "0> ADD n #5\n0< #5\n0> ADD n #-7\n0< #-2\n0> GET n\n0< -2\n" },
	{ "ADD to a value that was set", D, HELLO "0> SET n 41\n0> ADD n #1\n0< #42\n" },
	{ "ADD reads as far as there are digits", D, HELLO "0> SET n 41x\n0> ADD n #1\n0< #42\n" },
	{ "ADD goes around the end", D,
		HELLO "0> SET n 9223372036854775807\n0> ADD n #1\n0< #-9223372036854775808\n" },
	{ "ADD to words ends the client", D,
		HELLO "0> SET n words\n0> ADD n #1\n0! is not a number\n" },
	{ "ADD to nothing at all ends the client", D,
		HELLO "0> SET n ''\n0> ADD n #1\n0! not a number\n" },
	{ "ADD to a number that is too large ends the client", D,
		HELLO "0> SET n 9223372036854775808\n0> ADD n #1\n0! not a number\n" },
	{ "ADD wakes", D, HELLO "1> WAIT @1 n\n0> ADD n #1\n0< #1\n1< $0\n" },
	{ "CHECK of all, of some, of none", D,
		HELLO "0> SET a 1\n0> SET b 1\n0> CHECK @2 a b\n0< $0\n0> CHECK @2 a c\n0< $1\n"
		      "0> CHECK @0\n0< $0\n" },
	{ "CHECK sees a queue with something in it", D,
		HELLO "0> CHECK @1 q\n0< $1\n0> QUEUE_PUSH q v\n0> CHECK @1 q\n0< $0\n" },
	{ "WAIT for what is there", D,
		HELLO "0> SET a 1\n0> WAIT @1 a\n0< $0\n0> WAIT @0\n0< $0\n" },
	{ "WAIT for what comes", D, HELLO "1> WAIT @1 a\n1<\n0> SET a 1\n1< $0\n0> SET a 2\n1<\n" },
	{ "WAIT for several keys ends with the last", D,
		HELLO
		"1> WAIT @3 a b c\n0> SET c 1\n1<\n0> SET a 1\n1<\n0> SET a 2\n1<\n0> SET b 1\n1< $0\n" },
	{ "WAIT counts what is there already", D,
		HELLO "0> SET a 1\n1> WAIT @2 a b\n1<\n0> SET b 1\n1< $0\n" },
	{ "WAIT for one key twice", D, HELLO "1> WAIT @2 a a\n0> SET a 1\n1< $0\n" },
	{ "SET wakes all who wait", D,
		HELLO "1> WAIT @1 a\n2> WAIT @1 a\n0> SET a 1\n1< $0\n2< $0\n" },
	{ "WAIT for a queue that has something, and for a key", D,
		HELLO "0> QUEUE_PUSH q v\n1> WAIT @2 q k\n1<\n0> SET k v\n1< $0\n" },
	{ "WAIT makes no key that counts", D,
		HELLO "1> WAIT @1 a\n0> GETNUMKEYS\n0< #0\n0> LIST_KEYS\n0< #0\n" },
	{ "CANCEL_WAIT", D,
		HELLO "1> WAIT @2 a b\n1> CANCEL_WAIT\n1< $1\n0> SET a 1\n0> SET b 1\n1<\n" },
	{ "CANCEL_WAIT of nothing", D, HELLO "1> CANCEL_WAIT\n1< $1\n" },
	{ "CANCEL_WAIT too late", D, HELLO "1> WAIT @1 a\n0> SET a 1\n1> CANCEL_WAIT\n1< $0 $1\n" },
	{ "who asks anew has given up waiting", A,
		"1> WAIT @1 a\n1> SET b 1\n1> WAIT @1 b\n1< $0\n0> SET a 1\n1<\n" },
	{ "who goes is not waited with", D,
		HELLO "1> WAIT @2 a b\n1x\n1> VALIDATE %0x3c85f7ce\n0> SET a 1\n0> SET b 1\n1<\n" },
	{ "GETNUMKEYS and DELETE_KEY", D,
		HELLO "0> SET a 1\n0> SET b 1\n0> GETNUMKEYS\n0< #2\n0> DELETE_KEY a\n0< #1\n"
		      "0> DELETE_KEY a\n0< #0\n0> GETNUMKEYS\n0< #1\n0> CHECK @1 a\n0< $1\n" },
	{ "DELETE_KEY leaves the queue", D,
		HELLO "0> QUEUE_PUSH q v\n0> DELETE_KEY q\n0< #0\n0> QUEUE_LEN q\n0< #1\n" },
	{ "a key that was deleted is waited for", D,
		HELLO "0> SET a 1\n0> DELETE_KEY a\n0< #1\n1> WAIT @1 a\n1<\n0> SET a 2\n1< $0\n" },
	{ "APPEND", D,
		HELLO
		"0> APPEND a 12\n0> APPEND a 3\n0> APPEND a *50\n0> DELETE_KEY b\n0< #0\n"
		"0> APPEND b ''\n0> GET b\n0< ''\n0> APPEND a ''\n0> SET a 12\n0> APPEND a 3\n"
		"0> GET a\n0< 123\n" },
	{ "APPEND wakes", D, HELLO "1> WAIT @1 a\n0> APPEND a 1\n1< $0\n" },
	{ "MULTI_SET and MULTI_GET", D,
		HELLO "0> MULTI_SET @3 a 1 b 22 c ''\n0> MULTI_GET @4 c b a d\n0< '' 22 1 ''\n"
		      "0> MULTI_SET @0\n0> MULTI_GET @0\n0<\n" },
	{ "MULTI_SET wakes", D, HELLO "1> WAIT @2 a b\n0> MULTI_SET @2 a 1 b 2\n1< $0\n" },
	{ "MULTI_GET of nothing ends a client of 2.1", C,
		"0> SET a 1\n0> MULTI_GET @2 a b\n0! does not exist\n" },
	{ "PING", D, HELLO "0> PING %305419896\n0< %305419896\n" },
	{ "a queue: first in, first out, with the length before", D,
		HELLO
		"0> QUEUE_PUSH q a\n0> QUEUE_PUSH q ''\n0> QUEUE_PUSH q c\n0> QUEUE_LEN q\n0< #3\n"
		"0> QUEUE_POP q\n0< #3 a\n0> QUEUE_POP q\n0< #2 ''\n0> QUEUE_POP q\n0< #1 c\n"
		"0> QUEUE_POP q\n0< #0\n0> QUEUE_LEN q\n0< #0\n0> GETNUMKEYS\n0< #0\n" },
	{ "QUEUE_PUSH wakes one, the oldest first", D,
		HELLO
		"2> WAIT @1 q\n1> WAIT @1 q\n0> QUEUE_PUSH q a\n2< $0\n1<\n0> QUEUE_PUSH q b\n1< $0\n2<\n" },
	{ "QUEUE_PUSH passes over who waits for more", D,
		HELLO
		"2> WAIT @2 q k\n1> WAIT @1 q\n0> QUEUE_PUSH q a\n2<\n1< $0\n0> SET k 1\n2< $0\n" },
	{ "LIST_KEYS", D, HELLO "0> SET key 1\n0> LIST_KEYS\n0< #1 key\n" },
	{ "BARRIER", D,
		HELLO
		"0> BARRIER b #3\n1> BARRIER b #3\n0<\n1<\n2> BARRIER b #3\n0< $0\n1< $0\n2< $0\n"
		"0> GET b\n0< 3\n" },
	{ "BARRIER of one, and of fewer than have come", D,
		HELLO "0> BARRIER b #1\n0< $0\n0> BARRIER b #1\n0< $0\n" },
	{ "BARRIER that is given up", D,
		HELLO "0> BARRIER b #2\n0> CANCEL_WAIT\n0< $1\n1> BARRIER b #2\n1< $0\n0<\n" },
	{ "BARRIER on words ends the client", D,
		HELLO "0> SET b words\n0> BARRIER b #2\n0! not a number\n" },
	{ "WATCH_KEY: created, updated, deleted", A,
		"1> WATCH_KEY k\n1< $3\n0> SET k a\n1< $1 k '' a\n0> SET k b\n1< $0 k a b\n"
		"0> DELETE_KEY k\n0< #1\n1< $2 k b ''\n0> DELETE_KEY k\n0< #0\n1<\n" },
	{ "WATCH_KEY of ADD, COMPARE_SET and APPEND", A,
		"1> WATCH_KEY k\n1< $3\n0> ADD k #1\n0< #1\n1< $1 k '' 1\n0> ADD k #1\n0< #2\n1< $0 k 1 2\n"
		"0> COMPARE_SET k 2 v\n0< v\n1< $0 k 2 v\n0> COMPARE_SET k 2 w\n0< v\n1<\n"
		"0> APPEND k w\n1< $4 k '' w\n" },
	{ "WATCH_KEY twice tells twice, and all who watch", A,
		"1> WATCH_KEY k\n1> WATCH_KEY k\n2> WATCH_KEY k\n1< $3 $3\n2< $3\n0> SET k a\n"
		"1< $1 k '' a $1 k '' a\n2< $1 k '' a\n" },
	{ "who watches and goes is not told", A, "1> WATCH_KEY k\n1< $3\n1x\n0> SET k a\n1<\n" },
	{ "dialect C has its own numbers", C,
		"0> SET k v\n0> APPEND k w\n0> MULTI_GET @1 k\n0< vw\n0> DELETE_KEY k\n0< #1\n"
		"1> WAIT @1 k\n1> CANCEL_WAIT\n1< $1\n0> MULTI_SET @1 k v\n0> GETNUMKEYS\n0< #1\n" },
	{ "builds between 2.0 and 2.1", A,
		"0> MULTI_SET @1 k v\n0> MULTI_GET @1 k\n0< v\n0> CANCEL_WAIT\n0< $1\n" },
	{ "a key too long", D,
		HELLO "0> SET *8193 v\n0! SET has a key of 8193 bytes, but the limit is 8192\n" },
	{ "a value too long", D,
		HELLO
		"0> SET k @8388609\n0! a value of 8388609 bytes, but the limit is 8388608\n" },
	{ "an endless value", D, HELLO "0> SET k #-1\n0! a value of 18446744073709551615\n" },
	{ "too many keys", D, HELLO "0> WAIT @131073\n0! 131073 keys, but the limit is 131072\n" },
	{ "the second key of many too long", D, HELLO "0> CHECK @2 k @8193\n0! a key of 8193\n" },
	{ "VALIDATE a second time", D, HELLO "0> VALIDATE %0x3c85f7ce\n0! an unknown query, 0\n" },
	{ "VALIDATE with another number", D,
		"0> VALIDATE %0x3c85f7cf\n0! not begin as clients of torch 2.2\n" },
};

/* The first bytes alone, if so many are wanted, the others in pieces. */
static void feed(
	struct sim *sim, unsigned client, const struct text *bytes, size_t first, size_t piece)
{
	const char *at = text_string(bytes);
	size_t left = bytes->len;

	for (size_t n = first ? first : piece; left > 0; n = piece) {
		n = n < left ? n : left;
		sim_feed(sim, client, at, n);
		at += n;
		left -= n;
	}
}

static void obey(
	struct sim *sim, enum store_dialect dialect, const char *line, size_t first, size_t piece)
{
	const unsigned client = (unsigned)(line[0] - '0');
	struct sim_client *c = &sim->at[client];
	const char *words = line + (line[1] && line[2] == ' ' ? 3 : 2);
	struct text bytes = { 0 };

	switch (line[1]) {
	case '>':
		wire_request(&bytes, dialect, words);
		feed(sim, client, &bytes, first, piece);
		break;
	case '<':
		assert_string_equal(c->why.text, "");
		wire_words(&bytes, words);
		assert_int_equal(c->out.len, bytes.len);
		assert_memory_equal(text_string(&c->out), text_string(&bytes), bytes.len);
		text_done(&c->out);
		break;
	case '!':
		assert_contains(c->why.text, words);
		break;
	case 'x':
		sim_replace(sim, client);
		break;
	default:
		fail_msg("what is %s?", line);
	}
	text_done(&bytes);
}

static void talk(const struct talk_row *row, size_t first, size_t piece)
{
	struct sim sim;
	char line[256];
	size_t n;

	sim_init(&sim, row->dialect == D ? STORE_DIALECT_NONE : row->dialect, MEMORY);
	for (const char *at = row->lines; *at; at += n + 1) {
		n = strcspn(at, "\n");
		assert_true(n < sizeof line);
		memcpy(line, at, n);
		line[n] = '\0';
		obey(&sim, row->dialect, line, first, piece);
	}
	for (size_t i = 0; i < SIM_CLIENTS; i++)
		assert_int_equal(sim.at[i].out.len, 0);
	sim_done(&sim);
	assert_int_equal(sim.budget.used, 0);
}

/* Whole, byte by byte, and cut at every place of a short request. */
static void test_talk(void **state)
{
	const struct talk_row *row = *state;
	const bool large = strstr(row->lines, "*8388608") != NULL;

	talk(row, 0, SIZE_MAX);
	talk(row, 0, large ? 4099 : 1);
	for (size_t first = 1; first < 80 && !large; first++)
		talk(row, first, SIZE_MAX);
}

/* All requests of a client at once: they are answered in their order. */
static void test_coalesced(void **state)
{
	struct text bytes = { 0 }, expected = { 0 };
	struct sim sim;

	(void)state;
	sim_init(&sim, STORE_DIALECT_NONE, MEMORY);
	wire_request(&bytes, D, "VALIDATE %0x3c85f7ce");
	wire_request(&bytes, D, "SET n 0");
	for (int64_t i = 1; i <= 1000; i++) {
		wire_request(&bytes, D, "SET k v");
		wire_request(&bytes, D, "ADD n #1");
		wire_request(&bytes, D, "GET k");
		text_add_bytes(&expected, (const char *)&i, sizeof i);
		wire_words(&expected, "v");
	}
	for (size_t piece = 1; piece < 100000; piece = piece * 3 + 1) {
		feed(&sim, 0, &bytes, 0, piece);
		assert_int_equal(sim.at[0].out.len, expected.len);
		assert_memory_equal(sim.at[0].out.at, expected.at, expected.len);
		sim_replace(&sim, 0);
	}
	text_done(&bytes);
	text_done(&expected);
	sim_done(&sim);
	assert_int_equal(sim.budget.used, 0);
}

/* Every byte in the place of a query's number, for each dialect: taken or refused, never more. */
static void test_numbers(void **state)
{
	static const struct {
		enum store_dialect d;
		int known;
	} dialects[] = { { A, 13 }, { C, 12 }, { D, 18 } };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		int known = 0;

		for (int byte = 0; byte < 256; byte++) {
			const uint8_t number = (uint8_t)byte;
			struct text hello = { 0 };
			struct sim sim;

			sim_init(&sim, dialects[i].d == D ? STORE_DIALECT_NONE : dialects[i].d,
				MEMORY);
			if (dialects[i].d == D)
				wire_request(&hello, D, "VALIDATE %0x3c85f7ce");
			text_add_bytes(&hello, (const char *)&number, 1);
			sim_feed(&sim, 0, text_string(&hello), hello.len);
			known += sim.at[0].why.code == 0;
			text_done(&hello);
			sim_done(&sim);
		}
		assert_int_equal(known, dialects[i].known);
	}
}

TESTS(answer)
{
	static struct suite s;

	SUITE_ROWS(&s, test_talk, talks);
	suite_add(&s, "requests that come together are answered in order", test_coalesced, NULL,
		NULL);
	suite_add(&s, "every number of a query", test_numbers, NULL, NULL);
	return suite_run(&s);
}
