/* test_evidence_reader.c - what is kept of what the failed workers of an attempt say. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "daemon/job/ending.h"
#include "daemon/plan/plan.h"
#include "daemon/report/error_file.h"
#include "daemon/workers/evidence_reader.h"

#define OF_PEER \
	"  File \"/torch/distributed/distributed_c10d.py\", line 2\n    work.wait()\n" \
	"RuntimeError: [gloo/pair.cc:5] Connection closed by peer [10.0.0.1]:2\n"
#define OF_ITSELF "  File \"t.py\", line 3\n    pour()\nValueError: empty\n"
#define FAILED(rank_, ended) \
	{ \
		.rank = (rank_), .local_rank = (rank_), .pid = 10 + (pid_t)(rank_), \
		.end = { ENDED_EXIT, 1, false }, .ended_ns = (ended) \
	}

enum { COUNT = 12 };

/* An attempt whose error files lie in a directory of its own. */
struct bench {
	struct arena arena;
	struct vec args;
	struct plan plan;
	struct attempt attempt;
	struct evidence said[EVIDENCE_MAX];
	char dir[64], file[128];
};

static int set_up(void **state)
{
	static struct bench b;

	b = (struct bench){ .dir = "/tmp/launchd_evidence_XXXXXX" };
	if (!mkdtemp(b.dir))
		return -1;
	b.plan = (struct plan){ .script = "./train", .use_env = true, .args = &b.args };
	b.attempt = (struct attempt){ .run_dir = b.dir };
	*state = &b;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *b = *state;

	if (*b->file)
		(void)unlink(b->file);
	arena_done(&b->arena);
	return rmdir(b->dir);
}

static size_t collect(struct bench *b, struct outcome *o, const struct last_words *w, size_t count)
{
	struct left_words left[64] = { { { 0 }, NULL } };
	struct failure why = { 0 };
	size_t kept;

	assert_true(count <= 64);
	for (size_t i = 0; w && i < count; i++)
		left[i].words = w[i];
	kept = evidence_collect(
		&b->plan, &b->attempt, o, w ? left : NULL, count, &b->arena, b->said, &why);

	assert_int_equal(why.code, 0);
	assert_false(arena_failed(&b->arena));
	return kept;
}

static void test_nothing_known(void **state)
{
	struct outcome o[] = { FAILED(0, 5), { .rank = 1, .local_rank = 1 }, FAILED(2, 4) };

	assert_int_equal(collect(*state, o, NULL, 3), 2);
	assert_int_equal(((struct bench *)*state)->said[0].rank, 2);
	assert_null(((struct bench *)*state)->said[0].words.lines);
	assert_null(((struct bench *)*state)->said[0].words.log);
	assert_int_equal(o[2].blames, BLAMES_NOBODY);
}

/* The victim is seen to die first; what it wrote last tells that it is one. */
static void test_last_lines(void **state)
{
	struct bench *b = *state;
	struct outcome o[] = { FAILED(0, 5), FAILED(1, 4), FAILED(2, 6) };
	char lines[] = OF_ITSELF;
	const struct last_words words[] = { { lines, "/log/0" }, { OF_PEER, "/log/1" }, { 0 } };

	assert_int_equal(collect(b, o, words, 3), 3);
	assert_int_equal(o[0].blames, BLAMES_ITSELF);
	assert_int_equal(o[1].blames, BLAMES_A_PEER);
	assert_int_equal(o[2].blames, BLAMES_NOBODY);
	assert_int_equal(b->said[0].rank, 0);
	assert_int_equal(b->said[1].rank, 2);
	assert_int_equal(b->said[2].rank, 1);
	memset(lines, 0, sizeof lines); /* whoever made them has gone */
	assert_string_equal(b->said[0].words.lines, OF_ITSELF);
	assert_string_equal(b->said[0].words.log, "/log/0");
	assert_null(b->said[1].words.lines);
}

static void write_error_file(struct bench *b, unsigned local_rank, const char *text)
{
	FILE *f;

	(void)snprintf(
		b->file, sizeof b->file, "%s", plan_error_file(&b->attempt, local_rank, &b->arena));
	f = fopen(b->file, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* Its error file counts before its output, and where that can't be read the output does. */
static void test_error_file(void **state)
{
	struct bench *b = *state;
	struct outcome o = FAILED(0, 5);
	const struct last_words words = { OF_PEER, NULL };

	write_error_file(b, 0, "{\"message\": \"ValueError: empty\"}");
	assert_int_equal(collect(b, &o, &words, 1), 1);
	assert_int_equal(o.blames, BLAMES_ITSELF);
	assert_string_equal(b->said[0].record->message, "ValueError: empty");
	assert_string_equal(b->said[0].words.lines, OF_PEER);

	write_error_file(b, 0, "{\"message\": \"Keybo");
	assert_int_equal(collect(b, &o, &words, 1), 1);
	assert_int_equal(o.blames, BLAMES_A_PEER);
	assert_non_null(b->said[0].record->raw);

	write_error_file(b, 0, "{\"message\": \"KeyboardInterrupt: \"}");
	assert_int_equal(collect(b, &o, &words, 1), 1);
	assert_int_equal(o.blames, BLAMES_NOBODY);
}

/* More workers than are kept: those that were taken along are left out. */
static void test_many(void **state)
{
	static struct outcome o[COUNT];
	struct last_words words[COUNT] = { { 0 } };
	struct bench *b = *state;

	for (unsigned i = 0; i < COUNT; i++) {
		o[i] = (struct outcome)FAILED(i, 5 + i);
		words[i].lines = i < COUNT - 1 ? OF_PEER : OF_ITSELF;
	}
	assert_int_equal(collect(b, o, words, COUNT), EVIDENCE_MAX);
	assert_int_equal(b->said[0].rank, COUNT - 1);
	assert_int_equal(b->said[1].rank, 0);
}

/* Of more than 8 KiB the end is kept. */
static void test_long(void **state)
{
	static char lines[3 * LAST_LINES_BYTES];
	struct bench *b = *state;
	struct outcome o = FAILED(0, 5);
	const struct last_words words = { lines, NULL };

	memset(lines, 'x', sizeof lines - 1);
	memcpy(lines + sizeof lines - sizeof OF_PEER, OF_PEER, sizeof OF_PEER);
	lines[sizeof lines - sizeof OF_PEER - 1] = '\n';
	assert_int_equal(collect(b, &o, &words, 1), 1);
	assert_int_equal(o.blames, BLAMES_A_PEER);
	assert_int_equal(strlen(b->said[0].words.lines), LAST_LINES_BYTES);
	assert_contains(b->said[0].words.lines, OF_PEER);
}

TESTS(evidence_reader)
{
	static struct suite s;

	suite_add(&s, "nothing is known", test_nothing_known, set_up, tear_down);
	suite_add(&s, "last lines tell the victim", test_last_lines, set_up, tear_down);
	suite_add(&s, "an error file counts more", test_error_file, set_up, tear_down);
	suite_add(&s, "more than are kept", test_many, set_up, tear_down);
	suite_add(&s, "more than 8 KiB", test_long, set_up, tear_down);
	return suite_run(&s);
}
