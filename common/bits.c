/* bits.c - see bits.h */
#include "common/bits.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "common/arena.h"
#include "common/num.h"
#include "common/text.h"

enum { WORD_BITS = CHAR_BIT * sizeof(unsigned long) };

struct bits bits_make(struct arena *arena, size_t room)
{
	struct bits b = { .words = (room + WORD_BITS - 1) / WORD_BITS };

	b.at = b.words ? arena_alloc(arena, b.words * sizeof *b.at) : NULL;
	if (!b.at)
		b.words = 0;
	return b;
}

void bits_add(struct bits *b, unsigned n)
{
	if (n / WORD_BITS < b->words)
		b->at[n / WORD_BITS] |= 1ul << n % WORD_BITS;
}

bool bits_have(const struct bits *b, unsigned n)
{
	return n / WORD_BITS < b->words && (b->at[n / WORD_BITS] >> n % WORD_BITS & 1) != 0;
}

bool bits_are_empty(const struct bits *b)
{
	return bits_next(b, 0) < 0;
}

unsigned bits_count(const struct bits *b)
{
	unsigned count = 0;

	for (size_t i = 0; i < b->words; i++)
		count += (unsigned)__builtin_popcountl(b->at[i]);
	return count;
}

int bits_next(const struct bits *b, unsigned n)
{
	for (size_t i = n / WORD_BITS; i < b->words; i++) {
		unsigned long word = b->at[i];

		if (i == n / WORD_BITS)
			word &= ~0ul << n % WORD_BITS;
		if (word)
			return (int)(i * WORD_BITS) + __builtin_ctzl(word);
	}
	return -1;
}

/* "7" or "4-7" */
static int range_read(const char *text, size_t len, uint64_t *ret_first, uint64_t *ret_last)
{
	size_t dash = 0;
	int rc;

	while (dash < len && text[dash] != '-')
		dash++;
	rc = num_parse_len(text, dash, 0, BITS_MAX - 1, ret_first);
	*ret_last = *ret_first;
	if (rc == 0 && dash < len)
		rc = num_parse_len(
			text + dash + 1, len - dash - 1, *ret_first, BITS_MAX - 1, ret_last);
	return rc < 0 ? -EINVAL : 0;
}

/* Its highest number. */
static int list_read(const char *text, size_t len, struct bits *add_to, unsigned *ret_last)
{
	unsigned highest = 0;

	for (size_t at = 0; at <= len;) {
		size_t end = at;
		uint64_t first, last;

		while (end < len && text[end] != ',')
			end++;
		if (range_read(text + at, end - at, &first, &last) < 0)
			return -EINVAL;
		for (uint64_t n = first; add_to && n <= last; n++)
			bits_add(add_to, (unsigned)n);
		highest = last > highest ? (unsigned)last : highest;
		at = end + 1;
	}
	*ret_last = highest;
	return 0;
}

int bits_parse(const char *text, size_t len, struct arena *arena, struct bits *ret)
{
	unsigned last;
	struct bits b;

	if (list_read(text, len, NULL, &last) < 0)
		return -EINVAL;
	b = bits_make(arena, last + 1);
	(void)list_read(text, len, &b, &last);
	*ret = b;
	return 0;
}

int bits_lists(const char *text)
{
	int count = 0;
	size_t len;

	do {
		unsigned last;

		len = strcspn(text, ":");
		if (list_read(text, len, NULL, &last) < 0)
			return -EINVAL;
		text += len;
		count++;
	} while (*text++ == ':');
	return count;
}

struct bits bits_nth(const char *text, unsigned n, struct arena *arena)
{
	struct bits b = { 0 };
	const char *colon;

	while (n-- > 0 && (colon = strchr(text, ':')))
		text = colon + 1;
	(void)bits_parse(text, strcspn(text, ":"), arena, &b);
	return b;
}

bool bits_meet(const struct bits *a, const struct bits *b)
{
	for (size_t i = 0; i < a->words && i < b->words; i++)
		if (a->at[i] & b->at[i])
			return true;
	return false;
}

int bits_outside(const struct bits *b, const struct bits *all)
{
	int n = bits_next(b, 0);

	while (n >= 0 && bits_have(all, (unsigned)n))
		n = bits_next(b, (unsigned)n + 1);
	return n;
}

void bits_add_text(const struct bits *b, struct text *out)
{
	const char *comma = "";

	for (int first = bits_next(b, 0); first >= 0;) {
		int last = first;

		while (bits_have(b, (unsigned)last + 1))
			last++;
		text_printf(out, "%s%d", comma, first);
		if (last > first)
			text_printf(out, "-%d", last);
		comma = ",";
		first = bits_next(b, (unsigned)last + 1);
	}
}

const char *bits_text(const struct bits *b, struct arena *arena)
{
	struct text out = { 0 };
	const char *ret;

	bits_add_text(b, &out);
	ret = arena_strdup(arena, text_string(&out));
	text_done(&out);
	return ret;
}
