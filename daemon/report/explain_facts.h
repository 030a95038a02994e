/* explain_facts.h - the decided values of --dry-run, each with what decided it. Pure. */
#ifndef LAUNCHD_DAEMON_REPORT_EXPLAIN_FACTS_H
#define LAUNCHD_DAEMON_REPORT_EXPLAIN_FACTS_H

#include <stddef.h>

#include "daemon/plan/plan.h"

struct arena;
struct explained;

/* What only the nodes together can tell. */
#define EXPLAIN_BY_MEETING "<told when nodes meet>"

struct explained_fact {
	const char *name, *value, *from;
};

struct explained_facts {
	struct explained_fact at[24];
	size_t count;
};

/* Adds them; texts are constant, the arena's or the plan's. */
void explain_facts(const struct explained *e, struct arena *arena, struct explained_facts *ret);

/* What an attempt will choose when it starts, in words. */
struct attempt explain_attempt(const struct explained *e, struct arena *arena);

#endif
