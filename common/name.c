/* name.c - see name.h */
#include "common/name.h"

#include <string.h>

static char plain(char c)
{
	return c == '-' ? '_' : c;
}

bool name_begins(const char *name, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (name[i] == '\0' || plain(name[i]) != plain(text[i]))
			return false;
	return true;
}

bool name_equal(const char *name, const char *text, size_t len)
{
	return name_begins(name, text, len) && name[len] == '\0';
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t name_distance(const char *name, const char *text, size_t len, size_t limit)
{
	enum { LONGEST = 48 };
	size_t rows[3][LONGEST + 1];
	size_t *before = rows[0], *above = rows[1], *row = rows[2];
	size_t name_len = strlen(name);

	if (name_len > LONGEST || len > LONGEST)
		return limit + 1;
	for (size_t j = 0; j <= name_len; j++)
		above[j] = before[j] = j;
	for (size_t i = 1; i <= len; i++) {
		size_t *spare = before;

		row[0] = i;
		for (size_t j = 1; j <= name_len; j++) {
			bool same = plain(text[i - 1]) == plain(name[j - 1]);

			row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + !same);
			if (i > 1 && j > 1 && plain(text[i - 1]) == plain(name[j - 2]) &&
				plain(text[i - 2]) == plain(name[j - 1]))
				row[j] = least(row[j], before[j - 2] + 1);
		}
		before = above;
		above = row;
		row = spare;
	}
	return least(above[name_len], limit + 1);
}

bool name_is_identifier(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		bool letter = c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!letter && (i == 0 || c < '0' || c > '9'))
			return false;
	}
	return len > 0;
}

bool name_matches(const char *pattern, const char *name, size_t len)
{
	size_t n;

	if (*pattern != *name)
		return false; /* nearly always, and this is asked 2,000 times for each worker */
	n = strlen(pattern);
	if (pattern[n - 1] == '*')
		return len >= n - 1 && strncmp(pattern, name, n - 1) == 0;
	return len == n && strncmp(pattern, name, n) == 0;
}
