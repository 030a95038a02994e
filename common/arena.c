/* arena.c - see arena.h */
#include "common/arena.h"

#include <stdarg.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 16384 };

struct arena_block {
	struct arena_block *before;
	size_t size, used;
	alignas(max_align_t) unsigned char bytes[];
};

static struct arena_block *block_new(struct arena *a, size_t size)
{
	size_t room = size > BLOCK_BYTES ? size : BLOCK_BYTES;
	struct arena_block *b;

	if (room > SIZE_MAX - sizeof *b)
		return NULL;
	b = malloc(sizeof *b + room);
	if (!b)
		return NULL;
	b->before = a->last;
	b->size = room;
	b->used = 0;
	a->last = b;
	return b;
}

void *arena_alloc(struct arena *a, size_t size)
{
	const size_t align = alignof(max_align_t);
	struct arena_block *b = a->last;
	void *p;

	if (size > SIZE_MAX - align) {
		a->failed = true;
		return NULL;
	}
	size = (size + align - 1) & ~(align - 1);
	if (!b || b->size - b->used < size)
		b = block_new(a, size);
	if (!b) {
		a->failed = true;
		return NULL;
	}
	p = b->bytes + b->used;
	b->used += size;
	memset(p, 0, size);
	return p;
}

/* What a string function returns when out of memory; writable, but nobody writes beyond its NUL. */
static char *no_string(void)
{
	static char none[1];

	return none;
}

char *arena_strndup(struct arena *a, const char *s, size_t len)
{
	char *p = arena_alloc(a, len + 1);

	if (!p)
		return no_string();
	memcpy(p, s, len);
	return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	int len;
	char *p;

	va_start(ap, fmt);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	p = len < 0 ? NULL : arena_alloc(a, (size_t)len + 1);
	if (!p) {
		a->failed = true;
		return no_string();
	}
	va_start(ap, fmt);
	(void)vsnprintf(p, (size_t)len + 1, fmt, ap);
	va_end(ap);
	return p;
}

bool arena_failed(const struct arena *a)
{
	return a->failed;
}

struct arena_mark arena_mark(const struct arena *a)
{
	return (struct arena_mark){ a->last, a->last ? a->last->used : 0 };
}

void arena_rewind(struct arena *a, struct arena_mark to)
{
	while (a->last != to.last) {
		struct arena_block *b = a->last;

		a->last = b->before;
		free(b);
	}
	if (a->last)
		a->last->used = to.used;
}

void arena_done(struct arena *a)
{
	arena_rewind(a, (struct arena_mark){ NULL, 0 });
	a->failed = false;
}
