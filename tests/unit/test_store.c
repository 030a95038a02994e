/* test_store.c - the store and its clients by real sockets, in one loop. */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/store/store.h"
#include "daemon/workers/procfs.h"
#include "tests/unit/sim.h"

#define D STORE_DIALECT_D

enum { MEMORY = 64 << 20, LIMIT_MS = 60000 };

struct stage {
	uv_loop_t loop;
	struct store store;
	char notes[64][256];
	unsigned note_count;
	bool closed;
};

static void on_note(void *owner, const char *text)
{
	struct stage *st = owner;

	assert_true(st->note_count < 64);
	(void)snprintf(st->notes[st->note_count++], sizeof *st->notes, "%s", text);
}

static void on_closed(struct store *s)
{
	struct stage *st = (struct stage *)(void *)((char *)s - offsetof(struct stage, store));

	st->closed = true;
}

static void stage_open(struct stage *st, const char *addr, uint64_t memory)
{
	struct failure why = { 0 };
	struct store_config c = {
		.addr = addr, .memory_max = memory, .on_note = on_note, .owner = st
	};

	memset(st, 0, sizeof *st);
	assert_int_equal(uv_loop_init(&st->loop), 0);
	assert_outcome(store_open(&st->store, &st->loop, &c, &why), 0, &why, NULL);
	assert_true(store_port(&st->store) > 0);
}

static void stage_close(struct stage *st)
{
	store_close(&st->store, on_closed);
	(void)uv_run(&st->loop, UV_RUN_DEFAULT);
	assert_true(st->closed);
	assert_int_equal(uv_loop_close(&st->loop), 0);
}

static int dial(const struct stage *st, const char *to, const char *from)
{
	struct sockaddr_in in = { .sin_family = AF_INET }, own = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	in.sin_port = htons((uint16_t)store_port(&st->store));
	assert_int_equal(inet_pton(AF_INET, to, &in.sin_addr), 1);
	assert_int_equal(inet_pton(AF_INET, from, &own.sin_addr), 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof own), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
	return fd;
}

/* Sends it, with the store at work meanwhile. */
static void ask(struct stage *st, int fd, const char *request)
{
	struct text bytes = { 0 };
	size_t sent = 0;

	wire_request(&bytes, D, request);
	while (sent < bytes.len) {
		ssize_t n =
			send(fd, bytes.at + sent, bytes.len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		assert_true(n > 0 || errno == EAGAIN || errno == ECONNRESET || errno == EPIPE);
		if (n < 0 && errno != EAGAIN)
			break; /* the store has heard enough */
		sent += n > 0 ? (size_t)n : 0;
		if (sent < bytes.len)
			(void)uv_run(&st->loop, UV_RUN_NOWAIT);
	}
	text_done(&bytes);
}

static int dial_and_greet(struct stage *st)
{
	int fd = dial(st, "127.0.0.1", "127.0.0.1");

	ask(st, fd, "VALIDATE %0x3c85f7ce");
	return fd;
}

/* Lets the store work until there is something to read here. */
static void run_until_readable(struct stage *st, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	for (int ms = 0; poll(&p, 1, 0) == 0; ms++) {
		assert_true(ms < LIMIT_MS);
		if (uv_run(&st->loop, UV_RUN_NOWAIT) && poll(&p, 1, 1) > 0)
			return;
	}
}

static void hear(struct stage *st, int fd, const char *words)
{
	struct text expected = { 0 };
	char got[4096];
	size_t len = 0;

	wire_words(&expected, words);
	while (len < expected.len) {
		ssize_t n;

		run_until_readable(st, fd);
		n = recv(fd, got + len, expected.len - len, 0);
		assert_true(n > 0);
		len += (size_t)n;
	}
	assert_memory_equal(got, expected.at, expected.len);
	text_done(&expected);
}

static void hear_end(struct stage *st, int fd)
{
	char byte;

	run_until_readable(st, fd);
	assert_true(recv(fd, &byte, 1, 0) <= 0);
	(void)close(fd);
}

/* Lets the store work until it has nothing to do. */
static void settle(struct stage *st)
{
	for (int i = 0; i < 20; i++) {
		(void)uv_run(&st->loop, UV_RUN_NOWAIT);
		(void)usleep(500);
	}
}

static void test_talk(void **state)
{
	struct stage st;
	int a, b;

	(void)state;
	stage_open(&st, "127.0.0.1", MEMORY);
	a = dial_and_greet(&st);
	b = dial_and_greet(&st);
	ask(&st, b, "WAIT @1 k");
	ask(&st, a, "PING %7");
	hear(&st, a, "%7");
	ask(&st, a, "SET k v");
	hear(&st, b, "$0");
	ask(&st, b, "GET k");
	hear(&st, b, "v");
	assert_int_equal(store_clients(&st.store), 2);
	(void)close(a);
	(void)close(b);
	settle(&st);
	assert_null(st.store.clients);
	stage_close(&st);
	assert_int_equal(st.note_count, 0);
}

static void test_ipv6(void **state)
{
	struct sockaddr_in6 in = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stage st;

	(void)state;
	if (fd < 0 || bind(fd, (struct sockaddr *)&in, sizeof in) < 0) {
		(void)close(fd);
		skip(); /* no IPv6 here */
	}
	stage_open(&st, "::1", MEMORY);
	in.sin6_port = htons((uint16_t)store_port(&st.store));
	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
	ask(&st, fd, "VALIDATE %0x3c85f7ce");
	ask(&st, fd, "ADD n #3");
	hear(&st, fd, "#3");
	(void)close(fd);
	stage_close(&st);
}

static void test_strangers(void **state)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct stage st;
	int fd;

	(void)state;
	stage_open(&st, "127.0.0.1", MEMORY);
	st.store.peers.loopback = false; /* as if 127.0.0.2 were another host */
	for (int i = 0; i < 3; i++)
		hear_end(&st, dial(&st, "127.0.0.1", "127.0.0.2"));
	hear_end(&st, dial(&st, "127.0.0.1", "127.0.0.3"));
	assert_int_equal(st.note_count, 2);
	assert_contains(st.notes[0], "127.0.0.2:");
	assert_contains(st.notes[0], "is no node of this job");
	assert_contains(st.notes[1], "127.0.0.3:");
	assert_int_equal(inet_pton(AF_INET, "127.0.0.2", &in.sin_addr), 1);
	assert_int_equal(store_allow(&st.store, (struct sockaddr *)&in), 0);
	fd = dial(&st, "127.0.0.1", "127.0.0.2");
	ask(&st, fd, "VALIDATE %0x3c85f7ce");
	ask(&st, fd, "PING %1");
	hear(&st, fd, "%1");
	(void)close(fd);
	stage_close(&st);
}

static void test_bad_client(void **state)
{
	struct stage st;
	int bad, good;

	(void)state;
	stage_open(&st, "127.0.0.1", MEMORY);
	good = dial_and_greet(&st);
	bad = dial_and_greet(&st);
	ask(&st, bad, "SET *8193 v");
	hear_end(&st, bad);
	assert_int_equal(st.note_count, 1);
	assert_contains(st.notes[0], "the store closed the connection of 127.0.0.1:");
	assert_contains(st.notes[0], "SET has a key of 8193");
	bad = dial(&st, "127.0.0.1", "127.0.0.1");
	assert_int_equal(send(bad, "GET / HTTP/1.1\r\n", 16, 0), 16);
	hear_end(&st, bad);
	assert_contains(st.notes[1], "does not begin as a client of torch 2.2 or later does");
	ask(&st, good, "PING %1");
	hear(&st, good, "%1");
	assert_int_equal(store_clients(&st.store), 2);
	(void)close(good);
	stage_close(&st);
}

/* Notes have an end, however many bad clients there are. */
static void test_note_flood(void **state)
{
	struct stage st;

	(void)state;
	stage_open(&st, "127.0.0.1", MEMORY);
	for (int i = 0; i < 100; i++) {
		int bad = dial_and_greet(&st);

		ask(&st, bad, "SET *8193 v");
		hear_end(&st, bad);
	}
	assert_int_equal(st.note_count, 33);
	assert_contains(st.notes[32], "more connections, of which nothing more is said");
	stage_close(&st);
}

/* A new attempt has no key of the old one, whose connections are closed, waiting ones too. */
static void test_next_attempt(void **state)
{
	struct stage st;
	int old, waiting, backlog, new;
	unsigned port;

	(void)state;
	stage_open(&st, "127.0.0.1", MEMORY);
	port = store_port(&st.store);
	old = dial_and_greet(&st);
	waiting = dial_and_greet(&st);
	ask(&st, waiting, "WAIT @1 later");
	ask(&st, old, "ADD n #5");
	hear(&st, old, "#5");
	settle(&st);
	backlog = dial_and_greet(&st); /* nobody accepts it: the loop does not run */
	ask(&st, backlog, "ADD n #100");
	store_next_attempt(&st.store);
	assert_int_equal(store_clients(&st.store), 0);
	assert_int_equal(store_port(&st.store), port);
	(void)send(old, "x", 1, MSG_NOSIGNAL);
	new = dial_and_greet(&st);
	ask(&st, new, "GETNUMKEYS");
	hear(&st, new, "#0");
	ask(&st, new, "SET later 1");
	ask(&st, new, "ADD n #1");
	hear(&st, new, "#1");
	hear_end(&st, old);
	hear_end(&st, waiting);
	hear_end(&st, backlog);
	assert_int_equal(store_clients(&st.store), 1);
	(void)close(new);
	stage_close(&st);
	assert_int_equal(st.note_count, 0);
}

/* The port is open from the first attempt to the last, and nobody can share it. */
static void test_many_attempts(void **state)
{
	struct failure why = { 0 };
	struct store_config c = { .addr = "127.0.0.1", .memory_max = MEMORY };
	struct store second;
	struct stage st;

	(void)state;
	stage_open(&st, "127.0.0.1", MEMORY);
	c.port = store_port(&st.store);
	for (int i = 0; i < 100; i++) {
		int fd = dial_and_greet(&st);

		ask(&st, fd, "ADD n #1");
		if (i % 2 == 0)
			hear(&st, fd, "#1");
		if (i % 10 == 0)
			store_next_attempt(&st.store);
		store_next_attempt(&st.store);
		hear_end(&st, fd);
		assert_int_equal(store_open(&second, &st.loop, &c, &why), -EADDRINUSE);
	}
	assert_true(fcntl(st.store.listener, F_GETFD) & FD_CLOEXEC);
	stage_close(&st);
}

/* One that asks for much and reads nothing costs one answer; the others do not notice. */
static void test_never_reads(void **state)
{
	struct stage st;
	int lazy, good;
	size_t sent = 0;

	(void)state;
	stage_open(&st, "127.0.0.1", MEMORY);
	good = dial_and_greet(&st);
	ask(&st, good, "SET k *8000000");
	lazy = dial_and_greet(&st);
	settle(&st);
	assert_int_equal(fcntl(lazy, F_SETFL, O_NONBLOCK), 0);
	for (int i = 0; i < 100000; i++) {
		struct text bytes = { 0 };
		ssize_t n;

		wire_request(&bytes, D, "GET k");
		n = send(lazy, bytes.at, bytes.len, MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
		text_done(&bytes);
		if (i % 100 == 0)
			(void)uv_run(&st.loop, UV_RUN_NOWAIT);
		if (n < 0)
			break;
	}
	settle(&st);
	assert_true(sent > 1000);
	assert_true(st.store.budget.used < 40 << 20);
	ask(&st, good, "PING %1");
	hear(&st, good, "%1");
	(void)close(lazy);
	settle(&st);
	(void)close(good);
	settle(&st);
	assert_null(st.store.clients);
	stage_close(&st);
}

/* A large answer comes whole to a slow reader, and what it asked meanwhile after it. */
static void test_slow_reader(void **state)
{
	enum { SIZE = 8000000 };
	struct stage st;
	uint64_t len;
	char *got = malloc(SIZE + 8);
	size_t have = 0;
	int fd;

	(void)state;
	assert_non_null(got);
	stage_open(&st, "127.0.0.1", MEMORY);
	fd = dial_and_greet(&st);
	ask(&st, fd, "SET k *8000000");
	ask(&st, fd, "GET k");
	ask(&st, fd, "PING %77");
	settle(&st);
	while (have < SIZE + 8) {
		ssize_t n;

		run_until_readable(&st, fd);
		n = recv(fd, got + have, have + 70000 < SIZE + 8 ? 70000 : SIZE + 8 - have, 0);
		assert_true(n > 0);
		have += (size_t)n;
	}
	memcpy(&len, got, sizeof len);
	assert_int_equal(len, SIZE);
	for (size_t i = 8; i < SIZE + 8; i++)
		assert_true(got[i] == 'x');
	hear(&st, fd, "%77");
	free(got);
	(void)close(fd);
	stage_close(&st);
}

/* Who watches a key and does not read is closed before it costs too much. */
static void test_watcher_never_reads(void **state)
{
	struct stage st;
	struct text bytes = { 0 };
	int watcher, writer;

	(void)state;
	stage_open(&st, "127.0.0.1", 256 << 20);
	st.store.config.old = STORE_DIALECT_A;
	watcher = dial(&st, "127.0.0.1", "127.0.0.1");
	writer = dial_and_greet(&st);
	wire_request(&bytes, STORE_DIALECT_A, "WATCH_KEY k");
	assert_int_equal(send(watcher, bytes.at, bytes.len, 0), bytes.len);
	text_done(&bytes);
	hear(&st, watcher, "$3");
	for (int i = 0; i < 64 && st.note_count == 0; i++) {
		ask(&st, writer, "SET k *1000000");
		ask(&st, writer, "PING %1");
		hear(&st, writer, "%1");
	}
	assert_int_equal(st.note_count, 1);
	assert_contains(st.notes[0], "it does not read what it is sent");
	assert_true(st.store.budget.used < 100 << 20);
	(void)close(watcher);
	(void)close(writer);
	stage_close(&st);
}

static void test_many_clients(void **state)
{
	enum { MANY = 400 };
	struct stage st;
	int fds[MANY];

	(void)state;
	stage_open(&st, "127.0.0.1", MEMORY);
	for (int i = 0; i < MANY; i++) {
		fds[i] = dial_and_greet(&st);
		ask(&st, fds[i], "BARRIER b #400");
		(void)uv_run(&st.loop, UV_RUN_NOWAIT);
	}
	for (int i = 0; i < MANY; i++)
		hear(&st, fds[i], "$0");
	assert_int_equal(store_clients(&st.store), MANY);
	for (int i = 0; i < MANY; i++)
		(void)close(fds[i]);
	stage_close(&st);
}

/* Without a descriptor for it a connection is closed; the store neither spins nor dies of it. */
static void test_no_descriptors(void **state)
{
	struct rlimit was, low;
	const char *preload = getenv("LD_PRELOAD");
	struct stage st;
	int a, b, next;

	(void)state;
	if (preload && strstr(preload, "vgpreload"))
		skip(); /* valgrind has limits of its own */
	stage_open(&st, "127.0.0.1", MEMORY);
	a = dial_and_greet(&st);
	b = dial_and_greet(&st);
	next = dup(0);
	assert_true(next > 0);
	(void)close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	low = was;
	low.rlim_cur = (rlim_t)next + 1; /* room for one of the two */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	hear_end(&st, b);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(st.note_count, 1);
	assert_contains(st.notes[0], "no file descriptor left");
	ask(&st, a, "PING %1");
	hear(&st, a, "%1");
	(void)close(a);
	stage_close(&st);
}

/* They go while the store writes to them. */
static void test_sudden_end(void **state)
{
	struct stage st;
	int good;

	(void)state;
	stage_open(&st, "127.0.0.1", MEMORY);
	good = dial_and_greet(&st);
	ask(&st, good, "SET k *1000000");
	for (int i = 0; i < 100; i++) {
		int fd = dial_and_greet(&st);

		ask(&st, fd, "WAIT @1 late");
		ask(&st, fd, i % 2 ? "GET k" : "PING %1");
		ask(&st, fd, "WAIT @1 late");
		if (i % 3 == 0)
			(void)uv_run(&st.loop, UV_RUN_NOWAIT);
		(void)close(fd);
		if (i % 5 == 0)
			ask(&st, good, "SET late v");
		if (i % 7 == 0)
			settle(&st);
	}
	settle(&st);
	ask(&st, good, "PING %1");
	hear(&st, good, "%1");
	(void)close(good);
	settle(&st);
	assert_null(st.store.clients);
	stage_close(&st);
	assert_int_equal(st.note_count, 0);
}

static void test_memory(void **state)
{
	struct stage st;
	int greedy, good;

	(void)state;
	stage_open(&st, "127.0.0.1", 1 << 20);
	good = dial_and_greet(&st);
	ask(&st, good, "SET k v");
	greedy = dial_and_greet(&st);
	ask(&st, greedy, "SET k *1100000");
	hear_end(&st, greedy);
	assert_contains(st.notes[0], "no memory for its request (SET)");
	ask(&st, good, "GET k");
	hear(&st, good, "v");
	(void)close(good);
	stage_close(&st);
}

static const struct open_row {
	const char *says, *addr, *part;
	int rc;
} opens[] = {
	{ "a name is no address", "localhost",
		"the store can't listen on \"localhost\": it is no IP address", -EINVAL },
	{ "an address of another host", "192.0.2.1",
		"can't listen on 192.0.2.1 port 0: Cannot assign", -EADDRNOTAVAIL },
};

static void test_open(void **state)
{
	const struct open_row *row = *state;
	struct store_config c = { .addr = row->addr, .memory_max = MEMORY };
	struct failure why = { 0 };
	struct store store;
	uv_loop_t loop;

	assert_int_equal(uv_loop_init(&loop), 0);
	assert_outcome(store_open(&store, &loop, &c, &why), row->rc, &why, row->part);
	assert_int_equal(uv_loop_close(&loop), 0);
}

static void test_port_in_use(void **state)
{
	struct store_config c = { .addr = "127.0.0.1", .memory_max = MEMORY };
	struct failure why = { 0 };
	struct store second;
	struct stage st;
	char part[128], own[16];

	(void)state;
	process_command(getpid(), own); /* valgrind's, where that runs us */
	stage_open(&st, "127.0.0.1", MEMORY);
	c.port = store_port(&st.store);
	assert_int_equal(store_open(&second, &st.loop, &c, &why), -EADDRINUSE);
	(void)snprintf(part, sizeof part,
		"the store can't listen on 127.0.0.1 port %u: %s (pid %d) listens there", c.port,
		own, (int)getpid());
	assert_string_equal(why.text, part);
	stage_close(&st);
}

static void test_close_on_exec(void **state)
{
	int before[64], fd;
	struct stage st;

	(void)state;
	for (int i = 0; i < 64; i++)
		before[i] = fcntl(i, F_GETFD);
	stage_open(&st, "127.0.0.1", MEMORY);
	fd = dial_and_greet(&st);
	ask(&st, fd, "PING %1");
	hear(&st, fd, "%1");
	for (int i = 0; i < 64; i++)
		assert_true(before[i] >= 0 || fcntl(i, F_GETFD) != 0);
	(void)close(fd);
	stage_close(&st);
}

int main(void)
{
	static struct suite s;

	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return 1;
	suite_add(&s, "clients ask, wait and go", test_talk, NULL, NULL);
	suite_add(&s, "an IPv6 address", test_ipv6, NULL, NULL);
	suite_add(&s, "only nodes of the job may come in, others are noted once", test_strangers,
		NULL, NULL);
	suite_add(&s, "a bad client goes alone, with a note", test_bad_client, NULL, NULL);
	suite_add(&s, "notes have an end", test_note_flood, NULL, NULL);
	suite_add(
		&s, "a new attempt begins with nothing of the old", test_next_attempt, NULL, NULL);
	suite_add(&s, "a hundred attempts on one port", test_many_attempts, NULL, NULL);
	suite_add(&s, "one that asks and never reads", test_never_reads, NULL, NULL);
	suite_add(&s, "a large answer to a slow reader", test_slow_reader, NULL, NULL);
	suite_add(&s, "one that watches and never reads", test_watcher_never_reads, NULL, NULL);
	suite_add(&s, "four hundred clients at a barrier", test_many_clients, NULL, NULL);
	suite_add(&s, "no descriptor left", test_no_descriptors, NULL, NULL);
	suite_add(&s, "clients that go while they are answered", test_sudden_end, NULL, NULL);
	suite_add(&s, "a request that the memory does not hold", test_memory, NULL, NULL);
	SUITE_ROWS(&s, test_open, opens);
	suite_add(&s, "a port in use: by whom", test_port_in_use, NULL, NULL);
	suite_add(&s, "all descriptors close on exec", test_close_on_exec, NULL, NULL);
	return suite_run(&s);
}
