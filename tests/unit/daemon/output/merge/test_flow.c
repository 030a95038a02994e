/* test_flow.c - lines between nodes: what goes out, whole, in order, and within which memory. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "daemon/output/merge/flow.h"

enum { MAX = 64 * 1024, ROOM = LINES_ROOM_MIN, RUNS = 300 };

static struct outbuf outbuf_make(void)
{
	struct outbuf out = { .at = malloc(ROOM), .room = ROOM };

	assert_non_null(out.at);
	return out;
}

static void add(struct flow *f, const char *text)
{
	assert_int_equal(flow_add(f, text, strlen(text)), strlen(text));
}

static const struct put_row {
	const char *says;
	const char *first, *then; /* what is added before and after the first time that it's put */
	bool press, ended;
	const char *put, *put_then; /* what goes out each time */
	bool open;                  /* after the first */
} puts_of[] = {
	{ "a line", "a\n", "", false, false, "a\n", "", false },
	{ "nothing", "", "", true, false, "", "", false },
	{ "lines", "a\nb\n", "c\n", false, false, "a\nb\n", "c\n", false },
	{ "a begin is held", "a\nb", "c\n", false, false, "a\n", "bc\n", false },
	{ "a begin that is pressed for goes out, and its end follows", "ab", "c\nd\n", true, false,
		"ab", "c\nd\n", true },
	{ "lines go out before a begin does", "a\nb", "", true, false, "a\n", "b", false },
	{ "an end gives the last line one", "ab", "", false, true, "ab\n", "", false },
	{ "an end after whole lines gives none", "ab\n", "", false, true, "ab\n", "", false },
	{ "empty lines are lines", "\n\n", "\n", false, false, "\n\n", "\n", false },
	{ "any byte but an end is text", "\r\x01\xff\n", "", false, false, "\r\x01\xff\n", "",
		false },
};

static void assert_put(struct flow *f, bool press, const char *text)
{
	struct outbuf out = outbuf_make();
	size_t left = flow_left(f), n = flow_put(f, &out, press);

	assert_int_equal(out.len, strlen(text));
	assert_memory_equal(out.at, text, out.len);
	assert_int_equal(flow_left(f), left - n);
	free(out.at);
}

static void test_put(void **state)
{
	const struct put_row *row = *state;
	struct flow f = { .max = MAX };

	add(&f, row->first);
	f.ended = row->ended;
	assert_int_equal(flow_is_ready(&f, row->press), row->put[0] != '\0');
	assert_put(&f, row->press, row->put);
	assert_int_equal(f.open, row->open);
	add(&f, row->then);
	assert_int_equal(flow_is_ready(&f, row->press), row->put_then[0] != '\0');
	assert_put(&f, row->press, row->put_then);
	flow_done(&f);
}

/* The console had waited long enough: what the line says further is another, but for its end. */
static void test_cut(void **state)
{
	static const char *const then[][2] = { { "\nnext\n", "next\n" }, { "more\n", "more\n" } };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct flow f = { .max = MAX };
		struct outbuf out = outbuf_make();

		add(&f, "begin");
		assert_put(&f, true, "begin");
		assert_true(f.open && flow_cut(&f, &out) && !f.open);
		assert_true(out.len == 1 && out.at[0] == '\n');
		assert_true(flow_cut(&f, &out) && out.len == 1); /* there is none open */
		add(&f, then[i][0]);
		assert_put(&f, false, then[i][1]);
		free(out.at);
		flow_done(&f);
	}
}

static void test_cut_without_room(void **state)
{
	struct flow f = { .max = MAX };
	struct outbuf out = outbuf_make();

	(void)state;
	add(&f, "begin");
	assert_put(&f, true, "begin");
	out.len = out.room;
	assert_false(flow_cut(&f, &out));
	assert_true(f.open);
	free(out.at);
	flow_done(&f);
}

/* A line that was open when its stream ended. */
static void test_end_of_an_open_line(void **state)
{
	struct flow f = { .max = MAX };

	(void)state;
	add(&f, "begin");
	assert_put(&f, true, "begin");
	assert_false(flow_is_ready(&f, true));
	f.ended = true;
	assert_true(flow_is_ready(&f, false));
	assert_put(&f, false, "\n");
	assert_false(flow_is_ready(&f, true));
	flow_done(&f);
}

static void test_take(void **state)
{
	struct flow f = { .max = MAX };
	char piece[8];
	bool mid = false;

	(void)state;
	assert_int_equal(flow_take(&f, piece, sizeof piece, &mid), 0);
	add(&f, "ab\ncd\nefghijklmnop\nq");
	assert_int_equal(flow_take(&f, piece, sizeof piece, &mid), 6);
	assert_memory_equal(piece, "ab\ncd\n", 6);
	assert_false(mid);
	assert_int_equal(flow_take(&f, piece, sizeof piece, &mid), 8);
	assert_memory_equal(piece, "efghijkl", 8);
	assert_true(mid);
	assert_int_equal(flow_take(&f, piece, sizeof piece, &mid), 5);
	assert_memory_equal(piece, "mnop\n", 5);
	assert_false(mid);
	assert_int_equal(flow_take(&f, piece, sizeof piece, &mid), 1);
	assert_true(mid);
	assert_int_equal(flow_left(&f), 0);
	flow_done(&f);
}

/* It holds no more than it may, and nothing costs anything where nothing is held. */
static void test_bounds(void **state)
{
	static char many[MAX + 1];
	struct flow f = { .max = MAX };
	struct outbuf out = outbuf_make();

	(void)state;
	memset(many, 'x', sizeof many);
	assert_int_equal(flow_add(&f, many, sizeof many), MAX);
	assert_int_equal(flow_add(&f, many, 1), 0);
	assert_int_equal(f.room, MAX);
	assert_false(flow_is_ready(&f, false));
	assert_int_equal(flow_put(&f, &out, true), MAX);
	assert_true(f.open && f.room < MAX);
	out.len = 0;
	add(&f, "\n");
	assert_int_equal(flow_put(&f, &out, false), 1);
	free(out.at);
	flow_done(&f);
	assert_null(f.at);
}

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* A text of lines of all lengths goes through, in pieces of any size, as it is; and what is not
 * open ends with an end. */
static void test_random(void **state)
{
	(void)state;
	for (uint64_t run = 1; run <= RUNS; run++) {
		struct flow f = { .max = 1 + run % 9000 };
		struct text sent = { 0 }, got = { 0 };
		struct outbuf out = outbuf_make();
		uint64_t x = run * 0x9e3779b97f4a7c15u;
		size_t at = 0;

		for (int i = 0; i < 40; i++) {
			for (uint64_t n = next_random(&x) % (i % 8 ? 30 : 12000); n > 0; n--)
				text_add_bytes(&sent, &"abcdefgh"[n % 8], 1);
			text_add_bytes(&sent, "\n", 1);
		}
		while (at < sent.len || flow_left(&f) > 0) {
			bool full;

			at += flow_add(&f, sent.at + at,
				at < sent.len ? 1 + next_random(&x) % (sent.len - at) % 700 : 0);
			full = flow_left(&f) == f.max;
			if (!flow_is_ready(&f, full))
				continue;
			out.len = 0;
			assert_true(flow_put(&f, &out, full) > 0);
			assert_true(out.len > 0 && out.len < out.room);
			assert_true(f.open || out.at[out.len - 1] == '\n');
			text_add_bytes(&got, out.at, out.len);
		}
		assert_int_equal(got.len, sent.len);
		assert_memory_equal(got.at, sent.at, got.len);
		free(out.at);
		text_done(&sent);
		text_done(&got);
		flow_done(&f);
	}
}

TESTS(flow)
{
	struct suite s = { .count = 0 };

	SUITE_ROWS(&s, test_put, puts_of);
	suite_add(&s, "a line that was cut", test_cut, NULL, NULL);
	suite_add(&s, "a cut needs room", test_cut_without_room, NULL, NULL);
	suite_add(&s, "an open line ends with its stream", test_end_of_an_open_line, NULL, NULL);
	suite_add(&s, "pieces to be sent", test_take, NULL, NULL);
	suite_add(&s, "what it may hold", test_bounds, NULL, NULL);
	suite_add(&s, "any lines in any pieces", test_random, NULL, NULL);
	return suite_run(&s);
}
