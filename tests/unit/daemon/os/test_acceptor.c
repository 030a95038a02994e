/* test_acceptor.c - connections that wait, with a descriptor for each and without. */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/address.h"
#include "daemon/os/acceptor.h"
#include "daemon/os/port.h"

enum { MANY = 100, AT_ONCE = 64 };

struct fixture {
	struct acceptor acceptor;
	struct rlimit limit;
	int listening, clients[MANY], accepted[MANY];
	unsigned client_count, accepted_count, dropped, asked;
	bool has_room, closes;
};

static void on_connection(struct acceptor *a, int fd, const struct address *from)
{
	struct fixture *f = a->owner;

	assert_int_equal(from->any.sa_family, AF_INET);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	f->accepted[f->accepted_count++] = fd;
	if (f->closes)
		acceptor_close(a);
}

static bool make_room(struct acceptor *a)
{
	struct fixture *f = a->owner;

	f->asked++;
	if (f->has_room)
		fd_closep(&f->accepted[--f->accepted_count]);
	return f->has_room;
}

static void on_dropped(struct acceptor *a)
{
	((struct fixture *)a->owner)->dropped++;
}

static void make(struct fixture *f)
{
	const struct address at = { .v4 = { .sin_family = AF_INET,
					    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };

	*f = (struct fixture){ .acceptor = { .on_connection = on_connection,
				       .make_room = make_room,
				       .on_dropped = on_dropped,
				       .owner = f } };
	f->listening = port_bind(&at, 0, SOCK_STREAM, 0);
	assert_true(f->listening >= 0);
	assert_int_equal(listen(f->listening, MANY), 0);
	acceptor_open(&f->acceptor);
	assert_true(f->acceptor.spare >= 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &f->limit), 0);
}

static void dial(struct fixture *f)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_port = htons((in_port_t)port_of(f->listening)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof at), 0);
	f->clients[f->client_count++] = fd;
}

/* No descriptor is left: all below the newest are taken, as they were given out in order. */
static void take_all(const struct fixture *f)
{
	struct rlimit none = f->limit;

	none.rlim_cur = (rlim_t)f->clients[f->client_count - 1] + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
}

static void done(struct fixture *f)
{
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &f->limit), 0);
	acceptor_close(&f->acceptor);
	acceptor_close(&f->acceptor);
	assert_int_equal(f->acceptor.spare, -1);
	for (unsigned i = 0; i < f->client_count; i++)
		(void)close(f->clients[i]);
	for (unsigned i = 0; i < f->accepted_count; i++)
		(void)close(f->accepted[i]);
	(void)close(f->listening);
}

static void test_many(void **state)
{
	struct fixture f;

	(void)state;
	make(&f);
	assert_false(acceptor_run(&f.acceptor, f.listening)); /* nobody waits */
	for (int i = 0; i < MANY; i++)
		dial(&f);
	assert_true(acceptor_run(&f.acceptor, f.listening));
	assert_int_equal(f.accepted_count, AT_ONCE);
	assert_false(acceptor_run(&f.acceptor, f.listening));
	assert_int_equal(f.accepted_count, MANY);
	assert_int_equal(f.dropped + f.asked, 0);
	done(&f);
}

static void test_dropped(void **state)
{
	struct fixture f;
	char byte;

	(void)state;
	make(&f);
	dial(&f);
	dial(&f);
	take_all(&f);
	assert_false(acceptor_run(&f.acceptor, f.listening)); /* it comes to an end */
	assert_int_equal(f.dropped, 2);
	assert_int_equal(f.accepted_count, 0);
	assert_true(f.acceptor.spare >= 0); /* for the next one */
	assert_int_equal(recv(f.clients[0], &byte, 1, 0), 0);
	assert_int_equal(recv(f.clients[1], &byte, 1, 0), 0);
	done(&f);
}

static void test_nobody_waits(void **state)
{
	struct fixture f;

	(void)state;
	make(&f);
	dial(&f);
	assert_false(acceptor_run(&f.acceptor, f.listening));
	take_all(&f);
	assert_false(acceptor_run(&f.acceptor, f.listening));
	assert_int_equal(f.dropped + f.asked, 0);
	assert_true(f.acceptor.spare >= 0);
	done(&f);
}

static void test_room(void **state)
{
	struct fixture f;

	(void)state;
	make(&f);
	dial(&f);
	assert_false(acceptor_run(&f.acceptor, f.listening));
	dial(&f);
	take_all(&f);
	f.has_room = true;
	assert_false(acceptor_run(&f.acceptor, f.listening));
	assert_int_equal(f.asked, 1); /* only while somebody waits */
	assert_int_equal(f.accepted_count, 1);
	assert_int_equal(f.dropped, 0);
	done(&f);
}

static void test_closed_meanwhile(void **state)
{
	struct fixture f;

	(void)state;
	make(&f);
	dial(&f);
	dial(&f);
	f.closes = true;
	assert_false(acceptor_run(&f.acceptor, f.listening));
	assert_int_equal(f.accepted_count, 1);
	done(&f);
}

TESTS(acceptor)
{
	static struct suite s;

	suite_add(&s, "many that wait are accepted in turns", test_many, NULL, NULL);
	suite_add(&s, "no descriptor is left: they are closed", test_dropped, NULL, NULL);
	suite_add(&s, "no descriptor is left, but nobody waits", test_nobody_waits, NULL, NULL);
	suite_add(&s, "the owner gives up a descriptor of its own", test_room, NULL, NULL);
	suite_add(&s, "the owner closes it at the first connection", test_closed_meanwhile, NULL,
		NULL);
	return suite_run(&s);
}
