/* hostlist.c - see topology.h */
#include "daemon/plan/topology.h"

#include <string.h>

#include "common/arena.h"

/* Slurm's host lists (scontrol(1), "show hostnames"): names separated by commas, each with any
 * number of brackets that hold numbers and ranges of numbers. */
const char *hostlist_first(struct arena *arena, const char *list)
{
	const char *host = "";

	while (*list && *list != ',') {
		size_t len = strcspn(list, "[,");

		host = arena_printf(arena, "%s%.*s", host, (int)len, list);
		list += len;
		if (*list != '[')
			continue;
		list++;
		len = strcspn(list, "-,]");
		host = arena_printf(arena, "%s%.*s", host, (int)len, list);
		list += strcspn(list, "]");
		list += *list == ']';
	}
	return host;
}
