/* placing.c - see placing.h */
#include "daemon/place/placing.h"

#include <string.h>

void placement_note(struct placement *p, struct arena *arena, const char *sentence)
{
	for (size_t i = 0; i < p->notes.count; i++)
		if (strcmp(p->notes.at[i], sentence) == 0)
			return;
	vec_add(arena, &p->notes, sentence);
}

const char *memory_word(enum memory_how how)
{
	static const char *const words[MEMORY_HOWS] = {
		[MEMORY_LEFT] = "as it is",
		[MEMORY_BIND] = "bind",
		[MEMORY_PREFER] = "prefer",
		[MEMORY_LOCAL] = "local",
		[MEMORY_INTERLEAVE] = "interleave",
	};

	return words[how];
}
