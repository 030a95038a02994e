/* streams.c - see streams.h */
#include "config/streams.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "common/num.h"

struct stream_entry {
	uint64_t first, last;
	unsigned streams;
};

/* The number that stands before one of the ends; *at moves to that end. */
static int rank_parse(const char **at, const char *ends, uint64_t min, uint64_t *ret)
{
	size_t len = strcspn(*at, ends);
	char digits[16];

	if (len >= sizeof digits)
		return -EINVAL;
	memcpy(digits, *at, len);
	digits[len] = '\0';
	*at += len;
	return num_parse(digits, min, INT_MAX, ret);
}

static int value_parse_digit(const char **at, unsigned *ret)
{
	if (**at < '0' || **at > '3')
		return -EINVAL;
	*ret = (unsigned)(*(*at)++ - '0');
	return 0;
}

/* RANK[-RANK]:VALUE; *at moves behind it and its comma, to NULL behind the last. */
static int entry_next(const char **at, struct stream_entry *ret)
{
	const char *p = *at;

	if (rank_parse(&p, "-:,", 0, &ret->first) < 0)
		return -EINVAL;
	ret->last = ret->first;
	if (*p == '-') {
		p++;
		if (rank_parse(&p, ":,", ret->first, &ret->last) < 0)
			return -EINVAL;
	}
	if (*p++ != ':' || value_parse_digit(&p, &ret->streams) < 0 || (*p && *p != ','))
		return -EINVAL;
	*at = *p ? p + 1 : NULL;
	return 0;
}

/* One value for all. */
static int is_single(const char *text, unsigned *ret)
{
	return value_parse_digit(&text, ret) == 0 && !*text;
}

int streams_check(const char *text)
{
	struct stream_entry e;
	unsigned all;
	int rc = 0;

	if (is_single(text, &all))
		return 0;
	while (text && rc == 0)
		rc = entry_next(&text, &e);
	return rc;
}

unsigned streams_of(const char *checked, unsigned local_rank)
{
	unsigned ret = STREAMS_NONE;
	struct stream_entry e;

	if (is_single(checked, &ret))
		return ret;
	ret = STREAMS_NONE;
	while (checked && entry_next(&checked, &e) == 0)
		if (local_rank >= e.first && local_rank <= e.last)
			ret = e.streams;
	return ret;
}

uint64_t streams_last(const char *checked)
{
	uint64_t highest = 0;
	struct stream_entry e;
	unsigned all;

	if (is_single(checked, &all))
		return 0;
	while (checked && entry_next(&checked, &e) == 0)
		if (e.last > highest)
			highest = e.last;
	return highest;
}
