/* test_console.c - launchd's own stdout or stderr: nobody's line in another's, nobody waited for.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/text.h"
#include "daemon/output/console.h"
#include "tests/unit/yard.h"

enum { LIMIT_MS = 30000, LINE = 1000 };

/* A source whose lines are "NAME0...\n", "NAME1...\n" and so on. */
struct feed {
	struct source source;
	char name;
	unsigned lines, done; /* to show, and shown */
	unsigned pulls, cuts;
	bool begun; /* it has a line open, by hand */
};

struct bench {
	uv_loop_t loop;
	uv_timer_t guard;
	struct console c;
	int write_end, read_end;
	struct text got;
};

static void on_guard(uv_timer_t *t)
{
	(void)t;
	abort(); /* it hangs */
}

static void open_console(struct bench *b, int fd)
{
	assert_int_equal(uv_loop_init(&b->loop), 0);
	assert_int_equal(uv_timer_init(&b->loop, &b->guard), 0);
	assert_int_equal(uv_timer_start(&b->guard, on_guard, LIMIT_MS, 0), 0);
	assert_int_equal(console_open(&b->c, &b->loop, fd), 0);
}

static void make_pipe(struct bench *b)
{
	int ends[2];

	*b = (struct bench){ 0 };
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	b->read_end = ends[0];
	b->write_end = ends[1];
	open_console(b, b->write_end);
}

static void done(struct bench *b)
{
	console_close(&b->c);
	uv_close((uv_handle_t *)&b->guard, NULL);
	(void)uv_run(&b->loop, UV_RUN_DEFAULT);
	assert_int_equal(b->c.handles, 0);
	assert_int_equal(uv_loop_close(&b->loop), 0);
	console_done(&b->c);
	fd_closep(&b->write_end);
	fd_closep(&b->read_end);
	text_done(&b->got);
}

/* Adds what is there to read now. */
static void read_some(struct bench *b)
{
	char buf[65536];
	ssize_t n;

	assert_int_equal(fcntl(b->read_end, F_SETFL, O_NONBLOCK), 0);
	while ((n = read(b->read_end, buf, sizeof buf)) > 0)
		text_add_bytes(&b->got, buf, (size_t)n);
	assert_true(n == 0 || errno == EAGAIN || errno == EIO);
}

static void assert_got(struct bench *b, const char *expected)
{
	read_some(b);
	assert_bytes(text_string(&b->got), b->got.len, expected, strlen(expected));
}

static void put(struct outbuf *out, const char *text)
{
	memcpy(out->at + out->len, text, strlen(text));
	out->len += strlen(text);
}

static bool pull(struct source *s, struct outbuf *out)
{
	struct feed *f = (struct feed *)s;

	f->pulls++;
	for (; f->done < f->lines && out->room - out->len >= LINE; f->done++) {
		char line[LINE + 1];

		(void)snprintf(line, sizeof line, "%c%-*u\n", f->name, LINE - 2, f->done);
		put(out, line);
	}
	return f->done < f->lines;
}

static void cut(struct source *s, struct outbuf *out)
{
	struct feed *f = (struct feed *)s;

	f->cuts++;
	s->open = false;
	put(out, "\n");
}

static struct feed feed_of(char name, unsigned lines)
{
	return (struct feed){
		.source = { .pull = pull, .cut = cut }, .name = name, .lines = lines
	};
}

static bool try_put(struct bench *b, struct feed *f, const char *text, bool open)
{
	struct outbuf *out = console_room(&b->c, &f->source);

	if (!out)
		return false;
	put(out, text);
	f->source.open = open;
	console_put(&b->c, &f->source);
	return true;
}

static void flush(struct bench *b)
{
	while (console_flush(&b->c))
		;
}

/* Reads until all is written. */
static void read_all(struct bench *b)
{
	while (!console_is_idle(&b->c)) {
		(void)uv_run(&b->loop, UV_RUN_NOWAIT);
		flush(b);
		read_some(b);
	}
}

/* Fills the pipe, which nobody reads. Returns how much went in. */
static size_t fill(struct bench *b, struct feed *f)
{
	f->lines = 1000;
	console_queue(&b->c, &f->source);
	flush(b);
	assert_true(b->c.waiting);
	return b->c.written;
}

enum kind { KIND_PIPE, KIND_SOCKET, KIND_PTY, KIND_FILE };

static const struct kind_row {
	const char *says;
	enum kind kind;
	enum console_kind is;
} kinds[] = {
	{ "a pipe", KIND_PIPE, CONSOLE_POLLED },
	{ "a socket", KIND_SOCKET, CONSOLE_SOCKET },
	{ "a terminal", KIND_PTY, CONSOLE_POLLED },
	{ "a file", KIND_FILE, CONSOLE_FILE },
};

static void make_kind(struct bench *b, enum kind kind)
{
	int ends[2] = { -1, -1 };
	struct termios raw;

	*b = (struct bench){ 0 };
	switch (kind) {
	case KIND_PIPE:
		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		break;
	case KIND_SOCKET:
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
		break;
	case KIND_PTY:
		assert_int_equal(openpty(&ends[0], &ends[1], NULL, NULL, NULL), 0);
		assert_int_equal(tcgetattr(ends[1], &raw), 0);
		cfmakeraw(&raw);
		assert_int_equal(tcsetattr(ends[1], TCSANOW, &raw), 0);
		break;
	case KIND_FILE:
		yard_clear();
		ends[1] = open("console", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		ends[0] = open("console", O_RDONLY | O_CLOEXEC);
		break;
	}
	assert_true(ends[0] >= 0 && ends[1] >= 0);
	b->read_end = ends[0];
	b->write_end = ends[1];
	open_console(b, b->write_end);
}

static void test_kind(void **state)
{
	const struct kind_row *row = *state;
	struct feed f = feed_of('a', 400);
	struct bench b;

	make_kind(&b, row->kind);
	assert_int_equal(b.c.kind, row->is);
	console_queue(&b.c, &f.source);
	read_all(&b);
	assert_int_equal(b.got.len, 400 * LINE);
	assert_memory_equal(b.got.at + 399 * LINE, "a399 ", 5);
	/* its other users may still wait for it */
	assert_int_equal(fcntl(b.write_end, F_GETFL) & O_NONBLOCK, 0);
	done(&b);
}

static void test_words(void **state)
{
	struct feed f = feed_of('f', 0);
	struct bench b;

	(void)state;
	make_pipe(&b);
	console_say(&b.c, "one\n", 4);
	assert_true(try_put(&b, &f, "line\n", false));
	console_say(&b.c, "two\n", 4);
	console_say(&b.c, "", 0);
	assert_true(try_put(&b, &f, "begun", true));
	console_say(&b.c, "three\n", 6); /* not within the line */
	assert_true(try_put(&b, &f, " and ended\n", false));
	assert_false(try_put(&b, &f, "too late\n", false));
	flush(&b);
	assert_got(&b, "one\nline\ntwo\nbegun and ended\nthree\n");
	assert_true(console_is_idle(&b.c));
	done(&b);
}

static void test_owner(void **state)
{
	struct feed a = feed_of('a', 0), other = feed_of('o', 0);
	struct bench b;

	(void)state;
	make_pipe(&b);
	assert_true(try_put(&b, &a, "begun", true));
	assert_null(console_room(&b.c, &other.source));
	console_queue(&b.c, &other.source);
	flush(&b);
	assert_int_equal(other.pulls, 0);
	assert_true(try_put(&b, &a, ", goes on", true));
	assert_true(try_put(&b, &a, ", ends\n", false));
	flush(&b);
	assert_int_equal(other.pulls, 1);
	assert_true(try_put(&b, &other, "mine\n", false));
	flush(&b);
	assert_got(&b, "begun, goes on, ends\nmine\n");
	assert_int_equal(a.cuts, 0);
	done(&b);
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
	struct bench *b = t->data;
	struct feed *f = (struct feed *)b->c.owner;

	assert_non_null(f);
	f->done++;
	assert_true(try_put(b, f, f->done == 6 ? "\n" : ".", f->done < 6));
	flush(b);
	if (f->done == 6)
		(void)uv_timer_stop(t);
}

static void test_silence(void **state)
{
	const struct silence_row *row = *state;
	struct feed a = feed_of('a', 0), other = feed_of('o', 1);
	uv_timer_t tick;
	struct bench b;

	make_pipe(&b);
	assert_int_equal(uv_timer_init(&b.loop, &tick), 0);
	tick.data = &b;
	assert_true(try_put(&b, &a, "begun", true));
	if (row->words)
		console_say(&b.c, "words\n", 6);
	else
		console_queue(&b.c, &other.source);
	if (row->goes_on)
		assert_int_equal(uv_timer_start(&tick, on_tick, 400, 400), 0);
	flush(&b);
	while (!console_is_idle(&b.c))
		(void)uv_run(&b.loop, UV_RUN_ONCE);
	read_some(&b);
	assert_int_equal(a.cuts, row->goes_on ? 0 : 1);
	assert_true(b.got.len >= strlen(row->got));
	assert_memory_equal(b.got.at, row->got, strlen(row->got));
	uv_close((uv_handle_t *)&tick, NULL);
	done(&b);
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
	struct bench b;

	(void)state;
	make_pipe(&b);
	assert_int_equal(uv_timer_init(&b.loop, &over), 0);
	over.data = &b;
	assert_int_equal(uv_timer_start(&over, on_over, 2500, 0), 0);
	assert_true(try_put(&b, &a, "begun", true));
	flush(&b);
	while (over.data)
		(void)uv_run(&b.loop, UV_RUN_ONCE);
	assert_int_equal(a.cuts, 0);
	assert_true(try_put(&b, &a, " and ended\n", false));
	flush(&b);
	assert_got(&b, "begun and ended\n");
	uv_close((uv_handle_t *)&over, NULL);
	done(&b);
}

static void test_full(void **state)
{
	struct feed a = feed_of('a', 0), other = feed_of('o', 3);
	struct bench b;

	(void)state;
	make_pipe(&b);
	assert_true(fill(&b, &a) < 1000 * LINE);
	assert_true(a.done < 1000);
	assert_null(console_room(&b.c, &other.source));
	console_queue(&b.c, &other.source);
	assert_false(console_flush(&b.c)); /* it waits for the reader */
	read_all(&b);
	assert_int_equal(b.got.len, 1003 * LINE);
	for (unsigned i = 0; i < 1003; i++)
		assert_memory_equal(b.got.at + i * LINE + LINE - 1, "\n", 1);
	assert_int_equal(other.done, 3);
	done(&b);
}

static void test_fair(void **state)
{
	struct feed feeds[3] = { feed_of('a', 2000), feed_of('b', 2000), feed_of('c', 2000) };
	struct bench b;

	(void)state;
	make_pipe(&b);
	for (int i = 0; i < 3; i++)
		console_queue(&b.c, &feeds[i].source);
	for (int i = 0; i < 3; i++)
		console_queue(&b.c, &feeds[i].source); /* once is enough */
	while (!console_is_idle(&b.c)) {
		(void)uv_run(&b.loop, UV_RUN_NOWAIT);
		(void)console_flush(&b.c);
		read_some(&b);
		for (int i = 0; i < 3; i++)
			assert_in_range(feeds[i].pulls + 1 - feeds[0].pulls, 0, 2);
	}
	assert_int_equal(b.got.len, 6000 * LINE);
	done(&b);
}

static void test_turns(void **state)
{
	struct feed a = feed_of('a', 1000000);
	struct bench b;

	(void)state;
	make_kind(&b, KIND_FILE);
	console_queue(&b.c, &a.source);
	assert_true(console_flush(&b.c)); /* pipes are looked at now and then */
	assert_true(a.done < a.lines);
	a.lines = a.done;
	assert_false(console_flush(&b.c));
	done(&b);
}

static void test_unsaid(void **state)
{
	enum { WORD = 1024, WORDS = 400, KEPT = 256 };
	struct feed a = feed_of('a', 0);
	static const char note[] = "bytes of launchd's own words found no reader\n";
	char word[WORD + 1], *at;
	size_t lost, shown;
	struct bench b;

	(void)state;
	make_pipe(&b);
	(void)fill(&b, &a);
	memset(word, 'w', WORD - 1);
	memcpy(word + WORD - 1, "\n", 2);
	for (int i = 0; i < WORDS; i++)
		console_say(&b.c, word, WORD);
	assert_true(b.c.words.len <= KEPT * WORD);
	read_all(&b);
	assert_contains(text_string(&b.got), note);
	at = memrchr(b.got.at, ':', (size_t)(strstr(b.got.at, note) - b.got.at));
	lost = strtoul(at + 1, NULL, 10);
	shown = b.got.len - 1000 * LINE -
		(strlen("launchd: warning: ") + strlen(note) + strspn(at + 2, "0123456789") + 1);
	assert_int_equal(shown + lost, WORDS * WORD);
	assert_int_equal(shown % WORD, 0);
	assert_int_equal(b.c.unsaid, 0);
	done(&b);
}

static void test_broken(void **state)
{
	struct feed a = feed_of('a', 100000);
	struct bench b;

	(void)state;
	make_pipe(&b);
	(void)fill(&b, &a);
	a.lines = 100000;
	console_say(&b.c, "words\n", 6);
	fd_closep(&b.read_end);
	while (!console_is_idle(&b.c)) {
		(void)uv_run(&b.loop, UV_RUN_NOWAIT);
		flush(&b);
	}
	assert_true(b.c.broken);
	assert_int_equal(a.done, 100000); /* nobody waits for what nobody reads */
	console_say(&b.c, "words\n", 6);
	assert_true(try_put(&b, &a, "line\n", false));
	flush(&b);
	assert_true(console_is_idle(&b.c));
	done(&b);
}

static void test_abandoned(void **state)
{
	struct feed a = feed_of('a', 0), other = feed_of('o', 5);
	struct bench b;

	(void)state;
	make_pipe(&b);
	(void)fill(&b, &a);
	console_queue(&b.c, &other.source);
	console_say(&b.c, "words\n", 6);
	console_abandon(&b.c);
	assert_true(console_is_idle(&b.c));
	assert_int_equal(a.done, 1000);
	assert_int_equal(other.done, 5);
	done(&b);
}

/* Disks behind a console. */
static void test_full_disk(void **state)
{
	struct feed a = feed_of('a', 1000);
	struct bench b = { .read_end = -1 };

	(void)state;
	b.write_end = open("/dev/full", O_WRONLY | O_CLOEXEC);
	open_console(&b, b.write_end);
	console_queue(&b.c, &a.source);
	flush(&b);
	assert_int_equal(a.done, 1000);
	assert_false(b.c.broken); /* it may have room again */
	assert_true(console_is_idle(&b.c));
	done(&b);
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
	struct bench b;

	(void)state;
	make_kind(&b, KIND_FILE);
	told = 0;
	b.c.on_missing = on_missing;
	assert_true(try_put(&b, &a, "0123456789\n", false));
	yard_limit_files(5);
	flush(&b);
	yard_limit_files(0);
	assert_false(b.c.broken);
	assert_int_equal(told, 1);
	assert_true(try_put(&b, &a, "lost\n", false));
	yard_limit_files(5);
	flush(&b);
	yard_limit_files(0);
	assert_int_equal(told, 1); /* once */
	assert_true(try_put(&b, &a, "line\n", false));
	flush(&b);
	assert_got(&b, "01234\n[launchd: 11 bytes are missing here: File too large]\nline\n");
	done(&b);
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
		put(out, "last\n");
	console_put_last(last_console, before);
	return false;
}

static void test_last(void **state)
{
	const struct last_row *row = *state;
	struct feed a = feed_of('a', 0), other = feed_of('o', 0);
	struct bench b;

	make_pipe(&b);
	last_console = &b.c;
	a.source.pull = pull_last_of;
	console_queue(&b.c, &a.source);
	flush(&b);
	if (row->pulled) {
		console_queue(&b.c, &other.source);
		console_queue(&b.c, &a.source);
		flush(&b);
	}
	if (row->words)
		console_say(&b.c, row->words, strlen(row->words));
	if (row->line)
		assert_true(try_put(&b, &other, row->line, false));
	flush(&b);
	assert_int_equal(b.c.unended, row->unended);
	assert_got(&b, row->got);
	done(&b);
}

static void read_until_end(void *arg)
{
	struct bench *b = arg;
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
	struct bench b = { 0 };
	uv_thread_t reader;
	int ends[2], rc;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
	b.read_end = ends[0];
	b.write_end = ends[1];
	assert_int_equal(uv_loop_init(&b.loop), 0);
	assert_int_equal(uv_timer_init(&b.loop, &b.guard), 0);
	assert_int_equal(uv_timer_start(&b.guard, on_guard, LIMIT_MS, 0), 0);
	yard_limit_descriptors(0);
	rc = console_open(&b.c, &b.loop, b.write_end);
	yard_free_descriptors();
	assert_int_equal(rc, 0);
	assert_int_equal(b.c.kind, CONSOLE_FILE);
	assert_int_equal(uv_thread_create(&reader, read_until_end, &b), 0);
	console_queue(&b.c, &a.source);
	flush(&b);
	assert_true(console_is_idle(&b.c));
	fd_closep(&b.write_end);
	assert_int_equal(uv_thread_join(&reader), 0);
	assert_int_equal(b.got.len, 1000 * LINE);
	done(&b);
}

/* A source that has dropped something says so, also while another one's line is open. */
static void test_dropped(void **state)
{
	struct feed a = feed_of('a', 0), other = feed_of('o', 0);
	struct bench b;

	(void)state;
	make_pipe(&b);
	assert_true(try_put(&b, &a, "begun", true));
	console_put(&b.c, &other.source);
	assert_false(try_put(&b, &other, "within\n", false));
	assert_true(try_put(&b, &a, ", ends\n", false));
	assert_true(try_put(&b, &other, "after\n", false));
	flush(&b);
	assert_got(&b, "begun, ends\nafter\n");
	done(&b);
}

int main(void)
{
	static struct suite s;
	int rc = yard_make() < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR ? 2 : 0;

	SUITE_ROWS(&s, test_kind, kinds);
	SUITE_ROWS(&s, test_silence, silences);
	SUITE_ROWS(&s, test_last, lasts);
	suite_add(&s, "words stand between lines", test_words, NULL, NULL);
	suite_add(&s, "nobody writes into an open line", test_owner, NULL, NULL);
	suite_add(&s, "a line that nobody waits for stays open", test_no_silence, NULL, NULL);
	suite_add(&s, "a full pipe, read later", test_full, NULL, NULL);
	suite_add(&s, "each has its turns", test_fair, NULL, NULL);
	suite_add(&s, "and the loop, too", test_turns, NULL, NULL);
	suite_add(&s, "words without room are counted", test_unsaid, NULL, NULL);
	suite_add(&s, "the reader is gone", test_broken, NULL, NULL);
	suite_add(&s, "the reader is waited for no longer", test_abandoned, NULL, NULL);
	suite_add(&s, "a full disk behind it", test_full_disk, NULL, NULL);
	suite_add(&s, "a line that a full disk has cut", test_cut_by_disk, NULL, NULL);
	suite_add(&s, "a non-blocking pipe of somebody else's", test_foreign, NULL, NULL);
	suite_add(&s, "a line stays open while another is dropped", test_dropped, NULL, NULL);
	if (rc == 0)
		rc = suite_run(&s);
	return yard_done() < 0 ? 2 : rc;
}
