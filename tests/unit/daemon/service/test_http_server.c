/* test_http_server.c - who asks for metrics: in time, late, in masses, and not at all. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/address.h"
#include "common/fd.h"
#include "common/sm.h"
#include "common/text.h"
#include "daemon/os/port.h"
#include "daemon/service/http_server.h"

enum { LIMIT_S = 120, MANY = 3 * HTTP_VISITORS, LARGE = 4 << 20 };

struct scene {
	uv_loop_t loop;
	struct http_server server;
	struct address at;
	size_t page_len;
	unsigned asked;
};

static void on_page(void *owner, struct text *ret)
{
	struct scene *s = owner;

	static const char line[] = "0123456789012345678901234567890123456789012345678\n";
	size_t left = s->page_len;

	s->asked++;
	for (; left >= sizeof line - 1; left -= sizeof line - 1)
		text_add_bytes(ret, line, sizeof line - 1);
	text_add_bytes(ret, line, left);
}

/* A port that is free now. */
static struct address free_address(const char *host)
{
	struct address at;
	autoclose fd = -1;

	assert_int_equal(address_parse(host, 0, &at), 0);
	fd = port_bind(&at, 0, SOCK_STREAM, 0);
	assert_true(fd >= 0);
	address_set_port(&at, (uint16_t)port_of(fd));
	return at;
}

static int make(void **state)
{
	struct scene *s = calloc(1, sizeof *s);
	struct failure why = { 0 };

	assert_non_null(s);
	(void)alarm(LIMIT_S); /* it hangs */
	assert_int_equal(uv_loop_init(&s->loop), 0);
	s->at = free_address("127.0.0.1");
	s->page_len = 100;
	s->server = (struct http_server){ .page = on_page, .owner = s, .listening = -1 };
	assert_int_equal(http_server_open(&s->server, &s->at, &why), 0);
	assert_int_equal(http_server_enter(&s->server, &s->loop, &why), 0);
	*state = s;
	return 0;
}

static int unmake(void **state)
{
	struct scene *s = *state;

	http_server_close(&s->server);
	(void)uv_run(&s->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&s->loop), 0);
	assert_null(s->server.visitors);
	free(s);
	return 0;
}

static int dial(const struct scene *s)
{
	int fd = socket(s->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, &s->at.any, address_size(&s->at)), 0);
	return fd;
}

static void ask(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Runs the loop until the client has all, or is reset (false). */
static bool hear(struct scene *s, int fd, struct text *ret)
{
	char bytes[65536];
	ssize_t n;

	for (;;) {
		(void)uv_run(&s->loop, UV_RUN_NOWAIT);
		n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
		if (n > 0)
			text_add_bytes(ret, bytes, (size_t)n);
		else if (n == 0)
			return true;
		else if (errno != EAGAIN)
			return false;
		else
			(void)poll(NULL, 0, 1);
	}
}

static const struct answer_row {
	const char *says, *request, *answer; /* how it begins */
	size_t body;                         /* bytes */
} answers[] = {
	{ "the metrics", "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
		"Content-Length: 100\r\n",
		100 },
	{ "their head alone", "HEAD /metrics HTTP/1.1\r\nHost: h\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
		"Content-Length: 100\r\n",
		0 },
	{ "another path", "GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 404 ", 13 },
	{ "a path that begins as the right one", "GET /metricsx HTTP/1.1\r\n\r\n", "HTTP/1.1 404 ",
		13 },
	{ "a path below the right one", "GET /metrics/ HTTP/1.1\r\n\r\n", "HTTP/1.1 404 ", 13 },
	{ "a path that is cut", "GET /metric HTTP/1.1\r\n\r\n", "HTTP/1.1 404 ", 13 },
	{ "another method", "PUT /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405 ", 13 },
	{ "nonsense", "hello\r\n\r\n", "HTTP/1.1 400 ", 13 },
};

static void assert_answer(const struct text *got, const char *begin, size_t body)
{
	const char *blank = strstr(text_string(got), "\r\n\r\n");

	assert_non_null(blank);
	assert_memory_equal(text_string(got), begin, strlen(begin));
	assert_int_equal(got->len - (size_t)(blank + 4 - got->at), body);
}

static void test_answer(void **state)
{
	const struct answer_row *row = *state;
	struct text got = { 0 };
	struct scene *s;
	void *scene;
	int fd;

	(void)make(&scene);
	s = scene;
	fd = dial(s);
	ask(fd, row->request);
	assert_true(hear(s, fd, &got));
	assert_answer(&got, row->answer, row->body);
	assert_int_equal(s->asked, strstr(row->answer, "200") != NULL);
	text_done(&got);
	(void)close(fd);
	(void)unmake(&scene);
}

/* As one that types. */
static void test_byte_by_byte(void **state)
{
	static const char request[] = "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n";
	struct scene *s = *state;
	struct text got = { 0 };
	int fd = dial(s);

	for (size_t i = 0; request[i]; i++) {
		assert_int_equal(send(fd, &request[i], 1, MSG_NOSIGNAL), 1);
		for (int turn = 0; turn < 3; turn++)
			(void)uv_run(&s->loop, UV_RUN_NOWAIT);
	}
	assert_true(hear(s, fd, &got));
	assert_answer(&got, "HTTP/1.1 200 ", 100);
	text_done(&got);
	(void)close(fd);
}

/* It is read to its end, or the kernel would take the answer back. */
static void test_too_much(void **state)
{
	struct scene *s = *state;
	struct text got = { 0 };
	static char much[256 * 1024];
	int fd = dial(s);
	size_t sent = 0;

	memset(much, 'x', sizeof much);
	while (sent < sizeof much) {
		ssize_t n = send(fd, much + sent, sizeof much - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		assert_true(n > 0 || errno == EAGAIN);
		sent += n > 0 ? (size_t)n : 0;
		(void)uv_run(&s->loop, UV_RUN_NOWAIT);
	}
	assert_true(hear(s, fd, &got));
	assert_answer(&got, "HTTP/1.1 431 ", 13);
	text_done(&got);
	(void)close(fd);
}

/* A page that a socket doesn't hold, and a reader that comes back to it. */
static void test_large(void **state)
{
	struct scene *s = *state;
	struct text got = { 0 };
	int fd = dial(s);

	s->page_len = LARGE;
	ask(fd, "GET /metrics HTTP/1.1\r\n\r\n");
	for (int turn = 0; turn < 20; turn++)
		(void)uv_run(&s->loop, UV_RUN_NOWAIT);
	assert_int_equal(s->server.open, 1);
	assert_true(hear(s, fd, &got));
	assert_answer(&got, "HTTP/1.1 200 ", LARGE);
	assert_int_equal(s->asked, 1);
	text_done(&got);
	(void)close(fd);
}

/* More than there is room for, at once: all are answered, one after the other. */
static void test_many(void **state)
{
	struct scene *s = *state;
	int fd[MANY];

	for (int i = 0; i < MANY; i++) {
		fd[i] = dial(s);
		ask(fd[i], "GET /metrics HTTP/1.1\r\n\r\n");
	}
	for (int i = 0; i < MANY; i++) {
		struct text got = { 0 };

		assert_true(hear(s, fd[i], &got));
		assert_true(s->server.open <= HTTP_VISITORS);
		assert_answer(&got, "HTTP/1.1 200 ", 100);
		text_done(&got);
		(void)close(fd[i]);
	}
	assert_int_equal(s->asked, MANY);
}

static void turn(struct scene *s)
{
	for (int i = 0; i < 5; i++)
		(void)uv_run(&s->loop, UV_RUN_NOWAIT);
}

/* All places are taken by some that say nothing, or not enough: the one that came first makes room
 * at once, whatever the clock says, and they don't push out one that asks a moment after it came.
 */
static void test_crowded(void **state)
{
	struct scene *s = *state;
	int slow[HTTP_VISITORS], fd, next;
	struct text got = { 0 };
	char byte;

	for (int i = 0; i < HTTP_VISITORS; i++) {
		slow[i] = dial(s);
		while (s->server.open < (unsigned)i + 1)
			(void)uv_run(&s->loop, UV_RUN_NOWAIT);
	}
	(void)uv_timer_stop(&s->server.clock);
	fd = dial(s);
	turn(s);
	assert_int_equal(recv(slow[0], &byte, 1, MSG_DONTWAIT), 0);
	for (int i = 1; i < HTTP_VISITORS; i++)
		ask(slow[i], "G");
	turn(s);
	next = dial(s);
	turn(s);
	assert_int_equal(recv(slow[1], &byte, 1, MSG_DONTWAIT), 0);
	assert_int_equal(recv(slow[2], &byte, 1, MSG_DONTWAIT), -1);
	ask(fd, "GET /metrics HTTP/1.1\r\n\r\n");
	assert_true(hear(s, fd, &got));
	assert_answer(&got, "HTTP/1.1 200 ", 100);
	/* the next one takes the place of one that has its answer, and of none that waits */
	(void)close(dial(s));
	turn(s);
	assert_int_equal(recv(slow[2], &byte, 1, MSG_DONTWAIT), -1);
	text_done(&got);
	(void)close(fd);
	(void)close(next);
	for (int i = 0; i < HTTP_VISITORS; i++)
		(void)close(slow[i]);
}

/* Also where there are places, and no descriptor. */
static void test_no_descriptor(void **state)
{
	struct scene *s = *state;
	struct rlimit before, none;
	struct text got = { 0 };
	int slow = dial(s), fd;

	turn(s);
	fd = dial(s);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = (rlim_t)fd + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	ask(fd, "GET /metrics HTTP/1.1\r\n\r\n");
	assert_true(hear(s, fd, &got));
	assert_answer(&got, "HTTP/1.1 200 ", 100);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	text_done(&got);
	(void)close(fd);
	(void)close(slow);
}

/* One that sends half a request is dropped when its time is over, and no timer runs after it. */
static void test_slow(void **state)
{
	struct scene *s = *state;
	struct text got = { 0 };
	uint64_t came;
	int fd = dial(s);

	ask(fd, "GET /metrics HT");
	while (s->server.open == 0)
		(void)uv_run(&s->loop, UV_RUN_ONCE);
	came = uv_now(&s->loop);
	assert_true(uv_is_active((uv_handle_t *)&s->server.clock));
	(void)hear(s, fd, &got);
	assert_int_equal(got.len, 0);
	while (s->server.open > 0)
		(void)uv_run(&s->loop, UV_RUN_ONCE);
	assert_true(uv_now(&s->loop) - came >= HTTP_PATIENCE_MS);
	assert_false(uv_is_active((uv_handle_t *)&s->server.clock));
	text_done(&got);
	(void)close(fd);
}

static void test_gone(void **state)
{
	struct scene *s = *state;
	int fd = dial(s);
	const struct linger reset = { .l_onoff = 1 };

	s->page_len = LARGE;
	ask(fd, "GET /metrics HTTP/1.1\r\n\r\n");
	while (s->asked == 0)
		(void)uv_run(&s->loop, UV_RUN_ONCE);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
	(void)close(fd);
	while (s->server.open > 0)
		(void)uv_run(&s->loop, UV_RUN_ONCE);
	fd = dial(s); /* and one that says nothing, and goes */
	while (s->server.open == 0)
		(void)uv_run(&s->loop, UV_RUN_ONCE);
	(void)close(fd);
	while (s->server.open > 0)
		(void)uv_run(&s->loop, UV_RUN_ONCE);
}

/* The end comes while some are at it. */
static void test_end(void **state)
{
	struct scene *s = *state;
	int reading = dial(s), writing = dial(s);

	s->page_len = LARGE;
	ask(writing, "GET /metrics HTTP/1.1\r\n\r\n");
	while (s->server.open < 2 || s->asked == 0)
		(void)uv_run(&s->loop, UV_RUN_ONCE);
	(void)close(dial(s)); /* waits still */
	http_server_close(&s->server);
	(void)uv_run(&s->loop, UV_RUN_DEFAULT);
	assert_null(s->server.visitors);
	(void)close(reading);
	(void)close(writing);
}

static void test_taken(void **state)
{
	struct scene *s = *state;
	struct http_server second = { .listening = -1 };
	struct failure why = { 0 };

	assert_outcome(http_server_open(&second, &s->at, &why), -EINVAL, &why,
		"--metrics-listen: can't listen at 127.0.0.1:");
	assert_int_equal(failure_exit_code(&why), 2);
	http_server_close(&second);
}

static void test_life(void **state)
{
	(void)state;
	assert_life(&visitor_life,
		(const char *const[]){ "free: reading", "reading: writing closing",
			"writing: lingering closing", "lingering: closing", "closing: free",
			NULL });
}

/* Without a loop, as where something else can't be had. */
static void test_no_loop(void **state)
{
	struct address at = free_address("127.0.0.1");
	struct http_server server = { .listening = -1 };
	struct failure why = { 0 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(http_server_open(&server, &at, &why), 0);
		http_server_close(&server);
		assert_null(server.visitors);
	}
}

TESTS(http_server)
{
	static struct suite s;

	SUITE_ROWS(&s, test_answer, answers);
	suite_add(&s, "a request that comes byte by byte", test_byte_by_byte, make, unmake);
	suite_add(&s, "a request that never ends", test_too_much, make, unmake);
	suite_add(&s, "a large page", test_large, make, unmake);
	suite_add(&s, "many at once", test_many, make, unmake);
	suite_add(&s, "the one that came first makes room", test_crowded, make, unmake);
	suite_add(&s, "no descriptor is left", test_no_descriptor, make, unmake);
	suite_add(&s, "a slow one is dropped", test_slow, make, unmake);
	suite_add(&s, "one that goes away", test_gone, make, unmake);
	suite_add(&s, "the end of the server", test_end, make, unmake);
	suite_add(&s, "a port that is taken", test_taken, make, unmake);
	suite_add(&s, "a connection's life", test_life, NULL, NULL);
	suite_add(&s, "never in a loop", test_no_loop, NULL, NULL);
	return suite_run(&s);
}
