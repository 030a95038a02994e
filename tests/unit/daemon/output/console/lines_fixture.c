/* lines_fixture.c - see lines_fixture.h */
#include "tests/unit/daemon/output/console/lines_fixture.h"

#include <stdlib.h>
#include <string.h>

static void need(bool holds)
{
	if (!holds)
		abort();
}

/* One line without its '\n', by what it has between its '\r's. */
static void plain_line(
	const char *at, size_t len, bool ended, const struct lines_style *style, struct text *ret)
{
	const char *shown = at, *end = at + len, *next;
	size_t shown_len = 0;

	for (const char *from = at; from <= end; from = next + 1) {
		size_t n;

		next = memchr(from, '\r', (size_t)(end - from));
		next = next ? next : end;
		n = (size_t)(next - from);
		if (n == 0)
			continue;
		shown = from;
		shown_len = n;
		if (n <= HELD_MAX)
			continue;
		shown_len = (size_t)(end - from); /* from here on it is passed as it is */
		break;
	}
	if (shown_len == 0 && !ended)
		return;
	if (style->keep &&
		!style->keep(shown, shown_len < HELD_MAX ? shown_len : HELD_MAX, style->data))
		return;
	text_add_bytes(ret, style->prefix_len ? style->prefix : "", style->prefix_len);
	text_add_bytes(ret, shown, shown_len);
	text_add(ret, "\n");
}

void plain_lines(const char *at, size_t len, const struct lines_style *style, struct text *ret)
{
	const char *end = at + len;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;

		plain_line(at, (size_t)(stop - at), newline, style, ret);
		at = stop + 1;
	}
	need(!ret->failed);
}

void sink_make(struct sink *c)
{
	*c = (struct sink){ .out = { malloc(LINES_ROOM_MIN), 0, LINES_ROOM_MIN } };
	need(c->out.at);
}

void sink_done(struct sink *c)
{
	free(c->out.at);
	text_done(&c->got);
}

void sink_write(struct sink *c, size_t most)
{
	size_t n = most < c->out.len ? most : c->out.len;

	text_add_bytes(&c->got, c->out.at, n);
	need(!c->got.failed);
	c->out.len -= n;
	memmove(c->out.at, c->out.at + n, c->out.len);
}

void sink_take(struct sink *c, struct lines *l, const char *at, size_t len, size_t piece,
	const struct lines_style *style)
{
	while (len > 0) {
		size_t n = len < piece ? len : piece, taken;
		char *exact = malloc(n);

		need(exact);
		memcpy(exact, at, n);
		taken = lines_take(l, exact, n, style, &c->out);
		free(exact);
		need(taken <= n && c->out.len <= c->out.room &&
			l->len <= (style->held_max ? style->held_max : LINES_HELD_MAX));
		need(taken == n || c->out.len > 0); /* an empty buffer always lets it go on */
		if (taken < n)
			sink_write(c, SIZE_MAX);
		at += taken;
		len -= taken;
	}
}

void sink_end(struct sink *c, struct lines *l, const struct lines_style *style)
{
	while (lines_end(l, style, &c->out) < 0) {
		need(c->out.len > 0);
		sink_write(c, SIZE_MAX);
	}
	sink_write(c, SIZE_MAX);
}

struct text lines_unfold(const char *folded, size_t len)
{
	static char x[HELD_MAX + 1];
	struct text t = { 0 };

	memset(x, 'x', sizeof x);
	for (size_t i = 0; i < len; i++)
		if (folded[i] == 'L' || folded[i] == 'M')
			text_add_bytes(&t, x, HELD_MAX + (folded[i] == 'M'));
		else
			text_add_bytes(&t, folded + i, 1);
	need(!t.failed);
	return t;
}

bool text_is(const struct text *got, const struct text *expected)
{
	return got->len == expected->len &&
		(got->len == 0 || memcmp(got->at, expected->at, got->len) == 0);
}

size_t draw_below(uint64_t *seed, size_t below)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed % below;
}
