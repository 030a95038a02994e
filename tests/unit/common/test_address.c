/* test_address.c - socket addresses as people read them. */
#include "tests/unit/unit.h"

#include <string.h>

#include "common/address.h"

static const struct address_row {
	const char *says;
	const char *host;
	uint16_t port;
	uint32_t scope;
	const char *text;
} rows[] = {
	{ "IPv4", "10.0.0.4", 41234, 0, "10.0.0.4:41234" },
	{ "the longest IPv4", "255.255.255.255", 65535, 0, "255.255.255.255:65535" },
	{ "IPv6", "fd00::1", 80, 0, "[fd00::1]:80" },
	{ "IPv6 of one link", "fe80::1", 80, 3, "[fe80::1%3]:80" },
	{ "the longest IPv6", "1111:2222:3333:4444:5555:6666:7777:8888", 65535, UINT32_MAX,
		"[1111:2222:3333:4444:5555:6666:7777:8888%4294967295]:65535" },
	{ "IPv4 in IPv6", "::ffff:10.0.0.4", 1, 0, "10.0.0.4:1" },
};

static struct address make(const char *host, uint16_t port, uint32_t scope)
{
	struct address a;

	assert_int_equal(address_parse(host, port, &a), 0);
	if (a.any.sa_family == AF_INET6)
		a.v6.sin6_scope_id = scope;
	return a;
}

static void test_text(void **state)
{
	const struct address_row *row = *state;
	struct address a = make(row->host, row->port, row->scope);
	char text[ADDRESS_TEXT];

	address_text(&a, text);
	assert_string_equal(text, row->text);
	assert_int_equal(address_port(&a), row->port);
}

static const struct host_row {
	const char *says;
	const char *a, *b;
	uint32_t scope; /* of b; that of a is 1 */
	bool same;
} hosts[] = {
	{ "one IPv4 address", "10.0.0.4", "10.0.0.4", 1, true },
	{ "two IPv4 addresses", "10.0.0.4", "10.0.0.5", 1, false },
	{ "IPv4, and the same in IPv6", "10.0.0.4", "::ffff:10.0.0.4", 1, true },
	{ "one IPv6 address", "fd00::1", "fd00::1", 1, true },
	{ "two IPv6 addresses", "fd00::1", "fd00::2", 1, false },
	{ "one IPv6 address at two links", "fe80::1", "fe80::1", 2, false },
	{ "one IPv6 address, at a link that is not told", "fe80::1", "fe80::1", 0, true },
	{ "IPv4 and IPv6", "10.0.0.4", "fd00::1", 1, false },
};

static void test_same(void **state)
{
	const struct host_row *row = *state;
	struct address a = make(row->a, 1, 1), b = make(row->b, 2, row->scope);

	assert_int_equal(address_same_host(&a, &b), row->same);
}

static void test_unknown(void **state)
{
	const struct address a = { .any.sa_family = AF_UNIX };
	char text[ADDRESS_TEXT];

	(void)state;
	address_text(&a, text);
	assert_string_equal(text, "an unknown address");
	assert_int_equal(address_size(&a), 0);
	assert_false(address_same_host(&a, &a));
}

int main(void)
{
	static struct suite s;

	SUITE_ROWS(&s, test_text, rows);
	SUITE_ROWS(&s, test_same, hosts);
	suite_add(&s, "an address of no known family", test_unknown, NULL, NULL);
	return suite_run(&s);
}
