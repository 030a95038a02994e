/* test_stream_losses.c - streams whose console or whose files go: the workers live on, and what is
 * lost is said. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "tests/unit/daemon/output/scratch_dir.h"
#include "tests/unit/daemon/output/stream_fixture.h"

static const struct logfile_style plain;

/* The console's reader is gone. */
static void test_broken(void **state)
{
	struct text texts[2];
	struct fixture g;

	(void)state;
	scratch_clear();
	stream_fixture_make(&g);
	for (unsigned i = 0; i < 2; i++) {
		texts[i] = lines_of(i, 1000 * KB, 200, true);
		(void)fixture_add(&g, texts[i].at, texts[i].len, i == 0 ? &plain : NULL);
	}
	g.reads = false;
	stream_fixture_begin(&g);
	fixture_ticks(&g, 20);
	fd_closep(&g.console_end[0]);
	fixture_run(&g, fixture_all_finished);
	fixture_ticks(&g, 2); /* in which they write once more */
	assert_int_equal(g.console.state, CONSOLE_BROKEN);
	assert_files(&g.writers[0], "log0", false);
	assert_true(g.writers[1].got_epipe); /* as if it had the console itself */
	assert_false(g.writers[0].got_epipe);
	stream_fixture_done(&g);
	for (unsigned i = 0; i < 2; i++)
		text_done(&texts[i]);
}

/* The files of a console that is behind are cut or deleted: what is left of lines is no part of
 * other lines, and what is missing is said. */
static const struct loss_row {
	const char *says;
	struct logfile_style style;
	bool cut;
} losses[] = {
	{ "rotated away", { 10 * KB, 2, false }, false },
	{ "rotated away, with stamps", { 10 * KB, 2, true }, false },
	{ "cut", { 0 }, true },
	{ "cut, with stamps", { .stamped = true }, true },
};

static void test_loss(void **state)
{
	const struct loss_row *row = *state;
	struct text t = lines_of(0, 2000 * KB, 200, false);
	const char *at, *end, *from = t.at;
	unsigned torn = 0;
	unsigned long long gone = 0;
	struct fixture g;

	scratch_clear();
	stream_fixture_make(&g);
	(void)fixture_add(&g, t.at, t.len, &row->style);
	g.reads = false;
	stream_fixture_begin(&g);
	fixture_run(&g, fixture_half_sent);
	if (row->cut)
		assert_int_equal(truncate("log0", 0), 0);
	fixture_run(&g, fixture_all_ended);
	g.reads = true;
	fixture_run(&g, fixture_all_finished);
	at = text_string(&g.got);
	end = at + g.got.len;
	assert_int_equal(sscanf(text_string(&g.said), "rank 0: %llu bytes of stdout", &gone), 1);
	assert_true(gone > 0);
	if (!row->style.stamped)
		assert_in_range(g.got.len + gone, t.len, t.len + 2);
	for (const char *newline; at < end; at = newline + 1) {
		const char *found;

		newline = memchr(at, '\n', (size_t)(end - at));
		assert_non_null(newline);
		found = memmem(from, (size_t)(t.at + t.len - from), at, (size_t)(newline + 1 - at));
		torn += !found;
		if (!found) /* the begin of a line, or the end of one */
			found = memmem(
				from, (size_t)(t.at + t.len - from), at, (size_t)(newline - at));
		if (!found)
			fail_msg("no part of a line: \"%.*s\"", (int)(newline - at), at);
		from = found;
	}
	assert_in_range(torn, 0, 1);
	/* what came last is there */
	assert_memory_equal(end - 5000, t.at + t.len - 5000, 5000);
	stream_fixture_done(&g);
	text_done(&t);
}

/* A file that was moved away is opened again, while the console is behind. */
static const struct moved_row {
	const char *says;
	struct logfile_style style;
} moves[] = {
	{ "moved away, a late console", { 0 } },
	{ "moved away with stamps, a late console", { .stamped = true } },
};

static void move_away(struct fixture *g)
{
	struct stream *s = &g->writers[0].stream;
	struct failure why = { 0 };
	char path[32];
	static unsigned moved;

	if (s->state >= STREAM_CLOSING || access("log0", F_OK) < 0)
		return;
	(void)snprintf(path, sizeof path, "moved%u", moved++);
	filer_wait(&g->filer, &s->file);
	assert_int_equal(rename("log0", path), 0);
	assert_int_equal(logfile_reopen(&s->file, &why), 0);
}

static void test_moved(void **state)
{
	const struct moved_row *row = *state;
	struct text t = lines_of(0, 2000 * KB, 5000, true);
	struct fixture g;

	scratch_clear();
	stream_fixture_make(&g);
	(void)fixture_add(&g, t.at, t.len, &row->style);
	g.reads = false;
	g.on_tick = move_away;
	stream_fixture_begin(&g);
	fixture_run(&g, fixture_all_ended);
	g.reads = true;
	fixture_run(&g, fixture_all_finished);
	assert_true(g.max_open > 1);
	assert_shown(&g, "");
	stream_fixture_done(&g);
	text_done(&t);
}

/* The disk is full. */
static const struct full_row {
	const char *says;
	enum reader reader;
	bool again; /* it has room again */
} fulls[] = {
	{ "a full disk, a fast console", READER_FAST, false },
	{ "a full disk, a slow console", READER_SLOW, false },
	{ "a full disk, a late console", READER_LATE, false },
	{ "a disk that has room again, a slow console", READER_SLOW, true },
};

static void test_full(void **state)
{
	const struct full_row *row = *state;
	struct text t = lines_of(0, 1000 * KB, 200, false), is;
	struct fixture g;

	scratch_clear();
	stream_fixture_make(&g);
	(void)fixture_add(&g, t.at, t.len, &plain);
	fixture_set_reader(&g, row->reader);
	limit_file_size(300 * KB);
	stream_fixture_begin(&g);
	if (row->reader == READER_LATE)
		fixture_run(&g, fixture_ended_or_stands);
	if (row->again) {
		fixture_run(&g, fixture_half_sent);
		limit_file_size(0);
	}
	g.reads = true;
	fixture_run(&g, fixture_all_finished);
	limit_file_size(0);
	assert_true(g.most_kept <= STREAM_READ);
	assert_string_equal(text_string(&g.said),
		"can't write to log0: File too large; the worker and its console output continue\n");
	is = scratch_read("log0");
	assert_memory_equal(is.at, t.at, 300 * KB);
	if (!row->again) {
		assert_int_equal(is.len, 300 * KB);
		assert_shown(&g, "");
	} else {
		assert_contains(is.at, " bytes are missing here: File too large]\n");
		assert_memory_equal(is.at + is.len - 5000, t.at + t.len - 5000, 5000);
		assert_memory_equal(g.got.at + g.got.len - 5000, t.at + t.len - 5000, 5000);
	}
	text_done(&is);
	stream_fixture_done(&g);
	text_done(&t);
}

/* The disk of filtered lines is full. */
static void test_full_filter(void **state)
{
	static const char text[] = "Aa loss\nAb loss\nAnone\nAc loss\n";
	static const char *of[] = { "loss" };
	struct fixture g;

	(void)state;
	scratch_clear();
	stream_fixture_make(&g);
	fixture_set_filter(&g, of, 1);
	(void)fixture_add(&g, text, sizeof text - 1, NULL);
	g.writers[0].stream.filter = &g.filter;
	limit_file_size(10);
	stream_fixture_begin(&g);
	fixture_run(&g, fixture_all_finished);
	limit_file_size(0);
	assert_string_equal(text_string(&g.said),
		"can't write to filtered: File too large; the worker and its console output continue\n");
	assert_shown(&g, "");
	stream_fixture_done(&g);
	assert_file("filtered", "Aa loss\nAb");
}

TESTS(stream_losses)
{
	static struct suite s;
	int rc = scratch_make() < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR ? 2 : 0;

	SUITE_ROWS(&s, test_loss, losses);
	SUITE_ROWS(&s, test_moved, moves);
	SUITE_ROWS(&s, test_full, fulls);
	suite_add(&s, "a full disk of filtered lines", test_full_filter, NULL, NULL);
	suite_add(&s, "nobody reads the console", test_broken, NULL, NULL);
	if (rc == 0)
		rc = suite_run(&s);
	return scratch_done() < 0 ? 2 : rc;
}
