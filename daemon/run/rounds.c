/* rounds.c - see rounds.h */
#include "daemon/run/rounds.h"

#include <string.h>

#include "common/text.h"

void rounds_tell(struct rounds *r, size_t room, const struct text *t, uint64_t now_ms)
{
	unsigned next = atomic_load(&r->whole) + 1;
	char *texts = (char *)(r + 1);

	if (t->failed || t->len > room)
		return;
	memcpy(texts + next % 2 * room, text_string(t), t->len);
	r->len[next % 2] = t->len;
	atomic_store(&r->at_ms, now_ms);
	atomic_store(&r->whole, next);
}

bool rounds_take(const struct rounds *r, size_t room, unsigned *taken, struct text *out)
{
	unsigned whole = atomic_load(&r->whole);
	const char *texts = (const char *)(r + 1);
	size_t len = r->len[whole % 2];

	if (whole == *taken)
		return false;
	*taken = whole;
	text_add_bytes(out, texts + whole % 2 * room, len < room ? len : room);
	return true;
}
