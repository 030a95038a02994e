/* test_peers.c - who may use the store. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>

#include "daemon/os/peers.h"

static const struct address *address(const char *text, struct address *room)
{
	assert_int_equal(address_parse(text, 0, room), 0);
	return room;
}

static const struct peer_row {
	const char *says;
	const char *allowed;
	bool loopback;
	const char *from, *to;
	bool may;
} rows[] = {
	{ "a node of the job", "10.0.0.7", false, "10.0.0.7", "10.0.0.1", true },
	{ "a node of the job, by IPv6", "fd00::7", false, "fd00::7", "fd00::1", true },
	{ "an IPv4 node, on a socket of IPv6", "10.0.0.7", false, "::ffff:10.0.0.7",
		"::ffff:10.0.0.1", true },
	{ "somebody else", "10.0.0.7", false, "10.0.0.8", "10.0.0.1", false },
	{ "somebody else, by IPv6", "fd00::7", false, "fd00::8", "fd00::1", false },
	{ "this host, on its own address", NULL, false, "10.0.0.1", "10.0.0.1", true },
	{ "loopback to a store on loopback", NULL, true, "127.0.0.2", "127.0.0.1", true },
	{ "loopback to a store elsewhere", NULL, false, "127.0.0.2", "10.0.0.1", false },
	{ "IPv6's loopback", NULL, true, "::1", "::1", true },
};

static void test_may(void **state)
{
	const struct peer_row *row = *state;
	struct address a, b;
	struct peers p = { .loopback = row->loopback };

	for (int i = 0; i < 3 && row->allowed; i++)
		assert_int_equal(peers_allow(&p, address(row->allowed, &a)), 0);
	assert_int_equal(p.count, row->allowed != NULL);
	assert_int_equal(peers_may(&p, address(row->from, &a), address(row->to, &b)), row->may);
	peers_done(&p);
}

static void test_news(void **state)
{
	struct address a;
	struct peers p = { 0 };
	unsigned news = 0;

	(void)state;
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 200; i++) {
			char text[32];

			(void)snprintf(text, sizeof text, "10.0.1.%d", i);
			news += peers_is_news(&p, address(text, &a));
		}
	assert_int_equal(news, PEERS_TOLD_MAX);
	peers_done(&p);
}

static void test_other_family(void **state)
{
	const struct address un = { .any.sa_family = AF_UNIX };
	struct peers p = { 0 };

	(void)state;
	assert_int_equal(peers_allow(&p, &un), -EAFNOSUPPORT);
	assert_false(peers_may(&p, &un, &un));
	assert_false(peers_is_news(&p, &un));
}

static void test_many(void **state)
{
	struct address a, here;
	struct peers p = { 0 };
	char text[32];

	(void)state;
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(text, sizeof text, "10.1.%d.%d", i / 250, i % 250);
		assert_int_equal(peers_allow(&p, address(text, &a)), 0);
	}
	assert_int_equal(p.count, 1000);
	assert_true(peers_may(&p, address("10.1.3.249", &a), address("10.0.0.1", &here)));
	assert_false(peers_may(&p, address("10.1.4.0", &a), address("10.0.0.1", &here)));
	peers_done(&p);
}

TESTS(peers)
{
	static struct suite s;

	SUITE_ROWS(&s, test_may, rows);
	suite_add(&s, "each address is news once, and not without end", test_news, NULL, NULL);
	suite_add(&s, "neither IPv4 nor IPv6", test_other_family, NULL, NULL);
	suite_add(&s, "a thousand nodes", test_many, NULL, NULL);
	return suite_run(&s);
}
