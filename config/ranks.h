/* ranks.h - ranges of numbers ("4-7"), and lists of ranks made of them ("0,4-7"). Pure. */
#ifndef LAUNCHD_CONFIG_RANKS_H
#define LAUNCHD_CONFIG_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
	uint64_t first, last;
};

/* "7" or "4-7": the len bytes at text, within min..max. Negative errno: it is none. */
int range_parse(const char *text, size_t len, uint64_t min, uint64_t max, struct range *ret);

static inline bool range_has(const struct range *r, uint64_t n)
{
	return n >= r->first && n <= r->last;
}

/* 0, or negative errno: text is no list of ranks. */
int ranks_check(const char *text);

/* Whether a list, once checked, has the rank. */
bool ranks_contain(const char *ranks, unsigned rank);

/* The highest rank of such a list. */
uint64_t ranks_last(const char *ranks);

#endif
