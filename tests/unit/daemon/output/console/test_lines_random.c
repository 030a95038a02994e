/* test_lines_random.c - any bytes in any pieces give the same lines: against rules said plainly. */
#include "tests/unit/unit.h"

#include <string.h>

#include "tests/unit/daemon/output/console/lines_fixture.h"

enum { MAX = HELD_MAX, RUNS = SANITIZED ? 40 : 200 };

/* Lines of all kinds; many that end near what may be held. */
static void add_line(struct text *t, uint64_t *seed)
{
	static const char *const ends[] = { "\n", "\n", "\n", "\r\n", "\r\r\n", "\r" };
	static const char bytes[] = "abc d\0\xff\xc3\xa9\x1b[k\t\r\r";
	static char x[3 * MAX];
	size_t kind = draw_below(seed, 40);
	size_t len = kind == 0 ? MAX - 3 + draw_below(seed, 7) :
		kind == 1      ? draw_below(seed, sizeof x) :
		kind < 5       ? draw_below(seed, 9000) :
				 draw_below(seed, 30);

	if (!x[0])
		memset(x, 'x', sizeof x);
	if (kind < 5)
		text_add_bytes(t, x, len);
	else
		for (size_t i = 0; i < len; i++)
			text_add_bytes(t, &bytes[draw_below(seed, sizeof bytes - 1)], 1);
	text_add(t, ends[draw_below(seed, sizeof ends / sizeof *ends)]);
}

static size_t piece_below(uint64_t *seed)
{
	static const size_t most[] = { 2, 20, 200, 5000, MAX + 2, 4 * MAX };

	return 1 + draw_below(seed, most[draw_below(seed, sizeof most / sizeof *most)]);
}

static bool has_k(const char *text, size_t len, void *data)
{
	(void)data;
	return memchr(text, 'k', len);
}

/* Feeds the stream in pieces, and writes out some bytes now and then. */
static void feed(
	struct sink *c, const struct text *in, const struct lines_style *style, uint64_t *seed)
{
	struct lines l = { 0 };
	size_t most = piece_below(seed), slow = draw_below(seed, 3);

	for (size_t at = 0; at < in->len;) {
		size_t n = 1 + draw_below(seed, most);

		if (n > in->len - at)
			n = in->len - at;
		if (draw_below(seed, 8) == 0) {
			/* as it is done in earnest: what isn't taken comes again */
			n = lines_take(&l, in->at + at, n, style, &c->out);
			sink_write(c, slow ? draw_below(seed, 3 * most) : SIZE_MAX);
		} else {
			sink_take(c, &l, in->at + at, n, 1 + draw_below(seed, most), style);
		}
		at += n;
	}
	sink_end(c, &l, style);
	lines_done(&l);
}

static void test_random(void **state)
{
	static const struct lines_style styles[] = { { NULL, 0, NULL, NULL, HELD_MAX },
		{ "[0]:", 4, NULL, NULL, HELD_MAX }, { "[0]:", 4, has_k, NULL, HELD_MAX },
		{ NULL, 0, has_k, NULL, HELD_MAX } };

	(void)state;
	for (uint64_t run = 1; run <= RUNS; run++) {
		uint64_t seed = run * 0x9e3779b97f4a7c15u;
		const struct lines_style *style = &styles[run % 4];
		struct text in = { 0 }, expected = { 0 };
		struct sink c;

		for (size_t n = draw_below(&seed, 60); n > 0; n--)
			add_line(&in, &seed);
		plain_lines(text_string(&in), in.len, style, &expected);
		sink_make(&c);
		feed(&c, &in, style, &seed);
		if (!text_is(&c.got, &expected))
			fail_msg("run %u: %zu bytes, not %zu, or others", (unsigned)run, c.got.len,
				expected.len);
		sink_done(&c);
		text_done(&in);
		text_done(&expected);
	}
}

/* At any moment some bytes are dropped: what comes out are whole lines still, and each line that
 * does not come out is counted once. */
static void test_drops(void **state)
{
	const struct lines_style style = { .prefix = "P", .prefix_len = 1, .held_max = HELD_MAX };

	(void)state;
	for (uint64_t run = 1; run <= RUNS; run++) {
		uint64_t seed = run * 0x9e3779b97f4a7c15u;
		struct lines l = { 0 };
		struct sink c;
		size_t lines = 0, lost = 0, whole = 0;

		sink_make(&c);
		for (int i = 0; i < 200; i++) {
			static const char *const pieces[] = { "x", "xy", "\n", "x\n", "\n\n",
				"xyz" };
			const char *piece = pieces[draw_below(&seed, 6)];
			size_t len = strlen(piece);

			for (size_t k = 0; k < len; k++)
				lines += piece[k] == '\n';
			if (draw_below(&seed, 6) == 0) {
				ssize_t n = lines_drop(&l, piece, len, &c.out);

				assert_true(n >= 0);
				lost += (size_t)n;
			} else {
				sink_take(&c, &l, piece, len, 2, &style);
			}
		}
		lines += l.len > 0 || l.dropping; /* has not ended */
		sink_end(&c, &l, &style);
		for (size_t i = 0; i < c.got.len; i++) {
			if (i == 0 || c.got.at[i - 1] == '\n')
				assert_int_equal(c.got.at[i], 'P');
			whole += c.got.at[i] == '\n';
		}
		assert_true(lost > 0 && whole > 0);
		assert_int_equal(whole + lost, lines);
		lines_done(&l);
		sink_done(&c);
	}
}

TESTS(lines_random)
{
	static struct suite s;

	suite_add(&s, "any bytes in any pieces give the same lines", test_random, NULL, NULL);
	suite_add(&s, "each line comes out whole or is counted once", test_drops, NULL, NULL);
	return suite_run(&s);
}
