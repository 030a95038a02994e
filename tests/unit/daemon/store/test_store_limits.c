/* test_store_limits.c - clients that ask for too much, read too little, or go: others do not
 * notice. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/daemon/store/store_fixture.h"
#include "tests/unit/daemon/store/store_sim.h"

#define D STORE_DIALECT_D

enum { LONG = 100000, SEND_MAX = 1 << 20 };

/* Notes have an end, however many bad clients there are. */
static void test_note_flood(void **state)
{
	struct store_fixture st;

	(void)state;
	store_fixture_open(&st, "127.0.0.1", FIXTURE_MEMORY);
	for (int i = 0; i < 100; i++) {
		int bad = dial_and_greet(&st);

		ask(&st, bad, "SET *8193 v");
		hear_end(&st, bad);
	}
	assert_int_equal(st.note_count, 33);
	assert_contains(st.notes[32], "reports no further connections that it closes");
	store_fixture_close(&st);
}

/* One that asks for much and reads nothing costs one answer; the others do not notice. */
static void test_never_reads(void **state)
{
	struct store_fixture st;
	int lazy, good;
	size_t sent = 0;

	(void)state;
	store_fixture_open(&st, "127.0.0.1", FIXTURE_MEMORY);
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
	assert_true(LIST_EMPTY(&st.store.clients));
	store_fixture_close(&st);
}

/* A large answer comes whole to a slow reader, and what it asked meanwhile after it. */
static void test_slow_reader(void **state)
{
	enum { SIZE = 8000000 };
	struct store_fixture st;
	uint64_t len;
	char *got = malloc(SIZE + 8);
	size_t have = 0;
	int fd;

	(void)state;
	assert_non_null(got);
	store_fixture_open(&st, "127.0.0.1", FIXTURE_MEMORY);
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
	store_fixture_close(&st);
}

/* Reads a value of so many letters. */
static void hear_letters(struct store_fixture *st, int fd, size_t size)
{
	static char got[1 << 20];
	uint64_t len = 0;

	run_until_readable(st, fd);
	assert_int_equal(recv(fd, &len, sizeof len, MSG_WAITALL), sizeof len);
	assert_int_equal(len, size);
	while (size > 0) {
		ssize_t n;

		run_until_readable(st, fd);
		n = recv(fd, got, size < sizeof got ? size : sizeof got, 0);
		assert_true(n > 0);
		for (ssize_t i = 0; i < n; i += 1000)
			assert_true(got[i] == 'x');
		size -= (size_t)n;
	}
}

/* However many read a value, it is there once, and stays as it was asked for: also where it is
 * changed before all of them have it. */
static void test_many_readers(void **state)
{
	enum { READERS = 60, SIZE = 8000000 };
	struct store_fixture st;
	int fds[READERS], writer;

	(void)state;
	store_fixture_open(&st, "127.0.0.1", 40 << 20);
	writer = dial_and_greet(&st);
	ask(&st, writer, "SET k *8000000");
	for (int i = 0; i < READERS; i++) {
		fds[i] = dial_and_greet(&st);
		ask(&st, fds[i], "GET k");
	}
	settle(&st);
	assert_true(st.store.budget.used < 12 << 20);
	ask(&st, writer, "APPEND k *5");
	ask(&st, writer, "SET k *6");
	ask(&st, writer, "GET k");
	hear(&st, writer, "*6");
	for (int i = 0; i < READERS; i++) {
		hear_letters(&st, fds[i], SIZE);
		(void)close(fds[i]);
	}
	settle(&st);
	assert_true(st.store.budget.used < 1 << 20);
	(void)close(writer);
	store_fixture_close(&st);
	assert_int_equal(st.note_count, 0);
}

/* Lets the store work until it has nothing to do. Returns after how many turns somebody had to
 * wait for another. */
static unsigned run_turns(struct store_fixture *st)
{
	unsigned turns = 0;

	for (unsigned idle = 0; idle < 20; idle++) {
		(void)uv_run(&st->loop, UV_RUN_NOWAIT);
		assert_true(st->store.turn > -2 * STORE_VALUE_MAX);
		if (TAILQ_EMPTY(&st->store.waiting))
			continue;
		turns++;
		idle = 0;
	}
	return turns;
}

static const struct turns_row {
	const char *says, *request;
	unsigned times; /* that each client sends it */
	uint64_t cost;  /* of all of them, at the least */
} turns[] = {
	{ "values that the sockets take at once", "GET k", 1, 40ULL * STORE_TURN },
	{ "requests that came in one packet", "GETNUMKEYS", 4000,
		100ULL * 4000 * STORE_REQUEST_COST },
	{ "keys of one request", "CHECK @8 a b c d e f g h", 400,
		100ULL * 400 * 8 * STORE_REQUEST_COST },
};

/* Whatever a hundred clients ask for at the same time is divided: timers have their turn. */
static void test_turns(void **state)
{
	enum { CLIENTS = 100 };
	const struct turns_row *row = *state;
	struct store_fixture st;
	int fds[CLIENTS], in_sockets = 0;
	unsigned count;

	store_fixture_open(&st, "127.0.0.1", FIXTURE_MEMORY);
	fds[0] = dial_and_greet(&st);
	ask(&st, fds[0], "SET k *8000000");
	ask(&st, fds[0], "PING %1");
	hear(&st, fds[0], "%1");
	for (int i = 1; i < CLIENTS; i++)
		fds[i] = dial_and_greet(&st);
	settle(&st);
	for (int i = 0; i < CLIENTS; i++) {
		struct text bytes = { 0 };

		for (unsigned j = 0; j < row->times; j++)
			wire_request(&bytes, D, row->request);
		assert_int_equal(send(fds[i], bytes.at, bytes.len, MSG_NOSIGNAL), bytes.len);
		text_done(&bytes);
	}
	count = run_turns(&st);
	for (int i = 0; i < CLIENTS; i++) {
		int here = 0;

		assert_int_equal(ioctl(fds[i], FIONREAD, &here), 0);
		in_sockets += here;
	}
	assert_true(in_sockets > 0);
	assert_true(count + 1 >= row->cost / STORE_TURN);
	assert_true(count + 1 >= (unsigned)in_sockets / (STORE_TURN + SEND_MAX));
	for (int i = 0; i < CLIENTS; i++)
		(void)close(fds[i]);
	store_fixture_close(&st);
	assert_int_equal(st.note_count, 0);
}

/* Clients that wait for their turn keep the order in which they came, whoever was sent something
 * meanwhile. */
static void test_order_in_turns(void **state)
{
	struct store_fixture st;
	struct text many = { 0 };
	int first, busy, writer, reader;

	(void)state;
	store_fixture_open(&st, "127.0.0.1", FIXTURE_MEMORY);
	first = dial_and_greet(&st);
	busy = dial_and_greet(&st);
	writer = dial_and_greet(&st);
	reader = dial_and_greet(&st);
	ask(&st, first, "SET k old");
	ask(&st, reader, "WAIT @1 ready");
	settle(&st);
	ask(&st, first, "SET ready 1");
	settle(&st);
	hear(&st, reader, "$0");
	for (int i = 0; i < 20000; i++)
		wire_request(&many, D, "GETNUMKEYS");
	assert_int_equal(send(busy, many.at, many.len, MSG_NOSIGNAL), many.len);
	text_done(&many);
	wire_request(&many, D, "SET k new");
	assert_int_equal(send(writer, many.at, many.len, MSG_NOSIGNAL), many.len);
	text_done(&many);
	wire_request(&many, D, "GET k");
	assert_int_equal(send(reader, many.at, many.len, MSG_NOSIGNAL), many.len);
	text_done(&many);
	hear(&st, reader, "new");
	(void)close(first);
	(void)close(busy);
	(void)close(writer);
	(void)close(reader);
	store_fixture_close(&st);
}

/* Large values are sent from where they lie: in their place between what is small. */
static void test_large_among_small(void **state)
{
	struct store_fixture st;
	int fd;

	(void)state;
	store_fixture_open(&st, "127.0.0.1", FIXTURE_MEMORY);
	fd = dial_and_greet(&st);
	ask(&st, fd, "SET a 1");
	ask(&st, fd, "SET k *20000");
	ask(&st, fd, "SET b 2");
	ask(&st, fd, "MULTI_GET @5 a k b k a");
	hear(&st, fd, "1 *20000 2 *20000 1");
	ask(&st, fd, "QUEUE_PUSH q *30000");
	ask(&st, fd, "QUEUE_POP q");
	hear(&st, fd, "#1 *30000");
	(void)close(fd);
	store_fixture_close(&st);
}

/* A client of torch 1 that watches the key "k". */
static int dial_and_watch(struct store_fixture *st)
{
	struct text bytes = { 0 };
	int fd;

	st->store.config.old = STORE_DIALECT_A;
	fd = dial(st, "127.0.0.1", "127.0.0.1");
	wire_request(&bytes, STORE_DIALECT_A, "WATCH_KEY k");
	assert_int_equal(send(fd, bytes.at, bytes.len, 0), bytes.len);
	text_done(&bytes);
	hear(st, fd, "$3");
	return fd;
}

/* Who watches a key and does not read is closed before it costs too much. */
static void test_watcher_never_reads(void **state)
{
	struct store_fixture st;
	int watcher, writer;

	(void)state;
	store_fixture_open(&st, "127.0.0.1", 256 << 20);
	watcher = dial_and_watch(&st);
	writer = dial_and_greet(&st);
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
	store_fixture_close(&st);
}

/* Sets the key to a value that is longer by one than the one before. */
static void set_longer(struct store_fixture *st, int fd, int i)
{
	char set[32];

	(void)snprintf(set, sizeof set, "SET k *%d", LONG + i);
	ask(st, fd, set);
	ask(st, fd, "PING %1");
	hear(st, fd, "%1");
}

static void hear_longer(struct store_fixture *st, int fd, int i)
{
	char told[48];

	(void)snprintf(told, sizeof told, "$0 k *%d *%d", LONG + i - 1, LONG + i);
	hear(st, fd, told);
}

/* One that is always behind by so many changes hears all of them, in turn, and costs what it is
 * behind, not what it has ever been told. */
static void test_watcher_reads_late(void **state)
{
	enum { BEHIND = 40, CHANGES = 400 };
	struct store_fixture st;
	const int little = 65536;
	int watcher, writer;

	(void)state;
	store_fixture_open(&st, "127.0.0.1", 256 << 20);
	writer = dial_and_greet(&st);
	set_longer(&st, writer, 0);
	watcher = dial_and_watch(&st);
	assert_int_equal(setsockopt(watcher, SOL_SOCKET, SO_RCVBUF, &little, sizeof little), 0);
	for (int i = 1; i <= CHANGES; i++) {
		set_longer(&st, writer, i);
		if (i > BEHIND)
			hear_longer(&st, watcher, i - BEHIND);
	}
	assert_true(st.store.budget.used < 40 << 20);
	for (int i = CHANGES - BEHIND + 1; i <= CHANGES; i++)
		hear_longer(&st, watcher, i);
	(void)close(watcher);
	(void)close(writer);
	store_fixture_close(&st);
	assert_int_equal(st.note_count, 0);
}

static void test_many_clients(void **state)
{
	enum { MANY = 400 };
	struct store_fixture st;
	int fds[MANY];

	(void)state;
	store_fixture_open(&st, "127.0.0.1", FIXTURE_MEMORY);
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
	store_fixture_close(&st);
}

/* Without a descriptor for it a connection is closed; the store neither spins nor dies of it. */
static void test_no_descriptors(void **state)
{
	struct rlimit was, low;
	const char *preload = getenv("LD_PRELOAD");
	struct store_fixture st;
	int a, b, next;

	(void)state;
	needs(!preload || !strstr(preload, "vgpreload"), "its own limits, not valgrind's");
	store_fixture_open(&st, "127.0.0.1", FIXTURE_MEMORY);
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
	assert_contains(st.notes[0], "out of file descriptors");
	ask(&st, a, "PING %1");
	hear(&st, a, "%1");
	(void)close(a);
	store_fixture_close(&st);
}

/* They go while the store writes to them. */
static void test_sudden_end(void **state)
{
	struct store_fixture st;
	int good;

	(void)state;
	store_fixture_open(&st, "127.0.0.1", FIXTURE_MEMORY);
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
	assert_true(LIST_EMPTY(&st.store.clients));
	store_fixture_close(&st);
	assert_int_equal(st.note_count, 0);
}

static void test_memory(void **state)
{
	struct store_fixture st;
	int greedy, good;

	(void)state;
	store_fixture_open(&st, "127.0.0.1", 1 << 20);
	good = dial_and_greet(&st);
	ask(&st, good, "SET k v");
	greedy = dial_and_greet(&st);
	ask(&st, greedy, "SET k *1100000");
	hear_end(&st, greedy);
	assert_contains(st.notes[0], "out of memory for its request (SET)");
	ask(&st, good, "GET k");
	hear(&st, good, "v");
	(void)close(good);
	store_fixture_close(&st);
}

TESTS(store_limits)
{
	static struct suite s;

	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return 1;
	suite_add(&s, "notes have an end", test_note_flood, NULL, NULL);
	suite_add(&s, "one that asks and never reads", test_never_reads, NULL, NULL);
	suite_add(&s, "a large answer to a slow reader", test_slow_reader, NULL, NULL);
	suite_add(&s, "many readers of a large value", test_many_readers, NULL, NULL);
	SUITE_ROWS(&s, test_turns, turns);
	suite_add(&s, "an order that turns keep", test_order_in_turns, NULL, NULL);
	suite_add(&s, "large values among small ones", test_large_among_small, NULL, NULL);
	suite_add(&s, "one that watches and never reads", test_watcher_never_reads, NULL, NULL);
	suite_add(&s, "one that watches and reads late", test_watcher_reads_late, NULL, NULL);
	suite_add(&s, "four hundred clients at a barrier", test_many_clients, NULL, NULL);
	suite_add(&s, "no descriptor left", test_no_descriptors, NULL, NULL);
	suite_add(&s, "clients that go while they are answered", test_sudden_end, NULL, NULL);
	suite_add(&s, "a request that the memory does not hold", test_memory, NULL, NULL);
	return suite_run(&s);
}
