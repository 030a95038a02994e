/* test_port.c - a port that nobody else takes. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/os/port.h"

/* Binds and listens at the port; 0 or the errno of the first that fails. */
static int listen_at(int family, unsigned port, bool reuse)
{
	const int on = 1;
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((in_port_t)port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons((in_port_t)port) };
	const struct sockaddr *addr = family == AF_INET ?
		(const struct sockaddr *)(const void *)&v4 :
		(const struct sockaddr *)(const void *)&v6;
	autoclose fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	if (reuse)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, addr, family == AF_INET ? sizeof v4 : sizeof v6) < 0)
		return errno;
	return listen(fd, 1) < 0 ? errno : 0;
}

static const struct port_row {
	const char *says;
	int family;
	bool reuse;
	int error;
} ports[] = {
	{ "IPv4 with SO_REUSEADDR may listen there", AF_INET, true, 0 },
	{ "IPv4 without SO_REUSEADDR may not", AF_INET, false, EADDRINUSE },
	{ "IPv6 with SO_REUSEADDR may listen there", AF_INET6, true, 0 },
	{ "IPv6 without SO_REUSEADDR may not", AF_INET6, false, EADDRINUSE },
};

static void test_port(void **state)
{
	const struct port_row *row = *state;
	struct failure why = { 0 };
	int fd = -1, first, second, family = 0, listening = -1;
	socklen_t len = sizeof family;
	unsigned port = 0;

	assert_int_equal(port_reserve(&fd, &port, &why), 0);
	assert_true(fd > 2 && port > 0 && port < 65536);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	(void)getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len);
	(void)getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len);
	first = listen_at(row->family, port, row->reuse);
	second = listen_at(row->family, port, row->reuse); /* again, as a restarted rank 0 does */
	(void)close(fd);
	assert_int_equal(listening, 0);
	needs(row->family != AF_INET6 || family != AF_INET, "IPv6");
	assert_int_equal(first, row->error);
	assert_int_equal(second, row->error);
}

static void test_two_ports(void **state)
{
	struct failure why = { 0 };
	int fd[2] = { -1, -1 };
	unsigned port[2] = { 0, 0 };

	(void)state;
	assert_int_equal(port_reserve(&fd[0], &port[0], &why), 0);
	assert_int_equal(port_reserve(&fd[1], &port[1], &why), 0);
	(void)close(fd[0]);
	(void)close(fd[1]);
	assert_int_not_equal(port[0], port[1]);
}

/* A port is free, though connections of a process that has ended may still have it, until somebody
 * listens at any address. */
static void test_try(void **state)
{
	const struct sockaddr_in at = { .sin_family = AF_INET };
	autoclose fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in got;
	socklen_t len = sizeof got;

	(void)state;
	assert_int_equal(bind(fd, (const struct sockaddr *)(const void *)&at, sizeof at), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)(void *)&got, &len), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(port_try(ntohs(got.sin_port)), -EADDRINUSE);
	assert_int_equal(port_try(ntohs(got.sin_port)), -EADDRINUSE);
	fd_closep(&fd);
	assert_int_equal(port_try(ntohs(got.sin_port)), 0);
	assert_int_equal(port_try(ntohs(got.sin_port)), 0);
}

TESTS(port)
{
	struct suite s = { 0 };

	SUITE_ROWS(&s, test_port, ports);
	suite_add(&s, "two reservations are of two ports", test_two_ports, NULL, NULL);
	suite_add(&s, "a port is tried, and left free", test_try, NULL, NULL);
	return suite_run(&s);
}
