/* accuse.c - see accuse.h */
#include "daemon/nodecheck/accuse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/arena.h"
#include "common/text.h"
#include "daemon/nodecheck/check_case.h"

static struct case_finding *room_for_one(struct check_case *c)
{
	if (c->finding_count == c->finding_room) {
		size_t room = c->finding_room ? 2 * c->finding_room : 64;
		struct case_finding *at = arena_alloc(c->arena, room * sizeof *at);

		if (!at)
			return NULL;
		if (c->finding_count)
			memcpy(at, c->findings, c->finding_count * sizeof *at);
		c->findings = at;
		c->finding_room = room;
	}
	return &c->findings[c->finding_count++];
}

void accuse(struct check_case *c, unsigned node, enum health health, const char *check,
	const char *subject, const char *fmt, ...)
{
	struct case_finding *to = room_for_one(c);
	va_list ap;

	if (c->nodes[node].health < health)
		c->nodes[node].health = health;
	if (!to)
		return;
	to->node = node;
	to->finding.health = health;
	(void)snprintf(to->finding.check, sizeof to->finding.check, "%s", check);
	(void)snprintf(to->finding.subject, sizeof to->finding.subject, "%s", subject);
	va_start(ap, fmt);
	(void)vsnprintf(to->finding.text, sizeof to->finding.text, fmt, ap);
	va_end(ap);
}

struct subject {
	char text[64];
};

/* "GPU 3 (0000:3b:00.0)": the local rank's, as programs see it, and where it is. */
static struct subject gpu_name(const struct check_case *c, unsigned node, unsigned rank)
{
	struct subject s;
	const char *bus = c->buses[rank];

	(void)snprintf(s.text, sizeof s.text, bus && *bus ? "GPU %u (%s)" : "GPU %u",
		rank - c->nodes[node].first, bus);
	return s;
}

static unsigned node_of(const struct check_case *c, unsigned rank)
{
	unsigned node = 0;

	while (node + 1 < c->node_count &&
		(rank < c->nodes[node].first ||
			rank - c->nodes[node].first >= c->nodes[node].count))
		node++;
	return node;
}

static enum health health_of(struct check_case *c, const struct trial *t)
{
	static const enum health by_pair[] = {
		[PAIR_UNKNOWN] = HEALTH_UNKNOWN,
		[PAIR_GOOD] = HEALTH_GOOD,
		[PAIR_BAD] = HEALTH_BAD,
	};

	return by_pair[case_pair(c, t)];
}

/* What a trial that wasn't good did: "gave a wrong result: ..." */
static void add_what(struct check_case *c, const struct trial *t, struct text *out)
{
	static const char *const did[SIGHTS] = {
		[SIGHT_NONE] = "could not run",
		[SIGHT_RIGHT] = "is slow",
		[SIGHT_FAILED] = "could not run",
		[SIGHT_NO_GPU] = "could not run",
		[SIGHT_HUNG] = "did not end",
		[SIGHT_BROKEN] = "failed",
		[SIGHT_WRONG] = "gave a wrong result",
	};
	unsigned size = rank_group_size(&t->group);

	text_add(out, did[t->seen.what]);
	if (t->seen.what == SIGHT_RIGHT) {
		text_add(out, ": ");
		for (unsigned rate = 0; rate < RATES; rate++)
			if (trial_is_slow(&c->trials, t, (enum rate)rate))
				trial_add_rate(&c->trials, t, (enum rate)rate, out);
	} else if (*t->seen.text) {
		text_printf(out, ": %s", t->seen.text);
		if (size > 1)
			text_printf(out, " (rank %u)", t->said_by);
	}
}

static void accuse_slow_gpu(struct check_case *c, struct trial *t)
{
	static const struct {
		enum rate rate;
		const char *check;
	} rows[] = { { RATE_MEMORY, "gpu_memory" }, { RATE_COMPUTE, "gpu_compute" } };
	struct subject gpu = gpu_name(c, t->within, t->a);

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (trial_is_slow(&c->trials, t, rows[i].rate)) {
			struct text what = { 0 };

			trial_add_rate(&c->trials, t, rows[i].rate, &what);
			accuse(c, t->within, HEALTH_BAD, rows[i].check, gpu.text,
				"slow, each of 2 times: %s", text_string(&what));
			text_done(&what);
		}
}

static void keep_slowest(uint64_t *slowest, uint64_t rate)
{
	if (rate && (*slowest == 0 || rate < *slowest))
		*slowest = rate;
}

/* Whether the GPU is of use for what follows. */
static bool accuse_gpu(struct check_case *c, struct trial *t)
{
	struct case_node *n = &c->nodes[t->within];
	enum health health = health_of(c, t);
	struct text what = { 0 };

	if (*t->seen.gpu)
		(void)snprintf(n->gpu, sizeof n->gpu, "%s", t->seen.gpu);
	for (unsigned rate = 0; rate < RATES; rate++)
		keep_slowest(&n->rates[rate], t->seen.rates[rate]);
	if (t->seen.what == SIGHT_RIGHT) {
		accuse_slow_gpu(c, t);
		return true;
	}
	if (t->seen.what == SIGHT_NO_GPU && c->no_gpu++ == 0)
		(void)snprintf(c->no_gpu_text, sizeof c->no_gpu_text, "%s", t->seen.text);
	add_what(c, t, &what);
	accuse(c, t->within, health, *t->seen.test ? t->seen.test : "gpu",
		gpu_name(c, t->within, t->a).text, "its %stest %s",
		strcmp(t->seen.test, "gpu_memory") == 0          ? "memory " :
			strcmp(t->seen.test, "gpu_compute") == 0 ? "compute " :
								   "",
		text_string(&what));
	text_done(&what);
	return false;
}

static void accuse_gpus(struct check_case *c)
{
	for (size_t i = 0; i < c->trials.count; i++) {
		struct trial *t = &c->trials.at[i];

		c->nodes[t->within].reached[STAGE_GPU] = true;
		if (!accuse_gpu(c, t))
			c->nodes[t->within].out = true;
	}
	for (unsigned n = 0; n < c->node_count; n++) {
		const struct case_node *node = &c->nodes[n];
		struct text rates = { 0 };

		if (!node->reached[STAGE_GPU] || node->health != HEALTH_GOOD)
			continue;
		rate_add(RATE_MEMORY, node->rates[RATE_MEMORY], &rates);
		text_add(&rates, ", compute ");
		rate_add(RATE_COMPUTE, node->rates[RATE_COMPUTE], &rates);
		accuse(c, n, HEALTH_GOOD, "gpu", "", "%u x %s: right, memory %s", node->count,
			node->gpu, text_string(&rates));
		text_done(&rates);
	}
}

static const char *check_of(enum check_stage stage)
{
	static const char *const names[STAGES] = {
		[STAGE_GPU] = "gpu",
		[STAGE_NODE] = "node_reduce",
		[STAGE_NODE_PAIRS] = "node_reduce",
		[STAGE_NICS] = "nic_reduce",
		[STAGE_NICS_PAIRS] = "nic_reduce",
		[STAGE_PAIRS] = "pair_reduce",
		[STAGE_JOB] = "job_reduce",
	};

	return names[stage];
}

/* A node's own all-reduce. */
static void accuse_node(struct check_case *c, struct trial *t)
{
	struct case_node *n = &c->nodes[t->a];
	const char *by = c->stage == STAGE_NICS ? " by network cards" : "";
	enum health health = health_of(c, t);
	struct text what = { 0 };

	n->reached[c->stage] = true;
	*(c->stage == STAGE_NICS ? &n->nics : &n->rates[RATE_BUS]) = t->seen.rates[RATE_BUS];
	if (health == HEALTH_GOOD) {
		text_add(&what, "is right, ");
		rate_add(RATE_BUS, t->seen.rates[RATE_BUS], &what);
	} else {
		add_what(c, t, &what);
	}
	accuse(c, t->a, health, check_of(c->stage), "", "all-reduce of its %u GPUs%s %s", n->count,
		by, text_string(&what));
	text_done(&what);
	if (health == HEALTH_BAD && n->count > 2)
		c->inside[c->inside_count++] = t->a;
}

/* The first bad trial of a member, or of two. */
static struct trial *bad_trial(struct check_case *c, unsigned within, unsigned who, unsigned other)
{
	for (size_t i = 0; i < c->trials.count; i++) {
		struct trial *t = &c->trials.at[i];

		if (t->within == within && case_pair(c, t) == PAIR_BAD &&
			(t->a == who || t->b == who) &&
			(other == who || t->a == other || t->b == other))
			return t;
	}
	return NULL;
}

static unsigned bad_trials(struct check_case *c, unsigned within, unsigned who)
{
	unsigned count = 0;

	for (size_t i = 0; i < c->trials.count; i++) {
		struct trial *t = &c->trials.at[i];

		count += t->within == within && case_pair(c, t) == PAIR_BAD &&
			(t->a == who || t->b == who);
	}
	return count;
}

static void accuse_gpu_in_pairs(struct check_case *c, unsigned node, unsigned rank)
{
	struct trial *t = bad_trial(c, node, rank, rank);
	struct text what = { 0 };

	add_what(c, t, &what);
	accuse(c, node, HEALTH_BAD, check_of(c->stage), gpu_name(c, node, rank).text,
		"all-reduce with each of %u other GPUs %s", bad_trials(c, node, rank),
		text_string(&what));
	text_done(&what);
}

static void accuse_gpu_link(struct check_case *c, unsigned node, struct trial *t)
{
	unsigned first = c->nodes[node].first;
	char subject[64];
	struct text what = { 0 };

	add_what(c, t, &what);
	(void)snprintf(subject, sizeof subject, "GPU %u - GPU %u", t->a - first, t->b - first);
	accuse(c, node, HEALTH_BAD, check_of(c->stage), subject,
		"all-reduce of these two %s, and with others they are good", text_string(&what));
	text_done(&what);
}

static void accuse_inside(struct check_case *c, unsigned node)
{
	unsigned first = c->nodes[node].first;
	size_t count = case_pairs(c, node, first);

	pairing_judge(c->pairs, count, c->nodes[node].count, c->states);
	for (unsigned i = 0; i < c->nodes[node].count; i++)
		if (c->states[i] == MEMBER_BAD)
			accuse_gpu_in_pairs(c, node, first + i);
	for (size_t i = 0; i < c->trials.count; i++) {
		struct trial *t = &c->trials.at[i];

		if (t->within == node && case_pair(c, t) == PAIR_BAD &&
			c->states[t->a - first] == MEMBER_GOOD &&
			c->states[t->b - first] == MEMBER_GOOD)
			accuse_gpu_link(c, node, t);
	}
}

static void accuse_node_in_pairs(struct check_case *c, unsigned node)
{
	struct trial *t = bad_trial(c, 0, node, node);
	struct text what = { 0 };

	add_what(c, t, &what);
	accuse(c, node, HEALTH_BAD, check_of(c->stage), "",
		"all-reduce with each of %u other nodes %s", bad_trials(c, 0, node),
		text_string(&what));
	text_done(&what);
}

static void accuse_link_end(struct check_case *c, struct trial *t, unsigned end, const char *but)
{
	unsigned other = t->a == end ? t->b : t->a;
	struct text what = { 0 };
	char subject[64];

	add_what(c, t, &what);
	(void)snprintf(subject, sizeof subject, "link to %.50s", c->nodes[other].host);
	accuse(c, end, HEALTH_UNKNOWN, check_of(c->stage), subject, "all-reduce of both %s%s",
		text_string(&what), but);
	text_done(&what);
}

/* Of pairs that convict nobody. No node is excluded for a link that may be the network's. */
static void accuse_link(struct check_case *c, struct trial *t)
{
	enum member_state a = c->states[case_member(c, t->a, 0)],
			  b = c->states[case_member(c, t->b, 0)];
	enum health health = health_of(c, t);
	bool fine = a == MEMBER_GOOD && b == MEMBER_GOOD;
	const char *but = "";

	if (health == HEALTH_GOOD || a == MEMBER_BAD || b == MEMBER_BAD)
		return;
	if (health == HEALTH_BAD) {
		c->unplaced++;
		but = fine ? "; with others they are good" : "; which end is bad can't be told";
	}
	/* another pair has shown that the end of one that could not run is good */
	if (health == HEALTH_BAD || a == MEMBER_OPEN)
		accuse_link_end(c, t, t->a, but);
	if (health == HEALTH_BAD || b == MEMBER_OPEN)
		accuse_link_end(c, t, t->b, but);
}

static void accuse_pairs(struct check_case *c)
{
	size_t count = case_pairs(c, 0, 0);

	if (count == 0)
		return;
	pairing_judge(c->pairs, count, c->partner_count, c->states);
	for (size_t i = 0; i < c->trials.count; i++) {
		struct trial *t = &c->trials.at[i];

		c->nodes[t->a].reached[STAGE_PAIRS] = c->nodes[t->b].reached[STAGE_PAIRS] = true;
		if (t->seen.rates[RATE_BUS] > c->nodes[t->a].pairs)
			c->nodes[t->a].pairs = t->seen.rates[RATE_BUS];
		if (t->seen.rates[RATE_BUS] > c->nodes[t->b].pairs)
			c->nodes[t->b].pairs = t->seen.rates[RATE_BUS];
		accuse_link(c, t);
	}
	for (unsigned i = 0; i < c->partner_count; i++) {
		unsigned node = c->partners[i];
		struct text rate = { 0 };

		if (c->states[i] == MEMBER_BAD)
			accuse_node_in_pairs(c, node);
		if (c->states[i] != MEMBER_GOOD || c->nodes[node].health != HEALTH_GOOD)
			continue;
		rate_add(RATE_BUS, c->nodes[node].pairs, &rate);
		accuse(c, node, HEALTH_GOOD, check_of(c->stage), "",
			"all-reduce with other nodes is right, %s", text_string(&rate));
		text_done(&rate);
	}
}

/* Where it is bad nobody can be named. */
static void accuse_job(struct check_case *c, struct trial *t)
{
	enum health health = health_of(c, t);
	struct text what = { 0 };

	if (health == HEALTH_GOOD) {
		text_add(&what, "is right, ");
		rate_add(RATE_BUS, t->seen.rates[RATE_BUS], &what);
	} else {
		unsigned node = node_of(c, t->said_by);

		add_what(c, t, &what);
		if (t->seen.what != SIGHT_RIGHT)
			text_printf(&what, " on %.64s", c->nodes[node].host);
		if (health == HEALTH_BAD) {
			c->unplaced++;
			text_add(&what, "; no node can be named");
		}
		health = HEALTH_UNKNOWN;
	}
	for (unsigned i = 0; i < c->partner_count; i++) {
		c->nodes[c->partners[i]].reached[STAGE_JOB] = true;
		accuse(c, c->partners[i], health, check_of(c->stage), "the job",
			"all-reduce of all %u nodes %s", c->partner_count, text_string(&what));
	}
	text_done(&what);
}

void accuse_stage(struct check_case *c)
{
	switch (c->stage) {
	case STAGE_GPU:
		accuse_gpus(c);
		break;
	case STAGE_NODE:
	case STAGE_NICS:
		for (size_t i = 0; i < c->trials.count; i++)
			accuse_node(c, &c->trials.at[i]);
		break;
	case STAGE_NODE_PAIRS:
	case STAGE_NICS_PAIRS:
		for (unsigned i = 0; i < c->inside_count; i++)
			accuse_inside(c, c->inside[i]);
		break;
	case STAGE_PAIRS:
		accuse_pairs(c);
		break;
	case STAGE_JOB:
		if (c->trials.count)
			accuse_job(c, &c->trials.at[0]);
		break;
	case STAGE_OVER:
		break;
	}
}
