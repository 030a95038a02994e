/* test_step_lines.c - see step_lines.h */
#include "daemon/output/step_lines.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

static void open_steps(struct step_lines *s)
{
	struct failure why = { 0 };

	memset(s, 0, sizeof *s);
	assert_int_equal(step_lines_open(s, "step ([0-9]+)", &why), 0);
}

static const struct row {
	const char *says, *bytes;
	uint64_t lines, newest; /* before the stream ends */
	uint64_t last;          /* and then */
} rows[] = {
	{ "one line", "step 3\n", 1, 3, 3 },
	{ "a line that has not ended", "step 3", 0, 0, 3 },
	{ "the highest counts", "step 3\nstep 9\nstep 4\n", 3, 9, 9 },
	{ "step 0", "step 0\n", 1, 0, 0 },
	{ "a progress bar", "\rstep 3\rstep 4\rstep 5", 2, 4, 5 },
	{ "ends of two kinds", "step 3\r\nstep 4\r\n", 2, 4, 4 },
	{ "empty lines", "\n\n\nstep 3\n\n", 1, 3, 3 },
	{ "other lines", "loss 3\nstep x\n", 0, 0, 0 },
	{ "a zero byte ends what is looked at", "a\0step 3\n", 0, 0, 0 },
};

/* However the bytes were cut. */
static void test_lines(void **state)
{
	const struct row *row = *state;
	size_t len = row->bytes[1] == '\0' ? 9 : strlen(row->bytes);

	for (size_t piece = 1; piece <= len; piece++) {
		struct step_line line = { 0 };
		struct step_lines s;
		struct steps_seen seen;

		open_steps(&s);
		for (size_t at = 0; at < len; at += piece)
			step_lines_take(
				&s, &line, row->bytes + at, len - at < piece ? len - at : piece);
		seen = step_lines_seen(&s);
		assert_int_equal(seen.lines, row->lines);
		if (row->lines > 0)
			assert_int_equal(seen.newest, row->newest);
		step_lines_rest(&s, &line);
		seen = step_lines_seen(&s);
		assert_int_equal(seen.newest, row->last);
		assert_int_equal(seen.lines, row->lines + (row->last > row->newest));
		step_lines_close(&s);
	}
}

/* Of a line of a megabyte the start is looked at, and the next line is whole. */
static void test_long_line(void **state)
{
	const size_t len = 1 << 20;
	char *text = malloc(len);
	struct step_line line = { 0 };
	struct step_lines s;

	(void)state;
	assert_non_null(text);
	memset(text, 'x', len);
	memcpy(text, "step 5 ", 7);
	memcpy(text + 5000, "step 9 ", 7);
	open_steps(&s);
	step_lines_take(&s, &line, text, len);
	step_lines_take(&s, &line, "\n", 1);
	assert_int_equal(step_lines_seen(&s).lines, 1);
	assert_int_equal(step_lines_seen(&s).newest, 5);
	step_lines_take(&s, &line, "step 6\n", 7);
	assert_int_equal(step_lines_seen(&s).newest, 6);
	step_lines_close(&s);
	free(text);
}

static void test_forget(void **state)
{
	struct step_line line = { 0 };
	struct step_lines s;
	uint64_t at_ns;

	(void)state;
	open_steps(&s);
	step_lines_take(&s, &line, "step 50\n", 8);
	at_ns = step_lines_seen(&s).at_ns;
	assert_true(at_ns > 0);
	step_lines_take(&s, &line, "step 50\n", 8);
	assert_int_equal(step_lines_seen(&s).at_ns, at_ns); /* the same again is not new */
	step_lines_forget(&s);
	assert_int_equal(step_lines_seen(&s).lines, 0);
	step_lines_take(&s, &line, "step 40\n", 8);
	assert_int_equal(step_lines_seen(&s).newest, 40);
	step_lines_close(&s);
}

/* No more than its part of a moment is spent on lines, however many come: the rest passes. */
static void test_flood(void **state)
{
	struct step_line line = { 0 };
	struct step_lines s;

	(void)state;
	open_steps(&s);
	s.spent_ns = 1000000000;                   /* of a moment long ago */
	step_lines_take(&s, &line, "step 1\n", 7); /* a new moment began */
	assert_int_equal(step_lines_seen(&s).lines, 1);
	for (unsigned i = 0; i < 100; i++) { /* of these few come to a new moment */
		s.spent_ns = 1000000000;
		step_lines_take(&s, &line, "step 2\n", 7);
	}
	assert_true(step_lines_seen(&s).lines < 50);
	step_lines_close(&s);
}

/* In a moment without more bytes a bar's newest state counts, once, and what a flood has left. */
static void test_moments(void **state)
{
	struct step_line line = { 0 };
	struct step_lines s;
	uint64_t at_ns;

	(void)state;
	open_steps(&s);
	step_lines_take(&s, &line, "step 1", 6);
	assert_false(step_line_waits(&line)); /* its rest is yet to come */
	step_lines_take(&s, &line, "\n\rstep 2", 8);
	assert_true(step_line_waits(&line));
	at_ns = line.came_ns;
	step_lines_rest(&s, &line);
	assert_int_equal(step_lines_seen(&s).newest, 2);
	assert_int_equal(step_lines_seen(&s).at_ns, at_ns); /* when it came, not now */
	assert_false(step_line_waits(&line));
	step_lines_take(&s, &line, "\rstep 3\n", 8);
	assert_int_equal(step_lines_seen(&s).lines, 3);
	s.spent_ns = 1000000000;
	step_lines_take(&s, &line, "step 4\n", 7);
	assert_true(step_lines_seen(&s).newest == 3 && step_line_waits(&line));
	step_lines_rest(&s, &line);
	assert_int_equal(step_lines_seen(&s).newest, 4);
	assert_false(step_line_waits(&line));
	step_lines_close(&s);
}

TESTS(step_lines)
{
	struct suite s = { 0 };

	SUITE_ROWS(&s, test_lines, rows);
	suite_add(&s, "a long line", test_long_line, NULL, NULL);
	suite_add(&s, "another attempt", test_forget, NULL, NULL);
	suite_add(&s, "a flood of lines", test_flood, NULL, NULL);
	suite_add(&s, "moments without more", test_moments, NULL, NULL);
	return suite_run(&s);
}
