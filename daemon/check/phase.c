/* phase.c - see phase.h */
#include "daemon/check/phase.h"

#include <stdlib.h>

void charges_add(struct charges *c, unsigned node, const struct finding *f)
{
	if (c->count == c->room) {
		size_t room = c->room ? 2 * c->room : 64;
		struct charge *now = realloc(c->at, room * sizeof *now);

		if (!now) {
			c->failed = true;
			return;
		}
		c->at = now;
		c->room = room;
	}
	c->at[c->count++] = (struct charge){ node, *f };
}

void charges_done(struct charges *c)
{
	free(c->at);
	*c = (struct charges){ 0 };
}
