/* budget.c - see budget.h */
#include "daemon/store/budget.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BESIDE = 16, ROOM_MIN = 256 }; /* BESIDE: what malloc(3) keeps with each piece, about */

static uint64_t cost(const void *at, size_t size)
{
	return at ? (uint64_t)size + BESIDE : 0;
}

void *budget_resize(struct budget *b, void *at, size_t was, size_t size)
{
	const uint64_t others = b->used - cost(at, was);
	void *now;

	if (size > b->max || others + size + BESIDE > b->max)
		return NULL;
	now = realloc(at, size);
	if (now)
		b->used = others + size + BESIDE;
	return now;
}

void *budget_alloc(struct budget *b, size_t size)
{
	return budget_resize(b, NULL, 0, size);
}

void budget_free(struct budget *b, void *at, size_t size)
{
	b->used -= cost(at, size);
	free(at);
}

int bytes_reserve(struct bytes *to, struct budget *b, size_t more)
{
	size_t room = to->room < ROOM_MIN ? ROOM_MIN : to->room;
	uint8_t *now;

	if (more <= to->room - to->len)
		return 0;
	if (more > SIZE_MAX / 2 - to->len)
		return -ENOMEM;
	while (room < to->len + more)
		room *= 2;
	now = budget_resize(b, to->at, to->room, room);
	if (!now) { /* what is needed may fit where twice as much does not */
		room = to->len + more;
		now = budget_resize(b, to->at, to->room, room);
	}
	if (!now)
		return -ENOMEM;
	to->at = now;
	to->room = room;
	return 0;
}

int bytes_add(struct bytes *to, struct budget *b, const void *more, size_t len)
{
	if (bytes_reserve(to, b, len) < 0)
		return -ENOMEM;
	if (len > 0)
		memcpy(to->at + to->len, more, len);
	to->len += len;
	return 0;
}

void bytes_drop(struct bytes *from, size_t len)
{
	from->len -= len;
	if (len > 0)
		memmove(from->at, from->at + len, from->len);
}

void bytes_done(struct bytes *of, struct budget *b)
{
	budget_free(b, of->at, of->room);
	*of = (struct bytes){ 0 };
}

void bytes_trim(struct bytes *of, struct budget *b, size_t keep)
{
	of->len = 0;
	if (of->room > keep)
		bytes_done(of, b);
}
