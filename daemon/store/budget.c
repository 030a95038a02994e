/* budget.c - see budget.h */
#include "daemon/store/budget.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	BESIDE = 16, /* what malloc(3) keeps with each piece, about */
	ROOM_MIN = 256,
	BLOB_ROOM_MIN = 24,
	BLOB_SHRINK_ABOVE = 4096,
};

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

/* A blob with one holder, room for so many bytes and those that *at has; it takes the place of *at.
 * NULL: out of memory. */
static struct blob *blob_resize(struct blob **at, struct budget *b, size_t room)
{
	struct blob *was = *at, *now;
	bool shared = was && was->holders > 1;

	if (room < BLOB_ROOM_MIN)
		room = BLOB_ROOM_MIN;
	if (!was || shared)
		now = budget_alloc(b, sizeof *now + room);
	else
		now = budget_resize(b, was, sizeof *was + was->room, sizeof *now + room);
	if (!now)
		return NULL;
	if (!was || shared)
		*now = (struct blob){ .holders = 1 };
	if (shared) {
		now->len = was->len < room ? was->len : room;
		memcpy(now->at, was->at, now->len);
		was->holders--;
	}
	now->room = room;
	*at = now;
	return now;
}

static void blob_fill(struct blob *of, size_t from, const void *bytes, size_t len)
{
	if (len > 0)
		memcpy(of->at + from, bytes, len);
	of->len = from + len;
}

int blob_set(struct blob **at, struct budget *b, const void *bytes, size_t len)
{
	struct blob *v = *at;

	if (v && v->holders > 1) { /* its bytes stay as they are for the others */
		v = NULL;
		if (!blob_resize(&v, b, len))
			return -ENOMEM;
		(*at)->holders--;
		*at = v;
	}
	/* a small one after a large one gives its room back */
	if (!v || len > v->room || (v->room > BLOB_SHRINK_ABOVE && len < v->room / 2))
		v = blob_resize(at, b, len);
	if (!v)
		return -ENOMEM;
	blob_fill(v, 0, bytes, len);
	return 0;
}

int blob_add(struct blob **at, struct budget *b, const void *bytes, size_t len)
{
	struct blob *v = *at;
	size_t all = v ? v->len + len : len;

	if (!v)
		return blob_set(at, b, bytes, len);
	if (v->holders > 1 || all > v->room) {
		v = blob_resize(at, b, all + all / 2);
		if (!v)
			v = blob_resize(at, b, all);
	}
	if (!v)
		return -ENOMEM;
	blob_fill(v, v->len, bytes, len);
	return 0;
}

struct blob *blob_hold(struct blob *of)
{
	of->holders++;
	return of;
}

void blob_drop(struct blob *of, struct budget *b)
{
	if (of && --of->holders == 0)
		budget_free(b, of, sizeof *of + of->room);
}
