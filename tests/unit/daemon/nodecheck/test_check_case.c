/* test_check_case.c - whole checks of simulated nodes: exactly what is bad is named. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "daemon/nodecheck/check_case.h"
#include "daemon/nodecheck/verdict_text.h"

enum { NODES_MAX = 24, GPUS_MAX = 8, RANKS_MAX = NODES_MAX * GPUS_MAX };

enum fault {
	FINE,
	MEMORY_SLOW,
	MEMORY_WRONG,
	COMPUTE_SLOW,
	GPU_HUNG,
	GPU_NONE,   /* no driver */
	GPU_FAILED, /* could not run */
	LINK_SLOW,  /* of the GPU to all others in the node */
	LINK_WRONG,
	NIC_SLOW,
	NET_SLOW, /* of the node */
	NET_WRONG,
	NET_HUNG,
	NET_ONCE, /* slow in the first round alone */
	FAULTS,
};

/* What there is, and what is wrong with it. */
struct scene {
	const char *says;
	unsigned nodes, gpus;
	struct {
		unsigned node, gpu;
		enum fault fault;
	} faults[4];
	unsigned pair[2];      /* nodes with a bad link between them, if they are two */
	bool job;              /* only all together are bad */
	const char *bad;       /* "1 3": numbers of nodes */
	const char *says_that; /* stands in the table */
	int code;
};

struct play {
	const struct scene *scene;
	struct check_case c;
	struct arena arena;
	struct case_node nodes[NODES_MAX];
	enum fault by_rank[RANKS_MAX];
	struct gpu_sight seen[RANKS_MAX];
	unsigned steps, of_groups;
};

static const uint64_t usual[] = { 3000000, 90000000, 400000, 40000 };

static bool spans(const struct play *p, const struct rank_group *g, unsigned a, unsigned b)
{
	bool has_a = false, has_b = false;

	for (unsigned i = 0; i < rank_group_size(g); i++) {
		has_a |= rank_group_at(g, i) / p->scene->gpus == a;
		has_b |= rank_group_at(g, i) / p->scene->gpus == b;
	}
	return has_a && has_b;
}

static void see_gpu(struct play *p, unsigned rank)
{
	struct gpu_sight *s = &p->seen[rank];

	*s = (struct gpu_sight){ .what = SIGHT_RIGHT, .rates = { usual[0], usual[1], 0 } };
	(void)snprintf(s->gpu, sizeof s->gpu, "Some GPU");
	(void)snprintf(s->bus, sizeof s->bus, "0000:%02x:00.0", rank % p->scene->gpus);
	switch (p->by_rank[rank]) {
	case MEMORY_SLOW:
		s->rates[RATE_MEMORY] /= 2;
		break;
	case COMPUTE_SLOW:
		s->rates[RATE_COMPUTE] /= 2;
		break;
	case MEMORY_WRONG:
		s->what = SIGHT_WRONG;
		(void)snprintf(s->test, sizeof s->test, "gpu_memory");
		break;
	case GPU_HUNG:
		s->what = SIGHT_HUNG;
		break;
	case GPU_NONE:
		s->what = SIGHT_NO_GPU;
		break;
	case GPU_FAILED:
		s->what = SIGHT_FAILED;
		break;
	case FINE:
	case LINK_SLOW:
	case LINK_WRONG:
	case NIC_SLOW:
	case NET_SLOW:
	case NET_WRONG:
	case NET_HUNG:
	case NET_ONCE:
	case FAULTS:
		break;
	}
}

/* What a group's worst member makes of all-reduces. */
static void see_group(struct play *p, enum step_kind kind, const struct rank_group *g)
{
	unsigned size = rank_group_size(g), per_node = p->scene->gpus;
	bool net = rank_group_at(g, 0) / per_node != rank_group_at(g, size - 1) / per_node;
	struct gpu_sight s = { .what = SIGHT_RIGHT };
	const unsigned *pair = p->scene->pair;
	bool nics = kind == STEP_NICS;

	s.rates[RATE_BUS] = usual[net || nics ? 3 : 2];
	for (unsigned i = 0; i < size; i++) {
		enum fault f = p->by_rank[rank_group_at(g, i)];
		bool slow = (f == LINK_SLOW && !net && !nics) || (f == NIC_SLOW && nics) ||
			(f == NET_SLOW && net) || (f == NET_ONCE && net && p->of_groups == 0);

		if (slow)
			s.rates[RATE_BUS] = usual[net || nics ? 3 : 2] / 2;
		if ((f == LINK_WRONG && !net && !nics) || (f == NET_WRONG && net))
			s.what = SIGHT_WRONG;
		if (f == NET_HUNG && net)
			s.what = SIGHT_HUNG;
	}
	if (net && pair[0] != pair[1] && spans(p, g, pair[0], pair[1]))
		s.what = SIGHT_WRONG;
	if (p->scene->job && size > 2 * per_node)
		s.what = SIGHT_WRONG;
	for (unsigned i = 0; i < size; i++)
		p->seen[rank_group_at(g, i)] = s;
}

static void play(struct play *p, const struct scene *scene)
{
	struct check_demands demands = { .percent = 80, .limit_ms = 60000 };
	struct check_step step;

	memset(p, 0, sizeof *p);
	p->scene = scene;
	for (unsigned i = 0; i < 4; i++)
		p->by_rank[scene->faults[i].node * scene->gpus + scene->faults[i].gpu] |=
			scene->faults[i].fault;
	for (unsigned n = 0; n < scene->nodes; n++)
		p->nodes[n] = (struct case_node){
			.number = n, .first = n * scene->gpus, .count = scene->gpus, .host = "n"
		};
	for (unsigned stage = 0; stage < STAGES; stage++)
		demands.stages[stage] = true;
	assert_int_equal(case_begin(&p->c, &p->arena, p->nodes, scene->nodes,
				 scene->nodes * scene->gpus, &demands),
		0);
	while (case_next(&p->c, &step)) {
		bool busy[RANKS_MAX] = { false };

		assert_true(p->steps++ < 64);
		memset(p->seen, 0, sizeof p->seen);
		for (size_t i = 0; i < step.count; i++) {
			for (unsigned k = 0; k < rank_group_size(&step.groups[i]); k++) {
				unsigned rank = rank_group_at(&step.groups[i], k);

				assert_false(busy[rank]); /* of two groups nobody can be */
				busy[rank] = true;
			}
			if (step.kind == STEP_GPU)
				see_gpu(p, rank_group_at(&step.groups[i], 0));
			else
				see_group(p, step.kind, &step.groups[i]);
		}
		if (step.kind == STEP_REDUCE && rank_group_size(&step.groups[0]) == 2 * scene->gpus)
			p->of_groups++;
		case_seen(&p->c, p->seen);
	}
	assert_false(p->c.failed);
}

static const struct scene scenes[] = {
	{ "all is good", 4, 8, { { 0 } }, { 0 }, false, "", "no node is bad", 0 },
	{ "one node, one GPU", 1, 1, { { 0 } }, { 0 }, false, "", "no node is bad", 0 },
	{ "wrong memory", 2, 8, { { 1, 3, MEMORY_WRONG } }, { 0 }, false, "1",
		"GPU 3 (0000:03:00.0): its memory test gave a wrong result", 3 },
	{ "slow memory", 1, 8, { { 0, 7, MEMORY_SLOW } }, { 0 }, false, "0",
		"GPU 7 (0000:07:00.0): slow, each of 2 times: 1500 GB/s, where its peers have 3000 GB/s",
		3 },
	{ "slow compute", 3, 1, { { 2, 0, COMPUTE_SLOW } }, { 0 }, false, "2", "45.0 TFLOP/s", 3 },
	{ "of two GPUs none is known to be the slow one", 2, 1, { { 1, 0, COMPUTE_SLOW } }, { 0 },
		false, "", "no node is bad", 0 },
	{ "a GPU that hangs", 2, 2, { { 0, 1, GPU_HUNG } }, { 0 }, false, "0",
		"its test did not end", 3 },
	{ "a node without a driver is unknown", 2, 1, { { 1, 0, GPU_NONE } }, { 0 }, false, "",
		"of 1 not everything is known", 0 },
	{ "no GPU anywhere", 2, 1, { { 0, 0, GPU_NONE }, { 1, 0, GPU_NONE } }, { 0 }, false, "", "",
		4 },
	{ "what could not run is unknown", 3, 2, { { 1, 1, GPU_FAILED } }, { 0 }, false, "",
		"its test could not run", 0 },
	{ "a GPU's slow link", 1, 8, { { 0, 5, LINK_SLOW } }, { 0 }, false, "", "no node is bad",
		0 },
	{ "a GPU's slow link, among peers", 3, 8, { { 2, 5, LINK_SLOW } }, { 0 }, false, "2",
		"GPU 5 (0000:05:00.0): all-reduce with each of ", 3 },
	{ "a GPU's wrong link", 1, 8, { { 0, 2, LINK_WRONG } }, { 0 }, false, "0",
		"GPU 2 (0000:02:00.0): all-reduce with each of ", 3 },
	{ "a network card", 3, 8, { { 1, 6, NIC_SLOW } }, { 0 }, false, "1",
		"GPU 6 (0000:06:00.0): all-reduce with each of ", 3 },
	{ "a slow node", 5, 2, { { 3, 0, NET_SLOW } }, { 0 }, false, "3",
		"other nodes is slow: 20.0 GB/s, where its peers have 40.0 GB/s", 3 },
	{ "a slow node of three", 3, 2, { { 0, 0, NET_SLOW } }, { 0 }, false, "0", "is slow", 3 },
	{ "another slow node of three", 3, 2, { { 1, 0, NET_SLOW } }, { 0 }, false, "1", "is slow",
		3 },
	{ "the last slow node of three", 3, 2, { { 2, 0, NET_SLOW } }, { 0 }, false, "2", "is slow",
		3 },
	{ "two slow nodes of eight", 8, 2, { { 0, 0, NET_SLOW }, { 4, 0, NET_SLOW } }, { 0 }, false,
		"0 4", "is slow", 3 },
	{ "a node that makes sums wrong", 4, 2, { { 2, 1, NET_WRONG } }, { 0 }, false, "2",
		"gave a wrong result", 3 },
	{ "a node whose network hangs", 4, 2, { { 1, 1, NET_HUNG } }, { 0 }, false, "1",
		"did not end", 3 },
	{ "slow once is not slow", 4, 2, { { 1, 0, NET_ONCE } }, { 0 }, false, "", "no node is bad",
		0 },
	{ "a link between two nodes", 5, 2, { { 0 } }, { 1, 3 }, false, "", "no node can be blamed",
		3 },
	{ "two nodes that can't work together", 2, 2, { { 1, 0, NET_WRONG } }, { 0 }, false, "",
		"which end is bad can't be told", 3 },
	{ "only all together are bad", 4, 1, { { 0 } }, { 0 }, true, "", "no node can be named",
		3 },
	{ "one of each kind", 8, 4,
		{ { 0, 1, MEMORY_SLOW }, { 2, 3, LINK_WRONG }, { 5, 0, NIC_SLOW },
			{ 7, 0, NET_HUNG } },
		{ 0 }, false, "0 2 5 7", "4 of 8 nodes are bad", 3 },
};

static void assert_bad_nodes(const struct play *p, const char *bad)
{
	struct text found = { 0 };

	for (unsigned n = 0; n < p->scene->nodes; n++)
		if (p->nodes[n].health == HEALTH_BAD)
			text_printf(&found, "%s%u", found.len ? " " : "", n);
	assert_string_equal(text_string(&found), bad);
	text_done(&found);
}

static void test_scene(void **state)
{
	static struct findings room;
	static struct play p;
	struct text out = { 0 }, json = { 0 };

	play(&p, *state);
	verdict_table(&p.c, &room, &out);
	verdict_json(&p.c, &room, &json);
	assert_bad_nodes(&p, p.scene->bad);
	assert_contains(text_string(&out), p.scene->says_that);
	assert_int_equal(verdict_exit(&p.c), p.scene->code);
	assert_contains(
		text_string(&json), p.scene->code == 3 ? "\"verdict\":\"bad\"" : "\"exit_code\"");
	text_done(&out);
	text_done(&json);
	arena_done(&p.arena);
}

/* A quarter of the nodes have one fault each, of any kind that is a node's: exactly these are bad.
 */
static void test_random(void **state)
{
	static const enum fault kinds[] = { MEMORY_SLOW, MEMORY_WRONG, COMPUTE_SLOW, GPU_HUNG,
		LINK_SLOW, LINK_WRONG, NIC_SLOW, NET_SLOW, NET_WRONG, NET_HUNG };
	static struct play p;

	(void)state;
	srand(4);
	for (unsigned turn = 0; turn < 400; turn++) {
		struct scene s = { .nodes = 8 + (unsigned)rand() % (NODES_MAX - 8),
			.gpus = 2 + (unsigned)rand() % (GPUS_MAX - 1) };
		struct text bad = { 0 };
		bool is_bad[NODES_MAX] = { false };

		for (unsigned i = 0; i < 4 && i < s.nodes / 4; i++) {
			unsigned node = (unsigned)rand() % s.nodes;

			while (is_bad[node])
				node = (node + 1) % s.nodes;
			is_bad[node] = true;
			s.faults[i].node = node;
			s.faults[i].gpu = (unsigned)rand() % s.gpus;
			s.faults[i].fault =
				kinds[(unsigned)rand() % (sizeof kinds / sizeof *kinds)];
		}
		for (unsigned n = 0; n < s.nodes; n++)
			if (is_bad[n])
				text_printf(&bad, "%s%u", bad.len ? " " : "", n);
		play(&p, &s);
		assert_bad_nodes(&p, text_string(&bad));
		for (unsigned n = 0; n < s.nodes; n++)
			if (!is_bad[n])
				assert_int_equal(p.nodes[n].health, HEALTH_GOOD);
		text_done(&bad);
		arena_done(&p.arena);
	}
}

/* Demands count where there are no peers; the table's only for whole nodes of a model that it has.
 */
static void test_demands(void **state)
{
	static struct play p;
	struct scene scene = { .nodes = 1, .gpus = 8 };
	struct check_demands demands = { .percent = 0,
		.stages = { [STAGE_GPU] = true, [STAGE_NODE] = true } };
	struct check_step step;
	unsigned steps = 0;

	(void)state;
	memset(&p, 0, sizeof p);
	p.scene = &scene;
	p.nodes[0] = (struct case_node){ .count = 8, .host = "n" };
	assert_int_equal(case_begin(&p.c, &p.arena, p.nodes, 1, 8, &demands), 0);
	for (; case_next(&p.c, &step); case_seen(&p.c, p.seen), steps++)
		for (unsigned r = 0; r < 8; r++) {
			p.seen[r] = (struct gpu_sight){ .what = SIGHT_RIGHT,
				.gpu = "NVIDIA H100 80GB HBM3",
				.rates = { 3000000, 1, 300000 } };
		}
	assert_int_equal(p.nodes[0].health, HEALTH_BAD); /* 300 of 374 GB/s */
	assert_int_equal(
		steps, 1 + 2 + 2); /* GPUs; the node, twice; two rounds of pairs, which are good */
	arena_done(&p.arena);
}

TESTS(check_case)
{
	struct suite s = { .count = 0 };

	SUITE_ROWS(&s, test_scene, scenes);
	suite_add(&s, "exactly the bad nodes of a quarter", test_random, NULL, NULL);
	suite_add(&s, "a whole node of a known model must be as fast as known", test_demands, NULL,
		NULL);
	return suite_run(&s);
}
