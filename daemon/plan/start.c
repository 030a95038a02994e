/* start.c - the ranks to start, and the command before theirs; see decide.h */
#include "daemon/plan/decide.h"

#include <stdbool.h>
#include <stdint.h>

#include "common/failure.h"
#include "common/notes.h"
#include "config/settings.h"
#include "config/ranks.h"
#include "daemon/facts/facts.h"
#include "daemon/plan/plan.h"

static int no_such_rank(const struct settings *s, enum setting_id id, uint64_t rank,
	const struct plan *p, struct failure *why)
{
	const char *where = settings_where(s, id);
	unsigned long long n = rank;

	if (p->world_size == 1)
		return failure_usage(
			why, "%s: there is no rank %llu: the job has rank 0 only", where, n);
	return failure_usage(why, "%s: there is no rank %llu: the job has ranks 0 to %u", where, n,
		p->world_size - 1);
}

/* The node that a rank of the job is on. */
static unsigned node_of(const unsigned *nproc_of_node, unsigned rank)
{
	unsigned node = 0;

	for (unsigned end = nproc_of_node[0]; rank >= end; end += nproc_of_node[node])
		node++;
	return node;
}

static int decide_ranks(const struct settings *s, const unsigned *nproc_of_node, struct plan *p,
	struct notes *notes, struct failure *why)
{
	uint64_t only = settings_number(s, SET_ONLY_RANK);
	unsigned rank = (unsigned)only;

	p->start_first = 0;
	p->start_count = p->nproc;
	if (!settings_given(s, SET_ONLY_RANK))
		return 0;
	if (only >= p->world_size)
		return no_such_rank(s, SET_ONLY_RANK, only, p, why);
	if (rank < p->first_rank || rank - p->first_rank >= p->nproc) {
		p->start_count = 0;
		notes_add(notes, NOTE_INFO,
			"%s: rank %u is on node %u: this is node %u, so nothing is started here",
			settings_where(s, SET_ONLY_RANK), rank, node_of(nproc_of_node, rank),
			p->node_rank);
		return 0;
	}
	p->start_first = rank - p->first_rank;
	p->start_count = 1;
	if (p->master_port == 0 && p->world_size > 1)
		notes_add(notes, NOTE_INFO,
			"%s: rank %u gets a free port, which the other ranks can't know; for them to meet, give all of them the same --master_port",
			settings_where(s, SET_ONLY_RANK), rank);
	return 0;
}

static int decide_wrap(const struct settings *s, const struct facts *facts, struct plan *p,
	struct notes *notes, struct failure *why)
{
	const char *ranks = settings_text(s, SET_WRAP_RANKS);
	bool used = false;

	if (!settings_given(s, SET_WRAP))
		return 0;
	if (ranks && ranks_last(ranks) >= p->world_size && !p->provisional)
		return no_such_rank(s, SET_WRAP_RANKS, ranks_last(ranks), p, why);
	p->wrap = facts->wrapper.words;
	p->wrapper = facts->wrapper.path;
	p->wrap_ranks = ranks;
	for (unsigned i = p->start_first; i < p->start_first + p->start_count && !used; i++)
		used = plan_is_wrapped(p, i);
	if (used && facts->wrapper.why.code < 0)
		return failure_copy(why, &facts->wrapper.why);
	if (!used && p->start_count == 1 && settings_given(s, SET_ONLY_RANK))
		notes_add(notes, NOTE_WARNING,
			"%s leaves out rank %u, the only one that is started: %s has no effect",
			settings_where(s, SET_WRAP_RANKS), p->first_rank + p->start_first,
			settings_where(s, SET_WRAP));
	return 0;
}

int decide_start(const struct settings *s, const struct facts *facts, const unsigned *nproc_of_node,
	struct plan *p, struct notes *notes, struct failure *why)
{
	int rc = decide_ranks(s, nproc_of_node, p, notes, why);

	return rc < 0 ? rc : decide_wrap(s, facts, p, notes, why);
}
