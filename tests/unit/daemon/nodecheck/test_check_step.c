/* test_check_step.c - steps, sightings and roll calls as lines of text, and back. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "common/text.h"
#include "daemon/nodecheck/check_case.h"
#include "daemon/nodecheck/check_step.h"
#include "daemon/nodecheck/roll_call.h"
#include "daemon/nodecheck/sighting.h"

static const struct step_row {
	const char *says, *line;
	unsigned asked;
	int rc;
	struct step_part part;
} rows[] = {
	{ "each for itself", "gpu 60000 0+1 1+1 2+1", 1, 0, { STEP_GPU, 60000, 1, 0, 1 } },
	{ "the first of a group", "reduce 5 0+8 8+8", 8, 0, { STEP_REDUCE, 5, 1, 0, 8 } },
	{ "the last of a group", "nics 5 0+8 8+8", 15, 0, { STEP_NICS, 5, 1, 7, 8 } },
	{ "the second part of a pair", "reduce 5 8+8,24+4", 26, 0, { STEP_REDUCE, 5, 0, 10, 12 } },
	{ "many parts", "reduce 5 0+1,2+1,4+1,6+2", 7, 0, { STEP_REDUCE, 5, 0, 4, 5 } },
	{ "no part in it", "reduce 5 0+8", 8, -ENOENT, { STEP_REDUCE, 5, 0, 0, 0 } },
	{ "the end", "end 0", 0, -ENOENT, { STEP_END, 0, 0, 0, 0 } },
	{ "nothing", "", 0, -EPROTO, { 0 } },
	{ "an unknown kind", "dance 5 0+8", 0, -EPROTO, { 0 } },
	{ "no limit", "gpu", 0, -EPROTO, { 0 } },
	{ "a limit that is none", "gpu soon 0+1", 0, -EPROTO, { 0 } },
	{ "no count", "gpu 5 0", 0, -EPROTO, { 0 } },
	{ "a count of 0", "gpu 5 0+0", 0, -EPROTO, { 0 } },
	{ "a wrong part behind the right one", "gpu 5 0+1,x", 0, -EPROTO, { 0 } },
	{ "an empty group", "gpu 5 ,", 0, -EPROTO, { 0 } },
};

static void test_read(void **state)
{
	const struct step_row *row = *state;
	struct step_part part = { .group = 4711 };

	assert_int_equal(check_step_read(row->line, row->asked, &part), row->rc);
	if (row->rc == -EPROTO) {
		assert_int_equal(part.group, 4711);
		return;
	}
	assert_int_equal(part.kind, row->part.kind);
	assert_int_equal(part.limit_ms, row->part.limit_ms);
	if (row->rc < 0)
		return;
	assert_int_equal(part.group, row->part.group);
	assert_int_equal(part.rank, row->part.rank);
	assert_int_equal(part.ranks, row->part.ranks);
}

static void test_write(void **state)
{
	const struct rank_range parts[] = { { 0, 8 }, { 16, 4 }, { 8, 8 } };
	const struct rank_group groups[] = { { parts, 2 }, { parts + 2, 1 } };
	const struct check_step step = { STEP_NICS, 60000, 2, groups };
	struct text out = { 0 };

	(void)state;
	check_step_write(&step, &out);
	assert_string_equal(text_string(&out), "nics 60000 0+8,16+4 8+8");
	assert_int_equal(rank_group_size(&groups[0]), 12);
	assert_int_equal(rank_group_at(&groups[0], 7), 7);
	assert_int_equal(rank_group_at(&groups[0], 8), 16);
	text_done(&out);
}

static void test_sighting(void **state)
{
	struct gpu_sight s = { .what = SIGHT_WRONG,
		.test = "gpu_memory",
		.rates = { 1, UINT64_MAX, 3 },
		.gpu = "NVIDIA H100 80GB HBM3",
		.bus = "0000:3b:00.0",
		.text = "2 of 8 words\n\twrong" };
	struct gpu_sight back = { 0 };
	struct text line = { 0 };

	(void)state;
	sighting_write(&s, &line);
	assert_null(strchr(text_string(&line), '\n'));
	assert_int_equal(sighting_read(text_string(&line), &back), 0);
	assert_int_equal(back.what, s.what);
	assert_memory_equal(back.rates, s.rates, sizeof s.rates);
	assert_string_equal(back.test, s.test);
	assert_string_equal(back.gpu, s.gpu);
	assert_string_equal(back.bus, s.bus);
	assert_string_equal(back.text, "2 of 8 words  wrong");
	text_done(&line);
}

static const struct bad_sighting {
	const char *says, *line;
} bad_sightings[] = {
	{ "an empty line", "" },
	{ "an unknown sight", "99\t0\t0\t0\t\t\t\t" },
	{ "no number", "1\tx\t0\t0\t\t\t\t" },
	{ "more fields", "1\t0\t0\t0\ta\tb\tc\td\te" },
	{ "a test's name that is too long", "1\t0\t0\t0\tabcdefghijklmnopqrst\t\t\t" },
};

static void test_bad_sighting(void **state)
{
	const struct bad_sighting *row = *state;
	struct gpu_sight s = { .what = SIGHT_HUNG };

	assert_int_equal(sighting_read(row->line, &s), -EPROTO);
	assert_int_equal(s.what, SIGHT_HUNG);
}

static const struct roll_row {
	const char *says;
	unsigned ranks;
	const char *said[8]; /* NULL: has not come */
	const char *nodes;   /* "number first count missing" each */
} rolls[] = {
	{ "all have come", 4, { "0 0 2 a", "0 0 2 a", "1 2 2 b", "1 2 2 b" }, "0 0+2 a;1 2+2 b;" },
	{ "the last one of a node has not", 4, { "0 0 2 a", NULL, "1 2 2 b", "1 2 2 b" },
		"0 0+2 a rank 1 did not come;1 2+2 b;" },
	{ "the first one of a node has not", 4, { "0 0 2 a", "0 0 2 a", NULL, "1 2 2 b" },
		"0 0+2 a;1 2+2 b rank 2 did not come;" },
	{ "a node in the middle", 6, { "0 0 2 a", "0 0 2 a", NULL, NULL, "2 4 2 c", "2 4 2 c" },
		"0 0+2 a;1 2+2 ? rank 2 did not come;2 4+2 c;" },
	{ "the last node", 3, { "0 0 2 a", "0 0 2 a", NULL },
		"0 0+2 a;1 2+1 ? rank 2 did not come;" },
	{ "nobody", 2, { NULL, NULL }, "0 0+2 ? rank 0 did not come;" },
	{ "uneven nodes", 4, { "0 0 1 a", "1 1 3 b", "1 1 3 b", "1 1 3 b" }, "0 0+1 a;1 1+3 b;" },
	{ "what can't be is as if it hadn't come", 2, { "0 0 2 a", "0 5 1 a" },
		"0 0+2 a rank 1 did not come;" },
};

static void test_roll(void **state)
{
	const struct roll_row *row = *state;
	struct roll_entry by_rank[8] = { { 0 } };
	struct case_node nodes[8];
	struct arena arena = { 0 };
	struct text out = { 0 };
	unsigned count;

	for (unsigned r = 0; r < row->ranks; r++)
		if (row->said[r])
			(void)roll_entry_read(row->said[r], r, row->ranks, &by_rank[r]);
	count = roll_call(by_rank, row->ranks, &arena, nodes);
	for (unsigned n = 0; n < count; n++)
		text_printf(&out, "%u %u+%u %s%s%s;", nodes[n].number, nodes[n].first,
			nodes[n].count, nodes[n].host, nodes[n].missing ? " " : "",
			nodes[n].missing ? nodes[n].missing : "");
	assert_string_equal(text_string(&out), row->nodes);
	text_done(&out);
	arena_done(&arena);
}

TESTS(check_step)
{
	struct suite s = { .count = 0 };

	SUITE_ROWS(&s, test_read, rows);
	suite_add(&s, "a step is written", test_write, NULL, NULL);
	suite_add(&s, "a sighting comes back", test_sighting, NULL, NULL);
	SUITE_ROWS(&s, test_bad_sighting, bad_sightings);
	SUITE_ROWS(&s, test_roll, rolls);
	return suite_run(&s);
}
