/* json.c - see json.h. A recursive descent over the grammar of RFC 8259. */
#include "tests/unit/json.h"

#include <string.h>

struct in {
	const unsigned char *at, *end;
	unsigned depth;
};

static bool value(struct in *in);

static int peek(const struct in *in)
{
	return in->at < in->end ? *in->at : -1;
}

static void blanks(struct in *in)
{
	while (peek(in) == ' ' || peek(in) == '\t' || peek(in) == '\n' || peek(in) == '\r')
		in->at++;
}

static bool take(struct in *in, int c)
{
	if (peek(in) != c)
		return false;
	in->at++;
	return true;
}

static bool word(struct in *in, const char *w)
{
	size_t len = strlen(w);

	if ((size_t)(in->end - in->at) < len || memcmp(in->at, w, len) != 0)
		return false;
	in->at += len;
	return true;
}

static bool digits(struct in *in)
{
	if (peek(in) < '0' || peek(in) > '9')
		return false;
	while (peek(in) >= '0' && peek(in) <= '9')
		in->at++;
	return true;
}

static bool number(struct in *in)
{
	(void)take(in, '-');
	if (!take(in, '0') && !digits(in))
		return false;
	if (take(in, '.') && !digits(in))
		return false;
	if (!take(in, 'e') && !take(in, 'E'))
		return true;
	if (!take(in, '+'))
		(void)take(in, '-');
	return digits(in);
}

/* The code point of the UTF-8 sequence at the cursor, decoded and then judged; -1: none. */
static long utf8(struct in *in)
{
	static const long least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	int first = peek(in);
	int len = first < 0x80         ? 1 :
		(first & 0xe0) == 0xc0 ? 2 :
		(first & 0xf0) == 0xe0 ? 3 :
		(first & 0xf8) == 0xf0 ? 4 :
					 0;
	long point = len == 1 ? first : len ? first & (0x7f >> len) : -1;

	if (len == 0 || in->end - in->at < len)
		return -1;
	for (int i = 1; i < len; i++) {
		if ((in->at[i] & 0xc0) != 0x80)
			return -1;
		point = point << 6 | (in->at[i] & 0x3f);
	}
	if (point < least[len] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
		return -1;
	in->at += len;
	return point;
}

static bool escape(struct in *in)
{
	if (take(in, 'u')) {
		for (int i = 0; i < 4; i++)
			if (peek(in) < 0 || !strchr("0123456789abcdefABCDEF", *in->at++))
				return false;
		return true;
	}
	if (peek(in) <= 0 || !strchr("\"\\/bfnrt", peek(in)))
		return false;
	in->at++;
	return true;
}

static bool string(struct in *in)
{
	if (!take(in, '"'))
		return false;
	while (!take(in, '"')) {
		long point;

		if (take(in, '\\')) {
			if (!escape(in))
				return false;
			continue;
		}
		if (peek(in) < 0)
			return false;
		point = utf8(in);
		if (point < 0x20 || point == 0x7f)
			return false;
	}
	return true;
}

static bool list(struct in *in, int close, bool pairs)
{
	blanks(in);
	if (take(in, close))
		return true;
	for (;;) {
		blanks(in);
		if (pairs) {
			if (!string(in))
				return false;
			blanks(in);
			if (!take(in, ':'))
				return false;
		}
		if (!value(in))
			return false;
		if (take(in, close))
			return true;
		if (!take(in, ','))
			return false;
	}
}

static bool value(struct in *in)
{
	bool ok;

	if (++in->depth > 100)
		return false;
	blanks(in);
	if (take(in, '{'))
		ok = list(in, '}', true);
	else if (take(in, '['))
		ok = list(in, ']', false);
	else if (peek(in) == '"')
		ok = string(in);
	else
		ok = word(in, "null") || word(in, "true") || word(in, "false") || number(in);
	blanks(in);
	in->depth--;
	return ok;
}

bool json_is_valid(const char *bytes, size_t len)
{
	const unsigned char *at = (const unsigned char *)bytes;
	struct in in = { at, at + len, 0 };

	return value(&in) && in.at == in.end;
}

static int hex(char c)
{
	return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

long json_unquote(const char *bytes, size_t len, char *ret, size_t size)
{
	size_t n = 0;

	if (len < 2 || *bytes != '"' || !json_is_valid(bytes, len))
		return -1;
	for (size_t i = 1; i < len - 1; i++) {
		char c = bytes[i];

		if (n + 1 >= size)
			return -1;
		if (c == '\\' && bytes[i + 1] == 'u' && bytes[i + 2] == '0' &&
			bytes[i + 3] == '0') {
			c = (char)(hex(bytes[i + 4]) * 16 + hex(bytes[i + 5]));
			i += 5;
		} else if (c == '\\' && bytes[i + 1] != 'u') {
			const char *from = "\"\\/bfnrt", *to = "\"\\/\b\f\n\r\t";

			c = to[strchr(from, bytes[++i]) - from];
		}
		ret[n++] = c;
	}
	ret[n] = '\0';
	return (long)n;
}
