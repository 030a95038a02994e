/* fuzz_lines.c - workers' output: any bytes of two streams in any pieces, cut into lines for a
 * console that is slow, and kept as last words.
 *
 * The first byte says in what style. Then come bytes of a stream, and orders: 0xf8 to 0xff and a
 * byte, see obey(). */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "daemon/output/tail.h"
#include "tests/unit/daemon/output/console/lines_fixture.h"

enum { ORDER = 0xf8, PIECES = 300 };

enum order { REPEAT, CUT, WRITE, SWITCH, DROP, BREAK, BAR, TURN };

static bool has_k(const char *text, size_t len, void *data)
{
	(void)data;
	return len > 0 && memchr(text, 'k', len);
}

static const struct lines_style styles[] = { { NULL, 0, NULL, NULL, HELD_MAX },
	{ "[0]:", 4, NULL, NULL, HELD_MAX }, { "[0]:", 4, has_k, NULL, HELD_MAX },
	{ NULL, 0, has_k, NULL, HELD_MAX } };

/* The input without its orders, but for those that repeat: 300 times n bytes, so that few bytes of
 * input make a line that is too long. Where the pieces end is kept. */
struct stream {
	struct text bytes;
	size_t ends[PIECES], count;
	enum order orders[PIECES];
	uint8_t numbers[PIECES];
};

static void stream_make(struct stream *s, const uint8_t *at, size_t len)
{
	static char many[300 * UINT8_MAX];

	*s = (struct stream){ 0 };
	for (size_t i = 0; i < len; i++) {
		if (at[i] < ORDER || i + 1 == len) {
			text_add_bytes(&s->bytes, (const char *)&at[i], 1);
		} else if (at[i] - ORDER == REPEAT) {
			size_t n = s->bytes.len < 3 * HELD_MAX ? 300u * at[++i] : 0;

			memset(many, s->bytes.len ? s->bytes.at[s->bytes.len - 1] : 'k', n);
			text_add_bytes(&s->bytes, many, n);
		} else if (s->count + 1 < PIECES) {
			s->orders[s->count] = (enum order)(at[i] - ORDER);
			s->numbers[s->count] = at[++i];
			s->ends[s->count++] = s->bytes.len;
		}
	}
	s->orders[s->count] = CUT;
	s->ends[s->count++] = s->bytes.len;
	PROMISE(!s->bytes.failed);
}

/* Pieces don't matter: it is what the rules make of the whole. */
static void check_pieces(const struct stream *s, const struct lines_style *style)
{
	struct text expected = { 0 };
	struct lines l = { 0 };
	struct sink c;
	size_t at = 0;

	plain_lines(text_string(&s->bytes), s->bytes.len, style, &expected);
	sink_make(&c);
	for (size_t i = 0; i < s->count; i++) {
		sink_take(&c, &l, text_string(&s->bytes) + at, s->ends[i] - at, SIZE_MAX, style);
		at = s->ends[i];
		if (s->orders[i] == WRITE)
			sink_write(&c, s->numbers[i] * 300u);
	}
	sink_end(&c, &l, style);
	PROMISE(text_is(&c.got, &expected));
	PROMISE(l.len == 0 && l.room <= HELD_MAX && !l.open && !l.dropping);
	lines_done(&l);
	sink_done(&c);
	text_done(&expected);
}

/* What is done at a moment; it leaves whole lines. */
static void obey(struct sink *c, struct lines *l, enum order order, const char *at, size_t len,
	const struct lines_style *style, size_t *lost)
{
	bool was_open = l->open;
	ssize_t n;

	if (order == DROP) {
		n = lines_drop(l, at, len, &c->out);
		PROMISE(n >= 0 && (size_t)n <= len);
		PROMISE(len == 0 || !l->open);
		*lost += (size_t)n;
		return;
	}
	sink_take(c, l, at, len, SIZE_MAX, style);
	if (order == BREAK) {
		PROMISE(lines_break(l, &c->out) == 0 && !l->open);
	} else if (order == BAR) {
		int rc = lines_show_bar(l, style, &c->out);

		PROMISE(rc == 0 || rc == 1 || (rc == -ENOBUFS && c->out.len > 0));
		PROMISE(rc == 0 || !l->open);
		PROMISE(rc < 1 || lines_show_bar(l, style, &c->out) == 0);
	} else if (order == SWITCH && !l->open && !was_open) {
		sink_write(c, SIZE_MAX); /* another stream's lines */
		text_add(&c->got, "[0]:other\n");
	}
}

/* Everything at once: each line begins with the prefix, unless an open one goes on as it is. */
static void check_moments(const struct stream *s)
{
	const struct lines_style *style = &styles[1];
	struct lines l = { 0 };
	struct sink c;
	size_t at = 0, lost = 0;

	sink_make(&c);
	for (size_t i = 0; i < s->count; i++) {
		obey(&c, &l, s->orders[i], text_string(&s->bytes) + at, s->ends[i] - at, style,
			&lost);
		at = s->ends[i];
		if (s->orders[i] == WRITE)
			sink_write(&c, s->numbers[i] * 300u);
		PROMISE(l.len <= HELD_MAX && l.room <= HELD_MAX);
		PROMISE(!l.open || c.out.len < c.out.room);
		PROMISE(!(l.open && (l.dropping || l.said || l.len > 0)));
	}
	sink_end(&c, &l, style);
	PROMISE(lost <= s->bytes.len);
	at = 0;
	while (at < c.got.len) {
		const char *newline = memchr(c.got.at + at, '\n', c.got.len - at);

		PROMISE(newline && c.got.len - at > 4 && memcmp(c.got.at + at, "[0]:", 4) == 0);
		at = (size_t)(newline + 1 - c.got.at);
	}
	lines_done(&l);
	sink_done(&c);
}

static void check_tail(const struct stream *s)
{
	struct tail t = { 0 };
	struct arena arena = { 0 };
	struct tail_line *lines;
	size_t at = 0, count, sum = 0;
	unsigned max = s->numbers[0] * 10u;
	int fd = 1;

	for (size_t i = 0; i < s->count; i++) {
		tail_add(&t, fd, text_string(&s->bytes) + at, s->ends[i] - at);
		at = s->ends[i];
		if (s->orders[i] == TURN)
			fd = 3 - fd;
	}
	PROMISE(t.bytes[0] + t.bytes[1] == s->bytes.len);
	count = tail_lines(&t, max, &arena, &lines);
	PROMISE(count <= max);
	for (size_t i = 0; i < count; i++) {
		PROMISE(lines[i].fd == 1 || lines[i].fd == 2);
		PROMISE(lines[i].len == 0 || !memchr(lines[i].at, '\n', lines[i].len));
		PROMISE(lines[i].len == 0 || !memchr(lines[i].at, '\r', lines[i].len));
		sum += lines[i].len;
	}
	PROMISE(count == 0 || lines[count - 1].len > 0);
	PROMISE(sum <= TAIL_BYTES);
	PROMISE(strlen(tail_text(&t, max, &arena)) <= TAIL_TEXT_MAX);
	PROMISE((*tail_text(&t, max, &arena) == '\0') == (count == 0));
	tail_done(&t);
	arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct stream s;

	if (len == 0)
		return 0;
	stream_make(&s, bytes + 1, len - 1);
	check_pieces(&s, &styles[bytes[0] % (sizeof styles / sizeof *styles)]);
	check_moments(&s);
	check_tail(&s);
	text_done(&s.bytes);
	return 0;
}
