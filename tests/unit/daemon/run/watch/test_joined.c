/* test_joined.c - which processes are connected to a store, as the kernel lists them. */
#include "tests/unit/daemon/workers/process_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/run/watch/joined.h"

enum { MANY = 70 /* more than there is room for at first */ };

/* A server on a free port of the loopback interface. */
struct store {
	int fd;
	unsigned port;
};

static struct store store, other;

static struct store store_on_ipv4(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof in;
	struct store s = { .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };

	(void)bind(s.fd, (struct sockaddr *)&in, sizeof in);
	(void)listen(s.fd, 2 * MANY);
	(void)getsockname(s.fd, (struct sockaddr *)&in, &len);
	s.port = ntohs(in.sin_port);
	return s;
}

/* fd -1: there is no IPv6 here. */
static struct store store_on_ipv6(void)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	socklen_t len = sizeof in6;
	struct store s = { .fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0) };

	if (s.fd < 0 || bind(s.fd, (struct sockaddr *)&in6, sizeof in6) < 0)
		return (struct store){ .fd = -1 };
	(void)listen(s.fd, 1);
	(void)getsockname(s.fd, (struct sockaddr *)&in6, &len);
	s.port = ntohs(in6.sin6_port);
	return s;
}

static int dial(const struct store *s)
{
	const struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)s->port),
		.sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (const struct sockaddr *)&in, sizeof in) < 0)
		_exit(99);
	return fd;
}

static int dial_ipv6(const struct store *s, const char *address)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
		.sin6_port = htons((uint16_t)s->port) };
	int fd = socket(AF_INET6, SOCK_STREAM, 0);

	(void)inet_pton(AF_INET6, address, &in6.sin6_addr);
	if (connect(fd, (const struct sockaddr *)&in6, sizeof in6) < 0)
		_exit(99);
	return fd;
}

/* What actors do; each waits then. */
static void connected(void)
{
	(void)dial(&store);
	act_wait();
}

/* By IPv4 in an IPv6 socket, as torch does. */
static void connected_as_torch(void)
{
	(void)dial_ipv6(&store, "::ffff:127.0.0.1");
	act_wait();
}

static void connected_by_ipv6(void)
{
	(void)dial_ipv6(&store, "::1");
	act_wait();
}

static void connected_elsewhere(void)
{
	(void)dial(&other);
	act_wait();
}

static void connected_often(void)
{
	for (int i = 0; i < MANY; i++)
		(void)dial(&store);
	act_wait();
}

static void connected_once(void)
{
	(void)close(dial(&store));
	act_wait();
}

/* The other end of a connection that is there. */
static void asked(void)
{
	if (accept4(store.fd, NULL, NULL, SOCK_CLOEXEC) < 0)
		_exit(99);
	act_wait();
}

/* As a wrapper has its program. */
static void parent_of_connected(void)
{
	shared_numbers[0] = actor_start(ACTOR_SESSION, connected);
	act_wait();
}

static void in_another_network(void)
{
	shared_numbers[0] = unshare(CLONE_NEWNET);
	act_wait();
}

static bool has_joined(pid_t pid)
{
	bool joined = false;

	return joined_look(&pid, 1, "127.0.0.1", store.port, &joined) == 0 && joined;
}

static const char *part_connected(void)
{
	bool joined[4] = { false };
	pid_t pids[4];

	store = store_on_ipv4();
	other = store_on_ipv4();
	pids[0] = actor_start(ACTOR_CHILD, connected);
	pids[1] = actor_start(ACTOR_CHILD, act_wait);
	pids[2] = actor_start(ACTOR_CHILD, connected_elsewhere);
	pids[3] = actor_start(ACTOR_CHILD, connected);
	HOLDS(joined_look(pids, 4, "127.0.0.1", store.port, joined) == 0, "it can be seen");
	HOLDS(joined[0] && joined[3], "those that are connected");
	HOLDS(!joined[1] && !joined[2], "no others");
	HOLDS(joined_look(pids, 4, "127.0.0.2", store.port, joined) == 0, "it can be seen");
	HOLDS(!joined[0], "another address");
	return NULL;
}

static const char *part_ipv6(void)
{
	bool joined = false;
	pid_t pid;

	store = store_on_ipv6();
	if (store.fd < 0)
		return NEEDS "IPv6";
	pid = actor_start(ACTOR_CHILD, connected_by_ipv6);
	HOLDS(joined_look(&pid, 1, "::1", store.port, &joined) == 0 && joined, "by IPv6");
	store = store_on_ipv4();
	HOLDS(has_joined(actor_start(ACTOR_CHILD, connected_as_torch)), "by IPv4 in IPv6");
	return NULL;
}

static const char *part_below(void)
{
	pid_t pid;

	store = store_on_ipv4();
	pid = actor_start(ACTOR_CHILD, parent_of_connected);
	HOLDS(has_joined(pid), "it has, by its child");
	(void)kill(shared_numbers[0], SIGKILL);
	actor_await(shared_numbers[0], 'Z');
	HOLDS(!has_joined(pid), "not any more");
	return NULL;
}

static const char *part_no_more(void)
{
	pid_t pid;

	store = store_on_ipv4();
	HOLDS(!has_joined(actor_start(ACTOR_CHILD, connected_once)), "it has closed that");
	pid = actor_start(ACTOR_CHILD, connected);
	(void)kill(pid, SIGKILL);
	actor_await(pid, 'Z');
	HOLDS(!has_joined(pid), "it has ended");
	(void)actor_reap(pid);
	HOLDS(!has_joined(pid), "it is gone");
	return NULL;
}

static const char *part_store_itself(void)
{
	pid_t worker, host;

	store = store_on_ipv4();
	worker = actor_start(ACTOR_CHILD, connected);
	host = actor_start(ACTOR_CHILD, asked);
	HOLDS(has_joined(worker), "who asks has joined");
	HOLDS(!has_joined(host), "who is asked has not");
	return NULL;
}

static const char *part_many(void)
{
	bool joined[3] = { false };
	pid_t pids[3];

	store = store_on_ipv4();
	pids[0] = actor_start(ACTOR_CHILD, connected);
	pids[1] = actor_start(ACTOR_CHILD, connected_often);
	pids[2] = actor_start(ACTOR_CHILD, connected);
	HOLDS(joined_look(pids, 3, "127.0.0.1", store.port, joined) == 0, "it can be seen");
	HOLDS(joined[0] && joined[1] && joined[2], "all of them");
	return NULL;
}

static const char *part_other_network(void)
{
	bool joined[3] = { false };
	pid_t pids[3];

	store = store_on_ipv4();
	pids[0] = actor_start(ACTOR_CHILD, connected);
	pids[1] = actor_start(ACTOR_CHILD, in_another_network);
	if (shared_numbers[0] < 0)
		return NEEDS "the right to make network namespaces";
	pids[2] = actor_start(ACTOR_CHILD, connected);
	HOLDS(joined_look(pids, 3, "127.0.0.1", store.port, joined) == 0, "it can be seen");
	HOLDS(joined[0] && !joined[1] && joined[2], "each by its own network's list");
	return NULL;
}

/* It is the port that counts. */
static const char *part_named(void)
{
	bool joined[2] = { false };
	pid_t pids[2];

	store = store_on_ipv4();
	other = store_on_ipv4();
	pids[0] = actor_start(ACTOR_CHILD, connected_elsewhere);
	pids[1] = actor_start(ACTOR_CHILD, connected);
	HOLDS(joined_look(pids, 2, "node-0.example", store.port, joined) == 0, "it can be seen");
	HOLDS(!joined[0] && joined[1], "who is connected to that port");
	HOLDS(joined_look(pids, 2, "node-0.example", store.port - 1, joined) == 0 && !joined[1],
		"another port is another service's");
	return NULL;
}

static const char *part_nobody(void)
{
	bool joined = true;
	pid_t pid = getpid();

	HOLDS(joined_look(&pid, 0, "127.0.0.1", 1, &joined) == 0 && joined, "of nobody, nothing");
	return NULL;
}

/* Strangers may have the same numbers. */
static const char *without_proc(void)
{
	bool joined = true;
	pid_t pid = getpid();

	HOLDS(joined_look(&pid, 1, "127.0.0.1", store.port, &joined) == -ENOENT,
		"it can't be seen");
	HOLDS(joined, "untouched");
	return NULL;
}

static const char *part_foreign_proc(void)
{
	store = store_on_ipv4();
	return play_without_proc(true, without_proc);
}

static const char *part_no_proc(void)
{
	store = store_on_ipv4();
	return play_without_proc(false, without_proc);
}

static const struct process_row rows[] = {
	{ "who is connected to that port of that address", part_connected, false },
	{ "by IPv6, and by IPv4 in an IPv6 socket", part_ipv6, false },
	{ "who has a child that is", part_below, false },
	{ "nobody whose connection or life is over", part_no_more, false },
	{ "not the store", part_store_itself, false },
	{ "each of many connections counts", part_many, false },
	{ "another network has connections of its own", part_other_network, true },
	{ "a store that has a name", part_named, false },
	{ "of nobody, nothing", part_nobody, false },
	{ "/proc is another pid namespace's", part_foreign_proc, false },
	{ "there is no /proc", part_no_proc, false },
};

TESTS(joined)
{
	static struct suite s;

	process_suite_add(&s, rows, sizeof rows / sizeof *rows);
	return suite_run(&s);
}
