/* python_json.c - see python_json.h */
#include "common/python_json.h"

#include <stdbool.h>
#include <string.h>

enum { NUMBER_MAX = 60, UNICODE_ESCAPE = 6 }; /* cJSON reads no number of more than 63 bytes */

static void blank_number(char *at, size_t len)
{
	memset(at, ' ', len);
	*at = '0';
}

/* The unit of UTF-16 that "\uXXXX" at the position is; -1: there is none. */
static long json_unit(const char *at, const char *end)
{
	static const char digits[] = "0123456789abcdefABCDEF";
	long unit = 0;

	if (end - at < UNICODE_ESCAPE || at[0] != '\\' || at[1] != 'u')
		return -1;
	for (int i = 2; i < UNICODE_ESCAPE; i++) {
		const char *digit = at[i] ? strchr(digits, at[i]) : NULL;

		if (!digit)
			return -1;
		unit = unit * 16 + (digit - digits > 15 ? digit - digits - 6 : digit - digits);
	}
	return unit;
}

static bool is_low_surrogate(long unit)
{
	return unit >= 0xdc00 && unit < 0xe000;
}

/* Mends the escape, and returns how long it is. */
static size_t mend_escape(char *at, const char *end)
{
	long unit = json_unit(at, end);

	if (unit < 0)
		return 2;
	if (unit >= 0xd800 && unit < 0xdc00 &&
		is_low_surrogate(json_unit(at + UNICODE_ESCAPE, end)))
		return (size_t)2 * UNICODE_ESCAPE;
	if (unit == 0 || (unit >= 0xd800 && unit < 0xe000))
		memcpy(at, "\\ufffd", UNICODE_ESCAPE);
	return UNICODE_ESCAPE;
}

/* Mends the string that begins behind its quote, and returns what follows its last one. */
static char *mend_string(struct python_json *j, char *at, char *end)
{
	while (at < end && *at != '"') {
		size_t len = *at == '\\' ? mend_escape(at, end) : 1;

		if (*at == '\\' && (at[1] == 'u' ? UNICODE_ESCAPE : 2) > end - at) {
			j->in_string = (size_t)(at - j->at); /* without a cut escape */
			return end;
		}
		if (*at == '\0')
			*at = '?';
		at += len;
	}
	if (at < end)
		return at + 1;
	j->in_string = (size_t)(end - j->at);
	return end;
}

/* Numbers, and words that are none of JSON's; any other byte is left alone. */
static char *mend_number(char *at, const char *end)
{
	static const char *const words[] = { "NaN", "Infinity", "-Infinity" };
	size_t left = (size_t)(end - at), len = 0;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t n = strlen(words[i]);

		if (left >= n && memcmp(at, words[i], n) == 0) {
			blank_number(at, n);
			return at + n;
		}
	}
	while (len < left && at[len] && strchr("0123456789+-.eE", at[len]))
		len++;
	if (len > NUMBER_MAX)
		blank_number(at, len);
	return at + (len > 0 ? len : 1);
}

/* What holds others, and what stands between them. */
static void mend_sign(struct python_json *j, char *at)
{
	char c = *at;

	if (c == '[' || c == '{') {
		if (j->depth < PYTHON_JSON_DEPTH)
			j->open[j->depth] = c;
		else if (j->depth == PYTHON_JSON_DEPTH)
			j->deep = at;
		j->depth++;
	} else if ((c == ']' || c == '}') && j->depth > 0) {
		j->depth--;
		if (j->depth == PYTHON_JSON_DEPTH && j->deep)
			blank_number(j->deep, (size_t)(at + 1 - j->deep));
	}
	j->before = c;
	if (c != ':')
		j->whole = (size_t)(at - j->at) + (c != ',');
}

/* It names what follows: without that it is worth nothing. */
static bool is_key(const struct python_json *j)
{
	return j->depth > 0 && j->depth <= PYTHON_JSON_DEPTH && j->open[j->depth - 1] == '{' &&
		j->before != ':';
}

void python_json_mend(struct python_json *j, char *text, size_t len)
{
	char *at = text, *end = text + len;

	*j = (struct python_json){ .at = text, .len = len };
	while (at < end) {
		if (*at == '"') {
			at = mend_string(j, at + 1, end);
			if (is_key(j))
				j->in_string = 0;
			else if (j->in_string == 0)
				j->whole = (size_t)(at - text);
		} else if (*at && strchr("[]{},:", *at)) {
			mend_sign(j, at++);
		} else {
			at = mend_number(at, end);
		}
	}
	if (j->deep && j->depth > PYTHON_JSON_DEPTH) {
		blank_number(j->deep, (size_t)(end - j->deep));
		j->whole = (size_t)(j->deep + 1 - text);
		j->depth = PYTHON_JSON_DEPTH;
		j->in_string = 0;
	}
}

void python_json_close(struct python_json *j, bool half_strings)
{
	if (j->in_string > 0 && half_strings) {
		j->len = j->in_string;
		j->at[j->len++] = '"';
	} else if (j->depth > 0) {
		j->len = j->whole;
	}
	while (j->depth > 0)
		j->at[j->len++] = j->open[--j->depth] == '[' ? ']' : '}';
}
