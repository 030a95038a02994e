/* test_lines.c - a stream cut into whole lines: each rule, and what belongs to a moment. The same
 * for any bytes in any pieces: test_lines_random. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/daemon/output/console/lines_fixture.h"

/* Rows are written with 'L' and 'M': see lines_unfold(). */
enum { MAX = HELD_MAX };

static const struct lines_style plain = { .held_max = MAX },
				prefixed = { "[0]:", 4, NULL, NULL, MAX };

#define BYTES(text) text, sizeof(text) - 1

static const struct stream_row {
	const char *says, *in;
	size_t in_len;
	const char *out; /* 'P' is the prefix */
	size_t out_len;
} streams[] = {
	/* clang-format off */
	{ "nothing", BYTES(""), BYTES("") },
	{ "a line", BYTES("a\n"), BYTES("Pa\n") },
	{ "an empty line", BYTES("\n"), BYTES("P\n") },
	{ "lines", BYTES("a\n\nb\n"), BYTES("Pa\nP\nPb\n") },
	{ "an end without newline", BYTES("a\nb"), BYTES("Pa\nPb\n") },
	{ "a newline of Windows", BYTES("a\r\nb\r\n"), BYTES("Pa\nPb\n") },
	{ "an empty line of Windows", BYTES("\r\n"), BYTES("P\n") },
	{ "more than one carriage return at the end", BYTES("a\r\r\n"), BYTES("Pa\n") },
	{ "a bar", BYTES("a\rb\rc\n"), BYTES("Pc\n") },
	{ "a bar that ends with its state", BYTES("99%\r100%\r\n"), BYTES("P100%\n") },
	{ "a bar that says each state after a carriage return", BYTES("\r1%\r2%\nx"), BYTES("P2%\nPx\n") },
	{ "a bar that is wiped out by a shorter one", BYTES("long\rs\n"), BYTES("Ps\n") },
	{ "a bar of nothing", BYTES("\r\r\r\n"), BYTES("P\n") },
	{ "a bar that has not ended", BYTES("1%\r2%\r"), BYTES("P2%\n") },
	{ "a bar that has not ended, in the middle", BYTES("1%\r2%"), BYTES("P2%\n") },
	{ "an end that shows nothing", BYTES("a\n\r\r"), BYTES("Pa\n") },
	{ "bars between lines", BYTES("a\n1\r2\nb\n3\r\nc\n"), BYTES("Pa\nP2\nPb\nP3\nPc\n") },
	{ "NUL bytes", BYTES("a\0b\n\0\n"), BYTES("Pa\0b\nP\0\n") },
	{ "bytes that are no UTF-8", BYTES("\xff\xc3\n\x80\n"), BYTES("P\xff\xc3\nP\x80\n") },
	{ "characters of more bytes", BYTES("\xf0\x9f\x98\x80\xc3\xa9\n"), BYTES("P\xf0\x9f\x98\x80\xc3\xa9\n") },
	{ "what a terminal obeys", BYTES("\x1b[31mred\x1b[0m\t\b\v\n"), BYTES("P\x1b[31mred\x1b[0m\t\b\v\n") },
	{ "a line as long as may be held", BYTES("L\na\n"), BYTES("PL\nPa\n") },
	{ "a line longer by a byte", BYTES("M\na\n"), BYTES("PM\nPa\n") },
	{ "a line of many times that", BYTES("LLLLLLL\na\n"), BYTES("PLLLLLLL\nPa\n") },
	{ "a long line that has not ended", BYTES("LLL"), BYTES("PLLL\n") },
	{ "a carriage return behind all that may be held", BYTES("L\rb\n"), BYTES("Pb\n") },
	{ "a carriage return in a line that is open", BYTES("M\rb\r\n"), BYTES("PM\rb\r\n") },
	{ "long states of a bar", BYTES("L\rL\rL\rL\n"), BYTES("PL\n") },
	{ "a state that is too long opens", BYTES("a\rL\rM\rb\n"), BYTES("PM\rb\n") },
	{ "many short states and an end", BYTES("L\rL\rL\rabc\r\nd\n"), BYTES("Pabc\nPd\n") },
	/* clang-format on */
};

static void assert_stream(
	const struct stream_row *row, const struct lines_style *style, size_t piece, size_t used)
{
	struct text in = lines_unfold(row->in, row->in_len), out = { 0 }, expected = { 0 };
	struct sink c;
	struct lines l = { 0 };

	for (size_t i = 0; i < row->out_len; i++)
		if (row->out[i] == 'P')
			text_add_bytes(
				&out, style->prefix_len ? style->prefix : "", style->prefix_len);
		else
			text_add_bytes(&out, row->out + i, 1);
	expected = lines_unfold(text_string(&out), out.len);
	sink_make(&c);
	memset(c.out.at, '#', used);
	c.out.len = used; /* other streams' lines */
	sink_take(&c, &l, text_string(&in), in.len, piece, style);
	sink_end(&c, &l, style);
	if (used > 0) {
		assert_true(c.got.len >= used && c.got.at[used - 1] == '#');
		c.got.len -= used;
		memmove(c.got.at, c.got.at + used, c.got.len);
	}
	assert_true(text_is(&c.got, &expected));
	assert_false(l.open || l.dropping || l.said || l.bar || l.cr || l.len > 0);
	lines_done(&l);
	sink_done(&c);
	text_done(&in);
	text_done(&out);
	text_done(&expected);
}

static void test_stream(void **state)
{
	const struct stream_row *row = *state;
	bool is_long = strpbrk(row->in, "LM");
	size_t pieces[] = { 1, 2, 3, 7, MAX - 1, MAX, MAX + 1, SIZE_MAX };

	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
		if (is_long && pieces[i] < 3)
			continue; /* the random test has some */
		assert_stream(row, &plain, pieces[i], 0);
		assert_stream(row, &prefixed, pieces[i], 0);
	}
	/* out is full behind each byte of it */
	for (size_t left = 0; left < 40; left++) {
		assert_stream(row, &plain, SIZE_MAX, LINES_ROOM_MIN - left);
		assert_stream(row, &prefixed, SIZE_MAX, LINES_ROOM_MIN - left);
		if (is_long) {
			assert_stream(row, &prefixed, SIZE_MAX, LINES_ROOM_MIN - MAX - left);
			assert_stream(row, &plain, MAX / 2, LINES_ROOM_MIN - MAX - left);
		}
	}
}

/* What belongs to a moment, step by step; each row is one stream with the prefix [0]: */
enum op { OP_NONE, OP_TAKE, OP_END, OP_BREAK, OP_DROP, OP_BAR };

static const struct moment_row {
	const char *says;
	struct step {
		enum op op;
		const char *bytes;
		int rc; /* of OP_TAKE: bytes that are not taken */
		const char *out;
	} steps[8];
} moments[] = {
	/* clang-format off */
	{ "an open line is broken off and goes on as a new one",
	  { { OP_TAKE, "M", 0, "[0]:M" }, { OP_BREAK, "", 0, "\n" }, { OP_TAKE, "abc\nd\n", 0, "[0]:abc\n[0]:d\n" } } },
	{ "a line that is broken off puts nothing more for its end",
	  { { OP_TAKE, "M", 0, "[0]:M" }, { OP_BREAK, "", 0, "\n" }, { OP_TAKE, "\nd\n", 0, "[0]:d\n" } } },
	{ "nor for an end of Windows",
	  { { OP_TAKE, "M", 0, "[0]:M" }, { OP_BREAK, "", 0, "\n" }, { OP_TAKE, "\r", 0, "" }, { OP_TAKE, "\nd\n", 0, "[0]:d\n" } } },
	{ "nor for the end of its stream",
	  { { OP_TAKE, "M", 0, "[0]:M" }, { OP_BREAK, "", 0, "\n" }, { OP_END, "", 0, "" }, { OP_TAKE, "\n", 0, "[0]:\n" } } },
	{ "a line that is broken off may open again",
	  { { OP_TAKE, "M", 0, "[0]:M" }, { OP_BREAK, "", 0, "\n" }, { OP_TAKE, "M", 0, "[0]:M" }, { OP_TAKE, "y\n", 0, "y\n" } } },
	{ "a line that is not open can't be broken off",
	  { { OP_TAKE, "ab", 0, "" }, { OP_BREAK, "", 0, "" }, { OP_TAKE, "c\n", 0, "[0]:abc\n" }, { OP_BREAK, "", 0, "" } } },

	{ "dropped lines are counted", { { OP_DROP, "a\n\nb\n", 3, "" }, { OP_TAKE, "c\n", 0, "[0]:c\n" } } },
	{ "dropping nothing does nothing",
	  { { OP_TAKE, "a", 0, "" }, { OP_DROP, "", 0, "" }, { OP_TAKE, "b\n", 0, "[0]:ab\n" } } },
	{ "the line that is held goes with its rest",
	  { { OP_TAKE, "a", 0, "" }, { OP_DROP, "b\n", 1, "" }, { OP_TAKE, "c\n", 0, "[0]:c\n" } } },
	{ "the rest of a line goes with its begin",
	  { { OP_DROP, "a\nb", 2, "" }, { OP_TAKE, "b", 0, "" }, { OP_TAKE, "b\nc\n", 0, "[0]:c\n" } } },
	{ "a line counts once", { { OP_DROP, "a", 1, "" }, { OP_DROP, "a", 0, "" }, { OP_DROP, "a\nb", 1, "" }, { OP_DROP, "\n", 0, "" } } },
	{ "the stream ends in a line that is dropped", { { OP_DROP, "a", 1, "" }, { OP_END, "", 0, "" }, { OP_TAKE, "b\n", 0, "[0]:b\n" } } },
	{ "an open line is closed before", { { OP_TAKE, "M", 0, "[0]:M" }, { OP_DROP, "a\nb\n", 2, "\n" }, { OP_TAKE, "c\n", 0, "[0]:c\n" } } },
	{ "an open line is closed before its middle is dropped",
	  { { OP_TAKE, "M", 0, "[0]:M" }, { OP_DROP, "a", 1, "\n" }, { OP_TAKE, "a\nc\n", 0, "[0]:c\n" } } },
	{ "of an open line only the end is dropped: nothing is lost",
	  { { OP_TAKE, "M", 0, "[0]:M" }, { OP_DROP, "\n", 0, "\n" }, { OP_TAKE, "c\n", 0, "[0]:c\n" } } },
	{ "nor of one that was broken off",
	  { { OP_TAKE, "M", 0, "[0]:M" }, { OP_BREAK, "", 0, "\n" }, { OP_DROP, "\nb\n", 1, "" } } },
	{ "a carriage return that was held is dropped", { { OP_TAKE, "a\r", 0, "" }, { OP_DROP, "b\n", 1, "" }, { OP_TAKE, "c\n", 0, "[0]:c\n" } } },

	{ "a bar shows what it shows now, and goes on",
	  { { OP_TAKE, "1%\r2%", 0, "" }, { OP_BAR, "", 1, "[0]:2%\n" }, { OP_TAKE, "\r3%\n", 0, "[0]:3%\n" } } },
	{ "with the carriage return behind it", { { OP_TAKE, "1%\r2%\r", 0, "" }, { OP_BAR, "", 1, "[0]:2%\n" }, { OP_TAKE, "3%\n", 0, "[0]:3%\n" } } },
	{ "what it has shown is not shown again", { { OP_TAKE, "1%\r", 0, "" }, { OP_BAR, "", 1, "[0]:1%\n" }, { OP_BAR, "", 0, "" } } },
	{ "not even when it ends", { { OP_TAKE, "1%\r", 0, "" }, { OP_BAR, "", 1, "[0]:1%\n" }, { OP_TAKE, "\na\n", 0, "[0]:a\n" } } },
	{ "nor when its stream does", { { OP_TAKE, "\r1%", 0, "" }, { OP_BAR, "", 1, "[0]:1%\n" }, { OP_END, "", 0, "" } } },
	{ "a state that grew is shown whole", { { OP_TAKE, "\r1", 0, "" }, { OP_BAR, "", 1, "[0]:1\n" }, { OP_TAKE, "2\n", 0, "[0]:12\n" } } },
	{ "a line that has not ended is no bar", { { OP_TAKE, "Name: ", 0, "" }, { OP_BAR, "", 0, "" }, { OP_TAKE, "a\n", 0, "[0]:Name: a\n" } } },
	{ "nor is the line behind a bar", { { OP_TAKE, "1\r2\n", 0, "[0]:2\n" }, { OP_TAKE, "a", 0, "" }, { OP_BAR, "", 0, "" } } },
	{ "a bar of nothing has nothing to show", { { OP_TAKE, "\r\r", 0, "" }, { OP_BAR, "", 0, "" } } },
	{ "an open line is no bar", { { OP_TAKE, "a\rM", 0, "[0]:M" }, { OP_BAR, "", 0, "" } } },
	/* clang-format on */
};

static void assert_step(const struct step *s, struct lines *l, struct sink *c)
{
	struct text in = lines_unfold(s->bytes ? s->bytes : "", s->bytes ? strlen(s->bytes) : 0);
	struct text expected = lines_unfold(s->out, strlen(s->out));
	int rc = 0;

	if (s->op == OP_TAKE)
		rc = (int)(in.len - lines_take(l, text_string(&in), in.len, &prefixed, &c->out));
	else if (s->op == OP_END)
		rc = lines_end(l, &prefixed, &c->out);
	else if (s->op == OP_BREAK)
		rc = lines_break(l, &c->out);
	else if (s->op == OP_DROP)
		rc = (int)lines_drop(l, text_string(&in), in.len, &c->out);
	else
		rc = lines_show_bar(l, &prefixed, &c->out);
	assert_int_equal(rc, s->rc);
	c->got.len = 0;
	sink_write(c, SIZE_MAX);
	assert_true(text_is(&c->got, &expected));
	text_done(&in);
	text_done(&expected);
}

static void test_moment(void **state)
{
	const struct moment_row *row = *state;
	struct sink c;
	struct lines l = { 0 };

	sink_make(&c);
	for (const struct step *s = row->steps; s->op != OP_NONE; s++)
		assert_step(s, &l, &c);
	lines_done(&l);
	sink_done(&c);
}

/* A buffer that is full: nothing changes until some of it is written. */
static void test_full(void **state)
{
	struct sink c;
	struct lines l = { 0 };

	(void)state;
	sink_make(&c);
	assert_int_equal(lines_take(&l, "1\r2", 3, &prefixed, &c.out), 3);
	c.out.len = c.out.room - strlen("[0]:2");
	assert_int_equal(lines_show_bar(&l, &prefixed, &c.out), -ENOBUFS);
	assert_int_equal(lines_end(&l, &prefixed, &c.out), -ENOBUFS);
	assert_int_equal(lines_take(&l, "\n", 1, &prefixed, &c.out), 0);
	assert_true(l.bar && !l.said && c.out.len == c.out.room - strlen("[0]:2"));
	c.out.len--;
	assert_int_equal(lines_show_bar(&l, &prefixed, &c.out), 1);
	assert_int_equal(c.out.len, c.out.room);
	assert_memory_equal(c.out.at + c.out.room - 6, "[0]:2\n", 6);
	assert_int_equal(lines_end(&l, &prefixed, &c.out), 0);
	lines_done(&l);
	sink_done(&c);
}

/* An open line leaves a byte for the newline that breaks it off. */
static void test_full_open(void **state)
{
	struct text in = lines_unfold("MMM", 3);
	struct sink c;
	struct lines l = { 0 };
	size_t taken;

	(void)state;
	sink_make(&c);
	taken = lines_take(&l, in.at, in.len, &prefixed, &c.out);
	assert_true(l.open && taken < in.len);
	assert_int_equal(c.out.len, c.out.room - 1);
	assert_int_equal(lines_take(&l, in.at + taken, 1, &prefixed, &c.out), 0);
	assert_int_equal(lines_drop(&l, in.at + taken, in.len - taken, &c.out), 1);
	assert_int_equal(c.out.at[c.out.room - 1], '\n');
	assert_false(l.open);
	assert_int_equal(lines_drop(&l, "\n", 1, &c.out), 0);
	assert_int_equal(lines_take(&l, "\n", 1, &prefixed, &c.out), 0);

	/* where another has put its own there, it must wait */
	c.out.len = 0;
	assert_int_equal(lines_take(&l, in.at, MAX + 1, &prefixed, &c.out), MAX + 1);
	c.out.len = c.out.room;
	assert_int_equal(lines_break(&l, &c.out), -ENOBUFS);
	assert_int_equal(lines_drop(&l, "a", 1, &c.out), -ENOBUFS);
	assert_int_equal(lines_end(&l, &prefixed, &c.out), -ENOBUFS);
	assert_int_equal(lines_take(&l, "a", 1, &prefixed, &c.out), 0);
	assert_true(l.open);
	c.out.len--;
	assert_int_equal(lines_end(&l, &prefixed, &c.out), 0);
	assert_int_equal(c.out.at[c.out.room - 1], '\n');
	assert_false(l.open);
	lines_done(&l);
	sink_done(&c);
	text_done(&in);
}

/* --duplicate-*-filters: lines are chosen by what they show. */
static bool has_k(const char *text, size_t len, void *data)
{
	return memchr(text, *(const char *)data, len);
}

static void test_keep(void **state)
{
	char wanted = 'k';
	const struct lines_style style = { "k:", 2, has_k, &wanted, MAX };
	const char *folded = "a\nkb\nk\rc\nc\rk\n\nM\nkM\nMk\nak";
	struct text in = lines_unfold(folded, strlen(folded));
	const char *expected_folded = "k:kb\nk:k\nk:kM\nk:ak\n";
	struct text expected = lines_unfold(expected_folded, strlen(expected_folded));

	(void)state;
	for (size_t piece = 5; piece < 200000; piece = piece * 3 + 1) {
		struct sink c;
		struct lines l = { 0 };

		sink_make(&c);
		sink_take(&c, &l, in.at, in.len, piece, &style);
		sink_end(&c, &l, &style);
		assert_true(text_is(&c.got, &expected));
		lines_done(&l);
		sink_done(&c);
	}
	text_done(&in);
	text_done(&expected);
}

/* A line that is held, but larger than a buffer: it comes out whole, in pieces. */
static void test_poured(void **state)
{
	const struct lines_style style = { "[0]:", 4, NULL, NULL, 0 };
	struct text in = { 0 }, expected = { 0 };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct text line = lines_unfold("MMM", 3); /* 192 KiB and some */

		text_printf(&in, "%s%sy%s\n", i == 1 ? "bar\r" : "", text_string(&line),
			i == 2 ? "\r" : "");
		text_printf(&expected, "[0]:%sy\n", text_string(&line));
		text_done(&line);
	}
	text_add(&in, "end");
	text_add(&expected, "[0]:end\n");
	for (size_t piece = 1000; piece < 400000; piece = piece * 3 + 1) {
		struct sink c;
		struct lines l = { 0 };

		sink_make(&c);
		sink_take(&c, &l, text_string(&in), in.len, piece, &style);
		assert_false(l.open || l.pouring);
		sink_end(&c, &l, &style);
		assert_true(text_is(&c.got, &expected));
		lines_done(&l);
		sink_done(&c);
	}
	text_done(&in);
	text_done(&expected);
}

/* Dropped in the middle of that, it is broken off, and lost. */
static void test_poured_and_dropped(void **state)
{
	const struct lines_style style = { "[0]:", 4, NULL, NULL, 0 };
	struct text line = lines_unfold("MM", 2);
	struct sink c;
	struct lines l = { 0 };

	(void)state;
	sink_make(&c);
	assert_int_equal(lines_take(&l, line.at, line.len, &style, &c.out), line.len);
	assert_int_equal(lines_take(&l, "\nnext\n", 6, &style, &c.out), 0);
	assert_true(l.open && l.pouring);
	assert_int_equal(lines_break(&l, &c.out), 0);
	assert_true(l.open); /* nothing waits for its stream */
	assert_int_equal(lines_drop(&l, "\nnext\n", 6, &c.out), 2);
	assert_false(l.open || l.pouring || l.dropping);
	assert_int_equal(c.out.at[c.out.len - 1], '\n');
	lines_done(&l);
	sink_done(&c);
	text_done(&line);
}

TESTS(lines)
{
	static struct suite s;

	SUITE_ROWS(&s, test_stream, streams);
	SUITE_ROWS(&s, test_moment, moments);
	suite_add(&s, "a full buffer changes nothing", test_full, NULL, NULL);
	suite_add(&s, "an open line leaves room for its newline", test_full_open, NULL, NULL);
	suite_add(&s, "lines are chosen by what they show", test_keep, NULL, NULL);
	suite_add(&s, "a line larger than the buffer comes out in pieces", test_poured, NULL, NULL);
	suite_add(&s, "unless it is dropped", test_poured_and_dropped, NULL, NULL);
	return suite_run(&s);
}
