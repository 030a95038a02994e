/* test_ctl_server.c - clients of the control socket: many, slow, gone, and those who follow. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/sm.h"
#include "common/text.h"
#include "daemon/control/ctl_server.h"

enum { LIMIT_S = 120, MANY = 1000 };

struct scene {
	uv_loop_t loop;
	struct ctl_server server;
	struct sockaddr_un at;
	socklen_t at_size;
	bool later; /* the owner answers when the test says so */
	struct ctl_client *waiting;
	unsigned asked;
	struct ctl_peer peer;
	size_t answer_len; /* of a string; 0: {} */
};

#define LINE(id, op) "{\"v\":1,\"id\":" #id ",\"op\":\"" op "\"}\n"
#define DONE(id)     "{\"v\":1,\"id\":" #id ",\"ok\":true,\"result\":{}}\n"

static void answer(struct scene *s, struct ctl_client *c)
{
	struct text t = { 0 };

	if (s->answer_len == 0) {
		ctl_answer(c, NULL);
		return;
	}
	text_add(&t, "\"");
	for (size_t i = 0; i < s->answer_len; i++)
		text_add_bytes(&t, "x", 1);
	text_add(&t, "\"");
	ctl_answer(c, text_string(&t));
	text_done(&t);
}

static void on_asked(void *owner, struct ctl_client *c, const struct demand *d)
{
	struct scene *s = owner;

	s->asked++;
	s->peer = ctl_peer(c);
	if (d->op == OP_EVENTS)
		ctl_follow(c);
	else if (d->op == OP_LOGS)
		ctl_follow_lines(c, d->ranks, d->rank_count);
	else if (d->op == OP_RESTART)
		ctl_refuse(c, CONTROL_NOT_NOW, "no \"attempt\"");
	else if (s->later)
		s->waiting = c;
	else
		answer(s, c);
}

static int make(void **state)
{
	struct scene *s = calloc(1, sizeof *s);
	struct failure why = { 0 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_non_null(s);
	(void)alarm(LIMIT_S); /* it hangs */
	assert_int_equal(uv_loop_init(&s->loop), 0);
	/* an abstract address of the kernel's choice: unix(7), autobind */
	s->at.sun_family = AF_UNIX;
	assert_int_equal(bind(fd, (struct sockaddr *)&s->at, sizeof s->at.sun_family), 0);
	s->at_size = sizeof s->at;
	assert_int_equal(getsockname(fd, (struct sockaddr *)&s->at, &s->at_size), 0);
	assert_int_equal(listen(fd, MANY), 0);
	s->server = (struct ctl_server){ .asked = on_asked, .owner = s, .listening = -1 };
	assert_int_equal(ctl_server_open(&s->server, &s->loop, fd, &why), 0);
	*state = s;
	return 0;
}

static int unmake(void **state)
{
	struct scene *s = *state;

	ctl_server_close(&s->server);
	(void)uv_run(&s->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&s->loop), 0);
	assert_null(s->server.clients);
	assert_int_equal(s->server.count, 0);
	free(s);
	return 0;
}

static int dial(const struct scene *s)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&s->at, s->at_size), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void turn(struct scene *s, int times)
{
	while (times-- > 0)
		(void)uv_run(&s->loop, UV_RUN_NOWAIT);
}

/* Runs the loop until so many bytes have come, or the end. */
static void hear(struct scene *s, int fd, size_t len, struct text *ret)
{
	char bytes[65536];

	while (ret->len < len) {
		ssize_t n;

		turn(s, 1);
		n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
		if (n > 0)
			text_add_bytes(ret, bytes, (size_t)n);
		else if (n == 0 || errno != EAGAIN)
			return;
		else
			(void)poll(NULL, 0, 1);
	}
}

/* Exactly this comes, and no more. */
static void expect(struct scene *s, int fd, const char *text)
{
	struct text got = { 0 };

	hear(s, fd, strlen(text), &got);
	turn(s, 3);
	assert_string_equal(text_string(&got), text);
	assert_int_equal(recv(fd, &(char){ 0 }, 1, MSG_DONTWAIT), -1);
	text_done(&got);
}

/* This comes, and then the end. */
static void expect_last(struct scene *s, int fd, const char *text)
{
	struct text got = { 0 };

	hear(s, fd, SIZE_MAX, &got);
	assert_string_equal(text_string(&got), text);
	text_done(&got);
	(void)close(fd);
}

static const struct line_row {
	const char *says, *sent, *answers;
} lines[] = {
	{ "a request", LINE(1, "reopen"), DONE(1) },
	{ "several at once are answered in their order",
		LINE(1, "reopen") LINE(2, "stop") "\n\n" LINE(3, "reopen"),
		DONE(1) DONE(2) DONE(3) },
	{ "one that is refused", LINE(4, "restart") LINE(5, "stop"),
		"{\"v\":1,\"id\":4,\"ok\":false,\"error\":{\"code\":\"not-now\",\"text\":\"no "
		"\\\"attempt\\\"\"}}\n" DONE(5) },
	{ "one that is wrong", "x\n" LINE(5, "stop"),
		"{\"v\":1,\"id\":null,\"ok\":false,\"error\":{\"code\":\"malformed\",\"text\":\"the "
		"line is not one JSON object\"}}\n" DONE(5) },
	{ "wrong, with a number", LINE(6, "fly"),
		"{\"v\":1,\"id\":6,\"ok\":false,\"error\":{\"code\":\"unknown-op\",\"text\":\"there "
		"is no such operation\"}}\n" },
};

static void test_lines(void **state)
{
	const struct line_row *row = *state;
	void *made;
	struct scene *s;
	int fd;

	(void)make(&made);
	s = made;
	fd = dial(s);
	say(fd, row->sent);
	expect(s, fd, row->answers);
	assert_int_equal(s->server.count, 1);
	(void)close(fd);
	turn(s, 3);
	assert_int_equal(s->server.count, 0);
	(void)unmake(&made);
}

static void test_byte_by_byte(void **state)
{
	static const char sent[] = LINE(1, "reopen") LINE(2, "reopen");
	struct scene *s = *state;
	int fd = dial(s);

	for (const char *p = sent; *p; p++) {
		assert_int_equal(send(fd, p, 1, MSG_NOSIGNAL), 1);
		turn(s, 2);
	}
	expect(s, fd, DONE(1) DONE(2));
	assert_int_equal(s->peer.pid, getpid());
	assert_int_equal(s->peer.uid, geteuid());
	(void)close(fd);
}

/* The last request's answer comes although its client sends no more. */
static void test_shut_down(void **state)
{
	struct scene *s = *state;
	int fd = dial(s);

	say(fd, LINE(1, "reopen") LINE(2, "reopen") "{\"v\"");
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	expect_last(s, fd, DONE(1) DONE(2));
}

static void test_too_long(void **state)
{
	struct scene *s = *state;
	struct text line = { 0 };
	int fd = dial(s);

	for (int i = 0; i < 3 * CONTROL_LINE_MAX; i++)
		text_add(&line, "x");
	say(fd, text_string(&line));
	expect(s, fd,
		"{\"v\":1,\"id\":null,\"ok\":false,\"error\":{\"code\":\"too-long\",\"text\":\"a "
		"request has at most 4096 bytes, with its newline\"}}\n");
	say(fd, "xx\n" LINE(8, "reopen"));
	expect(s, fd, DONE(8));
	/* the longest one */
	text_done(&line);
	text_add(&line, "{\"v\":1,\"id\":9,\"op\":\"reopen\"}");
	while (line.len < CONTROL_LINE_MAX - 1)
		text_add(&line, " ");
	text_add(&line, "\n");
	say(fd, text_string(&line));
	expect(s, fd, DONE(9));
	text_done(&line);
	(void)close(fd);
}

/* Nothing else is asked while the owner has a request. */
static void test_later(void **state)
{
	struct scene *s = *state;
	int fd = dial(s);

	s->later = true;
	say(fd, LINE(1, "reopen") LINE(2, "reopen"));
	turn(s, 5);
	assert_int_equal(s->asked, 1);
	assert_non_null(s->waiting);
	answer(s, s->waiting);
	turn(s, 5);
	assert_int_equal(s->asked, 2);
	answer(s, s->waiting);
	expect(s, fd, DONE(1) DONE(2));
	(void)close(fd);
}

/* It goes while the owner has its request, who then answers nobody. */
static void test_gone(void **state)
{
	struct scene *s = *state;
	int fd = dial(s);

	s->later = true;
	say(fd, LINE(1, "reopen"));
	turn(s, 5);
	(void)close(fd);
	turn(s, 5);
	assert_int_equal(s->server.count, 1);
	s->answer_len = 100;
	answer(s, s->waiting);
	turn(s, 5);
	assert_int_equal(s->server.count, 0);
}

/* A thousand requests of one client that reads when it has sent them all. */
static void test_many(void **state)
{
	struct scene *s = *state;
	struct text all = { 0 }, expected = { 0 }, got = { 0 };
	int fd = dial(s);
	size_t sent = 0;

	s->answer_len = 4096; /* 4 MB in all: more than a socket has room for */
	for (int i = 0; i < MANY; i++)
		text_printf(&all, "{\"v\":1,\"id\":%d,\"op\":\"reopen\"}\n", i);
	while (sent < all.len) {
		ssize_t n = send(fd, all.at + sent, all.len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		sent += n > 0 ? (size_t)n : 0;
		turn(s, 1);
		if (n < 0)
			break; /* neither reads any more */
	}
	/* its answers wait in the socket, and in no memory of ours */
	turn(s, 100);
	assert_true(s->asked > 0 && s->asked < MANY);
	for (unsigned i = 0; i < MANY; i++) {
		char number[40];
		const char *line;

		(void)snprintf(number, sizeof number, "{\"v\":1,\"id\":%u,\"ok\":true,", i);
		while (!(line = memchr(got.at ? got.at : "", '\n', got.len))) {
			if (sent < all.len) {
				ssize_t n = send(fd, all.at + sent, all.len - sent,
					MSG_NOSIGNAL | MSG_DONTWAIT);

				sent += n > 0 ? (size_t)n : 0;
			}
			hear(s, fd, got.len + 1, &got);
		}
		assert_memory_equal(got.at, number, strlen(number));
		text_drop(&got, (size_t)(line + 1 - got.at));
	}
	assert_int_equal(s->asked, MANY);
	text_done(&all);
	text_done(&expected);
	text_done(&got);
	(void)close(fd);
}

#define BUSY(text) \
	"{\"v\":1,\"id\":null,\"ok\":false,\"error\":{\"code\":\"busy\",\"text\":\"busy: " text \
	"\"}}\n"
#define FULL      BUSY("as many clients as there may be have streams or await answers")
#define MADE_ROOM BUSY("this connection, which was idle the longest, makes room for another one")
#define FOLLOW    "{\"v\":1,\"id\":3,\"op\":\"events\",\"follow\":true}\n"

/* Another user's launcher, and what connects to it. */
static void become(uid_t uid)
{
	assert_int_equal(seteuid(uid), 0);
}

static void as_nobody(void)
{
	needs(getuid() == 0, "root, to be somebody else");
	become(65534);
}

/* So many that have asked for it. */
static void dial_all(struct scene *s, int *fd, int count, const char *request)
{
	for (int i = 0; i < count; i++) {
		fd[i] = dial(s);
		say(fd[i], request);
		turn(s, 3);
	}
}

static void close_all(const int *fd, int count)
{
	for (int i = 0; i < count; i++)
		(void)close(fd[i]);
}

/* Whoever asks is heard: the one that was idle the longest goes, and hears why. */
static void test_crowd(void **state)
{
	struct scene *s = *state;
	int fd[CONTROL_CLIENTS], one_more;

	as_nobody();
	for (int i = 0; i < CONTROL_CLIENTS; i++) /* at once, as a flood comes */
		fd[i] = dial(s);
	turn(s, 20);
	say(fd[0], LINE(1, "reopen"));
	expect(s, fd[0], DONE(1));
	one_more = dial(s);
	say(one_more, LINE(2, "reopen"));
	expect(s, one_more, DONE(2));
	expect_last(s, fd[1], MADE_ROOM);
	fd[1] = one_more;
	for (int i = 0; i < CONTROL_CLIENTS; i++)
		say(fd[i], LINE(3, "reopen"));
	for (int i = 0; i < CONTROL_CLIENTS; i++)
		expect(s, fd[i], DONE(3));
	assert_int_equal(s->server.count, CONTROL_CLIENTS);
	close_all(fd, CONTROL_CLIENTS);
	become(0);
}

/* Only root is heard where all have streams, and at last instead of one of them. */
static void test_crowd_of_streams(void **state)
{
	struct scene *s = *state;
	int fd[CONTROL_CLIENTS], roots[CONTROL_ROOTS], one;

	as_nobody();
	dial_all(s, fd, CONTROL_CLIENTS, FOLLOW);
	assert_int_equal(s->server.followers, CONTROL_CLIENTS);
	one = dial(s);
	expect_last(s, one, FULL);
	become(0);
	one = dial(s);
	become(65534);
	say(one, LINE(1, "stop"));
	expect(s, one, DONE(1));
	(void)close(one);
	turn(s, 3);
	become(0);
	dial_all(s, roots, CONTROL_ROOTS, FOLLOW);
	one = dial(s);
	say(one, LINE(2, "stop"));
	expect(s, one, DONE(2));
	expect_last(s, fd[0], MADE_ROOM);
	assert_int_equal(s->server.followers, CONTROL_ALL - 1);
	close_all(fd + 1, CONTROL_CLIENTS - 1);
	close_all(roots, CONTROL_ROOTS);
	(void)close(one);
}

/* One that takes none of its answers is idle, too; one that awaits an answer is not. */
static void test_crowd_that_asks(void **state)
{
	struct scene *s = *state;
	int fd[CONTROL_ALL], one;

	s->answer_len = 1 << 20;
	fd[0] = dial(s);
	say(fd[0], LINE(1, "reopen"));
	turn(s, 5);
	s->answer_len = 0;
	s->later = true;
	dial_all(s, fd + 1, CONTROL_ALL - 1, LINE(1, "reopen"));
	assert_int_equal(s->asked, CONTROL_ALL);
	one = dial(s);
	turn(s, 3);
	s->later = false;
	say(one, LINE(2, "reopen"));
	expect(s, one, DONE(2)); /* in the place of the first */
	assert_int_equal(s->server.count, CONTROL_ALL);
	close_all(fd, CONTROL_ALL);
	(void)close(one);
}

/* As one that is shown again and again: it has a request only now and then. */
static void test_others_push_no_root_out(void **state)
{
	struct scene *s = *state;
	int fd[2 * CONTROL_CLIENTS], root = dial(s);

	needs(getuid() == 0, "root, to be somebody else");
	turn(s, 3);
	as_nobody();
	for (int i = 0; i < 2 * CONTROL_CLIENTS; i++) {
		fd[i] = dial(s);
		turn(s, 3);
	}
	assert_int_equal(s->server.count, CONTROL_CLIENTS + 1);
	say(root, LINE(1, "reopen"));
	expect(s, root, DONE(1));
	become(0);
	close_all(fd, 2 * CONTROL_CLIENTS);
	(void)close(root);
}

/* The next one is heard in the place of the one that was idle the longest, or at last of a stream.
 */
static void test_no_descriptor(void **state)
{
	struct scene *s = *state;
	struct rlimit before, none;
	int fd[4], next[2];

	dial_all(s, fd, 2, LINE(1, "reopen"));
	dial_all(s, fd + 2, 2, FOLLOW);
	for (int i = 0; i < 2; i++)
		expect(s, fd[i], DONE(1));
	for (int i = 0; i < 2; i++)
		next[i] = dial(s);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = (rlim_t)next[1] + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	for (int i = 0; i < 2; i++) {
		say(next[i], LINE(2, "stop"));
		expect(s, next[i], DONE(2));
	}
	expect_last(s, fd[0], MADE_ROOM);
	expect_last(s, fd[1], MADE_ROOM);
	assert_int_equal(s->server.followers, 2);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	close_all(fd + 2, 2);
	close_all(next, 2);
}

static void tell(struct scene *s, const char *event)
{
	ctl_tell(&s->server, event, strlen(event));
}

static void test_stream(void **state)
{
	struct scene *s = *state;
	int fd = dial(s), other = dial(s);

	tell(s, "{\"a\":0}"); /* to nobody */
	say(fd, FOLLOW);
	say(other, LINE(1, "reopen"));
	turn(s, 5);
	tell(s, "{\"a\":1}");
	tell(s, "{\"a\":2}");
	expect(s, fd,
		"{\"v\":1,\"id\":3,\"event\":{\"a\":1}}\n{\"v\":1,\"id\":3,\"event\":{\"a\":2}}\n");
	expect(s, other, DONE(1));
	/* other requests, but no second stream */
	say(fd, LINE(4, "reopen") "{\"v\":1,\"id\":5,\"op\":\"events\",\"follow\":true}\n");
	expect(s, fd,
		DONE(4) "{\"v\":1,\"id\":5,\"ok\":false,\"error\":{\"code\":\"not-now\",\"text\":"
			"\"this connection has a stream already\"}}\n");
	tell(s, "{\"a\":3}");
	ctl_server_close(&s->server); /* the stream's end */
	expect_last(s, fd,
		"{\"v\":1,\"id\":3,\"event\":{\"a\":3}}\n{\"v\":1,\"id\":3,\"ok\":true,\"result\":{}}\n");
	expect_last(s, other, "");
}

static void tell_line(struct scene *s, unsigned rank, const char *event)
{
	ctl_tell_line(&s->server, rank, event, strlen(event));
}

/* Each hears of the ranks that it has asked for. */
static void test_lines_of_workers(void **state)
{
	struct scene *s = *state;
	int all = dial(s), some = dial(s), events = dial(s);

	say(all, "{\"v\":1,\"id\":1,\"op\":\"logs\",\"follow\":true}\n");
	say(some, "{\"v\":1,\"id\":2,\"op\":\"logs\",\"follow\":true,\"ranks\":[5,3]}\n");
	say(events, FOLLOW);
	turn(s, 8);
	assert_int_equal(s->server.line_followers, 2);
	assert_int_equal(s->server.followers, 1);
	assert_true(ctl_takes_lines(&s->server, 4));
	tell_line(s, 3, "{\"a\":3}");
	ctl_lose_lines(&s->server, 4, 7);
	tell_line(s, 4, "{\"a\":4}");
	expect(s, all,
		"{\"v\":1,\"id\":1,\"event\":{\"a\":3}}\n{\"v\":1,\"id\":1,\"lost\":7}\n"
		"{\"v\":1,\"id\":1,\"event\":{\"a\":4}}\n");
	expect(s, some, "{\"v\":1,\"id\":2,\"event\":{\"a\":3}}\n");
	(void)close(all);
	turn(s, 5);
	assert_int_equal(s->server.line_followers, 1);
	assert_true(ctl_takes_lines(&s->server, 5));
	assert_false(ctl_takes_lines(&s->server, 4));
	ctl_lose_lines(&s->server, 5, 2);
	ctl_server_close(&s->server);
	expect_last(s, some,
		"{\"v\":1,\"id\":2,\"lost\":2}\n{\"v\":1,\"id\":2,\"ok\":true,\"result\":{}}\n");
	expect_last(s, events, "{\"v\":1,\"id\":3,\"ok\":true,\"result\":{}}\n");
}

/* What a follower does not read is bounded, and it hears how much it has missed. */
static void test_slow_follower(void **state)
{
	struct scene *s = *state;
	struct text event = { 0 }, got = { 0 };
	int fd = dial(s);
	const char *lost;

	say(fd, FOLLOW);
	turn(s, 5);
	text_add(&event, "\"");
	for (int i = 0; i < 10000; i++)
		text_add(&event, "x");
	text_add(&event, "\"");
	for (int i = 0; i < 400; i++) {
		tell(s, text_string(&event));
		turn(s, 1);
	}
	hear(s, fd, 1 << 20, &got);
	while (poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, 0) == 1)
		hear(s, fd, got.len + 1, &got);
	tell(s, "\"last\"");
	while (!memmem(got.at, got.len, "\"last\"", 6))
		hear(s, fd, got.len + 1, &got);
	lost = memmem(got.at, got.len, "{\"v\":1,\"id\":3,\"lost\":", 21);
	assert_non_null(lost);
	assert_true(strtol(lost + 21, NULL, 10) > 100);
	assert_non_null(memmem(lost, (size_t)(got.at + got.len - lost), "\"last\"", 6));
	text_done(&event);
	text_done(&got);
	(void)close(fd);
}

/* A follower that goes away, and one that has a request with the owner at the end. */
static void test_ends(void **state)
{
	struct scene *s = *state;
	int fd = dial(s), other = dial(s);

	say(fd, FOLLOW);
	turn(s, 5);
	assert_int_equal(s->server.followers, 1);
	(void)close(fd);
	turn(s, 5);
	assert_int_equal(s->server.followers, 0);
	s->later = true;
	say(other, LINE(1, "reopen"));
	turn(s, 5);
	ctl_server_close(&s->server);
	expect_last(s, other,
		"{\"v\":1,\"id\":1,\"ok\":false,\"error\":{\"code\":\"over\",\"text\":\"the job is "
		"over\"}}\n");
}

/* More than its socket holds. */
static int follow_much(struct scene *s, struct text *event)
{
	int fd = dial(s);

	say(fd, FOLLOW);
	turn(s, 5);
	text_add(event, "\"");
	for (int i = 0; i < 800000; i++)
		text_add(event, "x");
	text_add(event, "\"");
	tell(s, text_string(event));
	return fd;
}

/* Nothing has to be rendered for one that does not read, until it does. */
static void test_full_follower(void **state)
{
	struct scene *s = *state;
	struct text event = { 0 };
	char bytes[4096];
	int fd = dial(s);

	say(fd, "{\"v\":1,\"id\":1,\"op\":\"logs\",\"follow\":true}\n");
	turn(s, 5);
	text_add(&event, "\"");
	for (int i = 0; i < 500000; i++)
		text_add(&event, "x");
	text_add(&event, "\"");
	assert_true(ctl_takes_lines(&s->server, 0));
	for (int i = 0; i < 4; i++) {
		tell_line(s, 0, text_string(&event));
		turn(s, 1);
	}
	turn(s, 3);
	assert_false(ctl_takes_lines(&s->server, 0));
	while (!ctl_takes_lines(&s->server, 0)) {
		assert_true(recv(fd, bytes, sizeof bytes, 0) > 0);
		turn(s, 1);
	}
	text_done(&event);
	(void)close(fd);
}

static void test_last_lines(void **state)
{
	static const char begin[] = "{\"v\":1,\"id\":3,\"event\":\"xxx", end[] = "xxx\"}\n" DONE(3);
	struct scene *s = *state;
	struct text event = { 0 }, got = { 0 };
	int fd = follow_much(s, &event);

	ctl_server_close(&s->server);
	hear(s, fd, SIZE_MAX, &got);
	assert_memory_equal(got.at, begin, sizeof begin - 1);
	assert_string_equal(got.at + got.len - (sizeof end - 1), end);
	text_done(&event);
	text_done(&got);
	assert_int_equal(close(fd), 0);
}

/* One that does not read them, or goes away, holds up nobody; see unmake(). */
static void test_last_lines_for_nobody(void **state)
{
	struct scene *s = *state;
	struct text event = { 0 }, other = { 0 };
	int silent = follow_much(s, &event), gone = follow_much(s, &other);

	ctl_server_close(&s->server);
	turn(s, 3);
	assert_int_equal(close(gone), 0);
	(void)uv_run(&s->loop, UV_RUN_DEFAULT);
	assert_null(s->server.clients);
	text_done(&event);
	text_done(&other);
	assert_int_equal(close(silent), 0);
}

static const struct foreign_row {
	const char *says, *json;
	bool taken;
} foreign[] = {
	{ "an object", "{\"a\":[1,{}]}", true },
	{ "an empty one", "{}", true },
	{ "no object", "[1]", false },
	{ "half of one", "{\"a\":", false },
	{ "two", "{}{}", false },
	{ "one, and what ends the answer", "{}],\"x\":[{}", false },
	{ "two lines", "{\n}", false },
	{ "a blank behind it", "{} ", true },
	{ "nothing", "", false },
	{ "a text that isn't ended", "{\"a\":\"", false },
};

/* What another launcher has written, as a part of a result. */
static void test_foreign(void **state)
{
	struct scene *s = *state;

	for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
		size_t len = strlen(foreign[i].json);
		char *exact = strdup(foreign[i].json);

		assert_non_null(exact);
		if (ctl_server_takes(&s->server, exact, len) != foreign[i].taken)
			fail_msg("%s", foreign[i].says);
		free(exact);
	}
	assert_false(ctl_server_takes(&s->server, "{}\0{}", 5));
}

static void test_life(void **state)
{
	(void)state;
	assert_life(&ctl_life,
		(const char *[]){ "reading: asking leaving closing", "asking: reading closing",
			"leaving: closing", "closing:", NULL });
}

TESTS(ctl_server)
{
	struct suite s = { .count = 0 };

	SUITE_ROWS(&s, test_lines, lines);
	suite_add(&s, "requests that come byte by byte", test_byte_by_byte, make, unmake);
	suite_add(&s, "one that sends no more", test_shut_down, make, unmake);
	suite_add(&s, "a line that is too long", test_too_long, make, unmake);
	suite_add(&s, "one at a time", test_later, make, unmake);
	suite_add(&s, "one that goes away", test_gone, make, unmake);
	suite_add(&s, "a thousand requests", test_many, make, unmake);
	suite_add(&s, "of idle clients the idlest makes room", test_crowd, make, unmake);
	suite_add(&s, "streams make room for root alone", test_crowd_of_streams, make, unmake);
	suite_add(&s, "clients that await an answer stay", test_crowd_that_asks, make, unmake);
	suite_add(&s, "root's clients make room for root alone", test_others_push_no_root_out, make,
		unmake);
	suite_add(&s, "no descriptor is left", test_no_descriptor, make, unmake);
	suite_add(&s, "a stream of events", test_stream, make, unmake);
	suite_add(&s, "a stream of lines", test_lines_of_workers, make, unmake);
	suite_add(&s, "a follower that does not read", test_slow_follower, make, unmake);
	suite_add(&s, "one that takes no more lines", test_full_follower, make, unmake);
	suite_add(&s, "ends", test_ends, make, unmake);
	suite_add(&s, "the last lines of a stream", test_last_lines, make, unmake);
	suite_add(&s, "last lines that nobody reads", test_last_lines_for_nobody, make, unmake);
	suite_add(&s, "what another launcher has written", test_foreign, make, unmake);
	suite_add(&s, "a client's life", test_life, NULL, NULL);
	return suite_run(&s);
}
