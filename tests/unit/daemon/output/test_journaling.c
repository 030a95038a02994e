/* test_journaling.c - what goes to the journal, and what becomes of it where that is away, full, or
 * back again. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/vec.h"
#include "daemon/output/journaling.h"
#include "daemon/plan/plan.h"

struct scene {
	char directory[40];
	struct sockaddr_un at;
	int server; /* -1: none */
	uv_loop_t loop;
	struct console consoles[2];
	struct console *const both[2];
	struct journaling journal;
	struct text shown[2], said;
};

/* As a console's reader. */
static ssize_t take(const struct console *c, const char *at, size_t len)
{
	text_add_bytes(c->owner_of_write, at, len);
	return (ssize_t)len;
}

static void hear(void *owner, bool warning, const char *text)
{
	assert_true(warning);
	text_printf(owner, "%s\n", text);
}

static void serve(struct scene *s)
{
	s->server = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->server, (const struct sockaddr *)&s->at, sizeof s->at), 0);
}

static void stop_serving(struct scene *s)
{
	(void)close(s->server);
	s->server = -1;
	assert_int_equal(unlink(s->at.sun_path), 0);
}

static struct scene *begin(bool there)
{
	struct scene *s = malloc(sizeof *s);

	assert_non_null(s);
	memcpy(s,
		&(struct scene){ .at.sun_family = AF_UNIX,
			.server = -1,
			.both = { &s->consoles[0], &s->consoles[1] } },
		sizeof *s);
	(void)snprintf(s->directory, sizeof s->directory, "/tmp/launchd-journal-XXXXXX");
	assert_non_null(mkdtemp(s->directory));
	(void)snprintf(s->at.sun_path, sizeof s->at.sun_path, "%s/socket", s->directory);
	if (there)
		serve(s);
	assert_int_equal(uv_loop_init(&s->loop), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			console_open_remote(&s->consoles[i], &s->loop, take, &s->shown[i]), 0);
	s->journal.path = s->at.sun_path;
	s->journal.instead = s->both;
	s->journal.say = hear;
	s->journal.owner = &s->said;
	assert_int_equal(journaling_open(&s->journal, &s->loop, false), 0);
	return s;
}

static void close_one(uv_handle_t *h, void *arg)
{
	(void)arg;
	uv_close(h, NULL);
}

static void end(struct scene *s)
{
	uv_walk(&s->loop, close_one, NULL);
	(void)uv_run(&s->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&s->loop), 0);
	journaling_done(&s->journal);
	for (int i = 0; i < 2; i++) {
		console_done(&s->consoles[i]);
		text_done(&s->shown[i]);
	}
	text_done(&s->said);
	if (s->server >= 0)
		stop_serving(s);
	assert_int_equal(rmdir(s->directory), 0);
	free(s);
}

static void put_own(struct scene *s, const char *message)
{
	struct text entry = { 0 }, record = { 0 }, line = { 0 };

	text_printf(&line, "launchd: note: %s\n", message);
	entry_add_string(&entry, "MESSAGE", message);
	records_add_entry(&record, &entry, text_string(&line), line.len);
	console_say(&s->journal.console, record.at, record.len);
	text_done(&entry);
	text_done(&record);
	text_done(&line);
}

static void put_line(struct scene *s, int fd, const char *text)
{
	static const struct vec args = { 0 };
	const struct plan plan = { .script = "/opt/train.py",
		.args = &args,
		.nnodes = 1,
		.nproc = 4,
		.world_size = 4,
		.start_count = 4,
		.run_id = "r",
		.job_name = "j" };
	struct text line = { 0 };

	assert_true(journaling_header(&plan, 3, 1, fd, 77, &line));
	text_printf(&line, "%s\n", text);
	console_say(&s->journal.console, line.at, line.len);
	text_done(&line);
}

/* Until nothing is left to be done at once. */
static void turn(struct scene *s)
{
	while (journaling_turn(&s->journal))
		;
	for (int i = 0; i < 2; i++)
		while (console_flush(&s->consoles[i]))
			;
}

static void assert_entry(const struct scene *s, const char *expected)
{
	char got[512];
	ssize_t n = recv(s->server, got, sizeof got - 1, MSG_DONTWAIT);

	assert_true(n >= 0);
	got[n] = '\0';
	assert_string_equal(got, expected);
}

#define FIELDS \
	"PRIORITY=6\nSYSLOG_IDENTIFIER=train.py\nSYSLOG_PID=77\nRUN_ID=r\nJOB=j\nRANK=3\nLOCAL_RANK=3\n" \
	"NODE_RANK=0\nATTEMPT=1\n"

static void test_there(void **state)
{
	struct scene *s = begin(true);

	(void)state;
	put_own(s, "one");
	put_line(s, 1, "two");
	put_line(s, 2, "");
	console_say(&s->journal.console, "launchd: warning: 7 bytes are lost\n", 35);
	turn(s);
	assert_entry(s, "MESSAGE=one\n");
	assert_entry(s, FIELDS "STREAM=stdout\nMESSAGE=two\n");
	assert_entry(s, FIELDS "STREAM=stderr\nMESSAGE=\n");
	assert_entry(s,
		"PRIORITY=4\nSYSLOG_IDENTIFIER=launchd\n"
		"MESSAGE=launchd: warning: 7 bytes are lost\n");
	assert_true(journaling_is_idle(&s->journal));
	assert_string_equal(text_string(&s->said), "");
	assert_int_equal(s->shown[0].len + s->shown[1].len, 0);
	end(s);
}

static void test_away(void **state)
{
	struct scene *s = begin(false);

	(void)state;
	put_own(s, "one");
	put_line(s, 1, "two");
	put_line(s, 2, "three");
	turn(s);
	assert_string_equal(text_string(&s->shown[0]), "[3]: two\n");
	assert_string_equal(text_string(&s->shown[1]), "launchd: note: one\n[3]: three\n");
	assert_contains(text_string(&s->said), "No such file or directory; what would be there");
	assert_true(journaling_is_idle(&s->journal));
	end(s);
}

/* journald was started again: with a new socket, and then none, and then it is there again. */
static void test_again(void **state)
{
	struct scene *s = begin(true);

	(void)state;
	stop_serving(s);
	serve(s);
	put_own(s, "one");
	turn(s);
	assert_entry(s, "MESSAGE=one\n");
	assert_string_equal(text_string(&s->said), "");
	stop_serving(s);
	put_own(s, "two");
	turn(s);
	assert_string_equal(text_string(&s->shown[1]), "launchd: note: two\n");
	serve(s);
	put_own(s, "three"); /* so soon it isn't tried again */
	turn(s);
	assert_contains(text_string(&s->shown[1]), "launchd: note: three\n");
	s->journal.away_ns = 1; /* long ago */
	put_own(s, "four");
	turn(s);
	assert_entry(s, "MESSAGE=four\n");
	end(s);
}

/* Puts more than journald takes; how many. */
static unsigned fill(struct scene *s)
{
	unsigned n = 0;

	for (; !console_is_waiting(&s->journal.console); n++) {
		put_own(s, "one");
		turn(s);
	}
	return n;
}

static unsigned drain(const struct scene *s)
{
	char got[512];
	unsigned n = 0;

	while (recv(s->server, got, sizeof got, MSG_DONTWAIT) >= 0)
		n++;
	return n;
}

static void test_full(void **state)
{
	struct scene *s = begin(true);
	unsigned n = fill(s);

	(void)state;
	assert_false(journaling_is_idle(&s->journal));
	assert_int_equal(drain(s), n - 1);
	(void)uv_run(&s->loop, UV_RUN_ONCE); /* there is room: the socket tells */
	turn(s);
	assert_entry(s, "MESSAGE=one\n");
	assert_true(journaling_is_idle(&s->journal));
	assert_int_equal(s->shown[1].len, 0);
	end(s);
}

/* At the end nobody waits for it. */
static void test_left(void **state)
{
	struct scene *s = begin(true);

	(void)state;
	assert_false(journaling_leave(&s->journal)); /* it takes what there is */
	(void)fill(s);
	assert_true(journaling_leave(&s->journal));
	turn(s);
	put_own(s, "two");
	turn(s);
	assert_string_equal(text_string(&s->shown[1]), "launchd: note: one\nlaunchd: note: two\n");
	assert_true(journaling_is_idle(&s->journal));
	assert_false(journaling_leave(&s->journal));
	assert_contains(text_string(&s->said), "it takes nothing; what would be there goes to");
	end(s);
}

/* The console has much to write already, so whoever has more waits. */
static void test_both_slow(void **state)
{
	enum { MUCH = 200 * 1024 };
	struct scene *s = begin(false);
	char *much = malloc(MUCH);

	(void)state;
	assert_non_null(much);
	memset(much, 'x', MUCH);
	much[MUCH - 1] = '\n';
	console_say(s->both[0], much, MUCH); /* more than its buffer has room for */
	put_line(s, 1, "two");
	(void)journaling_turn(&s->journal);
	assert_true(console_is_waiting(&s->journal.console));
	assert_false(journaling_is_idle(&s->journal));
	turn(s); /* the console writes it, which its owner sees in the next turn */
	turn(s);
	assert_true(journaling_is_idle(&s->journal));
	assert_int_equal(s->shown[0].len, MUCH + strlen("[3]: two\n"));
	free(much);
	end(s);
}

static void test_never_open(void **state)
{
	struct journaling none = { .is_open = false };

	(void)state;
	assert_false(journaling_turn(&none));
	assert_true(journaling_is_idle(&none));
	assert_false(journaling_leave(&none));
	journaling_done(&none);
}

TESTS(journaling)
{
	struct suite s = { .count = 0 };

	suite_add(&s, "records become entries", test_there, NULL, NULL);
	suite_add(&s, "without a journal they are shown", test_away, NULL, NULL);
	suite_add(&s, "it may come back", test_again, NULL, NULL);
	suite_add(&s, "one that is full is waited for", test_full, NULL, NULL);
	suite_add(&s, "but not at the end", test_left, NULL, NULL);
	suite_add(&s, "nor does what is shown instead pile up", test_both_slow, NULL, NULL);
	suite_add(&s, "nobody wants it", test_never_open, NULL, NULL);
	return suite_run(&s);
}
