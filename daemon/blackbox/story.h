/* story.h - a failure's bundle told in words: what came first, who followed and why, what each node
 * saw, what each source found, and what to look at next. Pure. */
#ifndef LAUNCHD_DAEMON_BLACKBOX_STORY_H
#define LAUNCHD_DAEMON_BLACKBOX_STORY_H

#include <stddef.h>

struct bundle;
struct bundle_index;
struct text;

/* Adds it. index: the whole job's; NULL: not known. nodes: those parts that are there, any number.
 * Whatever it holds, a terminal shows it and obeys nothing of it. */
void story_add(const struct bundle_index *index, const struct bundle *nodes, size_t count,
	struct text *out);

#endif
