/* columns.c - see columns.h */
#include "daemon/ctl/columns.h"

#include <stdint.h>
#include <string.h>

#include "common/text.h"

enum { GAP = 2 };

void columns_add(struct columns *c, const char *cell)
{
	struct text shown = { 0 };

	if (c->filled == c->room) {
		size_t room = c->room ? 2 * c->room : 64;
		const char **cells = arena_alloc(c->arena, room * sizeof *cells);

		if (!cells)
			return;
		if (c->filled > 0)
			memcpy(cells, c->cells, c->filled * sizeof *cells);
		c->cells = cells;
		c->room = room;
	}
	if (cell && *cell)
		text_add_shown(&shown, cell, strlen(cell));
	c->cells[c->filled++] = arena_strdup(c->arena, shown.len > 0 ? text_string(&shown) : "-");
	text_done(&shown);
}

/* Characters, as most terminals show them: bytes that begin one. */
static size_t width_of(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/* At most so many characters of it. */
static void add_cut(struct text *out, const char *s, size_t most)
{
	const char *end = s;

	for (size_t n = 0; *end && n < most; n++)
		do
			end++;
		while (((unsigned char)*end & 0xc0) == 0x80);
	text_add_bytes(out, s, (size_t)(end - s));
}

static size_t column_width(const struct columns *c, unsigned column)
{
	size_t most = 0;

	for (size_t i = column; i < c->filled; i += c->count)
		if (width_of(c->cells[i]) > most)
			most = width_of(c->cells[i]);
	return most;
}

void columns_print(const struct columns *c, size_t width, struct text *out)
{
	size_t wide[COLUMNS_MAX], before = 0;

	for (unsigned k = 0; k < c->count; k++) {
		wide[k] = column_width(c, k);
		before += k + 1 < c->count ? wide[k] + GAP : 0;
	}
	for (size_t i = 0; c->count > 0 && i < c->filled; i++) {
		unsigned k = (unsigned)(i % c->count);

		if (k + 1 == c->count) {
			add_cut(out, c->cells[i],
				width == 0             ? SIZE_MAX :
					width > before ? width - before :
							 1);
			text_add(out, "\n");
			continue;
		}
		text_add(out, c->cells[i]);
		for (size_t n = width_of(c->cells[i]); n < wide[k] + GAP; n++)
			text_add(out, " ");
	}
}
