/* test_hang_trace.c - see hang_trace.h */
#include "daemon/witness/hang_trace.h"

#include <errno.h>
#include <string.h>

#include "common/text.h"
#include "tests/unit/unit.h"

/* --- a line is read as it was written --- */

static const struct row {
	const char *says, *line;
	struct trace_step s;
} rows[] = {
	{ "workers were started", "t=81000 begin 4 600000\n",
		{ .kind = TRACE_BEGIN, .at_ms = 81000, .ranks = 4, .after_ms = 600000 } },
	{ "something has moved", "t=83000 moved\n", { .kind = TRACE_MOVED, .at_ms = 83000 } },
	{ "a signal has stopped one", "stopped 3 19\n",
		{ .kind = TRACE_STOPPED, .rank = 3, .stop_signal = 19 } },
	{ "one waits in the store", "awaits 1 default_pg/0//a key\n",
		{ .kind = TRACE_AWAITS, .rank = 1, .key = "default_pg/0//a key" } },
	{ "one asks the store no more", "late 2\n", { .kind = TRACE_LATE, .rank = 2 } },
	{ "NCCL's RAS has answered", "ops ras 5120\n", { .kind = TRACE_RAS, .ras_bytes = 5120 } },
	{ "what it says of a rank", "ops 3 b 41 42 8000\n",
		{ .kind = TRACE_OPS,
			.rank = 3,
			.ops = { .known = true,
				.behind = true,
				.started = 41,
				.most = 42,
				.still_ms = 8000 } } },
	{ "a judgement", "t=5 judge\n", { .kind = TRACE_JUDGE, .at_ms = 5 } },
	{ "it is cleared", "t=9 cleared\n",
		{ .kind = TRACE_NEWS, .at_ms = 9, .news = NEWS_CLEARED } },
	{ "a look", NULL,
		{ .kind = TRACE_SAMPLE,
			.sample = { .rank = 2,
				.at_ms = 7,
				.state = 'S',
				.waits = WAIT_FUTEX,
				.working_set = WORKING_SET_UNKNOWN } } },
};

static void test_line(void **state)
{
	const struct row *row = *state;
	struct text line = { 0 }, again = { 0 };
	struct trace_step got;

	trace_add(&line, &row->s);
	if (row->line)
		assert_string_equal(text_string(&line), row->line);
	assert_int_equal(trace_read(text_string(&line), line.len - 1, &got), 0);
	assert_int_equal(got.kind, row->s.kind);
	trace_add(&again, &got);
	assert_string_equal(text_string(&again), text_string(&line));
	text_done(&line);
	text_done(&again);
}

static void test_news(void **state)
{
	const struct trace_step s = { .kind = TRACE_NEWS,
		.at_ms = 12,
		.news = NEWS_SUSPECT,
		.finding = { .class = HANG_OUTSIDE, .ranks = { 3, 5 }, .count = 2, .why = "why" } };
	const struct trace_step all = { .kind = TRACE_NEWS,
		.at_ms = 13,
		.news = NEWS_CERTAIN,
		.finding = { .class = HANG_ALL_WAIT, .why = "why" } };
	struct text line = { 0 };
	struct trace_step got;

	(void)state;
	trace_add(&line, &s);
	assert_int_equal(trace_read(text_string(&line), line.len - 1, &got), 0);
	assert_int_equal(got.news, NEWS_SUSPECT);
	assert_true(finding_is_same(&got.finding, &s.finding));
	text_done(&line);
	trace_add(&line, &all);
	assert_string_equal(
		text_string(&line), "t=13 certain all_wait - all ranks wait alike: why\n");
	assert_int_equal(trace_read(text_string(&line), line.len - 1, &got), 0);
	assert_int_equal(got.news, NEWS_CERTAIN);
	assert_true(finding_is_same(&got.finding, &all.finding));
	text_done(&line);
}

/* --- a line that is none --- */

static const struct bad_row {
	const char *says, *line;
} bad[] = {
	{ "empty", "" },
	{ "no time", "t=" },
	{ "no word", "t=5" },
	{ "a beginning with no limit", "t=5 begin 4" },
	{ "an unknown word", "t=5 walks" },
	{ "no key", "awaits 1" },
	{ "no rank", "awaits x key" },
	{ "no signal", "stopped 3" },
	{ "an unknown line", "ranks=1" },
};

static void test_bad(void **state)
{
	const struct bad_row *row = *state;
	struct trace_step got;

	assert_int_equal(trace_read(row->line, strlen(row->line), &got), -EINVAL);
}

static void test_cut(void **state)
{
	struct text line = { 0 };
	struct trace_step got;

	(void)state;
	text_add(&line, "awaits 1 ");
	for (int i = 0; i < 4000; i++)
		text_add(&line, "k");
	assert_int_equal(trace_read(text_string(&line), line.len, &got), 0);
	assert_int_equal(strlen(got.key), STORE_KEY_SHOWN);
	text_done(&line);
}

/* --- it is played --- */

enum { RANKS = 3 };

static enum detector_news play(struct detector *d, const char *line)
{
	struct trace_step s;

	assert_int_equal(trace_read(line, strlen(line), &s), 0);
	return trace_play(d, &s);
}

/* Rank 1 waits in the store for what does not come, and the others for it: told, and told again
 * from what was written of that. */
static void test_play(void **state)
{
	struct rank_sight sights[RANKS] = { { .looks = 0 } };
	struct talk_end room[RANKS * TALKS_MAX];
	struct detector d = { .sights = sights, .room = room, .ranks = RANKS };
	struct text awaits = { 0 }, news = { 0 };
	enum detector_news new = NEWS_NONE;
	uint64_t at = 1000;

	(void)state;
	assert_int_equal(play(&d, "t=1000 begin 3 60000"), NEWS_NONE);
	assert_true(d.after_ms == 60000);
	while (new == NEWS_NONE && at < 60000) {
		at += 1000;
		for (unsigned i = 0; i < RANKS; i++)
			(void)trace_play(&d,
				&(struct trace_step){ .kind = TRACE_SAMPLE,
					.sample = { .rank = i,
						.at_ms = at,
						.state = 'S',
						.waits = WAIT_FUTEX } });
		(void)play(&d, "awaits 1 key");
		text_done(&awaits);
		trace_add_awaits(&awaits, &d);
		new = trace_play(&d, &(struct trace_step){ .kind = TRACE_JUDGE, .at_ms = at });
		assert_string_equal(sights[1].awaits, ""); /* until the judgement */
	}
	assert_string_equal(text_string(&awaits), "awaits 1 key\n");
	assert_int_equal(new, NEWS_SUSPECT);
	trace_add_news(&news, &d, new, at);
	assert_contains(text_string(&news), "suspect outside 1 rank 1 is outside");
	assert_int_equal(play(&d, "stopped 2 19"), NEWS_NONE);
	assert_int_equal(sights[2].now.stop_signal, 19);
	assert_int_equal(play(&d, "stopped 9 19"), NEWS_NONE); /* there is none */
	assert_int_equal(play(&d, "t=90000 moved"), NEWS_CLEARED);
	text_done(&awaits);
	text_done(&news);
}

TESTS(hang_trace)
{
	static struct suite s;

	SUITE_ROWS(&s, test_line, rows);
	SUITE_ROWS(&s, test_bad, bad);
	suite_add(&s, "what is new", test_news, NULL, NULL);
	suite_add(&s, "a key that is too long", test_cut, NULL, NULL);
	suite_add(&s, "what was written is played", test_play, NULL, NULL);
	return suite_run(&s);
}
