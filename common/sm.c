/* sm.c - see sm.h */
#include "common/sm.h"

#include <assert.h>
#include <stdio.h>

bool sm_may_go(const struct sm *life, unsigned from, unsigned to)
{
	return from < life->count && to < life->count && (life->states[from].next & SM_TO(to)) != 0;
}

unsigned sm_go(const struct sm *life, unsigned from, unsigned to)
{
	bool may_go = sm_may_go(life, from, to);

	if (!may_go)
		(void)fprintf(stderr, "launchd: %s: %s -> %s is no edge\n", life->name,
			from < life->count ? life->states[from].name : "?",
			to < life->count ? life->states[to].name : "?");
	assert(may_go);
	return to;
}
