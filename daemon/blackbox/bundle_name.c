/* bundle_name.c - see bundle_name.h */
#include "daemon/blackbox/bundle_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MS = 1000, YEAR_0 = 1900 };

void bundle_name_write(const struct bundle_name *n, char ret[BUNDLE_NAME_SIZE])
{
	time_t s = (time_t)(n->job_ms / MS);
	char look[24] = "";
	struct tm at;

	if (!gmtime_r(&s, &at))
		at = (struct tm){ 0 };
	if (n->look)
		(void)snprintf(look, sizeof look, "-look-%u", n->look);
	(void)snprintf(ret, BUNDLE_NAME_SIZE,
		"failure-%04d%02d%02dT%02d%02d%02d.%03uZ-attempt-%u%s", at.tm_year + YEAR_0,
		at.tm_mon + 1, at.tm_mday, at.tm_hour, at.tm_min, at.tm_sec,
		(unsigned)(n->job_ms % MS), n->attempt, look);
}

bool bundle_name_read(const char *name, struct bundle_name *ret)
{
	struct tm at = { 0 };
	unsigned ms, attempt, look = 0;
	char again[BUNDLE_NAME_SIZE];
	struct bundle_name n;

	if (strlen(name) >= BUNDLE_NAME_SIZE ||
		sscanf(name, "failure-%4d%2d%2dT%2d%2d%2d.%3uZ-attempt-%9u-look-%9u", &at.tm_year,
			&at.tm_mon, &at.tm_mday, &at.tm_hour, &at.tm_min, &at.tm_sec, &ms, &attempt,
			&look) < 8)
		return false;
	at.tm_year -= YEAR_0;
	at.tm_mon--;
	n = (struct bundle_name){ (uint64_t)timegm(&at) * MS + ms, attempt, look };
	bundle_name_write(&n, again); /* what else there is in the name, or missing, shows */
	if (strcmp(again, name) != 0)
		return false;
	*ret = n;
	return true;
}

int bundle_name_compare(const struct bundle_name *a, const struct bundle_name *b)
{
	unsigned look_a = a->look ? a->look : ~0U, look_b = b->look ? b->look : ~0U;

	if (a->job_ms != b->job_ms)
		return a->job_ms < b->job_ms ? -1 : 1;
	if (a->attempt != b->attempt)
		return a->attempt < b->attempt ? -1 : 1;
	return look_a == look_b ? 0 : look_a < look_b ? -1 : 1;
}

static int compare(const void *a, const void *b)
{
	return bundle_name_compare(a, b);
}

size_t bundle_names_to_go(
	struct bundle_name *list, size_t count, size_t keep, const struct bundle_name *mine)
{
	size_t go = 0;

	qsort(list, count, sizeof *list, compare);
	for (size_t i = 0; i < count && go + keep < count; i++)
		if (bundle_name_compare(&list[i], mine) != 0)
			list[go++] = list[i];
	return go;
}
