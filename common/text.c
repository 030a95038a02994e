/* text.c - see text.h */
#include "common/text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool text_reserve(struct text *t, size_t more)
{
	size_t room = t->room ? t->room : 256;
	char *at;

	if (t->failed || more > SIZE_MAX / 4 - t->len) {
		t->failed = true;
		return false;
	}
	while (room < t->len + more + 1)
		room *= 2;
	if (room == t->room)
		return true;
	at = realloc(t->at, room);
	if (!at) {
		t->failed = true;
		return false;
	}
	t->at = at;
	t->room = room;
	return true;
}

void text_add_bytes(struct text *t, const char *s, size_t len)
{
	if (!text_reserve(t, len))
		return;
	memcpy(t->at + t->len, s, len);
	t->len += len;
	t->at[t->len] = '\0';
}

void text_add(struct text *t, const char *s)
{
	text_add_bytes(t, s, strlen(s));
}

void text_vprintf(struct text *t, const char *fmt, va_list ap)
{
	va_list again;
	int len;

	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, ap);
	if (len < 0 || !text_reserve(t, (size_t)len)) {
		t->failed = true;
	} else {
		(void)vsnprintf(t->at + t->len, (size_t)len + 1, fmt, again);
		t->len += (size_t)len;
	}
	va_end(again);
}

void text_printf(struct text *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	text_vprintf(t, fmt, ap);
	va_end(ap);
}

static bool is_plain(const char *s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-+=./,:@%^";

	return *s && s[strspn(s, plain)] == '\0';
}

void text_add_shell(struct text *t, const char *s)
{
	bool control = false;

	if (is_plain(s)) {
		text_add(t, s);
		return;
	}
	for (const char *p = s; *p; p++)
		control = control || (unsigned char)*p < 0x20 || *p == 0x7f;
	text_add(t, control ? "$'" : "'");
	for (; *s; s++) {
		if (control && ((unsigned char)*s < 0x20 || *s == 0x7f))
			text_printf(t, "\\%03o", (unsigned char)*s);
		else if (control && (*s == '\'' || *s == '\\'))
			text_printf(t, "\\%c", *s);
		else if (*s == '\'')
			text_add(t, "'\\''");
		else
			text_add_bytes(t, s, 1);
	}
	text_add(t, "'");
}

/* Length of the UTF-8 sequence at s (RFC 3629, no surrogates, no overlong forms); 0: none. Looks no
 * farther than max bytes: a sequence that is right so far but cut there is longer than max. */
static size_t utf8_length(const unsigned char *s, size_t max)
{
	size_t n = *s < 0x80            ? 1 :
		*s >= 0xc2 && *s < 0xe0 ? 2 :
		*s >= 0xe0 && *s < 0xf0 ? 3 :
		*s >= 0xf0 && *s < 0xf5 ? 4 :
					  0;

	for (size_t i = 1; i < n && i < max; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if (max < 2)
		return n;
	if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] > 0x9f) ||
		(*s == 0xf0 && s[1] < 0x90) || (*s == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

void text_add_shown(struct text *t, const char *s, size_t len)
{
	const unsigned char *at = (const unsigned char *)s;

	while (len > 0) {
		size_t n = utf8_length(at, len);

		if (n > len)
			return;
		if (*at == '\t')
			text_add(t, "    ");
		else if (n == 0 || *at < 0x20 || *at == 0x7f)
			text_printf(t, "\\x%02x", *at);
		else if (*at == 0xc2 && at[1] < 0xa0) /* C1: 0x9b is a terminal's ESC [ */
			text_printf(t, "\\x%02x", at[1]);
		else
			text_add_bytes(t, (const char *)at, n);
		at += n ? n : 1;
		len -= n ? n : 1;
	}
}

void text_add_json(struct text *t, const char *s)
{
	if (!s) {
		text_add(t, "null");
		return;
	}
	text_add(t, "\"");
	while (*s) {
		size_t n = utf8_length((const unsigned char *)s, 4); /* a NUL ends it */

		if (*s == '"' || *s == '\\')
			text_printf(t, "\\%c", *s);
		else if ((unsigned char)*s < 0x20 || *s == 0x7f)
			text_printf(t, "\\u%04x", (unsigned char)*s);
		else if (n == 0)
			text_add(t, "\\ufffd");
		else
			text_add_bytes(t, s, n);
		s += n ? n : 1;
	}
	text_add(t, "\"");
}

void text_add_label(struct text *t, const char *s)
{
	text_add(t, "\"");
	while (*s) {
		size_t n = utf8_length((const unsigned char *)s, 4); /* a NUL ends it */

		if (*s == '"' || *s == '\\')
			text_printf(t, "\\%c", *s);
		else if (*s == '\n')
			text_add(t, "\\n");
		else if (n == 0)
			text_add(t, "\xef\xbf\xbd");
		else
			text_add_bytes(t, s, n);
		s += n ? n : 1;
	}
	text_add(t, "\"");
}

void text_add_wrapped(struct text *t, const char *s, size_t column, size_t indent, size_t width)
{
	bool first = true;

	while (*s) {
		size_t len = strcspn(s, " ");

		if (!first && column + 1 + len > width) {
			text_printf(t, "\n%*s", (int)indent, "");
			column = indent;
		} else if (!first) {
			text_add(t, " ");
			column++;
		}
		text_add_bytes(t, s, len);
		column += len;
		s += len;
		s += strspn(s, " ");
		first = false;
	}
}

size_t text_whole(const char *s, size_t len)
{
	while (len > 0 && ((unsigned char)s[len] & 0xc0) == 0x80)
		len--;
	return len;
}

void text_fit(char *ret, size_t room, const char *s)
{
	static const char gap[] = "...";
	size_t len = strlen(s), head, tail;

	if (len < room) {
		memcpy(ret, s, len + 1);
		return;
	}
	head = text_whole(s, room / 3);
	tail = len - (room - head - sizeof gap);
	while (((unsigned char)s[tail] & 0xc0) == 0x80)
		tail++;
	memcpy(ret, s, head);
	memcpy(ret + head, gap, sizeof gap - 1);
	memcpy(ret + head + sizeof gap - 1, s + tail, len - tail + 1);
}

void text_drop(struct text *t, size_t len)
{
	memmove(t->at, t->at + len, t->len - len + 1); /* and its NUL */
	t->len -= len;
}

const char *text_string(const struct text *t)
{
	return t->at ? t->at : "";
}

void text_done(struct text *t)
{
	free(t->at);
	*t = (struct text){ 0 };
}
