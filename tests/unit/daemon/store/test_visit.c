/* test_visit.c - the client that blocks, against our own store, and against servers that don't do
 * as they should. */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/text.h"
#include "daemon/store/visit.h"
#include "tests/unit/daemon/store/store_fixture.h"

enum { LONG_MS = 60000, SHORT_MS = 50 };

/* In the visitor's process: a line that fails is its exit code. */
#define MUST(what) \
	do { \
		if (!(what)) \
			return __LINE__; \
	} while (0)

/* Runs a visitor in a process of its own while the store works; it must succeed. */
static void let_visit(struct store_fixture *st, const char *host, int (*visitor)(struct visit *v))
{
	struct failure why = { 0 };
	struct visit v = { -1, 0 };
	int ends[2], status = -1, line;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		line = visit_open(&v, host, store_port(&st->store), LONG_MS, &why) < 0 ?
			__LINE__ :
			visitor(&v);
		if (write(ends[1], &line, sizeof line) != (ssize_t)sizeof line)
			_exit(2);
		_exit(line != 0);
	}
	(void)close(ends[1]);
	run_until_readable(st, ends[0]);
	assert_int_equal(read(ends[0], &line, sizeof line), sizeof line);
	(void)close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(line, 0);
	assert_int_equal(status, 0);
}

static bool has(struct text *t, const char *value, size_t len)
{
	bool same = t->len == len && memcmp(text_string(t), value, len) == 0;

	text_done(t);
	return same;
}

static int talk(struct visit *v)
{
	static char large[100000];
	struct failure why = { 0 };
	struct text t = { 0 };
	int64_t sum = 0;

	MUST(visit_wait(v, "k", 0, &why) == -ETIMEDOUT);
	MUST(visit_wait(v, "k", SHORT_MS, &why) == -ETIMEDOUT);
	MUST(visit_get(v, "k", SHORT_MS, &t, &why) == -ETIMEDOUT);
	MUST(why.code == 0 && t.len == 0);
	MUST(visit_set(v, "k", "a\0b", 3, &why) == 0);
	MUST(visit_wait(v, "k", 0, &why) == 0);
	MUST(visit_get(v, "k", LONG_MS, &t, &why) == 0 && has(&t, "a\0b", 3));
	MUST(visit_set(v, "k", "", 0, &why) == 0);
	MUST(visit_get(v, "k", 0, &t, &why) == 0 && has(&t, "", 0));
	MUST(visit_add(v, "n", 5, &sum, &why) == 0 && sum == 5);
	MUST(visit_add(v, "n", -7, &sum, &why) == 0 && sum == -2);
	MUST(visit_get(v, "n", 0, &t, &why) == 0 && has(&t, "-2", 2));
	memset(large, 'x', sizeof large);
	MUST(visit_set(v, "large", large, sizeof large, &why) == 0);
	MUST(visit_get(v, "large", 0, &t, &why) == 0 && has(&t, large, sizeof large));
	visit_close(v);
	visit_close(v);
	MUST(visit_set(v, "k", "v", 1, &why) == -ENOTCONN);
	return 0;
}

static const struct host_row {
	const char *says, *host;
} hosts[] = {
	{ "by IPv4: set, add, look, wait, get", "127.0.0.1" },
	{ "by IPv6: set, add, look, wait, get", "::1" },
};

static void test_talk(void **state)
{
	const struct host_row *row = *state;
	struct store_fixture st;

	store_fixture_open(&st, row->host, FIXTURE_MEMORY);
	let_visit(&st, row->host, talk);
	settle(&st);
	store_fixture_close(&st);
	assert_int_equal(st.note_count, 0);
}

/* Another visitor sets what this one waits for. */
static int wait_for_the_other(struct visit *v)
{
	struct failure why = { 0 };
	struct text t = { 0 };
	int64_t sum;

	MUST(visit_add(v, "waiting", 1, &sum, &why) == 0);
	MUST(visit_get(v, "late", LONG_MS, &t, &why) == 0 && has(&t, "1", 1));
	return 0;
}

static int wait_both(struct visit *v)
{
	struct visit other = { -1, 0 };
	struct failure why = { 0 };
	struct sockaddr_in at = { 0 };
	socklen_t size = sizeof at;
	int status = -1;
	pid_t child;

	MUST(getpeername(v->fd, (struct sockaddr *)&at, &size) == 0);
	child = fork();
	MUST(child >= 0);
	if (child == 0)
		_exit(wait_for_the_other(v) != 0);
	MUST(visit_open(&other, "127.0.0.1", ntohs(at.sin_port), LONG_MS, &why) == 0);
	MUST(visit_wait(&other, "waiting", LONG_MS, &why) == 0);
	MUST(visit_set(&other, "late", "1", 1, &why) == 0);
	MUST(waitpid(child, &status, 0) == child && status == 0);
	visit_close(&other);
	return 0;
}

static void test_wait(void **state)
{
	struct store_fixture st;

	(void)state;
	store_fixture_open(&st, "127.0.0.1", FIXTURE_MEMORY);
	let_visit(&st, "127.0.0.1", wait_both);
	settle(&st);
	store_fixture_close(&st);
}

/* --- servers that fail --- */

static int serve(struct sockaddr_in *ret)
{
	socklen_t size = sizeof *ret;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*ret = (struct sockaddr_in){ .sin_family = AF_INET };
	ret->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)ret, size), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)ret, &size), 0);
	return fd;
}

static const struct bad_row {
	const char *says, *answer;
	size_t len;
	bool closes;
	int rc;
	const char *text;
} bad_servers[] = {
	{ "a server that says nothing", "", 0, false, -ETIMEDOUT,
		"the store did not answer within 0.05 s (k)" },
	{ "a server that says half", "\0\0\0", 3, false, -ETIMEDOUT,
		"the store did not answer within 0.05 s (k)" },
	{ "a server that closes", "", 0, true, -ECONNRESET, "the store closed the connection (k)" },
	{ "a server that says what nobody can", "\7", 1, false, -EPROTO,
		"the store can't be asked (k): Protocol error" },
	{ "a value that is too long", "\0\377\377\377\377\377\377\377\377", 9, false, -EPROTO,
		"the store can't be asked (k): Protocol error" },
};

static void test_bad_server(void **state)
{
	const struct bad_row *row = *state;
	struct failure why = { 0 };
	struct visit v = { -1, 0 };
	struct text t = { 0 };
	struct sockaddr_in at;
	int listener = serve(&at), peer, rc;
	bool number = row->len < 8 && row->answer[0] == '\0' && !row->closes;
	int64_t sum;

	assert_int_equal(visit_open(&v, "127.0.0.1", ntohs(at.sin_port), SHORT_MS, &why), 0);
	peer = accept(listener, NULL, NULL);
	assert_true(peer >= 0);
	assert_int_equal(write(peer, row->answer, row->len), row->len);
	if (row->closes)
		assert_int_equal(shutdown(peer, SHUT_WR), 0);
	rc = number ? visit_add(&v, "k", 1, &sum, &why) : visit_get(&v, "k", SHORT_MS, &t, &why);
	assert_int_equal(rc, row->rc);
	assert_string_equal(why.text, row->text);
	assert_int_equal(v.fd, -1);
	text_done(&t);
	(void)close(peer);
	(void)close(listener);
}

static void test_refused(void **state)
{
	struct failure why = { 0 };
	struct visit v = { -1, 0 };
	struct sockaddr_in at;
	char text[128];

	(void)state;
	(void)close(serve(&at));
	(void)snprintf(text, sizeof text,
		"the store at 127.0.0.1, port %u, can't be reached: Connection refused",
		ntohs(at.sin_port));
	assert_int_equal(
		visit_open(&v, "127.0.0.1", ntohs(at.sin_port), LONG_MS, &why), -ECONNREFUSED);
	assert_string_equal(why.text, text);
	assert_int_equal(v.fd, -1);
}

static void test_no_name(void **state)
{
	struct failure why = { 0 };
	struct visit v = { -1, 0 };

	(void)state;
	assert_int_equal(visit_open(&v, "not a name", 1, LONG_MS, &why), -EADDRNOTAVAIL);
	assert_non_null(strstr(why.text, "the store's address not a name is not known: "));
}

TESTS(visit)
{
	static struct suite s;

	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return 1;
	SUITE_ROWS(&s, test_talk, hosts);
	suite_add(&s, "a wait ends when somebody else sets the key", test_wait, NULL, NULL);
	SUITE_ROWS(&s, test_bad_server, bad_servers);
	suite_add(&s, "nobody listens", test_refused, NULL, NULL);
	suite_add(&s, "a name that isn't known", test_no_name, NULL, NULL);
	return suite_run(&s);
}
