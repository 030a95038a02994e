/* test_check_round.c - what node rank 0 has heard of a phase. */
#include "tests/unit/unit.h"

#include <string.h>

#include "common/text.h"
#include "daemon/check/checkup.h"
#include "daemon/run/check_round.h"

enum { NODES = 3, EVENTS = 6 };

static const struct round_row {
	const char *says;
	const char *events[EVENTS]; /* "0 said a", "1 told =b" */
	bool absent[NODES];
	bool said, told;
	const char *lines;
	const char *heard[NODES];
} rows[] = {
	{ "nothing has come", { NULL }, .lines = "\n\n\n" },
	{ "one has said its line", { "1 said b" }, .lines = "\nb\n\n" },
	{ "all have", { "2 said c", "0 said a", "1 said b" }, .said = true, .lines = "a\nb\nc\n" },
	{ "one told why it couldn't, and says nothing more",
		{ "0 said a", "1 told ?why", "2 said c" }, .said = true, .lines = "a\n\nc\n",
		.heard = { NULL, "?why", NULL } },
	{ "one is not awaited", { "0 said a", "2 said c", "0 told =a", "2 told =c" },
		.absent = { false, true }, .said = true, .told = true, .lines = "a\n\nc\n",
		.heard = { "=a", NULL, "=c" } },
	{ "all have told", { "0 told =a", "1 told =b", "2 told =c" }, .said = true, .told = true,
		.lines = "\n\n\n", .heard = { "=a", "=b", "=c" } },
	{ "the first word counts", { "0 told =a", "0 told =b", "0 said x", "0 said y" },
		.lines = "x\n\n\n", .heard = { "=a", NULL, NULL } },
	{ "what makes no sense is dropped",
		{ "0 told a", "1 told ", "2 said a\nb", "3 said a", "7 told =x" },
		.lines = "\n\n\n" },
};

static void test_round(void **state)
{
	const struct round_row *row = *state;
	struct check_round r = { 0 };
	struct text lines = { 0 };

	assert_int_equal(check_round_begin(&r, NODES, row->absent), 0);
	for (unsigned i = 0; i < EVENTS && row->events[i]; i++) {
		const char *e = row->events[i];
		size_t len = strlen(e + 7);

		if (strncmp(e + 2, "said", 4) == 0)
			check_round_say(&r, (unsigned)(*e - '0'), e + 7, len);
		else
			check_round_tell(&r, (unsigned)(*e - '0'), e + 7, len);
	}
	assert_int_equal(check_round_is_said(&r), row->said);
	assert_int_equal(check_round_is_told(&r), row->told);
	check_round_lines(&r, &lines);
	assert_string_equal(text_string(&lines), row->lines);
	for (unsigned i = 0; i < NODES; i++) {
		const char *told = check_round_told(&r, i);

		if (row->heard[i])
			assert_string_equal(told, row->heard[i]);
		else
			assert_null(told);
	}
	text_done(&lines);
	check_round_done(&r);
}

static void test_next(void **state)
{
	struct check_round r = { 0 };

	(void)state;
	assert_int_equal(check_round_begin(&r, NODES, NULL), 0);
	check_round_tell(&r, 1, "=b", 2);
	r.answered = true;
	assert_int_equal(check_round_begin(&r, NODES, NULL), 0);
	assert_null(check_round_told(&r, 1));
	assert_false(r.answered);
	check_round_done(&r);
	check_round_done(&r);
	check_round_say(&r, 0, "a", 1);
	assert_null(check_round_told(&r, 0));
}

TESTS(check_round)
{
	static struct suite s;

	SUITE_ROWS(&s, test_round, rows);
	suite_add(&s, "the next phase begins with nothing", test_next, NULL, NULL);
	return suite_run(&s);
}
