/* start.c - the ranks to start, and the command before theirs; see decide.h */
#include "daemon/plan/decide.h"

#include <stdbool.h>
#include <stdint.h>

#include "common/failure.h"
#include "common/notes.h"
#include "config/lists.h"
#include "config/settings.h"
#include "daemon/facts/facts.h"
#include "daemon/plan/plan.h"

static int no_such_rank(
	const struct deciding *d, enum setting_id id, uint64_t rank, const struct plan *p)
{
	const char *where = settings_where(d->s, id);
	unsigned long long n = rank;

	if (p->world_size == 1)
		return failure_usage(
			d->why, "%s: there is no rank %llu: the job has rank 0 only", where, n);
	return failure_usage(d->why, "%s: there is no rank %llu: the job has ranks 0 to %u", where,
		n, p->world_size - 1);
}

/* The node that a rank of the job is on. */
static unsigned node_of(const unsigned *nproc_of_node, unsigned rank)
{
	unsigned node = 0;

	for (unsigned end = nproc_of_node[0]; rank >= end; end += nproc_of_node[node])
		node++;
	return node;
}

static int decide_ranks(const struct deciding *d, const unsigned *nproc_of_node, struct plan *p)
{
	uint64_t only = settings_number(d->s, SET_ONLY_RANK);
	unsigned rank = (unsigned)only;

	p->start_first = p->process.local_rank;
	p->start_count = p->process.is ? 1 : p->nproc;
	if (!settings_given(d->s, SET_ONLY_RANK))
		return 0;
	if (only >= p->world_size)
		return no_such_rank(d, SET_ONLY_RANK, only, p);
	if (p->process.is ? rank != p->node_rank :
			    rank < p->first_rank || rank - p->first_rank >= p->nproc) {
		p->start_count = 0;
		notes_add(d->notes, NOTE_INFO,
			"%s: rank %u is on node %u: this is node %u, so nothing is started here",
			settings_where(d->s, SET_ONLY_RANK), rank, node_of(nproc_of_node, rank),
			p->node_rank);
		return 0;
	}
	p->start_first = rank - p->first_rank;
	p->start_count = 1;
	if (p->master_port == 0 && p->world_size > 1)
		notes_add(d->notes, NOTE_INFO,
			"%s: rank %u gets a free port, which the other ranks can't know; for them to meet, give all of them the same --master_port",
			settings_where(d->s, SET_ONLY_RANK), rank);
	return 0;
}

static int decide_wrap(const struct deciding *d, struct plan *p)
{
	const char *ranks = settings_text(d->s, SET_WRAP_RANKS);
	bool used = false;

	if (!settings_given(d->s, SET_WRAP))
		return 0;
	if (ranks && ranks_last(ranks) >= p->world_size && !p->provisional)
		return no_such_rank(d, SET_WRAP_RANKS, ranks_last(ranks), p);
	p->wrap = d->facts->wrapper.words;
	p->wrapper = d->facts->wrapper.path;
	p->wrap_ranks = ranks;
	for (unsigned i = p->start_first; i < p->start_first + p->start_count && !used; i++)
		used = plan_is_wrapped(p, i);
	if (used && d->facts->wrapper.why.code < 0)
		return failure_copy(d->why, &d->facts->wrapper.why);
	if (!used && p->start_count == 1 && settings_given(d->s, SET_ONLY_RANK))
		notes_add(d->notes, NOTE_WARNING,
			"%s leaves out rank %u, the only one that is started: %s has no effect",
			settings_where(d->s, SET_WRAP_RANKS), p->first_rank + p->start_first,
			settings_where(d->s, SET_WRAP));
	return 0;
}

/* NULL: there is none. */
static const char *const *words_of(const struct wrapper *command)
{
	struct vec words = command->words;

	if (words.count == 0 || !command->path)
		return NULL;
	words.at[0] = command->path;
	return (const char *const *)vec_argv(&words);
}

int decide_start(const struct deciding *d, const unsigned *nproc_of_node, struct plan *p)
{
	int rc = decide_ranks(d, nproc_of_node, p);

	p->preempt_watch = words_of(&d->facts->preempt_watch);
	p->post_attempt = words_of(&d->facts->post_attempt);
	p->post_attempt_ms = settings_number(d->s, SET_POST_ATTEMPT_TIMEOUT);
	return rc < 0 ? rc : decide_wrap(d, p);
}
