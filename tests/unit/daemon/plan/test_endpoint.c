/* test_endpoint.c - HOST:PORT in all its forms, and addresses that must have no port. */
#include "tests/unit/unit.h"

#include <errno.h>

#include "daemon/plan/topology.h"

static const struct split_row {
	const char *says;
	const char *text;
	int rc;
	const char *host, *port; /* port NULL: none */
} splits[] = {
	{ "a host alone", "gpu01", 0, "gpu01", NULL },
	{ "a host and a port", "gpu01:29400", 0, "gpu01", "29400" },
	{ "an address and a port", "10.0.0.4:29400", 0, "10.0.0.4", "29400" },
	{ "IPv6 alone", "fe80::1", 0, "fe80::1", NULL },
	{ "IPv6 in brackets", "[fe80::1]", 0, "fe80::1", NULL },
	{ "IPv6 in brackets, and a port", "[fe80::1]:29400", 0, "fe80::1", "29400" },
	{ "what is IPv6 with its last group is read so", "::1:29400", 0, "::1", "29400" },
	{ "an empty port stays to be refused", "gpu01:", 0, "gpu01", "" },
	{ "nothing", "", -EINVAL, NULL, NULL },
	{ "a port alone", ":29400", -EINVAL, NULL, NULL },
	{ "an open bracket", "[fe80::1", -EINVAL, NULL, NULL },
	{ "empty brackets", "[]:29400", -EINVAL, NULL, NULL },
	{ "something else behind the bracket", "[fe80::1]29400", -EINVAL, NULL, NULL },
	{ "two ports", "gpu01:29400:1", -EINVAL, NULL, NULL },
};

static void test_split(void **state)
{
	const struct split_row *row = *state;
	const char *host = NULL, *port = NULL;
	struct arena arena = { 0 };

	assert_int_equal(endpoint_split(&arena, row->text, &host, &port), row->rc);
	if (row->rc == 0) {
		assert_string_equal(host, row->host);
		assert_true((port == NULL) == (row->port == NULL));
		if (port)
			assert_string_equal(port, row->port);
	}
	arena_done(&arena);
}

static const struct address_row {
	const char *says;
	const char *text;
	const char *addr; /* NULL: refused, */
	const char *why;  /* in these words */
} addresses[] = {
	{ "a name", "gpu01", "gpu01", NULL },
	{ "an IPv4 address", "10.0.0.4", "10.0.0.4", NULL },
	{ "an IPv6 address", "fe80::1", "fe80::1", NULL },
	{ "an IPv6 address with its zone", "fe80::1%eth0", "fe80::1%eth0", NULL },
	{ "brackets are no part of it", "[fe80::1]", "fe80::1", NULL },
	{ "a port", "gpu01:29400", NULL,
		"--x: \"gpu01:29400\" has a port; use --master_port 29400, and give the host alone "
		"here: gpu01" },
	{ "several addresses", "10.0.0.4 10.0.0.5", NULL, "is not one address" },
	{ "a list", "10.0.0.4,10.0.0.5", NULL, "is not one address" },
	{ "a URL", "tcp://gpu01:29400", NULL, "is a URL; leave out tcp://" },
	{ "neither", "gpu01:", NULL, "is not an address or the name of a host" },
};

static void test_address(void **state)
{
	const struct address_row *row = *state;
	struct failure why = { 0 };
	struct arena arena = { 0 };
	const char *addr = NULL;
	int rc = address_check("--x", row->text, &arena, &addr, &why);

	assert_outcome(rc, row->addr ? 0 : -EINVAL, &why, row->why);
	if (row->addr)
		assert_string_equal(addr, row->addr);
	else
		assert_int_equal(failure_exit_code(&why), 2);
	arena_done(&arena);
}

TESTS(endpoint)
{
	static struct suite s;

	SUITE_ROWS(&s, test_split, splits);
	SUITE_ROWS(&s, test_address, addresses);
	return suite_run(&s);
}
