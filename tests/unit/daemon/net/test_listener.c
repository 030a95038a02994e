/* test_listener.c - one port at several addresses, and what keeps it from being had. */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/net/listener.h"
#include "daemon/os/procfs.h"

struct listening {
	uv_loop_t loop;
	struct listener listener;
	struct link_auth auth;
	struct failure why;
	struct link link;
	unsigned accepted, closed, link_closed;
};

static void on_link_closed(struct link *l, const char *why)
{
	(void)why;
	((struct listening *)l->owner)->link_closed++;
}

static struct link *on_accept(struct listener *li)
{
	struct listening *b = li->owner;

	if (b->accepted++ > 0)
		return NULL;
	b->link = (struct link){ .on_closed = on_link_closed, .owner = b };
	return &b->link;
}

static void on_closed(struct listener *li)
{
	((struct listening *)li->owner)->closed++;
}

static void make(struct listening *b)
{
	*b = (struct listening){ .listener = { .on_accept = on_accept,
					 .on_closed = on_closed,
					 .owner = b,
					 .auth = &b->auth } };
	assert_int_equal(uv_loop_init(&b->loop), 0);
}

static void done(struct listening *b)
{
	link_close(&b->link, false, NULL);
	listener_close(&b->listener);
	listener_close(&b->listener); /* twice is once */
	(void)uv_run(&b->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&b->loop), 0);
}

static struct address loopback(uint8_t last, uint16_t port)
{
	return (struct address){ .v4 = { .sin_family = AF_INET,
					 .sin_port = htons(port),
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + last) } };
}

static int dial(const struct address *at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, &at->any, address_size(at)), 0);
	return fd;
}

/* A socket of this type, bound; its port. */
static int occupy(int type, uint16_t *ret_port)
{
	struct address at = loopback(1, 0);
	socklen_t len = sizeof at;
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, &at.any, address_size(&at)), 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, &at.any, &len), 0);
	*ret_port = address_port(&at);
	return fd;
}

static void test_several(void **state)
{
	const struct addresses both = { 2, { loopback(1, 0), loopback(2, 0) } };
	struct address at;
	struct listening b;
	char byte;
	int fd[2];

	(void)state;
	make(&b);
	assert_int_equal(listener_open(&b.listener, &b.loop, &both, 0, &b.why), 0);
	assert_int_equal(b.listener.count, 2);
	assert_true(b.listener.port != 0 && b.listener.has_udp);
	for (uint8_t i = 0; i < 2; i++) {
		at = loopback((uint8_t)(i + 1), b.listener.port);
		fd[i] = dial(&at);
		assert_int_equal(fcntl(b.listener.fd[i], F_GETFD), FD_CLOEXEC);
		assert_int_equal(fcntl(b.listener.udp[i], F_GETFD), FD_CLOEXEC);
	}
	while (b.accepted < 2)
		(void)uv_run(&b.loop, UV_RUN_ONCE);
	assert_int_equal(read(fd[1], &byte, 1), 0); /* its memory was refused */
	assert_int_equal(b.listener.pending, 1);
	listener_close(&b.listener);
	assert_int_equal(b.link.state, LINK_HELLO); /* it lives on */
	(void)close(fd[0]);
	(void)close(fd[1]);
	done(&b);
	assert_int_equal(b.link_closed, 1);
	assert_int_equal(b.closed, 1);
}

static const struct addresses any;

static void test_any(void **state)
{
	struct address at;
	struct listening b;
	int fd;

	(void)state;
	make(&b);
	assert_int_equal(listener_open(&b.listener, &b.loop, &any, 0, &b.why), 0);
	at = loopback(7, b.listener.port);
	fd = dial(&at);
	while (b.accepted < 1)
		(void)uv_run(&b.loop, UV_RUN_ONCE);
	assert_contains(b.link.peer, "127.0.0."); /* IPv4 as such */
	(void)close(fd);
	done(&b);
}

static void test_taken(void **state)
{
	const struct addresses both = { 2, { loopback(2, 0), loopback(1, 0) } };
	struct listening b;
	char part[128], own[16];
	uint16_t port;
	int fd = occupy(SOCK_STREAM, &port);

	(void)state;
	process_command(getpid(), own); /* valgrind's, where that runs us */
	make(&b);
	(void)snprintf(part, sizeof part, "can't listen at 127.0.0.1:%u: %s (pid %d) listens there",
		port, own, (int)getpid());
	assert_int_equal(listener_open(&b.listener, &b.loop, &both, port, &b.why), -EADDRINUSE);
	assert_string_equal(b.why.text, part);
	b.why = (struct failure){ 0 };
	(void)snprintf(part, sizeof part, "can't listen on port %u: %s (pid %d) listens there",
		port, own, (int)getpid());
	assert_int_equal(listener_open(&b.listener, &b.loop, &any, port, &b.why), -EADDRINUSE);
	assert_string_equal(b.why.text, part);
	assert_int_equal(b.listener.count, 0);
	for (unsigned i = 0; i < ADDRESSES_MAX; i++)
		assert_true(b.listener.fd[i] == -1 && b.listener.udp[i] == -1);
	(void)close(fd);
	done(&b);
	assert_int_equal(b.closed, 0); /* it was never open */
}

static void test_udp_taken(void **state)
{
	const struct addresses one = { 1, { loopback(1, 0) } };
	struct listening b;
	uint16_t port;
	int fd = occupy(SOCK_DGRAM, &port), rc;

	(void)state;
	make(&b);
	rc = listener_open(&b.listener, &b.loop, &one, port, &b.why);
	for (int i = 0; rc == -EADDRINUSE && i < 32; i++) { /* by TCP another test has it */
		(void)close(fd);
		fd = occupy(SOCK_DGRAM, &port);
		rc = listener_open(&b.listener, &b.loop, &one, port, &b.why);
	}
	assert_int_equal(rc, 0);
	assert_false(b.listener.has_udp);
	assert_int_equal(b.listener.port, port);
	(void)close(fd);
	done(&b);
}

static void test_nowhere(void **state)
{
	struct addresses one = { .count = 1 };
	struct listening b;

	(void)state;
	assert_int_equal(address_parse("192.0.2.1", 0, &one.at[0]), 0); /* nobody's */
	make(&b);
	assert_outcome(listener_open(&b.listener, &b.loop, &one, 0, &b.why), -EADDRNOTAVAIL, &b.why,
		"can't listen at 192.0.2.1: Cannot assign requested address");
	done(&b);
}

/* Without a descriptor for it a connection is dropped, not announced without end. */
static void test_no_descriptors(void **state)
{
	const struct addresses one = { 1, { loopback(1, 0) } };
	struct rlimit old, none;
	struct address at;
	struct listening b;
	char byte;
	int fd;

	(void)state;
	make(&b);
	assert_int_equal(listener_open(&b.listener, &b.loop, &one, 0, &b.why), 0);
	at = loopback(1, b.listener.port);
	fd = dial(&at);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = (rlim_t)fd + 1; /* none below is free: they were given out in order */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	while (recv(fd, &byte, 1, MSG_DONTWAIT) < 0)
		(void)uv_run(&b.loop, UV_RUN_ONCE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(b.accepted, 0);
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
	assert_true(b.listener.acceptor.spare >= 0); /* for the next one */
	(void)close(fd);
	done(&b);
}

/* ... and where somebody is there who has not said what he is, that one goes. */
static void test_descriptor_of_another(void **state)
{
	const struct addresses one = { 1, { loopback(1, 0) } };
	struct rlimit old, none;
	struct address at;
	struct listening b;
	int fd[2];

	(void)state;
	make(&b);
	assert_int_equal(listener_open(&b.listener, &b.loop, &one, 0, &b.why), 0);
	at = loopback(1, b.listener.port);
	fd[0] = dial(&at);
	while (b.accepted == 0)
		(void)uv_run(&b.loop, UV_RUN_ONCE);
	fd[1] = dial(&at);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = (rlim_t)fd[1] + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	while (b.accepted == 1)
		(void)uv_run(&b.loop, UV_RUN_ONCE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_true(b.link.state >= LINK_CLOSING);
	(void)close(fd[0]);
	(void)close(fd[1]);
	done(&b);
	assert_int_equal(b.link_closed, 1);
}

TESTS(listener)
{
	static struct suite s;

	suite_add(&s, "one port at several addresses", test_several, NULL, NULL);
	suite_add(&s, "any address, IPv4 and IPv6", test_any, NULL, NULL);
	suite_add(&s, "a port that is taken at one of the addresses", test_taken, NULL, NULL);
	suite_add(&s, "a port that is taken by UDP only", test_udp_taken, NULL, NULL);
	suite_add(&s, "an address that is not ours", test_nowhere, NULL, NULL);
	suite_add(&s, "no descriptor is left", test_no_descriptors, NULL, NULL);
	suite_add(&s, "no descriptor is left but those of strangers", test_descriptor_of_another,
		NULL, NULL);
	return suite_run(&s);
}
