/* test_step_source.c - see step_source.h */
#include "daemon/plan/step_source.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/unit.h"

static const struct kind_row {
	const char *says, *text;
	enum progress_by by;
	const char *what;
} kinds[] = {
	{ "none", "none", PROGRESS_NONE, NULL },
	{ "a socket", "notify", PROGRESS_NOTIFY, NULL },
	{ "a file", "file:ckpt/last", PROGRESS_FILE, "ckpt/last" },
	{ "a path", "/ckpt/last", PROGRESS_FILE, "/ckpt/last" },
	{ "a path from here", "./last", PROGRESS_FILE, "./last" },
	{ "a path from above", "../last", PROGRESS_FILE, "../last" },
	{ "a file whose name is a word", "file:none", PROGRESS_FILE, "none" },
	{ "an expression", "step ([0-9]+)", PROGRESS_LINES, "step ([0-9]+)" },
	{ "an expression with a backslash", "\\[([0-9]+)/", PROGRESS_LINES, "\\[([0-9]+)/" },
	{ "an expression that ends so", "([0-9]+)\\\\", PROGRESS_LINES, "([0-9]+)\\\\" },
};

static void test_kind(void **state)
{
	const struct kind_row *row = *state;
	struct progress_plan p = { 0 };
	struct failure why = { 0 };

	assert_int_equal(progress_parse(row->text, "--progress", &p, &why), 0);
	assert_int_equal(p.by, row->by);
	if (row->what)
		assert_string_equal(p.what, row->what);
	else
		assert_null(p.what);
}

static const struct wrong_row {
	const char *says, *text, *part;
} wrong[] = {
	{ "no group", "step [0-9]+", "has 0 groups" },
	{ "two groups", "(epoch) ([0-9]+)", "has 2 groups" },
	{ "no expression", "step ([0-9]+", "is no extended regular expression" },
	{ "a back-reference", "([0-9]+) \\1", "back-reference" },
	{ "a class in brackets", "step ([\\w]+)", "only \\d can be used" },
	{ "a lone backslash", "step ([0-9]+)\\", "is no extended regular expression" },
	{ "a file without a path", "file:", "has no path" },
	{ "a path without a slash", "last.txt", "file:PATH" },
	{ "nothing", "", "has 0 groups" },
};

static void test_wrong(void **state)
{
	const struct wrong_row *row = *state;
	struct progress_plan p = { PROGRESS_FILE, "before" };
	struct failure why = { 0 };

	assert_int_equal(progress_parse(row->text, "job.ini:7", &p, &why), -EINVAL);
	assert_non_null(strstr(why.text, row->part));
	assert_non_null(strstr(why.text, "job.ini:7"));
	assert_string_equal(p.what, "before");
}

enum { NO_STEP = -1 };

static const struct line_row {
	const char *says, *expression, *line;
	int64_t step;
} lines[] = {
	{ "a number", "step ([0-9]+)", "epoch 3 step 1200 loss 0.1", 1200 },
	{ "leading zeros", "step ([0-9]+)", "step 0012", 12 },
	{ "another line", "step ([0-9]+)", "loss 0.1", NO_STEP },
	{ "a group that is no number", "step ([^ ]+)", "step 12a", NO_STEP },
	{ "an empty group", "step ([0-9]*)", "step x", NO_STEP },
	{ "a group that did not take part", "a|b([0-9])", "a", NO_STEP },
	{ "the first of two", "it ([0-9]+)", "it 5 it 6", 5 },
	{ "a negative number", "step (-?[0-9]+)", "step -5", NO_STEP },
	{ "too large", "step ([0-9]+)", "step 99999999999999999999", NO_STEP },
	{ "Python's digits", "step (\\d+)", "step 12, d", 12 },
	{ "in brackets", "step ([\\d]+)", "step 12d", 12 },
	{ "beside a class", "step[[:space:]\\d]([0-9]+)", "step412", 12 },
	{ "what is no digit", "\\D([0-9]+)", "4812 x7", 7 },
	{ "a backslash before it", "step\\\\d ([0-9]+)", "step\\d 3", 3 },
	{ "a bracket that begins with one", "step[]\\d]([0-9]+)", "step]3", 3 },
	{ "a bracket that is none", "step\\[\\d] ([0-9]+)", "step[4] 3", 3 },
	{ "bytes that are no text", "step ([0-9]+)", "\xff\xfe step 7 \x80", 7 },
};

static void test_line(void **state)
{
	const struct line_row *row = *state;
	struct failure why = { 0 };
	uint64_t step = 77;
	regex_t e;

	assert_int_equal(progress_compile(row->expression, "--progress", &e, &why), 0);
	assert_int_equal(progress_in_line(&e, row->line, &step), row->step != NO_STEP);
	assert_int_equal(step, row->step == NO_STEP ? 77 : row->step);
	regfree(&e);
}

static const struct text_row {
	const char *says, *text;
	int64_t number;
} files[] = {
	{ "a number alone", "1000", 1000 },
	{ "a line", "1000\n", 1000 },
	{ "with a name", "global_step1000\n", 1000 },
	{ "the first of two", "12 of 400", 12 },
	{ "none", "latest", NO_STEP },
	{ "nothing", "", NO_STEP },
};

static void test_file(void **state)
{
	const struct text_row *row = *state;
	uint64_t n = 77;

	assert_int_equal(progress_in_file(row->text, strlen(row->text), &n), row->number >= 0);
	assert_int_equal(n, row->number < 0 ? 77 : row->number);
}

static const struct datagram_row {
	const char *says, *text;
	enum progress_news news;
	uint64_t step;
} datagrams[] = {
	{ "a step", "STEP=12", PROGRESS_STEP, 12 },
	{ "a step among others", "STATUS=x\nSTEP=12\nWATCHDOG=1\n", PROGRESS_STEP, 12 },
	{ "after a sign of life", "WATCHDOG=1\nSTEP=12", PROGRESS_STEP, 12 },
	{ "a sign of life", "WATCHDOG=1", PROGRESS_ALIVE, 77 },
	{ "with an end of line", "WATCHDOG=1\n", PROGRESS_ALIVE, 77 },
	{ "systemd's trigger", "WATCHDOG=trigger", PROGRESS_NO_NEWS, 77 },
	{ "no number", "STEP=\nREADY=1", PROGRESS_NO_NEWS, 77 },
	{ "half a number", "STEP=12x", PROGRESS_NO_NEWS, 77 },
	{ "within a line", "MY_STEP=12", PROGRESS_NO_NEWS, 77 },
	{ "empty lines", "\n\n\n", PROGRESS_NO_NEWS, 77 },
	{ "nothing", "", PROGRESS_NO_NEWS, 77 },
};

static void test_datagram(void **state)
{
	const struct datagram_row *row = *state;
	uint64_t step = 77;

	assert_int_equal(progress_in_datagram(row->text, strlen(row->text), &step), row->news);
	assert_int_equal(step, row->step);
}

TESTS(step_source)
{
	struct suite s = { 0 };

	SUITE_ROWS(&s, test_kind, kinds);
	SUITE_ROWS(&s, test_wrong, wrong);
	SUITE_ROWS(&s, test_line, lines);
	SUITE_ROWS(&s, test_file, files);
	SUITE_ROWS(&s, test_datagram, datagrams);
	return suite_run(&s);
}
