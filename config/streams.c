/* streams.c - see streams.h */
#include "config/streams.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "config/ranks.h"

struct stream_entry {
	struct range ranks;
	unsigned streams;
};

static int value_parse_digit(const char **at, unsigned *ret)
{
	if (**at < '0' || **at > '3')
		return -EINVAL;
	*ret = (unsigned)(*(*at)++ - '0');
	return 0;
}

/* RANK[-RANK]:VALUE; *at moves past it and its comma, to NULL after the last one. */
static int entry_next(const char **at, struct stream_entry *ret)
{
	size_t len = strcspn(*at, ":");
	const char *p = *at + len;

	if (range_parse(*at, len, 0, INT_MAX, &ret->ranks) < 0 || *p++ != ':' ||
		value_parse_digit(&p, &ret->streams) < 0 || (*p && *p != ','))
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
		if (range_has(&e.ranks, local_rank))
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
		if (e.ranks.last > highest)
			highest = e.ranks.last;
	return highest;
}
