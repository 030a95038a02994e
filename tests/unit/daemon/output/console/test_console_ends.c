/* test_console_ends.c - a console without a reader, on a full disk, or of somebody else's making.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/text.h"
#include "tests/unit/daemon/output/console/console_fixture.h"
#include "tests/unit/daemon/output/scratch_dir.h"

static void test_broken(void **state)
{
	struct feed a = feed_of('a', 100000);
	struct fixture b;

	(void)state;
	console_fixture_make(&b, KIND_PIPE);
	(void)fixture_fill(&b, &a);
	a.lines = 100000;
	console_say(&b.c, "words\n", 6);
	fd_closep(&b.read_end);
	while (!console_is_idle(&b.c)) {
		(void)uv_run(&b.loop, UV_RUN_NOWAIT);
		fixture_flush(&b);
	}
	assert_int_equal(b.c.state, CONSOLE_BROKEN);
	assert_int_equal(a.done, 100000); /* nobody waits for what nobody reads */
	console_say(&b.c, "words\n", 6);
	assert_true(feed_put(&b, &a, "line\n", false));
	fixture_flush(&b);
	assert_true(console_is_idle(&b.c));
	console_fixture_done(&b);
}

static void test_abandoned(void **state)
{
	struct feed a = feed_of('a', 0), other = feed_of('o', 5);
	struct fixture b;

	(void)state;
	console_fixture_make(&b, KIND_PIPE);
	(void)fixture_fill(&b, &a);
	console_queue(&b.c, &other.source);
	console_say(&b.c, "words\n", 6);
	console_abandon(&b.c);
	assert_true(console_is_idle(&b.c));
	assert_int_equal(a.done, 1000);
	assert_int_equal(other.done, 5);
	console_fixture_done(&b);
}

/* Disks behind a console. */
static void test_full_disk(void **state)
{
	struct feed a = feed_of('a', 1000);
	struct fixture b = { .read_end = -1 };

	(void)state;
	b.write_end = open("/dev/full", O_WRONLY | O_CLOEXEC);
	console_fixture_open(&b, b.write_end);
	console_queue(&b.c, &a.source);
	fixture_flush(&b);
	assert_int_equal(a.done, 1000);
	assert_int_not_equal(b.c.state, CONSOLE_BROKEN); /* it may have room again */
	assert_true(console_is_idle(&b.c));
	console_fixture_done(&b);
}

/* Flushes while the file can have no more than this. */
static void flush_within(struct fixture *b, uint64_t bytes)
{
	limit_file_size(bytes);
	fixture_flush(b);
	limit_file_size(0);
}

static unsigned told;

static void on_missing(struct console *c)
{
	assert_int_equal(c->error, EFBIG);
	told++;
}

/* What follows a line that was cut by a full disk is a line of its own, behind what is missing. */
static void test_cut_by_disk(void **state)
{
	struct feed a = feed_of('a', 0);
	struct fixture b;

	(void)state;
	console_fixture_make(&b, KIND_FILE);
	told = 0;
	b.c.on_missing = on_missing;
	assert_true(feed_put(&b, &a, "0123456789\n", false));
	flush_within(&b, 5);
	assert_int_not_equal(b.c.state, CONSOLE_BROKEN);
	assert_int_equal(told, 1);
	assert_true(feed_put(&b, &a, "lost\n", false));
	flush_within(&b, 5);
	assert_int_equal(told, 1); /* once */
	assert_true(feed_put(&b, &a, "line\n", false));
	fixture_flush(&b);
	fixture_assert_got(
		&b, "01234\n[launchd: 11 bytes are missing here: File too large]\nline\n");
	console_fixture_done(&b);
}

/* A stream's last line, without an end. */
static void put_last(struct fixture *b, struct feed *f, const char *text)
{
	struct outbuf *out = console_room(&b->c, &f->source);
	size_t before;

	assert_non_null(out);
	before = out->len;
	outbuf_add(out, text);
	outbuf_add(out, "\n");
	console_put_last(&b->c, before);
	console_put(&b->c, &f->source);
}

#define MISSING(bytes) "[launchd: " bytes " bytes are missing here: File too large]\n"

/* Lines that come when a full disk has room again: behind what is missing they are as they are
 * elsewhere. */
static void test_room_again(void **state)
{
	struct feed a = feed_of('a', 0), other = feed_of('o', 0);
	struct fixture b;

	(void)state;
	console_fixture_make(&b, KIND_FILE);
	assert_true(feed_put(&b, &a, "0123456789\n", false));
	flush_within(&b, 5);
	assert_true(feed_put(&b, &a, "one\n", false));
	fixture_flush(&b);
	assert_true(feed_put(&b, &a, "two\n", false));
	fixture_flush(&b);
	fixture_assert_got(&b, "01234\n" MISSING("6") "one\ntwo\n");
	assert_true(feed_put(&b, &a, "lost\n", false));
	flush_within(&b, b.got.len);
	put_last(&b, &other, "last");
	fixture_flush(&b);
	fixture_assert_got(&b, "01234\n" MISSING("6") "one\ntwo\n" MISSING("5") "last");
	assert_true(b.c.unended);
	assert_true(feed_put(&b, &a, "three\n", false));
	fixture_flush(&b);
	fixture_assert_got(&b, "01234\n" MISSING("6") "one\ntwo\n" MISSING("5") "last\nthree\n");
	console_fixture_done(&b);
}

/* Lines are written one by one, with room on the disk for so many bytes in all; 0: for any. */
static const struct room_row {
	const char *says;
	struct {
		const char *line;
		size_t room;
	} step[4];
	const char *shown;
} rooms[] = {
	{ "a disk has room for the note, and none for the line behind it",
		{ { "0123456789\n", 5 },
			{ "line\n", sizeof "01234\n" - 1 + sizeof MISSING("6") - 1 },
			{ "next\n", 0 } },
		"01234\n" MISSING("6") MISSING("5") "next\n" },
	{ "a disk has room for a part of the note: the next one is on a line of its own",
		{ { "0123\n", 0 }, { "lost\n", 5 }, { "line\n", 10 }, { "next\n", 0 } },
		"0123\n[laun\n" MISSING("10") "next\n" },
};

static void test_room(void **state)
{
	const struct room_row *row = *state;
	struct feed a = feed_of('a', 0);
	struct fixture b;

	console_fixture_make(&b, KIND_FILE);
	for (size_t i = 0; i < sizeof row->step / sizeof *row->step && row->step[i].line; i++) {
		assert_true(feed_put(&b, &a, row->step[i].line, false));
		if (row->step[i].room)
			flush_within(&b, row->step[i].room);
		else
			fixture_flush(&b);
	}
	fixture_assert_got(&b, row->shown);
	console_fixture_done(&b);
}

/* A last line without an end is lost: nobody has to give it one. */
static void test_last_is_lost(void **state)
{
	struct feed a = feed_of('a', 0), other = feed_of('o', 0);
	struct fixture b;

	(void)state;
	console_fixture_make(&b, KIND_FILE);
	assert_true(feed_put(&b, &a, "0123456789\n", false));
	flush_within(&b, 5);
	put_last(&b, &other, "last");
	flush_within(&b, 5);
	assert_false(b.c.unended);
	assert_true(feed_put(&b, &a, "next\n", false));
	fixture_flush(&b);
	fixture_assert_got(&b, "01234\n" MISSING("10") "next\n");
	console_fixture_done(&b);
}

static void read_until_end(void *arg)
{
	struct fixture *b = arg;
	char buf[10000];
	ssize_t n;

	while ((n = read(b->read_end, buf, sizeof buf)) > 0)
		text_add_bytes(&b->got, buf, (size_t)n);
}

/* A pipe that can't be opened again, and that somebody has made non-blocking: it may make us wait,
 * but what is written is written once. */
static void test_foreign(void **state)
{
	struct feed a = feed_of('a', 1000);
	struct fixture b = { 0 };
	uv_thread_t reader;
	int ends[2], rc;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
	b.read_end = ends[0];
	b.write_end = ends[1];
	fixture_loop(&b);
	limit_descriptors(0);
	rc = console_open(&b.c, &b.loop, b.write_end);
	free_descriptors();
	assert_int_equal(rc, 0);
	assert_int_equal(b.c.kind, CONSOLE_FILE);
	assert_int_equal(uv_thread_create(&reader, read_until_end, &b), 0);
	console_queue(&b.c, &a.source);
	fixture_flush(&b);
	assert_true(console_is_idle(&b.c));
	fd_closep(&b.write_end);
	assert_int_equal(uv_thread_join(&reader), 0);
	assert_int_equal(b.got.len, 1000 * FEED_LINE);
	console_fixture_done(&b);
}

TESTS(console_ends)
{
	static struct suite s;
	int rc = scratch_make() < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR ? 2 : 0;

	suite_add(&s, "the reader is gone", test_broken, NULL, NULL);
	suite_add(&s, "the reader is waited for no longer", test_abandoned, NULL, NULL);
	suite_add(&s, "a full disk behind it", test_full_disk, NULL, NULL);
	suite_add(&s, "a line that a full disk has cut", test_cut_by_disk, NULL, NULL);
	suite_add(&s, "a full disk has room again", test_room_again, NULL, NULL);
	SUITE_ROWS(&s, test_room, rooms);
	suite_add(&s, "a last line that a full disk has lost", test_last_is_lost, NULL, NULL);
	suite_add(&s, "a non-blocking pipe of somebody else's", test_foreign, NULL, NULL);
	if (rc == 0)
		rc = suite_run(&s);
	return scratch_done() < 0 ? 2 : rc;
}
