/* test_tail.c - the last words of a worker: lines of two streams that came in pieces. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/output/tail.h"
#include "tests/unit/daemon/output/console/lines_fixture.h"

/* Pieces as they come: "1abc" is "abc" of stdout, "2abc" of stderr; the text is expected. */
static const struct tail_row {
	const char *says;
	const char *pieces[10];
	unsigned max;
	const char *text;
	const char *fds; /* of each line; "?" behind a line that was cut */
} tails[] = {
	{ "nothing", { NULL }, 9, "", "" },
	{ "a line", { "1a\n" }, 9, "a", "1" },
	{ "a line that has not ended", { "2a\nb" }, 9, "a\nb", "22" },
	{ "the last lines only", { "1a\nb\nc\nd\n" }, 2, "c\nd", "11" },
	{ "no lines", { "1a\n" }, 0, "", "" },
	{ "both streams as they came", { "1a\n", "2b\n", "1c\n" }, 9, "a\nb\nc", "121" },
	{ "a line in pieces", { "1a", "1b", "1c\n" }, 9, "abc", "1" },
	{ "lines that are cut by one another", { "1a", "2x", "1b", "2y\n", "1c\n" }, 9, "xy\nabc",
		"21" },
	{ "a character that is cut by a line", { "1\xc3", "2b\n", "1\xa9\n" }, 9, "b\n\xc3\xa9",
		"21" },
	{ "lines that have not ended end with their last byte", { "1a", "2b", "1c", "2d", "1e" }, 9,
		"bd\nace", "21" },
	{ "an unended line before lines of the other stream", { "1a", "2b\nc\n" }, 9, "a\nb\nc",
		"122" },
	{ "empty lines between", { "1a\n\nb\n" }, 9, "a\n\nb", "111" },
	{ "empty lines count", { "1a\n\nb\n" }, 2, "\nb", "11" },
	{ "empty lines at the end are left out", { "1a\n\n", "2\n\r\n", "1\r" }, 1, "a", "1" },
	{ "nothing but empty lines", { "1\n\n", "2\n\r" }, 9, "", "" },
	{ "a bar", { "1 1%\r 2%", "2x\n", "1\r 3%\r" }, 9, "x\n 3%", "21" },
	{ "a bar that has ended", { "2a\n1%\r2%\r\nb\n" }, 9, "a\n2%\nb", "222" },
	{ "bytes of all kinds", { "1\xff\x1b[0m\t\n" }, 9, "\xff\x1b[0m\t", "1" },
};

static void assert_tail(const struct tail *t, unsigned max, const char *text, const char *fds)
{
	struct arena a = { 0 };
	struct tail_line *lines;
	size_t count = tail_lines(t, max, &a, &lines), i = 0;

	for (; *fds; fds++) {
		assert_true(i < count);
		assert_int_equal(lines[i].fd, *fds - '0');
		assert_int_equal(lines[i].cut, fds[1] == '?');
		fds += fds[1] == '?';
		i++;
	}
	assert_int_equal(count, i);
	assert_string_equal(tail_text(t, max, &a), text);
	assert_false(arena_failed(&a));
	arena_done(&a);
}

static void test_tail(void **state)
{
	const struct tail_row *row = *state;
	struct tail t = { 0 };

	for (size_t i = 0; row->pieces[i]; i++)
		tail_add(&t, row->pieces[i][0] - '0', row->pieces[i] + 1,
			strlen(row->pieces[i]) - 1);
	assert_tail(&t, row->max, row->text, row->fds);
	tail_done(&t);
}

static void add_many(struct tail *t, int fd, char byte, size_t len)
{
	char *many = malloc(len);

	assert_non_null(many);
	memset(many, byte, len);
	tail_add(t, fd, many, len);
	free(many);
}

/* What was first leaves first; a line that has lost its begin says so, one that is whole does not.
 */
static void test_leaving(void **state)
{
	struct tail t = { 0 };

	(void)state;
	tail_add(&t, 2, "a\nerror\nlast\n", 13);
	add_many(&t, 1, '\n', TAIL_BYTES - 13);
	assert_tail(&t, TAIL_BYTES, "a\nerror\nlast", "222");
	add_many(&t, 1, '\n', 1);
	assert_tail(&t, TAIL_BYTES, "error\nlast", "22"); /* of "a" nothing is left but its end */
	add_many(&t, 1, '\n', 1);
	assert_tail(&t, TAIL_BYTES, "error\nlast", "22");
	add_many(&t, 1, '\n', 1);
	assert_tail(&t, TAIL_BYTES, "...rror\nlast", "2?2");
	add_many(&t, 1, '\n', 4);
	assert_tail(&t, TAIL_BYTES, "last", "2");
	add_many(&t, 1, '\n', 1);
	assert_tail(&t, TAIL_BYTES, "last", "2");
	add_many(&t, 1, '\n', 2);
	assert_tail(&t, TAIL_BYTES, "...st", "2?");
	add_many(&t, 1, '\n', TAIL_BYTES);
	assert_tail(&t, TAIL_BYTES, "", "");
	tail_add(&t, 2, "next\n", 5);
	assert_tail(&t, 3, "\n\nnext", "112");
	tail_add(&t, 2, "open", 4);
	add_many(&t, 1, 'x', TAIL_BYTES); /* the other stream's line goes whole */
	tail_add(&t, 2, "ed\n", 3);
	assert_tail(&t, 1, "...ed", "2?");
	assert_int_equal(t.bytes[0], 3 * TAIL_BYTES - 13 + 10);
	assert_int_equal(t.bytes[1], 13 + 5 + 4 + 3);
	tail_done(&t);
}

/* The same of many bytes at once. */
static void test_leaving_at_once(void **state)
{
	static char many[TAIL_BYTES + 2];
	struct tail t = { 0 };
	struct arena a = { 0 };
	struct tail_line *lines;

	(void)state;
	memset(many, 'x', sizeof many);
	for (size_t over = 0; over <= 2; over++) {
		for (int ended = 0; ended < 2; ended++) {
			tail_add(&t, 2, ended ? "e\n" : "e", 1 + (size_t)ended);
			tail_add(&t, 1, ended ? "a\n" : "a", 1 + (size_t)ended);
			if (over > 0)
				many[over - 1] = ended ? '\n' : 'x';
			tail_add(&t, 1, many, TAIL_BYTES + over);
			assert_int_equal(tail_lines(&t, 9, &a, &lines), 1);
			assert_true(lines[0].len == TAIL_BYTES && lines[0].cut == !ended);
			tail_add(&t, 2, "f", 1);
			assert_int_equal(tail_lines(&t, 9, &a, &lines), 2);
			assert_true(lines[1].fd == 2 && lines[1].len == 1);
			assert_true(lines[0].cut && lines[1].cut == !ended);
			tail_done(&t);
		}
	}
	arena_done(&a);
}

/* Of a line that is longer than all that is kept, the end; and no more of it in a text than fits.
 */
static void test_long(void **state)
{
	struct tail t = { 0 };
	struct arena a = { 0 };
	struct tail_line *lines;
	const char *text;

	(void)state;
	tail_add(&t, 1, "a\n", 2);
	add_many(&t, 1, 'x', 100000);
	tail_add(&t, 1, "end\n", 4);
	assert_int_equal(tail_lines(&t, 5, &a, &lines), 1);
	assert_true(lines[0].cut && lines[0].len == TAIL_BYTES - 1);
	text = tail_text(&t, 5, &a);
	assert_int_equal(strlen(text), TAIL_TEXT_MAX);
	assert_memory_equal(text, "...x", 4);
	assert_string_equal(text + TAIL_TEXT_MAX - 4, "xend");

	tail_add(&t, 1, "next\n", 5); /* whole lines: the long one does not fit beside it */
	assert_string_equal(tail_text(&t, 5, &a), "next");
	tail_done(&t);

	/* a bar as long: what it shows is not cut */
	add_many(&t, 1, 'x', 100000);
	tail_add(&t, 1, "\r100%", 5);
	assert_tail(&t, 5, "100%", "1");
	tail_done(&t);

	/* cut between characters, and where there are none */
	for (int i = 0; i < TAIL_TEXT_MAX; i++)
		tail_add(&t, 1, "\xc3\xa9", 2);
	tail_add(&t, 1, "abc", 3); /* cut where a character is in its middle */
	text = tail_text(&t, 1, &a);
	assert_int_equal(strlen(text), TAIL_TEXT_MAX);
	assert_memory_equal(text, "...\xc3\xa9", 5);
	tail_add(&t, 1, "d", 1);
	text = tail_text(&t, 1, &a);
	assert_int_equal(strlen(text), TAIL_TEXT_MAX - 1);
	assert_memory_equal(text, "...\xc3\xa9", 5);
	add_many(&t, 1, '\x80', TAIL_BYTES);
	assert_int_equal(strlen(tail_text(&t, 1, &a)), TAIL_TEXT_MAX - 3);
	tail_done(&t);

	/* as many lines as fit, exactly */
	for (int i = 0; i < 200; i++) {
		add_many(&t, 1 + i % 2, (char)('a' + i % 26), 63);
		tail_add(&t, 1 + i % 2, "\n", 1);
	}
	text = tail_text(&t, 1000, &a);
	assert_int_equal(strlen(text), TAIL_TEXT_MAX - 1);
	assert_true(text[0] == 'a' + (200 - 128) % 26 && text[63] == '\n');
	tail_done(&t);
	arena_done(&a);
}

static void test_nul(void **state)
{
	struct tail t = { 0 };

	(void)state;
	tail_add(&t, 1, "a\0b\0\n", 5);
	assert_tail(&t, 1, "a?b?", "1");
	tail_done(&t);
}

/* Streams that take turns every few bytes leave fewer bytes, and the same lines. */
static void test_turns(void **state)
{
	struct tail t = { 0 };
	struct text now[2] = { { 0 } }, lines[8] = { { 0 } }, expected = { 0 };
	unsigned count = 0;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		const char *piece = i % 2 ? "eee" : "ooo";
		size_t len = 1 + i % 3;

		tail_add(&t, 1 + i % 2, piece, len);
		text_add_bytes(&now[i % 2], piece, len);
		if (i % 50 < 48)
			continue;
		tail_add(&t, 1 + i % 2, "\n", 1);
		text_done(&lines[count % 8]);
		lines[count++ % 8] = now[i % 2];
		now[i % 2] = (struct text){ 0 };
	}
	for (unsigned i = 0; i < 8; i++, count++) {
		text_printf(&expected, "%s%s", i ? "\n" : "", text_string(&lines[count % 8]));
		text_done(&lines[count % 8]);
	}
	assert_tail(&t, 8, text_string(&expected), "12121212");
	text_done(&expected);
	tail_done(&t);
}

/* Linked with --wrap: malloc() fails while there is no memory. Volatile: compilers know that
 * malloc() looks at no variable of ours (with LTO the stores went). */
static volatile bool no_memory;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	return no_memory ? NULL : __real_malloc(size);
}

static void test_oom(void **state)
{
	struct tail t = { 0 };
	struct arena a = { 0 };

	(void)state;
	no_memory = true;
	tail_add(&t, 1, "a\nb", 3);
	no_memory = false;
	assert_null(t.kept);
	assert_int_equal(t.bytes[0], 3);
	assert_tail(&t, 9, "", "");
	tail_add(&t, 1, "c\nd\n", 4);
	tail_add(&t, 2, "e\n", 2);
	assert_tail(&t, 9, "...c\nd\ne", "1?12");
	no_memory = true;
	assert_string_equal(tail_text(&t, 9, &a), "");
	no_memory = false;
	assert_true(arena_failed(&a));
	tail_done(&t);
	arena_done(&a);
}

/* All that came, and what of it must be kept: the rules said plainly. */
struct history {
	char at[400000];
	unsigned char fd[400000];
	size_t len;
};

static void expect(const struct history *h, size_t max, struct text *ret)
{
	struct text open[3] = { { 0 } }, lines[4096];
	size_t from = h->len > TAIL_BYTES ? h->len - TAIL_BYTES : 0, count = 0, left[3] = { 0 };
	bool cut[3] = { false };

	for (size_t i = 0; i < h->len; i++)
		if (i < from)
			cut[h->fd[i]] = h->at[i] != '\n';
		else
			left[h->fd[i]]++;
	for (size_t i = from; i < h->len; i++) {
		unsigned fd = h->fd[i];
		bool last = --left[fd] == 0;
		size_t len;
		const char *shown;

		if (h->at[i] != '\n')
			text_add_bytes(&open[fd], &h->at[i], 1);
		if (h->at[i] != '\n' && !last)
			continue;
		len = open[fd].len;
		shown = lines_shown(text_string(&open[fd]), &len);
		assert_true(count < 4096);
		lines[count] = (struct text){ 0 };
		if (cut[fd] && len == 0) {
			cut[fd] = false;
			open[fd].len = 0;
			continue;
		}
		text_printf(&lines[count], "%u%s:", fd,
			cut[fd] && shown == text_string(&open[fd]) ? "?" : "");
		text_add_bytes(&lines[count++], shown, len);
		cut[fd] = false;
		open[fd].len = 0;
	}
	while (count > 0 && lines[count - 1].at[lines[count - 1].len - 1] == ':')
		text_done(&lines[--count]);
	for (size_t i = 0; i < count; i++) {
		if (i + max >= count) {
			text_add_bytes(ret, lines[i].at, lines[i].len);
			text_add(ret, "\n");
		}
		text_done(&lines[i]);
	}
	text_done(&open[1]);
	text_done(&open[2]);
}

static void test_random(void **state)
{
	static struct history h;

	(void)state;
	for (uint64_t run = 1; run <= 300; run++) {
		uint64_t seed = run * 0x9e3779b97f4a7c15u;
		struct tail t = { 0 };
		struct arena a = { 0 };
		struct text got = { 0 }, expected = { 0 };
		struct tail_line *lines;
		unsigned max = 1 + (unsigned)draw_below(&seed, 200);
		size_t most = run % 3 == 0 ? 20000 : 300, count;

		h.len = 0;
		for (size_t n = draw_below(&seed, 18); n > 0 || h.len % 7 > 1; n -= n > 0) {
			size_t len = 40 + draw_below(&seed, most);
			int fd = 1 + (int)draw_below(&seed, 2);

			if (h.len + len > sizeof h.at)
				break;
			for (size_t i = 0; i < len; i++) {
				h.at[h.len + i] = "ab\n\rcdefghijklmnopqrstuvwxyz\xc3\xa9"
						  "0123456789ABCDEFGHIJKLMN"[draw_below(&seed, 54)];
				h.fd[h.len + i] = (unsigned char)fd;
			}
			tail_add(&t, fd, h.at + h.len, len);
			h.len += len;
		}
		count = tail_lines(&t, max, &a, &lines);
		for (size_t i = 0; i < count; i++) {
			text_printf(&got, "%d%s:", lines[i].fd, lines[i].cut ? "?" : "");
			text_add_bytes(&got, lines[i].at, lines[i].len);
			text_add(&got, "\n");
		}
		expect(&h, max, &expected);
		assert_string_equal(text_string(&got), text_string(&expected));
		tail_done(&t);
		arena_done(&a);
		text_done(&got);
		text_done(&expected);
	}
}

TESTS(tail)
{
	static struct suite s;

	SUITE_ROWS(&s, test_tail, tails);
	suite_add(&s, "what came first leaves first", test_leaving, NULL, NULL);
	suite_add(&s, "many bytes at once drive out all", test_leaving_at_once, NULL, NULL);
	suite_add(&s, "lines that are too long", test_long, NULL, NULL);
	suite_add(&s, "NUL bytes", test_nul, NULL, NULL);
	suite_add(&s, "streams that take turns", test_turns, NULL, NULL);
	suite_add(&s, "no memory", test_oom, NULL, NULL);
	suite_add(&s, "any pieces of two streams", test_random, NULL, NULL);
	return suite_run(&s);
}
