/* check_case.c - see check_case.h; what is said of nodes is in accuse.c */
#include "daemon/nodecheck/check_case.h"

#include <errno.h>
#include <string.h>

#include "common/arena.h"
#include "daemon/nodecheck/accuse.h"
#include "daemon/nodecheck/gpu_speed.h"
#include "daemon/nodecheck/pairing.h"

enum { KINDS_MAX = 63 }; /* of GPUs in one job; all others count as one */

int case_begin(struct check_case *c, struct arena *arena, struct case_node *nodes,
	unsigned node_count, unsigned ranks, const struct check_demands *d)
{
	/* singles, and half a pair of each in each round */
	size_t room = ranks + (size_t)ranks * PAIRING_ROUNDS_MAX / 2;

	*c = (struct check_case){
		.nodes = nodes,
		.node_count = node_count,
		.ranks = ranks,
		.demands = *d,
		.arena = arena,
		.trials = { .room = room, .percent = d->percent, .members = ranks },
	};
	c->trials.at = arena_alloc(arena, room * sizeof *c->trials.at);
	c->trials.scratch = arena_alloc(arena, ranks * sizeof *c->trials.scratch);
	c->asked = arena_alloc(arena, ranks * sizeof *c->asked);
	c->groups = arena_alloc(arena, ranks * sizeof *c->groups);
	c->kinds = arena_alloc(arena, ranks * sizeof *c->kinds);
	c->buses = arena_alloc(arena, ranks * sizeof *c->buses);
	c->models = arena_alloc(arena, (KINDS_MAX + 1) * sizeof *c->models);
	c->inside = arena_alloc(arena, node_count * sizeof *c->inside);
	c->partners = arena_alloc(arena, node_count * sizeof *c->partners);
	c->pairs = arena_alloc(arena, room * sizeof *c->pairs);
	c->fresh = arena_alloc(arena, (ranks / 2 + 1) * sizeof *c->fresh);
	c->states = arena_alloc(arena, ranks * sizeof *c->states);
	c->busy = arena_alloc(arena, ranks * sizeof *c->busy);
	if (arena_failed(arena))
		return -ENOMEM;
	for (unsigned n = 0; n < node_count; n++)
		if (nodes[n].missing) {
			nodes[n].out = true;
			accuse(c, n, HEALTH_UNKNOWN, "gpu", "", "%s", nodes[n].missing);
		}
	return 0;
}

/* The number of a GPU's kind, by its name. */
static unsigned kind_of(struct check_case *c, const char *name)
{
	for (unsigned k = 0; k < c->kind_count; k++)
		if (strcmp(c->models[k], name) == 0)
			return k;
	if (c->kind_count == KINDS_MAX)
		return KINDS_MAX;
	c->models[c->kind_count] = arena_strdup(c->arena, name);
	return c->kind_count++;
}

/* What a GPU's own step has told of it. */
static void learn_gpu(struct check_case *c, struct trial *t)
{
	const struct gpu_speed *m = gpu_speed_find(t->seen.gpu);
	const uint64_t *least = c->demands.least;

	if (!*t->seen.gpu)
		return;
	c->kinds[t->a] = t->kind = kind_of(c, t->seen.gpu);
	c->buses[t->a] = arena_strdup(c->arena, t->seen.bus);
	t->least[RATE_MEMORY] = least[DEMAND_MEMORY] ? least[DEMAND_MEMORY] :
		m                                    ? m->memory_mb * MEMORY_PERCENT / 100 :
						       0;
	t->least[RATE_COMPUTE] = least[DEMAND_COMPUTE];
}

void case_seen(struct check_case *c, const struct gpu_sight *by_rank)
{
	for (size_t i = 0; i < c->asked_count; i++) {
		trial_add(c->asked[i], by_rank);
		if (c->stage == STAGE_GPU)
			learn_gpu(c, c->asked[i]);
	}
	c->asked_count = 0;
	trials_changed(&c->trials);
}

static struct trial *add_trial(struct check_case *c, unsigned a, unsigned b)
{
	struct trial *t = &c->trials.at[c->trials.count++];

	trials_changed(&c->trials);
	*t = (struct trial){ .a = a, .b = b };
	t->group.parts = t->own;
	return t;
}

/* Groups of one size, with GPUs of the same kinds, may be compared. */
static unsigned kind_of_group(const struct check_case *c, const struct trial *t)
{
	unsigned low = KINDS_MAX, high = 0, size = rank_group_size(&t->group);

	for (unsigned i = 0; i < size; i++) {
		unsigned kind = c->kinds[rank_group_at(&t->group, i)];

		low = kind < low ? kind : low;
		high = kind > high ? kind : high;
	}
	return size << 12 | low << 6 | high;
}

static struct rank_range ranks_of(const struct check_case *c, unsigned node)
{
	return (struct rank_range){ c->nodes[node].first, c->nodes[node].count };
}

static void plan_gpus(struct check_case *c)
{
	for (unsigned n = 0; n < c->node_count; n++)
		for (unsigned i = 0; !c->nodes[n].out && i < c->nodes[n].count; i++) {
			unsigned rank = c->nodes[n].first + i;
			struct trial *t = add_trial(c, rank, rank);

			t->within = n;
			t->own[0] = (struct rank_range){ rank, 1 };
			t->group.count = 1;
		}
}

static uint64_t least_of_node(const struct check_case *c, unsigned node)
{
	const struct case_node *n = &c->nodes[node];
	const struct gpu_speed *m = gpu_speed_find(n->gpu);

	if (c->stage == STAGE_NICS || c->demands.least[DEMAND_NODE])
		return c->demands.least[c->stage == STAGE_NICS ? DEMAND_NICS : DEMAND_NODE];
	return m && m->node_gpus == n->count ? m->node_mb * NODE_PERCENT / 100 : 0;
}

static void plan_nodes(struct check_case *c)
{
	for (unsigned n = 0; n < c->node_count; n++) {
		struct trial *t;

		if (c->nodes[n].out || c->nodes[n].count < 2)
			continue;
		t = add_trial(c, n, n);
		t->within = n;
		t->own[0] = ranks_of(c, n);
		t->group.count = 1;
		t->kind = kind_of_group(c, t);
		t->least[RATE_BUS] = least_of_node(c, n);
	}
}

/* A bad link would be found again; and two nodes have been a pair already. */
static bool needs_job(const struct check_case *c)
{
	return c->unplaced == 0 && c->partner_count >= (c->demands.stages[STAGE_PAIRS] ? 3 : 2);
}

static void plan_job(struct check_case *c)
{
	struct rank_range *parts = arena_alloc(c->arena, c->node_count * sizeof *parts);
	struct trial *t;

	c->partner_count = 0;
	for (unsigned n = 0; parts && n < c->node_count; n++)
		if (!c->nodes[n].out && c->nodes[n].health != HEALTH_BAD) {
			parts[c->partner_count] = ranks_of(c, n);
			c->partners[c->partner_count++] = n;
		}
	if (!needs_job(c))
		return;
	t = add_trial(c, c->partners[0], c->partners[0]);
	t->group = (struct rank_group){ parts, c->partner_count };
	t->least[RATE_BUS] = c->demands.least[DEMAND_JOB];
}

enum pair_result case_pair(struct check_case *c, const struct trial *t)
{
	switch (t->seen.what) {
	case SIGHT_RIGHT:
		return trial_is_slow_at_all(&c->trials, t) ? PAIR_BAD : PAIR_GOOD;
	case SIGHT_HUNG:
	case SIGHT_BROKEN:
	case SIGHT_WRONG:
		return PAIR_BAD;
	case SIGHT_NONE:
	case SIGHT_FAILED:
	case SIGHT_NO_GPU:
	case SIGHTS:
		break;
	}
	return PAIR_UNKNOWN;
}

size_t case_pairs(struct check_case *c, unsigned within, unsigned base)
{
	size_t count = 0;

	for (size_t i = 0; i < c->trials.count; i++) {
		const struct trial *t = &c->trials.at[i];

		if (t->within == within)
			c->pairs[count++] = (struct pair){ case_member(c, t->a, base),
				case_member(c, t->b, base), case_pair(c, t) };
	}
	return count;
}

unsigned case_member(const struct check_case *c, unsigned who, unsigned base)
{
	if (c->stage != STAGE_PAIRS)
		return who - base;
	for (unsigned i = 0; i < c->partner_count; i++)
		if (c->partners[i] == who)
			return i;
	return 0; /* cannot be */
}

/* The next round of pairs of GPUs of one node. */
static void pair_gpus(struct check_case *c, unsigned node)
{
	unsigned first = c->nodes[node].first;
	size_t done = case_pairs(c, node, first);
	size_t count = pairing_next(
		c->pairs, done, c->nodes[node].count, c->round, c->states, c->busy, c->fresh);

	for (size_t i = 0; i < count; i++) {
		struct trial *t = add_trial(c, first + c->fresh[i].a, first + c->fresh[i].b);

		t->within = node;
		t->own[0] = (struct rank_range){ t->a, 1 };
		t->own[1] = (struct rank_range){ t->b, 1 };
		t->group.count = 2;
		t->kind = kind_of_group(c, t);
	}
}

static void pair_nodes(struct check_case *c)
{
	size_t done, count;

	if (c->round == 0) {
		c->partner_count = 0;
		for (unsigned n = 0; n < c->node_count; n++)
			if (!c->nodes[n].out && c->nodes[n].health != HEALTH_BAD)
				c->partners[c->partner_count++] = n;
	}
	done = case_pairs(c, 0, 0);
	count = pairing_next(
		c->pairs, done, c->partner_count, c->round, c->states, c->busy, c->fresh);
	for (size_t i = 0; i < count; i++) {
		struct trial *t =
			add_trial(c, c->partners[c->fresh[i].a], c->partners[c->fresh[i].b]);

		t->own[0] = ranks_of(c, t->a);
		t->own[1] = ranks_of(c, t->b);
		t->group.count = 2;
		t->kind = kind_of_group(c, t);
		t->least[RATE_BUS] = c->demands.least[DEMAND_PAIRS];
	}
}

/* Adds the trials of the stage's next round, if there is one. */
static bool plan_round(struct check_case *c)
{
	size_t before = c->trials.count;
	bool pairs = c->stage == STAGE_NODE_PAIRS || c->stage == STAGE_NICS_PAIRS;

	if (pairs) {
		for (unsigned i = 0; i < c->inside_count; i++)
			pair_gpus(c, c->inside[i]);
	} else if (c->stage == STAGE_PAIRS && c->demands.stages[STAGE_PAIRS]) {
		pair_nodes(c);
	} else if (c->round == 0 && c->demands.stages[c->stage]) {
		if (c->stage == STAGE_GPU)
			plan_gpus(c);
		else if (c->stage == STAGE_JOB)
			plan_job(c);
		else
			plan_nodes(c);
	}
	c->round++;
	return c->trials.count > before;
}

/* What has still to be seen: in one step, nobody twice. */
static bool ask(struct check_case *c)
{
	memset(c->busy, 0, c->ranks * sizeof *c->busy);
	for (size_t i = 0; i < c->trials.count; i++) {
		struct trial *t = &c->trials.at[i];
		bool open = t->times == 0 || (t->times == 1 && trial_is_slow_at_all(&c->trials, t));

		if (!open || c->busy[t->a] || c->busy[t->b])
			continue;
		c->busy[t->a] = c->busy[t->b] = true;
		c->groups[c->asked_count] = t->group;
		c->asked[c->asked_count++] = t;
	}
	return c->asked_count > 0;
}

static void next_stage(struct check_case *c)
{
	accuse_stage(c);
	if (c->stage == STAGE_NODE_PAIRS || c->stage == STAGE_NICS_PAIRS)
		c->inside_count = 0;
	c->stage++;
	c->trials.count = 0;
	c->round = 0;
}

bool case_next(struct check_case *c, struct check_step *ret)
{
	static const enum step_kind kinds[STAGES] = {
		[STAGE_GPU] = STEP_GPU,
		[STAGE_NODE] = STEP_REDUCE,
		[STAGE_NODE_PAIRS] = STEP_REDUCE,
		[STAGE_NICS] = STEP_NICS,
		[STAGE_NICS_PAIRS] = STEP_NICS,
		[STAGE_PAIRS] = STEP_REDUCE,
		[STAGE_JOB] = STEP_REDUCE,
	};

	c->asked_count = 0;
	c->failed = c->failed || arena_failed(c->arena);
	while (!c->failed && c->stage != STAGE_OVER && !ask(c))
		if (!plan_round(c))
			next_stage(c);
	if (c->failed || c->stage == STAGE_OVER)
		return false;
	*ret = (struct check_step){ kinds[c->stage], c->demands.limit_ms, c->asked_count,
		c->groups };
	return true;
}

void case_findings(const struct check_case *c, unsigned node, struct findings *ret)
{
	ret->count = ret->left_out = 0;
	for (size_t i = 0; i < c->finding_count; i++)
		if (c->findings[i].node == node) {
			const struct finding *f = &c->findings[i].finding;

			findings_add(ret, f->health, f->check, f->subject, "%s", f->text);
		}
}
