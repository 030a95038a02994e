/* compare.c - see compare.h */
#include "daemon/check/compare.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "daemon/check/phase.h"

static void charge(
	struct charges *ret, unsigned node, enum health health, const char *check, const char *text)
{
	struct finding f = { .health = health };

	(void)snprintf(f.check, sizeof f.check, "%s", check);
	text_fit(f.text, sizeof f.text, text);
	charges_add(ret, node, &f);
}

/* How many nodes have the value of this one. */
static unsigned count_same(const char *const *values, unsigned nnodes, unsigned node)
{
	unsigned count = 0;

	for (unsigned i = 0; i < nnodes; i++)
		count += values[i] && strcmp(values[i], values[node]) == 0 ? 1 : 0;
	return count;
}

void compare_values(
	const char *check, const char *const *values, unsigned nnodes, struct charges *ret)
{
	unsigned known = 0, most = 0, best = 0;
	bool settled;
	char text[224];

	for (unsigned i = 0; i < nnodes; i++)
		known += values[i] ? 1 : 0;
	for (unsigned i = 0; i < nnodes && most * 2 <= known; i++) {
		unsigned same = values[i] ? count_same(values, nnodes, i) : 0;

		if (same > most) {
			most = same;
			best = i;
		}
	}
	settled = most * 2 > known;
	for (unsigned i = 0; i < nnodes; i++) {
		if (!values[i] || (settled && strcmp(values[i], values[best]) == 0))
			continue;
		if (settled)
			(void)snprintf(text, sizeof text, "%.80s, but %u of %u nodes have %.80s",
				values[i], most, known, values[best]);
		else
			(void)snprintf(text, sizeof text,
				"the nodes differ, and no value is that of more than half of them");
		charge(ret, i, settled ? HEALTH_BAD : HEALTH_UNKNOWN, check, text);
	}
}

static int by_value(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The middle one of them: where more than half agree, that is one of theirs. False: no memory, or
 * fewer than two. */
static bool find_median(
	const struct compared_clock *clocks, unsigned nnodes, int64_t *ret, unsigned *ret_known)
{
	int64_t *all = calloc(nnodes, sizeof *all);
	unsigned known = 0;

	for (unsigned i = 0; all && i < nnodes; i++)
		if (clocks[i].known)
			all[known++] = clocks[i].ahead_us;
	if (known > 0)
		qsort(all, known, sizeof *all, by_value);
	*ret = known > 0 ? all[(known - 1) / 2] : 0;
	*ret_known = known;
	free(all);
	return known >= 2;
}

static bool is_off(const struct compared_clock *c, int64_t median, uint64_t limit_us)
{
	int64_t off = c->ahead_us - median;

	return (uint64_t)(off < 0 ? -off : off) > limit_us + c->error_us;
}

void compare_clocks(const struct compared_clock *clocks, unsigned nnodes, uint64_t limit_us,
	struct charges *ret)
{
	unsigned known, off = 0;
	int64_t median;
	char text[224];

	if (!find_median(clocks, nnodes, &median, &known))
		return;
	for (unsigned i = 0; i < nnodes; i++)
		off += clocks[i].known && is_off(&clocks[i], median, limit_us) ? 1 : 0;
	for (unsigned i = 0; i < nnodes && off > 0; i++) {
		double ahead = (double)(clocks[i].ahead_us - median) / 1e6;

		if (!clocks[i].known)
			continue;
		if ((known - off) * 2 <= known) {
			charge(ret, i, HEALTH_UNKNOWN, "clock_offset",
				"the nodes' clocks differ, and no more than half of them agree");
		} else if (is_off(&clocks[i], median, limit_us)) {
			(void)snprintf(text, sizeof text, "its clock is %.3f s %s the other nodes'",
				ahead < 0 ? -ahead : ahead, ahead < 0 ? "behind" : "ahead of");
			charge(ret, i, HEALTH_BAD, "clock_offset", text);
		}
	}
}
