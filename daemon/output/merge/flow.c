/* flow.c - see flow.h */
#include "daemon/output/merge/flow.h"

#include <stdlib.h>
#include <string.h>

/* What an empty one keeps. */
enum { ROOM_FIRST = 4 * 1024 };

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t flow_left(const struct flow *f)
{
	return f->len - f->done;
}

static void grow(struct flow *f, size_t size)
{
	size_t room = f->room ? f->room : ROOM_FIRST;
	char *at;

	while (room < size)
		room *= 2;
	room = least(room, f->max);
	at = realloc(f->at, room);
	if (!at)
		return;
	f->at = at;
	f->room = room;
}

size_t flow_add(struct flow *f, const char *at, size_t len)
{
	size_t left = flow_left(f), n = least(len, f->max - left);

	if (n > f->room - f->len && f->done > 0) {
		memmove(f->at, f->at + f->done, left);
		f->len = left;
		f->done = 0;
	}
	if (n > f->room - f->len)
		grow(f, f->len + n);
	n = least(n, f->room - f->len);
	if (n > 0)
		memcpy(f->at + f->len, at, n);
	f->len += n;
	return n;
}

/* So many bytes are not held any more. */
static void drop(struct flow *f, size_t len)
{
	f->done += len;
	if (f->done < f->len)
		return;
	f->done = f->len = 0;
	if (f->room > ROOM_FIRST) {
		free(f->at);
		f->at = NULL;
		f->room = 0;
	}
}

bool flow_is_ready(const struct flow *f, bool press)
{
	size_t left = flow_left(f);

	if (f->open)
		return left > 0 || f->ended;
	return left > 0 && (press || f->ended || memrchr(f->at + f->done, '\n', left));
}

/* The end of a line that was cut puts nothing. */
static size_t skip_end(struct flow *f)
{
	bool is_end = f->cut && flow_left(f) > 0 && f->at[f->done] == '\n';

	if (flow_left(f) > 0)
		f->cut = false;
	if (is_end)
		drop(f, 1);
	return is_end;
}

/* How many bytes can be put, and whether a line is open behind them. */
static size_t count(const struct flow *f, size_t room, bool press, bool *ret_open)
{
	const char *at = f->at ? f->at + f->done : "";
	size_t left = flow_left(f), n = least(left, room);
	const char *end = n > 0 ? memrchr(at, '\n', n) : NULL;

	*ret_open = f->open;
	if (end) {
		*ret_open = false;
		return (size_t)(end + 1 - at);
	}
	if (room == 0 || !(f->open || press || f->ended || left > room))
		return 0;
	n = least(left, room - 1);
	*ret_open = f->open || n > 0;
	return n;
}

size_t flow_put(struct flow *f, struct outbuf *out, bool press)
{
	size_t skipped = skip_end(f), n;

	n = count(f, out->room - out->len, press, &f->open);
	if (n > 0)
		memcpy(out->at + out->len, f->at + f->done, n);
	out->len += n;
	drop(f, n);
	if (f->open && f->ended && flow_left(f) == 0 && out->len < out->room) {
		out->at[out->len++] = '\n';
		f->open = false;
	}
	return skipped + n;
}

bool flow_cut(struct flow *f, struct outbuf *out)
{
	if (!f->open)
		return true;
	if (out->len == out->room)
		return false;
	out->at[out->len++] = '\n';
	f->open = false;
	f->cut = true;
	return true;
}

size_t flow_take(struct flow *f, char *ret, size_t room, bool *ret_mid)
{
	size_t n = least(flow_left(f), room);
	const char *at, *end;

	if (n == 0)
		return 0;
	at = f->at + f->done;
	end = memrchr(at, '\n', n);
	*ret_mid = !end;
	if (end)
		n = (size_t)(end + 1 - at);
	memcpy(ret, at, n);
	drop(f, n);
	return n;
}

void flow_done(struct flow *f)
{
	free(f->at);
	*f = (struct flow){ .max = f->max };
}
