/* lines.c - see lines.h */
#include "daemon/output/console/lines.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What a stream keeps between its lines; more was for a long one and goes back. */
enum { ROOM_FIRST = 256, ROOM_KEPT = 8 * 1024 };

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t held_max(const struct lines_style *style)
{
	return style->held_max ? style->held_max : LINES_HELD_MAX;
}

static void put(struct outbuf *out, const char *at, size_t len)
{
	if (len == 0)
		return;
	memcpy(out->at + out->len, at, len);
	out->len += len;
}

/* text[len] is any byte, so that where it is a '\n' both are one copy. False: out is full. */
static bool put_line(const struct lines_style *style, const char *text, size_t len, bool ended,
	struct outbuf *out)
{
	if (style->keep && !style->keep(text, len, style->data))
		return true;
	if (out->room - out->len < style->prefix_len + len + 1)
		return false;
	put(out, style->prefix, style->prefix_len);
	put(out, text, len + ended);
	if (!ended)
		out->at[out->len++] = '\n';
	return true;
}

const char *lines_shown(const char *text, size_t *len)
{
	const char *cr;

	while (*len > 0 && text[*len - 1] == '\r')
		--*len;
	cr = *len > 0 ? memrchr(text, '\r', *len) : NULL;
	if (!cr)
		return text;
	*len -= (size_t)(cr + 1 - text);
	return cr + 1;
}

static int reserve(struct lines *l, size_t size)
{
	size_t room = l->room ? l->room : ROOM_FIRST;
	char *held;

	while (room < size)
		room *= 2;
	if (room == l->room)
		return 0;
	held = realloc(l->held, room);
	if (!held)
		return -ENOMEM;
	l->held = held;
	l->room = room;
	return 0;
}

/* The line is over, or is held no longer. */
static void forget(struct lines *l)
{
	l->len = l->poured = 0;
	l->cr = l->bar = l->said = l->pouring = false;
	if (l->room > ROOM_KEPT) {
		free(l->held);
		l->held = NULL;
		l->room = 0;
	}
}

static bool is_new(const struct lines *l)
{
	return l->len == 0 && !l->cr && !l->said;
}

/* Adds to what is held. There is no '\n', and the caller has seen to the limit. */
static int absorb(struct lines *l, const char *at, size_t len)
{
	size_t shown = len, kept;
	const char *text = lines_shown(at, &shown);
	bool fresh = l->cr || text > at;

	if (shown == 0) {
		l->cr = l->bar = true;
		return 0;
	}
	kept = fresh ? 0 : l->len;
	if (reserve(l, kept + shown) < 0)
		return -ENOMEM;
	memcpy(l->held + kept, text, shown);
	l->len = kept + shown;
	l->cr = at[len - 1] == '\r';
	l->bar = l->bar || fresh || l->cr;
	l->said = false;
	return 0;
}

/* Puts what is held piece by piece, as it is larger than a buffer. The line is open as long: one
 * byte of room stays, for the '\n' that ends or breaks it. False: there is more. */
static bool pour(struct lines *l, size_t len, const struct lines_style *style, struct outbuf *out)
{
	size_t n;

	if (!l->open) {
		if (out->room - out->len < style->prefix_len + 1)
			return false;
		put(out, style->prefix, style->prefix_len);
		l->open = l->pouring = true;
		l->poured = 0;
	}
	n = least(len - l->poured, out->room - out->len - 1);
	if (n > 0) /* else nothing may be held at all */
		put(out, l->held + l->poured, n);
	l->poured += n;
	l->pouring = l->poured < len;
	return !l->pouring;
}

/* Gives up holding the line. */
static bool open_line(struct lines *l, const struct lines_style *style, struct outbuf *out)
{
	size_t len = l->cr ? 0 : l->len;

	if (!l->pouring && style->keep && !style->keep(len ? l->held : "", len, style->data))
		l->dropping = true;
	else if (!pour(l, len, style, out))
		return false;
	forget(l);
	return true;
}

/* Puts what is held as a line that has ended. False: out is full. */
static bool put_held(struct lines *l, const struct lines_style *style, struct outbuf *out)
{
	const char *text = l->len ? l->held : "";

	if (!l->pouring && style->prefix_len + l->len + 1 <= out->room)
		return put_line(style, text, l->len, false, out);
	if (!l->pouring && style->keep && !style->keep(text, l->len, style->data))
		return true;
	if (!pour(l, l->len, style, out))
		return false;
	put(out, "\n", 1);
	l->open = false;
	return true;
}

/* Takes the bytes of one line into what is held, and puts it when it ends. False: out is full. */
static bool take_held(struct lines *l, const char **at, const char *end,
	const struct lines_style *style, struct outbuf *out)
{
	const char *newline = memchr(*at, '\n', (size_t)(end - *at));
	const char *stop = newline ? newline : end;
	size_t most = held_max(style);

	while (*at < stop) {
		size_t room = l->cr ? most : most - l->len;
		size_t n = least((size_t)(stop - *at), room);

		if (n == 0 && **at == '\r')
			n = 1;
		if (l->pouring || n == 0 || absorb(l, *at, n) < 0)
			return open_line(l, style, out);
		*at += n;
	}
	if (!newline)
		return true;
	if (!l->said && !put_held(l, style, out))
		return false;
	forget(l);
	++*at;
	return true;
}

/* Passes an open line on as it is. */
static bool take_open(struct lines *l, const char **at, const char *end, struct outbuf *out)
{
	size_t len = (size_t)(end - *at), room = out->room - out->len;
	const char *newline = memchr(*at, '\n', least(len, room));

	if (newline) {
		len = (size_t)(newline + 1 - *at);
		l->open = false;
	} else {
		len = room > 0 ? least(len, room - 1) : 0;
	}
	put(out, *at, len);
	*at += len;
	return len > 0;
}

static void take_dropped(struct lines *l, const char **at, const char *end)
{
	const char *newline = memchr(*at, '\n', (size_t)(end - *at));

	*at = newline ? newline + 1 : end;
	l->dropping = !newline;
}

/* Where nothing is held: copies whole lines, without a second thought where nothing is put before
 * them. Stops at a line that does not end here, does not fit, or is too long. */
static void take_whole(
	const char **ret_at, const char *end, const struct lines_style *style, struct outbuf *out)
{
	bool bulk = style->prefix_len == 0 && !style->keep;
	const char *at = *ret_at, *cr = memchr(at, '\r', (size_t)(end - at));

	while (at < end) {
		const char *newline, *text = at;
		size_t len = least((size_t)((cr ? cr : end) - at), out->room - out->len);

		if (bulk && (newline = memrchr(at, '\n', len))) {
			len = (size_t)(newline + 1 - at);
			put(out, at, len);
			at += len;
			continue;
		}
		newline = memchr(at, '\n', least((size_t)(end - at), held_max(style) + 1));
		if (!newline)
			break;
		len = (size_t)(newline - at);
		if (cr && cr < newline)
			text = lines_shown(at, &len);
		if (!put_line(style, text, len, text[len] == '\n', out))
			break;
		at = newline + 1;
		if (cr && cr < at)
			cr = memchr(at, '\r', (size_t)(end - at));
	}
	*ret_at = at;
}

size_t lines_take(struct lines *l, const char *at, size_t len, const struct lines_style *style,
	struct outbuf *out)
{
	const char *begin = at, *end = at + len;
	bool fits = true;

	assert(style->prefix_len <= PREFIX_MAX && out->room >= LINES_ROOM_MIN);
	while (fits && at < end) {
		if (l->dropping) {
			take_dropped(l, &at, end);
		} else if (l->open && !l->pouring) {
			fits = take_open(l, &at, end, out);
		} else {
			if (is_new(l))
				take_whole(&at, end, style, out);
			if (at < end)
				fits = take_held(l, &at, end, style, out);
		}
	}
	return (size_t)(at - begin);
}

int lines_end(struct lines *l, const struct lines_style *style, struct outbuf *out)
{
	int rc = l->pouring ? 0 : lines_break(l, out);

	if (rc < 0)
		return rc;
	if (l->len > 0 && !l->said && !put_held(l, style, out))
		return -ENOBUFS;
	l->dropping = false;
	forget(l);
	return 0;
}

int lines_break(struct lines *l, struct outbuf *out)
{
	if (!l->open || l->pouring) /* what is poured waits for no stream */
		return 0;
	if (out->len == out->room)
		return -ENOBUFS;
	out->at[out->len++] = '\n';
	l->open = false;
	l->said = true;
	return 0;
}

size_t lines_count(const char *at, size_t len)
{
	const char *end = at + len;
	size_t count = 0;

	while (at < end && (at = memchr(at, '\n', (size_t)(end - at)))) {
		count++;
		at++;
	}
	return count;
}

ssize_t lines_drop(struct lines *l, const char *at, size_t len, struct outbuf *out)
{
	/* of the first line nothing is lost, or it was counted when its start was */
	bool counted = l->dropping, poured = l->pouring;
	size_t lost;
	int rc;

	if (len == 0)
		return 0;
	l->pouring = false;
	rc = lines_break(l, out);
	if (rc < 0)
		return rc;
	counted = counted || (l->said && !poured && at[0] == '\n');
	l->dropping = at[len - 1] != '\n';
	lost = lines_count(at, len) + l->dropping - counted;
	forget(l);
	return (ssize_t)lost;
}

int lines_show_bar(struct lines *l, const struct lines_style *style, struct outbuf *out)
{
	if (!l->bar || l->said || l->len == 0)
		return 0;
	if (!put_line(style, l->held, l->len, false, out))
		return -ENOBUFS;
	l->said = true;
	return 1;
}

void lines_done(struct lines *l)
{
	free(l->held);
	*l = (struct lines){ 0 };
}
