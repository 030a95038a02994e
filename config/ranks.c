/* ranks.c - see ranks.h */
#include "config/ranks.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "common/num.h"

/* More digits than any rank has are a slip, even where the first are zeros. */
static int parse(const char *text, size_t len, uint64_t min, uint64_t max, uint64_t *ret)
{
	enum { DIGITS_MAX = 10 };

	return len > DIGITS_MAX ? -EINVAL : num_parse_len(text, len, min, max, ret);
}

int range_parse(const char *text, size_t len, uint64_t min, uint64_t max, struct range *ret)
{
	const char *dash = memchr(text, '-', len);
	size_t first = dash ? (size_t)(dash - text) : len;
	int rc = parse(text, first, min, max, &ret->first);

	if (rc < 0)
		return rc;
	ret->last = ret->first;
	return dash ? parse(dash + 1, len - first - 1, ret->first, max, &ret->last) : 0;
}

/* The next entry of a list; *at is NULL after the last one. */
static int next(const char **at, struct range *ret)
{
	size_t len = strcspn(*at, ",");
	int rc = range_parse(*at, len, 0, INT_MAX, ret);

	*at = (*at)[len] ? *at + len + 1 : NULL;
	return rc;
}

int ranks_check(const char *text)
{
	struct range r;
	int rc = 0;

	while (text && rc == 0)
		rc = next(&text, &r);
	return rc;
}

bool ranks_contain(const char *ranks, unsigned rank)
{
	struct range r;

	while (ranks)
		if (next(&ranks, &r) == 0 && range_has(&r, rank))
			return true;
	return false;
}

uint64_t ranks_last(const char *ranks)
{
	uint64_t last = 0;
	struct range r;

	while (ranks)
		if (next(&ranks, &r) == 0 && r.last > last)
			last = r.last;
	return last;
}
