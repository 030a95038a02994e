/* test_merge_alone.c - merge.c without the output thread, whose part the test plays: lines of this
 * node's workers on their way to node rank 0, and back where nobody takes them any more; and other
 * nodes' lines, of which some stop in their middle. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/text.h"
#include "daemon/output/console/console.h"
#include "daemon/output/merge/merge.h"
#include "tests/unit/daemon/output/loop_end.h"
#include "tests/unit/daemon/output/scratch_dir.h"

enum { ROOM = 64 * 1024, FLOW_MAX = 1 << 20, MUCH = 4000000, SHARE = 64 * 1024, LIMIT_S = 60 };

static const char *const names[2] = { "out", "err" };

/* What a worker's stream has for a console: so many bytes, a line of ten each. */
struct feed {
	struct source source;
	size_t left;
	unsigned overflows;
};

struct fixture {
	uv_loop_t loop;
	int files[2];
	struct console own[2];
	struct console *consoles[2];
	struct merge *merge;
	unsigned told;
	bool woken;
	struct feed feed;
};

static void wake(void *owner)
{
	((struct fixture *)owner)->woken = true;
}

static void tell(void *owner)
{
	((struct fixture *)owner)->told++;
}

static void say(void *owner, bool warning, const char *text)
{
	(void)owner, (void)warning;
	fail_msg("%s", text);
}

static bool pull(struct source *s, struct outbuf *out)
{
	struct feed *f = (struct feed *)s;

	for (; f->left > 0 && out->room - out->len >= 10; f->left -= 10) {
		memcpy(out->at + out->len, "123456789\n", 10);
		out->len += 10;
	}
	return f->left > 0;
}

static void overflow(struct source *s)
{
	((struct feed *)s)->overflows++;
}

static void fixture_make(struct fixture *s)
{
	static const bool never; /* a line is open */
	const struct merge_host host = { .loop = &s->loop,
		.consoles = s->consoles,
		.wake = wake,
		.tell = tell,
		.say = say,
		.owner = s };

	(void)alarm(LIMIT_S); /* it hangs */
	scratch_clear();
	*s = (struct fixture){ .feed.source = {
				       .open = &never, .pull = pull, .overflow = overflow } };
	assert_int_equal(uv_loop_init(&s->loop), 0);
	for (int i = 0; i < 2; i++) {
		s->files[i] = open(names[i], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
		assert_true(s->files[i] >= 0);
		assert_int_equal(console_open(&s->own[i], &s->loop, s->files[i]), 0);
		s->consoles[i] = &s->own[i];
	}
	assert_int_equal(merge_new(&host, &s->merge), 0);
}

static void fixture_done(struct fixture *s)
{
	loop_end(&s->loop);
	merge_free(s->merge);
	for (int i = 0; i < 2; i++) {
		console_done(&s->own[i]);
		fd_closep(&s->files[i]);
	}
	(void)alarm(0);
}

/* What the output thread does in a turn, until there is no more to do. */
static void turn(struct fixture *s)
{
	bool more;

	do {
		more = s->woken;
		if (s->woken) {
			s->woken = false;
			merge_serve(s->merge);
		}
		more = merge_flush(s->merge) || more;
		for (int i = 0; i < 2; i++)
			more = console_flush(&s->own[i]) || more;
	} while (more || s->woken);
}

static void begin_sending(struct fixture *s)
{
	merge_send(s->merge);
	turn(s);
	assert_non_null(merge_consoles(s->merge));
}

/* Lines of a worker's stdout (1) or stderr (2). */
static void put(struct fixture *s, int stream, const char *text)
{
	console_say(merge_consoles(s->merge)[stream - 1], text, strlen(text));
	turn(s);
}

static void assert_next(struct fixture *s, bool wait, int stream, const char *text)
{
	char at[ROOM];
	int is = 0;
	size_t n = merge_next(s->merge, wait, at, sizeof at, &is);

	assert_bytes(at, n, text, strlen(text));
	assert_int_equal(is, stream);
}

static void assert_none(struct fixture *s, bool wait)
{
	assert_next(s, wait, 0, "");
}

/* So much stands on this node's stdout (1) or stderr (2). */
static size_t size_of(const struct fixture *s, int stream)
{
	return (size_t)lseek(s->files[stream - 1], 0, SEEK_END);
}

/* Takes so many bytes; how many there were. */
static size_t take(struct fixture *s, size_t len)
{
	size_t n, all = 0;
	char at[ROOM];
	int stream;

	for (; all < len; all += n) {
		size_t room = len - all < sizeof at ? len - all : sizeof at;

		n = merge_next(s->merge, true, at, room, &stream);
		if (n == 0)
			break;
	}
	return all;
}

static void test_send(void **state)
{
	struct fixture s;

	(void)state;
	fixture_make(&s);
	turn(&s);
	assert_null(merge_consoles(s.merge)); /* they are this node's own, until it is asked to */
	assert_none(&s, false);
	begin_sending(&s);
	merge_send(s.merge); /* twice is once */
	assert_false(s.woken);
	put(&s, 1, "a\nb\n");
	assert_int_equal(s.told, 1);
	assert_next(&s, true, 1, "a\nb\n");
	assert_none(&s, true);
	put(&s, 2, "c\n");
	assert_next(&s, true, 2, "c\n");
	assert_file("out", "");
	assert_file("err", "");
	fixture_done(&s);
}

static void test_in_turn(void **state)
{
	struct fixture s;

	(void)state;
	fixture_make(&s);
	begin_sending(&s);
	put(&s, 1, "a\n");
	put(&s, 2, "c\n");
	assert_next(&s, true, 2, "c\n");
	put(&s, 2, "d\n");
	assert_next(&s, true, 1, "a\n");
	put(&s, 1, "b\n");
	assert_next(&s, true, 2, "d\n");
	assert_next(&s, true, 1, "b\n");
	put(&s, 2, "\n");
	assert_next(&s, true, 2, "\n");
	assert_none(&s, true);
	fixture_done(&s);
}

/* A line in pieces: the other stream's wait for its end, but not forever. */
static void test_pieces(void **state)
{
	struct fixture s;

	(void)state;
	fixture_make(&s);
	begin_sending(&s);
	put(&s, 1, "a");
	assert_next(&s, true, 1, "a");
	assert_false(merge_waits(s.merge)); /* nobody else has anything */
	put(&s, 2, "c\n");
	assert_true(merge_waits(s.merge));
	assert_none(&s, true);
	put(&s, 1, "b\n");
	assert_false(merge_waits(s.merge));
	assert_next(&s, true, 1, "b\n");
	assert_next(&s, true, 2, "c\n");
	put(&s, 2, "d");
	assert_next(&s, true, 2, "d");
	put(&s, 1, "e\n");
	assert_none(&s, true);
	assert_next(&s, false, 1, "e\n");
	fixture_done(&s);
}

/* Node rank 0 takes nothing for a while, then some of it, then all. */
static void stop_and_go(struct fixture *s, int stream)
{
	struct console *c = merge_consoles(s->merge)[stream - 1];

	s->feed.left = MUCH;
	s->feed.overflows = 0;
	console_queue(c, &s->feed.source);
	turn(s);
	assert_int_equal(c->state, CONSOLE_WAITING);
	assert_false(merge_is_idle(s->merge));
	while (s->feed.overflows == 0) /* or the alarm comes */
		(void)uv_run(&s->loop, UV_RUN_ONCE);
	assert_int_equal(c->state, CONSOLE_STUCK);

	assert_int_equal(take(s, FLOW_MAX / 2 - 1), FLOW_MAX / 2 - 1);
	assert_false(s->woken);
	assert_int_equal(take(s, 1), 1);
	assert_true(s->woken); /* there is room for half of what it holds */
	s->feed.left = 0;      /* the rest was dropped */
	turn(s);
	assert_int_equal(c->state, CONSOLE_WRITING);
	assert_true(merge_is_idle(s->merge));
	assert_int_equal(take(s, 1), 1);
	assert_false(s->woken); /* once */
	assert_true(c->late);   /* it is waited for no more: not all was taken */
	while (take(s, ROOM) == ROOM)
		;
	assert_true(s->woken);
	turn(s);
	assert_false(c->late);
	put(s, stream, "a\n");
	assert_next(s, true, stream, "a\n");
	assert_false(s->woken);
}

static void test_slow(void **state)
{
	struct fixture s;

	(void)state;
	fixture_make(&s);
	begin_sending(&s);
	for (int i = 0; i < 2; i++) {
		stop_and_go(&s, 1);
		stop_and_go(&s, 2);
	}
	fixture_done(&s);
}

/* Nobody takes what is left, nor what comes. */
static const struct kept_row {
	const char *says;
	bool end; /* the thread's, else merge_keep() */
} kept[] = {
	{ "nobody takes lines any more", false },
	{ "the thread ends", true },
};

static void test_kept(void **state)
{
	const struct kept_row *row = *state;
	struct fixture s;

	fixture_make(&s);
	begin_sending(&s);
	put(&s, 1, "a\n");
	put(&s, 1, "b\n");
	put(&s, 2, "c\n");
	assert_next(&s, true, 2, "c\n");
	put(&s, 2, "d\n");
	if (row->end) {
		merge_end(s.merge);
	} else {
		merge_keep(s.merge);
		merge_keep(s.merge);
		assert_none(&s, false); /* from now on, not only when the thread has heard of it */
		assert_non_null(merge_consoles(s.merge));
	}
	turn(&s);
	assert_none(&s, false);
	assert_file("out", "a\nb\n");
	assert_file("err", "d\n");
	assert_null(merge_consoles(s.merge));
	assert_true(merge_is_idle(s.merge));
	merge_keep(s.merge);
	assert_false(s.woken);
	fixture_done(&s);
}

/* A line that is too long to be held goes on as it comes. */
static void test_kept_long(void **state)
{
	static char many[FLOW_MAX / 2];
	struct console *c;
	struct fixture s;

	(void)state;
	fixture_make(&s);
	begin_sending(&s);
	memset(many, 'x', sizeof many);
	for (size_t i = 0; i < sizeof many; i += sizeof many / 16) {
		console_say(merge_consoles(s.merge)[0], many, sizeof many / 16);
		turn(&s);
	}
	assert_int_equal(take(&s, 1), 1);
	c = merge_consoles(s.merge)[0];
	merge_keep(s.merge);
	turn(&s);
	assert_int_equal(size_of(&s, 1), 0);
	console_say(c, many, 1);
	turn(&s);
	assert_int_equal(size_of(&s, 1), sizeof many);
	fixture_done(&s);
}

/* Workers that were started before it write into the same consoles. */
static void test_kept_goes_on(void **state)
{
	struct console *const *consoles;
	struct fixture s;

	(void)state;
	fixture_make(&s);
	begin_sending(&s);
	consoles = merge_consoles(s.merge);
	s.feed.left = MUCH;
	console_queue(consoles[0], &s.feed.source);
	turn(&s);
	assert_int_equal(consoles[0]->state, CONSOLE_WAITING);
	assert_true(consoles[0]->drops); /* no worker waits for another node */
	merge_keep(s.merge);
	turn(&s);
	assert_false(consoles[0]->drops);
	assert_true(s.feed.left == 0 && merge_is_idle(s.merge));
	console_say(consoles[1], "a\n", 2);
	turn(&s);
	assert_int_equal(size_of(&s, 1), MUCH);
	assert_file("err", "a\n");
	assert_int_equal(s.feed.overflows, 0);
	fixture_done(&s);
}

static void test_kept_before(void **state)
{
	struct fixture s;

	(void)state;
	fixture_make(&s);
	merge_keep(s.merge);
	merge_send(s.merge);
	turn(&s);
	assert_null(merge_consoles(s.merge));
	fixture_done(&s);
}

/* It's over when the last attempt's streams have no more, and all was taken. */
static void test_over(void **state)
{
	struct fixture s;
	unsigned told;

	(void)state;
	fixture_make(&s);
	begin_sending(&s);
	put(&s, 1, "a\n");
	merge_turn(s.merge, true);
	assert_true(take(&s, ROOM) > 0);
	assert_false(merge_is_over(s.merge)); /* another attempt may follow */
	put(&s, 1, "b\n");
	merge_last(s.merge);
	assert_true(s.woken);
	turn(&s);
	merge_turn(s.merge, false);
	told = s.told;
	s.feed.left = 10;
	console_queue(merge_consoles(s.merge)[1], &s.feed.source);
	merge_turn(s.merge, true); /* a console has more */
	assert_int_equal(s.told, told);
	turn(&s);
	told = s.told;
	merge_turn(s.merge, true);
	assert_int_equal(s.told, told + 1);
	merge_turn(s.merge, true);
	assert_int_equal(s.told, told + 1); /* once */
	assert_false(merge_is_over(s.merge));
	assert_next(&s, true, 2, "123456789\n");
	assert_false(merge_is_over(s.merge));
	assert_next(&s, true, 1, "b\n");
	assert_true(merge_is_over(s.merge));
	fixture_done(&s);
}

/* --- other nodes' lines --- */

static void begin_hearing(struct fixture *s)
{
	fixture_make(s);
	assert_int_equal(merge_expect(s->merge, 3, SHARE), 0);
}

static void hear(struct fixture *s, unsigned node, int stream, const char *text)
{
	assert_int_equal(merge_hear(s->merge, node, stream, text, strlen(text)), strlen(text));
}

/* The begin of a line. */
static void hear_many(struct fixture *s, unsigned node, int stream, size_t len)
{
	static char many[SHARE];

	memset(many, 'x', sizeof many);
	assert_int_equal(merge_hear(s->merge, node, stream, many, len), len);
}

static void assert_taken(struct fixture *s, unsigned node, size_t len)
{
	unsigned n;
	size_t is;

	assert_true(merge_taken(s->merge, &n, &is));
	assert_int_equal(n, node);
	assert_int_equal(is, len);
}

/* What the console has taken is told, of each node in one sum. */
static void test_taken(void **state)
{
	struct fixture s;
	unsigned node;
	size_t len;

	(void)state;
	begin_hearing(&s);
	hear(&s, 1, 1, "one\n");
	hear(&s, 2, 1, "two\nbegin");
	hear(&s, 1, 2, "three\n");
	assert_false(merge_taken(s.merge, &node, &len));
	turn(&s);
	assert_true(s.told > 0);
	assert_int_equal(size_of(&s, 1), strlen("one\ntwo\n"));
	assert_file("err", "three\n");
	assert_taken(&s, 1, strlen("one\nthree\n"));
	assert_taken(&s, 2, strlen("two\n"));
	assert_false(merge_taken(s.merge, &node, &len));
	hear(&s, 1, 1, "\n");
	turn(&s);
	assert_taken(&s, 1, 1);
	assert_false(merge_taken(s.merge, &node, &len));
	fixture_done(&s);
}

static void test_lost(void **state)
{
	struct fixture s;

	(void)state;
	begin_hearing(&s);
	hear(&s, 1, 1, "a");
	hear(&s, 1, 2, "b");
	turn(&s);
	assert_int_equal(size_of(&s, 1) + size_of(&s, 2), 0);
	merge_lost(s.merge, 1);
	turn(&s);
	assert_file("out", "a\n");
	assert_file("err", "b\n");
	fixture_done(&s);
}

/* A node's begins of lines are held until both together are half of what it may send: then one goes
 * on, which gives it room. */
static const struct press_row {
	const char *says;
	size_t out, err; /* one byte less is held */
	size_t shown;
} presses[] = {
	{ "a begin on one stream is long", 0, SHARE / 2, SHARE / 2 },
	{ "begins on both are", SHARE / 4, SHARE / 4, SHARE / 4 },
};

static void test_press(void **state)
{
	const struct press_row *row = *state;
	struct fixture s;

	begin_hearing(&s);
	hear_many(&s, 1, 1, row->out);
	hear_many(&s, 1, 2, row->err - 1);
	turn(&s);
	assert_int_equal(size_of(&s, 1) + size_of(&s, 2), 0);
	hear_many(&s, 1, 2, 1);
	turn(&s);
	assert_int_equal(size_of(&s, 1) + size_of(&s, 2), row->shown);
	fixture_done(&s);
}

/* The node's other stream has a whole line, which goes first. */
static void test_press_waits(void **state)
{
	struct fixture s;

	(void)state;
	begin_hearing(&s);
	hear_many(&s, 1, 1, SHARE / 2);
	hear(&s, 1, 2, "line\n");
	s.woken = false;
	merge_serve(s.merge);
	(void)console_flush(&s.own[0]);
	assert_int_equal(size_of(&s, 1), 0);
	turn(&s);
	assert_file("err", "line\n");
	assert_int_equal(size_of(&s, 1), SHARE / 2);
	fixture_done(&s);
}

/* Another node's line is too long to be held, and stops in its middle: a third one's doesn't wait
 * for its end. What it says further is a line of its own. */
static void test_cut(void **state)
{
	static const struct {
		const char *then, *shown;
	} rows[] = { { "more\n", "more\n" }, { "\nmore\n", "more\n" } };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		static char many[SHARE / 2];
		struct text expected = { 0 };
		struct fixture s;

		begin_hearing(&s);
		memset(many, 'x', sizeof many);
		hear_many(&s, 1, 1, sizeof many);
		turn(&s);
		assert_int_equal(size_of(&s, 1), sizeof many);
		hear(&s, 2, 1, "line\n");
		turn(&s);
		assert_int_equal(size_of(&s, 1), sizeof many);
		while (!console_is_idle(&s.own[0])) /* or the alarm comes */
			(void)uv_run(&s.loop, UV_RUN_ONCE);
		text_add_bytes(&expected, many, sizeof many);
		text_add(&expected, "\nline\n");
		assert_file("out", text_string(&expected));
		hear(&s, 1, 1, rows[i].then);
		turn(&s);
		text_add(&expected, rows[i].shown);
		assert_file("out", text_string(&expected));
		text_done(&expected);
		fixture_done(&s);
	}
}

TESTS(merge_alone)
{
	static struct suite s;
	int rc = scratch_make() < 0 ? 2 : 0;

	SUITE_ROWS(&s, test_kept, kept);
	suite_add(&s, "lines are there to be taken", test_send, NULL, NULL);
	suite_add(&s, "streams have their turns", test_in_turn, NULL, NULL);
	suite_add(&s, "the pieces of a line follow one another", test_pieces, NULL, NULL);
	suite_add(&s, "lines are taken slowly", test_slow, NULL, NULL);
	suite_add(&s, "more comes when nobody takes lines any more", test_kept_goes_on, NULL, NULL);
	suite_add(&s, "nobody ever took any", test_kept_before, NULL, NULL);
	suite_add(&s, "the last line is taken", test_over, NULL, NULL);
	suite_add(&s, "a long line when nobody takes lines any more", test_kept_long, NULL, NULL);
	SUITE_ROWS(&s, test_press, presses);
	suite_add(&s, "a whole line before a begin", test_press_waits, NULL, NULL);
	suite_add(&s, "what the console has taken is told", test_taken, NULL, NULL);
	suite_add(&s, "a lost node's lines end", test_lost, NULL, NULL);
	suite_add(&s, "another node's line stops in its middle", test_cut, NULL, NULL);
	if (rc == 0)
		rc = suite_run(&s);
	return scratch_done() < 0 ? 2 : rc;
}
