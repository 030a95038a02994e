/* test_console.c - launchd's own stdout or stderr: nobody's line in another's, nobody waited for.
 */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"
#include "tests/unit/daemon/output/console/console_fixture.h"
#include "tests/unit/daemon/output/scratch_dir.h"

static const struct kind_row {
	const char *says;
	enum fixture_kind kind;
	enum console_kind is;
} kinds[] = {
	{ "a pipe", KIND_PIPE, CONSOLE_POLLED },
	{ "a socket", KIND_SOCKET, CONSOLE_SOCKET },
	{ "a terminal", KIND_PTY, CONSOLE_POLLED },
	{ "a file", KIND_FILE, CONSOLE_FILE },
};

static void test_kind(void **state)
{
	const struct kind_row *row = *state;
	struct feed f = feed_of('a', 400);
	struct fixture b;

	console_fixture_make(&b, row->kind);
	assert_int_equal(b.c.kind, row->is);
	console_queue(&b.c, &f.source);
	fixture_read_all(&b);
	assert_int_equal(b.got.len, 400 * FEED_LINE);
	assert_memory_equal(b.got.at + 399 * FEED_LINE, "a399 ", 5);
	/* its other users may still wait for it */
	assert_int_equal(fcntl(b.write_end, F_GETFL) & O_NONBLOCK, 0);
	console_fixture_done(&b);
}

/* The reader is woken less often. */
static void test_long_pipe(void **state)
{
	struct fixture b;

	(void)state;
	console_fixture_make(&b, KIND_PIPE);
	assert_true(fcntl(b.write_end, F_GETPIPE_SZ) >= 256 * 1024);
	console_fixture_done(&b);
}

static void test_words(void **state)
{
	struct feed f = feed_of('f', 0);
	struct fixture b;

	(void)state;
	console_fixture_make(&b, KIND_PIPE);
	console_say(&b.c, "one\n", 4);
	assert_true(feed_put(&b, &f, "line\n", false));
	console_say(&b.c, "two\n", 4);
	console_say(&b.c, "", 0);
	assert_true(feed_put(&b, &f, "begun", true));
	console_say(&b.c, "three\n", 6); /* not within the line */
	assert_true(feed_put(&b, &f, " and ended\n", false));
	assert_false(feed_put(&b, &f, "too late\n", false));
	fixture_flush(&b);
	fixture_assert_got(&b, "one\nline\ntwo\nbegun and ended\nthree\n");
	assert_true(console_is_idle(&b.c));
	console_fixture_done(&b);
}

static void test_owner(void **state)
{
	struct feed a = feed_of('a', 0), other = feed_of('o', 0);
	struct fixture b;

	(void)state;
	console_fixture_make(&b, KIND_PIPE);
	assert_true(feed_put(&b, &a, "begun", true));
	assert_null(console_room(&b.c, &other.source));
	console_queue(&b.c, &other.source);
	fixture_flush(&b);
	assert_int_equal(other.pulls, 0);
	assert_true(feed_put(&b, &a, ", goes on", true));
	assert_true(feed_put(&b, &a, ", ends\n", false));
	fixture_flush(&b);
	assert_int_equal(other.pulls, 1);
	assert_true(feed_put(&b, &other, "mine\n", false));
	fixture_flush(&b);
	fixture_assert_got(&b, "begun, goes on, ends\nmine\n");
	assert_int_equal(a.cuts, 0);
	console_fixture_done(&b);
}

/* An open line's stream is silent for a second, and others wait. */
static const struct silence_row {
	const char *says;
	bool words; /* launchd's own, else another source */
	bool goes_on;
	const char *got;
} silences[] = {
	{ "another source waits for the end of a line", false, false, "begun\no0" },
	{ "launchd's own words wait for it", true, false, "begun\nwords\n" },
	{ "a line that goes on is not cut", false, true, "begun.....\no0" },
};

static void on_tick(uv_timer_t *t)
{
	struct fixture *b = t->data;
	struct feed *f = (struct feed *)b->c.owner;

	assert_non_null(f);
	f->done++;
	assert_true(feed_put(b, f, f->done == 6 ? "\n" : ".", f->done < 6));
	fixture_flush(b);
	if (f->done == 6)
		(void)uv_timer_stop(t);
}

static void test_silence(void **state)
{
	const struct silence_row *row = *state;
	struct feed a = feed_of('a', 0), other = feed_of('o', 1);
	uv_timer_t tick;
	struct fixture b;

	console_fixture_make(&b, KIND_PIPE);
	assert_int_equal(uv_timer_init(&b.loop, &tick), 0);
	tick.data = &b;
	assert_true(feed_put(&b, &a, "begun", true));
	if (row->words)
		console_say(&b.c, "words\n", 6);
	else
		console_queue(&b.c, &other.source);
	if (row->goes_on)
		assert_int_equal(uv_timer_start(&tick, on_tick, 400, 400), 0);
	fixture_flush(&b);
	while (!console_is_idle(&b.c))
		(void)uv_run(&b.loop, UV_RUN_ONCE);
	fixture_read(&b);
	assert_int_equal(a.cuts, row->goes_on ? 0 : 1);
	assert_true(b.got.len >= strlen(row->got));
	assert_memory_equal(b.got.at, row->got, strlen(row->got));
	uv_close((uv_handle_t *)&tick, NULL);
	console_fixture_done(&b);
}

static void on_over(uv_timer_t *t)
{
	t->data = NULL;
}

/* Nobody waits, so nobody is in a hurry. */
static void test_no_silence(void **state)
{
	struct feed a = feed_of('a', 0);
	uv_timer_t over;
	struct fixture b;

	(void)state;
	console_fixture_make(&b, KIND_PIPE);
	assert_int_equal(uv_timer_init(&b.loop, &over), 0);
	over.data = &b;
	assert_int_equal(uv_timer_start(&over, on_over, 2500, 0), 0);
	assert_true(feed_put(&b, &a, "begun", true));
	fixture_flush(&b);
	while (over.data)
		(void)uv_run(&b.loop, UV_RUN_ONCE);
	assert_int_equal(a.cuts, 0);
	assert_true(feed_put(&b, &a, " and ended\n", false));
	fixture_flush(&b);
	fixture_assert_got(&b, "begun and ended\n");
	uv_close((uv_handle_t *)&over, NULL);
	console_fixture_done(&b);
}

static void test_full(void **state)
{
	struct feed a = feed_of('a', 0), other = feed_of('o', 3);
	struct fixture b;

	(void)state;
	console_fixture_make(&b, KIND_PIPE);
	assert_true(fixture_fill(&b, &a) < 1000 * FEED_LINE);
	assert_true(a.done < 1000);
	assert_null(console_room(&b.c, &other.source));
	console_queue(&b.c, &other.source);
	assert_false(console_flush(&b.c)); /* it waits for the reader */
	fixture_read_all(&b);
	assert_int_equal(b.got.len, 1003 * FEED_LINE);
	for (unsigned i = 0; i < 1003; i++)
		assert_memory_equal(b.got.at + i * FEED_LINE + FEED_LINE - 1, "\n", 1);
	assert_int_equal(other.done, 3);
	console_fixture_done(&b);
}

static void test_fair(void **state)
{
	struct feed feeds[3] = { feed_of('a', 2000), feed_of('b', 2000), feed_of('c', 2000) };
	struct fixture b;

	(void)state;
	console_fixture_make(&b, KIND_PIPE);
	for (int i = 0; i < 3; i++)
		console_queue(&b.c, &feeds[i].source);
	for (int i = 0; i < 3; i++)
		console_queue(&b.c, &feeds[i].source); /* once is enough */
	while (!console_is_idle(&b.c)) {
		(void)uv_run(&b.loop, UV_RUN_NOWAIT);
		(void)console_flush(&b.c);
		fixture_read(&b);
		for (int i = 0; i < 3; i++)
			assert_in_range(feeds[i].pulls + 1 - feeds[0].pulls, 0, 2);
	}
	assert_int_equal(b.got.len, 6000 * FEED_LINE);
	console_fixture_done(&b);
}

static void test_turns(void **state)
{
	struct feed a = feed_of('a', 1000000);
	struct fixture b;

	(void)state;
	console_fixture_make(&b, KIND_FILE);
	console_queue(&b.c, &a.source);
	assert_true(console_flush(&b.c)); /* pipes are looked at now and then */
	assert_true(a.done < a.lines);
	a.lines = a.done;
	assert_false(console_flush(&b.c));
	console_fixture_done(&b);
}

static void test_unsaid(void **state)
{
	enum { WORD = 1024, WORDS = 400, KEPT = 256 };
	struct feed a = feed_of('a', 0);
	static const char note[] =
		"bytes of launchd's own messages were dropped: the reader is too slow\n";
	char word[WORD + 1], *at;
	size_t lost, shown;
	struct fixture b;

	(void)state;
	console_fixture_make(&b, KIND_PIPE);
	(void)fixture_fill(&b, &a);
	memset(word, 'w', WORD - 1);
	memcpy(word + WORD - 1, "\n", 2);
	for (int i = 0; i < WORDS; i++)
		console_say(&b.c, word, WORD);
	assert_true(b.c.words.len <= KEPT * WORD);
	fixture_read_all(&b);
	assert_contains(text_string(&b.got), note);
	at = memrchr(b.got.at, ':', (size_t)(strstr(b.got.at, note) - b.got.at));
	lost = strtoul(at + 1, NULL, 10);
	shown = b.got.len - 1000 * FEED_LINE -
		(strlen("launchd: warning: ") + strlen(note) + strspn(at + 2, "0123456789") + 1);
	assert_int_equal(shown + lost, WORDS * WORD);
	assert_int_equal(shown % WORD, 0);
	assert_int_equal(b.c.unsaid, 0);
	console_fixture_done(&b);
}

/* The last line of a stream has no end. */
static const struct last_row {
	const char *says;
	const char *words, *line; /* that follow; NULL: none */
	bool pulled;              /* a source that has nothing */
	const char *got;
	bool unended;
} lasts[] = {
	{ "nothing follows", NULL, NULL, false, "last", true },
	{ "words follow", "words\n", NULL, false, "last\nwords\n", false },
	{ "no words follow", "", NULL, false, "last", true },
	{ "a line follows", NULL, "line\n", false, "last\nline\n", false },
	{ "no line follows", NULL, "", false, "last", true },
	{ "a source has nothing", NULL, NULL, true, "last", true },
	{ "all of it", "words\n", "line\n", true, "last\nwords\nline\n", false },
};

static struct console *last_console;

static bool pull_last_of(struct source *s, struct outbuf *out)
{
	struct feed *f = (struct feed *)s;
	size_t before = out->len;

	if (f->pulls++ == 0)
		outbuf_add(out, "last\n");
	console_put_last(last_console, before);
	return false;
}

static void test_last(void **state)
{
	const struct last_row *row = *state;
	struct feed a = feed_of('a', 0), other = feed_of('o', 0);
	struct fixture b;

	console_fixture_make(&b, KIND_PIPE);
	last_console = &b.c;
	a.source.pull = pull_last_of;
	console_queue(&b.c, &a.source);
	fixture_flush(&b);
	if (row->pulled) {
		console_queue(&b.c, &other.source);
		console_queue(&b.c, &a.source);
		fixture_flush(&b);
	}
	if (row->words)
		console_say(&b.c, row->words, strlen(row->words));
	if (row->line)
		assert_true(feed_put(&b, &other, row->line, false));
	fixture_flush(&b);
	assert_int_equal(b.c.unended, row->unended);
	fixture_assert_got(&b, row->got);
	console_fixture_done(&b);
}

static unsigned overflows;

static void overflow(struct source *s)
{
	(void)s;
	overflows++;
}

/* The reader takes all, while the thread waits for a disk: nothing is to be dropped. */
static void test_no_overflow(void **state)
{
	struct feed a = feed_of('a', 0);
	struct fixture b;

	(void)state;
	overflows = 0;
	console_fixture_make(&b, KIND_PIPE);
	b.c.drops = true;
	a.source.overflow = overflow;
	(void)fixture_fill(&b, &a);
	(void)usleep(400000);
	fixture_read(&b);
	(void)uv_run(&b.loop, UV_RUN_NOWAIT);
	assert_int_equal(overflows, 0);
	assert_int_not_equal(b.c.state, CONSOLE_STUCK);
	fixture_read_all(&b);
	a.done = 0;
	(void)fixture_fill(&b, &a);
	while (overflows == 0)
		(void)uv_run(&b.loop, UV_RUN_ONCE);
	assert_int_equal(b.c.state, CONSOLE_STUCK);
	console_fixture_done(&b);
}

/* A source that has dropped something says so, also while another one's line is open. */
static void test_dropped(void **state)
{
	struct feed a = feed_of('a', 0), other = feed_of('o', 0);
	struct fixture b;

	(void)state;
	console_fixture_make(&b, KIND_PIPE);
	assert_true(feed_put(&b, &a, "begun", true));
	console_put(&b.c, &other.source);
	assert_false(feed_put(&b, &other, "within\n", false));
	assert_true(feed_put(&b, &a, ", ends\n", false));
	assert_true(feed_put(&b, &other, "after\n", false));
	fixture_flush(&b);
	fixture_assert_got(&b, "begun, ends\nafter\n");
	console_fixture_done(&b);
}

static void test_console_life(void **state)
{
	(void)state;
	assert_life(&console_life,
		(const char *const[]){ "writing: waiting broken", "waiting: writing stuck broken",
			"stuck: writing waiting broken", "broken:", NULL });
}

TESTS(console)
{
	static struct suite s;
	int rc = scratch_make() < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR ? 2 : 0;

	suite_add(&s, "a console's life", test_console_life, NULL, NULL);
	SUITE_ROWS(&s, test_kind, kinds);
	SUITE_ROWS(&s, test_silence, silences);
	SUITE_ROWS(&s, test_last, lasts);
	suite_add(&s, "a pipe holds more than by default", test_long_pipe, NULL, NULL);
	suite_add(&s, "words stand between lines", test_words, NULL, NULL);
	suite_add(&s, "nobody writes into an open line", test_owner, NULL, NULL);
	suite_add(&s, "a line that nobody waits for stays open", test_no_silence, NULL, NULL);
	suite_add(&s, "a full pipe, read later", test_full, NULL, NULL);
	suite_add(&s, "each has its turns", test_fair, NULL, NULL);
	suite_add(&s, "and the loop, too", test_turns, NULL, NULL);
	suite_add(&s, "words without room are counted", test_unsaid, NULL, NULL);
	suite_add(&s, "a reader that takes what there is, and a thread that is late",
		test_no_overflow, NULL, NULL);
	suite_add(&s, "a line stays open while another is dropped", test_dropped, NULL, NULL);
	if (rc == 0)
		rc = suite_run(&s);
	return scratch_done() < 0 ? 2 : rc;
}
