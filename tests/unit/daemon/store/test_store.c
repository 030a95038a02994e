/* test_store.c - the store and its clients by real sockets. */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/os/procfs.h"
#include "daemon/store/client.h"
#include "tests/unit/daemon/store/store_fixture.h"

static void test_talk(void **state)
{
	struct store_fixture st;
	int a, b;

	(void)state;
	store_fixture_open(&st, "127.0.0.1", FIXTURE_MEMORY);
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
	assert_int_equal(store_keys(&st.store), 1);
	(void)close(a);
	(void)close(b);
	settle(&st);
	assert_true(LIST_EMPTY(&st.store.clients));
	store_fixture_close(&st);
	assert_int_equal(st.note_count, 0);
}

/* Waits until all that was sent has come to the store, which does not run meanwhile. */
static void wait_until_there(int fd)
{
	int left = 0;

	for (int ms = 0; ioctl(fd, SIOCOUTQ, &left) == 0 && left > 0; ms++) {
		assert_true(ms < 60000);
		(void)usleep(1000);
	}
}

static const struct order_row {
	const char *says, *first, *second, *length;
} orders[] = {
	{ "a value that takes several reads", "SET other v", "SET k *100000", "#100000" },
	{ "a value behind as much as one read takes", "SET other *65514", "SET k later", "#5" },
};

/* Who asks when a value has come whole is told that value, however many reads it takes. */
static void test_order(void **state)
{
	const struct order_row *row = *state;
	const int room = 200000;
	struct store_fixture st;
	int a, b;

	store_fixture_open(&st, "127.0.0.1", FIXTURE_MEMORY);
	assert_int_equal(
		setsockopt(st.store.listener, SOL_SOCKET, SO_RCVBUF, &room, sizeof room), 0);
	a = dial_and_greet(&st);
	b = dial_and_greet(&st);
	assert_int_equal(setsockopt(a, SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
	ask(&st, a, "SET k old");
	settle(&st);
	ask(&st, a, row->first);
	ask(&st, a, row->second);
	wait_until_there(a);
	ask(&st, b, "GET k");
	wait_until_there(b);
	hear(&st, b, row->length);
	(void)close(a);
	(void)close(b);
	store_fixture_close(&st);
}

static void test_ipv6(void **state)
{
	struct sockaddr_in6 in = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct store_fixture st;

	(void)state;
	if (fd < 0 || bind(fd, (struct sockaddr *)&in, sizeof in) < 0) {
		(void)close(fd);
		needs(false, "IPv6");
	}
	store_fixture_open(&st, "::1", FIXTURE_MEMORY);
	in.sin6_port = htons((uint16_t)store_port(&st.store));
	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
	ask(&st, fd, "VALIDATE %0x3c85f7ce");
	ask(&st, fd, "ADD n #3");
	hear(&st, fd, "#3");
	(void)close(fd);
	store_fixture_close(&st);
}

static void test_strangers(void **state)
{
	struct address a;
	struct store_fixture st;
	int fd;

	(void)state;
	store_fixture_open(&st, "127.0.0.1", FIXTURE_MEMORY);
	st.store.peers.loopback = false; /* as if 127.0.0.2 were another host */
	for (int i = 0; i < 3; i++)
		hear_end(&st, dial(&st, "127.0.0.1", "127.0.0.2"));
	hear_end(&st, dial(&st, "127.0.0.1", "127.0.0.3"));
	assert_int_equal(st.note_count, 2);
	assert_contains(st.notes[0], "127.0.0.2:");
	assert_contains(st.notes[0], "is not a node of this job");
	assert_contains(st.notes[1], "127.0.0.3:");
	assert_int_equal(address_parse("127.0.0.2", 0, &a), 0);
	assert_int_equal(store_allow(&st.store, &a), 0);
	fd = dial(&st, "127.0.0.1", "127.0.0.2");
	ask(&st, fd, "VALIDATE %0x3c85f7ce");
	ask(&st, fd, "PING %1");
	hear(&st, fd, "%1");
	(void)close(fd);
	store_fixture_close(&st);
}

/* A store on all addresses, by IPv4 and IPv6, for nodes only or for whoever comes. */
static void test_all_addresses(void **state)
{
	static const bool opens[] = { false, true };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct store_fixture st;
		int fd;

		store_fixture_open(&st, NULL, FIXTURE_MEMORY);
		st.store.config.open = opens[i];
		assert_true(st.store.peers.loopback); /* a name may be 127.0.1.1 here */
		st.store.peers.loopback = false;      /* as if 127.0.0.2 were another host */
		fd = dial(&st, "127.0.0.1", "127.0.0.2");
		if (opens[i]) {
			ask(&st, fd, "VALIDATE %0x3c85f7ce");
			ask(&st, fd, "PING %1");
			hear(&st, fd, "%1");
			(void)close(fd);
		} else {
			hear_end(&st, fd);
		}
		fd = dial(&st, "127.0.0.3", "127.0.0.3");
		ask(&st, fd, "VALIDATE %0x3c85f7ce");
		ask(&st, fd, "PING %1");
		hear(&st, fd, "%1");
		(void)close(fd);
		store_next_attempt(&st.store);
		fd = dial_and_greet(&st);
		ask(&st, fd, "PING %2");
		hear(&st, fd, "%2");
		(void)close(fd);
		store_fixture_close(&st);
		assert_int_equal(st.note_count, opens[i] ? 0 : 1);
	}
}

static void test_bad_client(void **state)
{
	struct store_fixture st;
	int bad, good;

	(void)state;
	store_fixture_open(&st, "127.0.0.1", FIXTURE_MEMORY);
	good = dial_and_greet(&st);
	bad = dial_and_greet(&st);
	ask(&st, bad, "SET *8193 v");
	hear_end(&st, bad);
	assert_int_equal(st.note_count, 1);
	assert_contains(st.notes[0], "the store closed the connection from 127.0.0.1:");
	assert_contains(st.notes[0], "SET has a key of 8193");
	bad = dial(&st, "127.0.0.1", "127.0.0.1");
	assert_int_equal(send(bad, "GET / HTTP/1.1\r\n", 16, 0), 16);
	hear_end(&st, bad);
	assert_contains(st.notes[1], "does not begin as clients of torch 2.2 and later do");
	ask(&st, good, "PING %1");
	hear(&st, good, "%1");
	assert_int_equal(store_clients(&st.store), 2);
	(void)close(good);
	store_fixture_close(&st);
}

/* A new attempt has no key of the old one, whose connections are closed, waiting ones too. */
static void test_next_attempt(void **state)
{
	struct store_fixture st;
	int old, waiting, backlog, new;
	unsigned port;

	(void)state;
	store_fixture_open(&st, "127.0.0.1", FIXTURE_MEMORY);
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
	store_fixture_close(&st);
	assert_int_equal(st.note_count, 0);
}

/* The port is open from the first attempt to the last, and nobody can share it. */
static void test_many_attempts(void **state)
{
	struct failure why = { 0 };
	struct store_config c = { .addr = "127.0.0.1", .memory_max = FIXTURE_MEMORY };
	struct store second;
	struct store_fixture st;

	(void)state;
	store_fixture_open(&st, "127.0.0.1", FIXTURE_MEMORY);
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
	store_fixture_close(&st);
}

static const struct open_row {
	const char *says, *addr, *part;
	int rc;
} opens[] = {
	{ "a name is no address", "localhost",
		"the store can't listen at \"localhost\": it is not an IP address", -EINVAL },
	{ "an address of another host", "192.0.2.1", "can't listen at 192.0.2.1: Cannot assign",
		-EADDRNOTAVAIL },
};

static void test_open(void **state)
{
	const struct open_row *row = *state;
	struct store_config c = { .addr = row->addr, .memory_max = FIXTURE_MEMORY };
	struct failure why = { 0 };
	struct store store;
	uv_loop_t loop;

	assert_int_equal(uv_loop_init(&loop), 0);
	assert_outcome(store_open(&store, &loop, &c, &why), row->rc, &why, row->part);
	assert_int_equal(uv_loop_close(&loop), 0);
}

static void test_port_in_use(void **state)
{
	struct store_config c = { .addr = "127.0.0.1", .memory_max = FIXTURE_MEMORY };
	struct failure why = { 0 };
	struct store second;
	struct store_fixture st;
	char part[128], own[16];

	(void)state;
	process_command(getpid(), own); /* valgrind's, where that runs us */
	store_fixture_open(&st, "127.0.0.1", FIXTURE_MEMORY);
	c.port = store_port(&st.store);
	assert_int_equal(store_open(&second, &st.loop, &c, &why), -EADDRINUSE);
	(void)snprintf(part, sizeof part,
		"the store can't listen at 127.0.0.1:%u: %s (pid %d) listens there", c.port, own,
		(int)getpid());
	assert_string_equal(why.text, part);
	store_fixture_close(&st);
}

static void test_close_on_exec(void **state)
{
	int before[64], fd;
	struct store_fixture st;

	(void)state;
	for (int i = 0; i < 64; i++)
		before[i] = fcntl(i, F_GETFD);
	store_fixture_open(&st, "127.0.0.1", FIXTURE_MEMORY);
	fd = dial_and_greet(&st);
	ask(&st, fd, "PING %1");
	hear(&st, fd, "%1");
	for (int i = 0; i < 64; i++)
		assert_true(before[i] >= 0 || fcntl(i, F_GETFD) != 0);
	(void)close(fd);
	store_fixture_close(&st);
}

static void test_edges(void **state)
{
	(void)state;
	assert_life(&client_life,
		(const char *const[]){ "reading: writing lost left", "writing: reading lost left",
			"lost: left", "left:", NULL });
}

TESTS(store)
{
	static struct suite s;

	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return 1;
	suite_add(&s, "clients ask, wait and go", test_talk, NULL, NULL);
	SUITE_ROWS(&s, test_order, orders);
	suite_add(&s, "on all addresses", test_all_addresses, NULL, NULL);
	suite_add(&s, "an IPv6 address", test_ipv6, NULL, NULL);
	suite_add(&s, "only nodes of the job may come in, others are noted once", test_strangers,
		NULL, NULL);
	suite_add(&s, "a bad client goes alone, with a note", test_bad_client, NULL, NULL);
	suite_add(
		&s, "a new attempt begins with nothing of the old", test_next_attempt, NULL, NULL);
	suite_add(&s, "a hundred attempts on one port", test_many_attempts, NULL, NULL);
	SUITE_ROWS(&s, test_open, opens);
	suite_add(&s, "a port in use: by whom", test_port_in_use, NULL, NULL);
	suite_add(&s, "all descriptors close on exec", test_close_on_exec, NULL, NULL);
	suite_add(&s, "the states of a client", test_edges, NULL, NULL);
	return suite_run(&s);
}
