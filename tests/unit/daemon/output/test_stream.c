/* test_stream.c - from workers' pipes to files and a console: every byte, every line whole. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "daemon/output/followed.h"
#include "daemon/output/step_lines.h"
#include "tests/unit/daemon/output/scratch_dir.h"
#include "tests/unit/daemon/output/stream_fixture.h"

enum { MANY = 400 };

static const struct logfile_style plain, stamped = { .stamped = true },
					 rotated = { 10 * KB, MANY, false },
					 all = { 10 * KB, MANY, true };

static const struct flow_row {
	const char *says;
	const struct logfile_style *style; /* NULL: no file */
	enum reader reader;
	const char *prefix;
	unsigned streams;
	size_t size, line; /* of each stream; lines are shorter than that */
	bool unended;      /* the last line has no end */
} flows[] = {
	{ "no file, a fast console", NULL, READER_FAST, "", 1, 500 * KB, 200, false },
	{ "no file, a slow console", NULL, READER_SLOW, "", 1, 500 * KB, 200, false },
	{ "no file, a late console", NULL, READER_LATE, "", 1, 500 * KB, 200, false },
	{ "no file, a late console, a prefix", NULL, READER_LATE, "[0]:", 1, 500 * KB, 200, true },
	{ "no file, three streams, a slow console", NULL, READER_SLOW, "[x]:", 3, 200 * KB, 200,
		true },
	{ "no file, three streams, a late console", NULL, READER_LATE, "", 3, 300 * KB, 200, true },
	{ "no file, long lines, a fast console", NULL, READER_FAST, "", 3, 900 * KB, 300 * KB,
		true },
	{ "no file, long lines, a slow console", NULL, READER_SLOW, "", 3, 300 * KB, 300 * KB,
		true },
	{ "no file, long lines, a late console", NULL, READER_LATE, "[l]:", 3, 900 * KB, 300 * KB,
		true },
	{ "a file, a fast console", &plain, READER_FAST, "", 1, 500 * KB, 200, false },
	{ "a file, a slow console", &plain, READER_SLOW, "[1]:", 1, 500 * KB, 200, true },
	{ "a file, a late console", &plain, READER_LATE, "", 1, 2000 * KB, 200, false },
	{ "a file with stamps, a slow console", &stamped, READER_SLOW, "", 1, 500 * KB, 200, true },
	{ "a file with stamps, a late console", &stamped, READER_LATE, "[2]:", 1, 2000 * KB, 200,
		true },
	{ "files over rotations, a slow console", &rotated, READER_SLOW, "", 1, 500 * KB, 200,
		true },
	{ "files over rotations, a late console", &rotated, READER_LATE, "[3]:", 1, 2000 * KB, 200,
		true },
	{ "all of it, three streams, a fast console", &all, READER_FAST, "[4]:", 3, 500 * KB, 200,
		true },
	{ "all of it, three streams, a slow console", &all, READER_SLOW, "[4]:", 3, 300 * KB, 2000,
		true },
	{ "all of it, three streams, a late console", &all, READER_LATE, "[4]:", 3, 1000 * KB, 200,
		true },
	{ "all of it, long lines, a slow console", &all, READER_SLOW, "", 3, 300 * KB, 300 * KB,
		true },
	{ "all of it, long lines, a late console", &all, READER_LATE, "[5]:", 3, 2000 * KB,
		300 * KB, true },
};

static void test_flow(void **state)
{
	static const char *const names[] = { "log0", "log1", "log2" };
	const struct flow_row *row = *state;
	struct text texts[FIXTURE_STREAMS];
	struct fixture g;

	scratch_clear();
	stream_fixture_make(&g);
	for (unsigned i = 0; i < row->streams; i++) {
		texts[i] = lines_of(i, row->size, row->line, row->unended);
		writer_prefix(fixture_add(&g, texts[i].at, texts[i].len, row->style), row->prefix);
	}
	stream_fixture_begin(&g);
	fixture_set_reader(&g, row->reader);
	if (row->reader == READER_LATE)
		fixture_run(&g, row->style ? fixture_all_ended : fixture_ended_or_stands);
	for (unsigned i = 0; i < row->streams && row->reader == READER_LATE; i++)
		assert_int_equal(g.writers[i].sent == g.writers[i].len, row->style != NULL);
	g.reads = true;
	fixture_run(&g, fixture_all_finished);
	assert_true(g.most_kept <= STREAM_READ);
	if (row->style)
		assert_int_equal(g.most_kept, 0);
	assert_string_equal(text_string(&g.said), "");
	assert_shown(&g, row->prefix);
	for (unsigned i = 0; i < row->streams && row->style; i++)
		assert_files(&g.writers[i], names[i], row->style->stamped);
	stream_fixture_done(&g);
	for (unsigned i = 0; i < row->streams; i++)
		text_done(&texts[i]);
}

/* What a reader that stands still is not waited for. */
static bool all_sent(const struct fixture *g)
{
	for (unsigned i = 0; i < g->count; i++)
		if (g->writers[i].sent < g->writers[i].len)
			return false;
	return true;
}

static unsigned count_lines(const char *at, size_t len)
{
	unsigned count = 0;

	for (size_t i = 0; i < len; i++)
		count += at[i] == '\n';
	return count;
}

static const struct drop_row {
	const char *says;
	unsigned streams;
	size_t size, line;
	size_t disk; /* what a file has room for; 0: no file */
} drops[] = {
	{ "lines of one stream are dropped", 1, 2000 * KB, 200, 0 },
	{ "lines of three streams are dropped", 3, 1000 * KB, 200, 0 },
	{ "long lines of three streams are dropped", 3, 3000 * KB, 300 * KB, 0 },
	{ "lines that a full disk has not taken are dropped", 1, 2000 * KB, 200, 300 * KB },
	{ "lines of three streams that a full disk has not taken", 3, 1000 * KB, 200, 300 * KB },
	{ "long lines that a full disk has not taken", 3, 3000 * KB, 300 * KB, 700 * KB },
};

/* Lines that are shown are whole, but the one that the reader got the begin of. */
static unsigned count_whole(const struct fixture *g)
{
	const char *at = text_string(&g->got), *end = at + g->got.len;
	const char *from[FIXTURE_STREAMS];
	unsigned whole = 0, parts = 0;

	for (unsigned i = 0; i < g->count; i++)
		from[i] = g->writers[i].text;
	for (const char *newline; at < end; at = newline + 1) {
		unsigned i = (unsigned)(*at - 'A');
		const char *found;
		size_t len;

		newline = memchr(at, '\n', (size_t)(end - at));
		assert_non_null(newline);
		assert_true(i < g->count);
		len = (size_t)(newline + 1 - at);
		found = memmem(from[i], (size_t)(g->writers[i].text + g->writers[i].len - from[i]),
			at, len);
		if (found)
			from[i] = found + len;
		whole += found != NULL;
		parts += found == NULL;
	}
	assert_in_range(parts, 0, g->count);
	return whole;
}

static void test_drop(void **state)
{
	const struct drop_row *row = *state;
	struct text texts[FIXTURE_STREAMS];
	unsigned lines = 0, dropped = 0;
	struct fixture g;

	scratch_clear();
	stream_fixture_make(&g);
	g.console.drops = true;
	for (unsigned i = 0; i < row->streams; i++) {
		texts[i] = lines_of(i, row->size, row->line, false);
		(void)fixture_add(&g, texts[i].at, texts[i].len, row->disk ? &plain : NULL);
		lines += count_lines(texts[i].at, texts[i].len);
	}
	limit_file_size(row->disk);
	stream_fixture_begin(&g);
	g.reads = false;
	fixture_run(&g, all_sent);
	assert_true(g.most_kept <= STREAM_READ);
	g.reads = true;
	fixture_run(&g, fixture_all_finished);
	for (const char *at = text_string(&g.said); *at; at = strchr(at, '\n') + 1) {
		unsigned rank, n;

		if (row->disk && strncmp(at, "can't write to log", 18) == 0)
			continue; /* it is full */
		assert_int_equal(sscanf(at, "rank %u: dropped %u lines of stdout", &rank, &n), 2);
		dropped += n;
	}
	limit_file_size(0);
	assert_true(dropped > 0);
	assert_int_equal(count_whole(&g) + dropped, lines);
	stream_fixture_done(&g);
	for (unsigned i = 0; i < row->streams; i++)
		text_done(&texts[i]);
}

/* Where the console is behind it may be so within a stamp. */
static void test_empty_lines(void **state)
{
	struct text t = { 0 };
	struct fixture g;

	(void)state;
	scratch_clear();
	stream_fixture_make(&g);
	while (t.len < 1000 * KB)
		text_add(&t, t.len % 7 == 0 ? "ab\n\n" : "\n");
	(void)fixture_add(&g, t.at, t.len, &stamped);
	g.reads = false;
	stream_fixture_begin(&g);
	fixture_run(&g, fixture_all_ended);
	g.reads = true;
	g.reads_at_most = 10001;
	fixture_run(&g, fixture_all_finished);
	assert_bytes(text_string(&g.got), g.got.len, t.at, t.len);
	stream_fixture_done(&g);
	text_done(&t);
}

/* A worker that has died, and a process that keeps its pipe open. */
static const struct drain_row {
	const char *says;
	const struct logfile_style *style;
	bool reads;
	unsigned lines;
} drains[] = {
	{ "a dead worker's bytes, and no file", NULL, true, 6000 },
	{ "a dead worker's bytes, no file and a late console", NULL, false, 6000 },
	{ "a dead worker's bytes for a file", &plain, false, 6000 },
	{ "a worker that has said nothing", &plain, true, 0 },
};

static bool any_ended(const struct fixture *g)
{
	return g->writers[0].ended > 0;
}

static void test_drain(void **state)
{
	const struct drain_row *row = *state;
	struct text t = { 0 };
	struct writer *p;
	struct fixture g;

	scratch_clear();
	stream_fixture_make(&g);
	for (unsigned i = 0; i < row->lines; i++)
		text_printf(&t, "A%08u\n", i);
	p = fixture_add(&g, text_string(&t), t.len, row->style);
	p->stays = true;
	g.reads = row->reads;
	stream_fixture_begin(&g);
	assert_int_equal(write(p->end, p->text, p->len), (ssize_t)p->len);
	p->sent = p->len;
	stream_drain(&p->stream);
	fixture_ticks(&g, 50);
	assert_int_equal(p->ended, 0); /* somebody keeps it open */
	assert_true(p->stream.state < STREAM_CLOSING);
	stream_end(&p->stream);
	fixture_run(&g, any_ended);
	g.reads = true;
	fixture_run(&g, fixture_all_finished);
	assert_shown(&g, "");
	if (row->style)
		assert_files(p, "log0", false);
	stream_fixture_done(&g);
	text_done(&t);
}

/* Its time is over before anybody has looked at the pipe. */
static void test_end_at_once(void **state)
{
	struct writer *p;
	struct fixture g;

	(void)state;
	scratch_clear();
	stream_fixture_make(&g);
	p = fixture_add(&g, "Aa\nAb\nAc", 8, &plain);
	p->stays = true;
	stream_fixture_begin(&g);
	assert_int_equal(write(p->end, p->text, p->len), (ssize_t)p->len);
	p->sent = p->len;
	stream_drain(&p->stream);
	stream_end(&p->stream);
	stream_end(&p->stream);
	fixture_run(&g, fixture_all_finished);
	assert_shown(&g, "");
	assert_files(p, "log0", false);
	stream_fixture_done(&g);
}

static void chatter(void *arg)
{
	const int *end = arg;

	while (write(*end, "Achatter\n", 9) > 0)
		;
}

/* Somebody keeps the pipe open and writes faster than anybody reads. */
static void test_chatter(void **state)
{
	uv_thread_t thread;
	struct writer *p;
	struct fixture g;
	int end;

	(void)state;
	scratch_clear();
	stream_fixture_make(&g);
	p = fixture_add(&g, "", 0, NULL);
	p->stays = true;
	g.reads_at_most = 1;
	stream_fixture_begin(&g);
	end = fcntl(p->end, F_DUPFD_CLOEXEC, 3);
	assert_int_equal(fcntl(end, F_SETFL, 0), 0);
	assert_int_equal(uv_thread_create(&thread, chatter, &end), 0);
	stream_drain(&p->stream);
	fixture_ticks(&g, 50);
	stream_end(&p->stream);
	fixture_run(&g, any_ended);
	assert_int_equal(uv_thread_join(&thread), 0);
	fd_closep(&end);
	stream_fixture_done(&g);
}

static void test_filter(void **state)
{
	static const char *texts[] = { "loss", "grad" };
	static const char a[] = "Aloss 1\nAother\nAbar\rAgrad\n\nAloss", b[] = "Bnone\nBgrad 2\n";
	struct text is;
	struct fixture g;

	(void)state;
	scratch_clear();
	stream_fixture_make(&g);
	fixture_set_filter(&g, texts, 2);
	writer_prefix(fixture_add(&g, a, sizeof a - 1, &plain), "[0]:");
	writer_prefix(fixture_add(&g, b, sizeof b - 1, NULL), "[1]:");
	g.writers[0].stream.filter = g.writers[1].stream.filter = &g.filter;
	g.writers[1].stream.console = NULL;
	stream_fixture_begin(&g);
	fixture_run(&g, fixture_all_finished);
	assert_files(&g.writers[0], "log0", false);
	assert_string_equal(
		text_string(&g.got), "[0]:Aloss 1\n[0]:Aother\n[0]:Agrad\n[0]:\n[0]:Aloss");
	is = scratch_read("filtered");
	assert_contains(is.at, "[0]:Aloss 1\n");
	assert_contains(is.at, "[0]:Agrad\n");
	assert_contains(is.at, "[0]:Aloss\n");
	assert_contains(is.at, "[1]:Bgrad 2\n");
	assert_int_equal(count_lines(is.at, is.len), 4);
	text_done(&is);
	stream_fixture_done(&g);
}

/* A line that is longer than the buffer that filters share. */
static void test_long_filter(void **state)
{
	static const char *texts[] = { "loss" };
	enum { LEN = 1000 * KB };
	struct text t = { 0 }, is;
	struct fixture g;

	(void)state;
	scratch_clear();
	stream_fixture_make(&g);
	fixture_set_filter(&g, texts, 1);
	text_add(&t, "Aloss");
	while (t.len < LEN)
		text_add(&t, "abcdefghij");
	text_add(&t, "\nAnone\nAloss");
	while (t.len < 2 * LEN)
		text_add(&t, "klmnopqrst");
	(void)fixture_add(&g, t.at, t.len, NULL);
	g.writers[0].stream.filter = &g.filter;
	stream_fixture_begin(&g);
	fixture_run(&g, fixture_all_finished);
	assert_shown(&g, "");
	is = scratch_read("filtered");
	assert_int_equal(is.len, t.len - strlen("Anone\n") + 1);
	assert_memory_equal(is.at, t.at, LEN);
	assert_int_equal(count_lines(is.at, is.len), 2);
	text_done(&is);
	text_done(&t);
	stream_fixture_done(&g);
}

static bool first_shown(const struct fixture *g)
{
	return strstr(text_string(&g->got), "20%") != NULL;
}

static bool second_shown(const struct fixture *g)
{
	return strstr(text_string(&g->got), "90%") != NULL;
}

static void write_next(struct writer *p, const char *text)
{
	p->text = text;
	p->len = strlen(text);
	p->sent = 0;
}

/* The last of the states that come within a moment; nothing runs while there is none. */
static void test_bar(void **state)
{
	static const char first[] = "A 10%\rA 20%\r", second[] = "\rA 80%\rA 90%";
	struct writer *p;
	struct fixture g;

	(void)state;
	scratch_clear();
	stream_fixture_make(&g);
	p = fixture_add(&g, first, sizeof first - 1, &plain);
	writer_prefix(p, "[0]:");
	p->stays = true;
	stream_fixture_begin(&g);
	fixture_run(&g, first_shown);
	assert_string_equal(text_string(&g.got), "[0]:A 20%\n");
	fixture_ticks(&g, 50);
	assert_false(uv_is_active((uv_handle_t *)&g.bars));
	write_next(p, second);
	fixture_run(&g, second_shown);
	assert_string_equal(text_string(&g.got), "[0]:A 20%\n[0]:A 90%\n");
	p->stays = false;
	write_next(p, "\rA 90%\rA100%\n");
	fixture_run(&g, fixture_all_finished);
	assert_string_equal(text_string(&g.got), "[0]:A 20%\n[0]:A 90%\n[0]:A100%\n");
	stream_fixture_done(&g);
	assert_file("log0", "A 10%\rA 20%\r\rA 80%\rA 90%\rA 90%\rA100%\n");
}

/* While the reader takes nothing no timer runs; then its state is shown. */
static void test_late_bar(void **state)
{
	struct text t = lines_of(0, 500 * KB, 200, false);
	struct writer *p;
	struct fixture g;

	(void)state;
	scratch_clear();
	stream_fixture_make(&g);
	text_add(&t, "A 20%\r");
	p = fixture_add(&g, t.at, t.len, &plain);
	p->stays = true;
	g.reads = false;
	stream_fixture_begin(&g);
	fixture_run(&g, all_sent);
	fixture_ticks(&g, 50);
	assert_int_equal(g.bars_awaited, 0);
	g.reads = true;
	fixture_run(&g, first_shown);
	fixture_ticks(&g, 50);
	assert_false(uv_is_active((uv_handle_t *)&g.bars));
	p->stays = false;
	write_next(p, "");
	fixture_run(&g, fixture_all_finished);
	assert_int_equal(strcmp(g.got.at + g.got.len - 6, "A 20%\n"), 0);
	stream_fixture_done(&g);
	text_done(&t);
}

/* A stream that goes nowhere but into the regular expression. */
static void test_steps(void **state)
{
	struct step_lines steps = { 0 };
	struct failure why = { 0 };
	struct writer *p;
	struct fixture g;

	(void)state;
	scratch_clear();
	assert_int_equal(step_lines_open(&steps, "([0-9]+)/100", &why), 0);
	stream_fixture_make(&g);
	g.host.steps = &steps;
	p = fixture_add(&g, "\r  7%|# | 7/100", 15, &plain);
	p->stream.console = NULL;
	p->stays = true;
	stream_fixture_begin(&g);
	fixture_run(&g, all_sent);
	fixture_ticks(&g, 100);
	assert_int_equal(step_lines_seen(&steps).newest, 7);
	assert_false(uv_is_active((uv_handle_t *)&g.bars));
	p->stays = false;
	write_next(p, "\r100%|##| done\n 90/100");
	fixture_run(&g, fixture_all_finished);
	assert_int_equal(step_lines_seen(&steps).newest, 90);
	step_lines_close(&steps);
	stream_fixture_done(&g);
}

/* All that a stream needs while it is idle is given back. */
static void test_memory(void **state)
{
	struct text t = lines_of(0, 3000 * KB, 300 * KB, false);
	struct arena arena = { 0 };
	struct writer *p;
	struct fixture g;

	(void)state;
	scratch_clear();
	stream_fixture_make(&g);
	p = fixture_add(&g, t.at, t.len, &rotated);
	p->stays = true;
	g.reads = false;
	stream_fixture_begin(&g);
	fixture_run(&g, all_sent);
	g.reads = true;
	while (p->stream.behind || g.got.len < t.len)
		(void)uv_run(&g.loop, UV_RUN_ONCE);
	fixture_ticks(&g, 20);
	assert_int_equal(p->stream.file.old_count, 0);
	assert_int_equal(p->stream.backlog.room, 0);
	assert_true(p->stream.lines.room <= 8 * KB);
	assert_int_equal(strlen(tail_text(&p->tail, 1, &arena)) > 0, 1);
	stream_fixture_done(&g);
	arena_done(&arena);
	text_done(&t);
}

static struct text heard;
static bool has_room;

static bool on_followed(void *owner, const struct followed_lines *f)
{
	(void)owner;
	if (!has_room && f->len > 0)
		return false;
	assert_int_equal(f->rank, 7);
	assert_int_equal(f->fd, 2);
	if (f->lost > 0)
		text_printf(&heard, "<%d>", (int)f->lost);
	text_add_bytes(&heard, f->at, f->len);
	return true;
}

static bool half_is_heard(const struct fixture *g)
{
	return g->writers[0].sent == g->writers[0].len && g->writers[0].stream.read_ns > 0;
}

/* Whole lines as they are shown, though the console is not read; what finds no room is counted. */
static void test_followed(void **state)
{
	static const char first[] = "one\n1%\r50%\r100%\ntwo\nth", rest[] = "ree\n\nfour\nlast";
	struct fixture g;
	struct writer *p;

	(void)state;
	scratch_clear();
	stream_fixture_make(&g);
	p = fixture_add(&g, first, sizeof first - 1, NULL);
	p->stays = true;
	p->stream.rank = 7;
	p->stream.fd = 2;
	g.host.is_followed = has_room = true;
	g.host.follow = on_followed;
	stream_fixture_begin(&g);
	fixture_run(&g, half_is_heard);
	fixture_ticks(&g, 3);
	assert_string_equal(text_string(&heard), "one\n100%\ntwo\n");
	has_room = false;
	assert_int_equal(write(p->end, rest, sizeof rest - 1), sizeof rest - 1);
	fixture_ticks(&g, 3);
	has_room = true;
	p->stays = false;
	fixture_run(&g, fixture_all_finished);
	assert_string_equal(text_string(&heard), "one\n100%\ntwo\n<3>last\n");
	text_done(&heard);
	stream_fixture_done(&g);
}

/* Also where no line comes after them. */
static void test_last_lines_without_room(void **state)
{
	static const char lines[] = "one\ntwo\nlast";
	struct fixture g;
	struct writer *p;

	(void)state;
	scratch_clear();
	stream_fixture_make(&g);
	p = fixture_add(&g, lines, sizeof lines - 1, NULL);
	p->stream.rank = 7;
	p->stream.fd = 2;
	g.host.is_followed = true;
	has_room = false;
	g.host.follow = on_followed;
	stream_fixture_begin(&g);
	fixture_run(&g, fixture_all_finished);
	assert_string_equal(text_string(&heard), "<3>");
	text_done(&heard);
	stream_fixture_done(&g);
}

static void test_stream_life(void **state)
{
	(void)state;
	assert_life(&stream_life,
		(const char *const[]){ "new: polled finished", "polled: busy paused closing",
			"busy: polled paused closing", "paused: polled closing", "closing: ended",
			"ended: finished", "finished:", NULL });
}

TESTS(stream)
{
	static struct suite s;
	int rc = scratch_make() < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR ? 2 : 0;

	suite_add(&s, "a stream's life", test_stream_life, NULL, NULL);
	SUITE_ROWS(&s, test_flow, flows);
	SUITE_ROWS(&s, test_drop, drops);
	SUITE_ROWS(&s, test_drain, drains);
	suite_add(&s, "empty lines with stamps, a late console", test_empty_lines, NULL, NULL);
	suite_add(&s, "the end of a drain reads the pipe", test_end_at_once, NULL, NULL);
	suite_add(&s, "a pipe that never empties", test_chatter, NULL, NULL);
	suite_add(&s, "lines for a filter's file", test_filter, NULL, NULL);
	suite_add(&s, "long lines for a filter's file", test_long_filter, NULL, NULL);
	suite_add(&s, "lines for those who follow them", test_followed, NULL, NULL);
	suite_add(&s, "last ones that find no room", test_last_lines_without_room, NULL, NULL);
	suite_add(&s, "a progress bar", test_bar, NULL, NULL);
	suite_add(&s, "a progress bar before a late reader", test_late_bar, NULL, NULL);
	suite_add(&s, "steps of a bar, and of a last line without an end", test_steps, NULL, NULL);
	suite_add(&s, "nothing is kept that nobody needs", test_memory, NULL, NULL);
	if (rc == 0)
		rc = suite_run(&s);
	return scratch_done() < 0 ? 2 : rc;
}
