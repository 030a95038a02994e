/* test_address.c - socket addresses as people read them. */
#include "tests/unit/unit.h"

#include <string.h>

#include "common/address.h"
#include "common/vec.h"

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

static void test_unmapped(void **state)
{
	const struct address_row *row = *state;
	struct address a = make(row->host, row->port, row->scope), got = address_unmapped(&a);
	char text[ADDRESS_TEXT];

	address_text(&got, text);
	assert_string_equal(text, row->text);
	assert_int_equal(got.any.sa_family, *row->text == '[' ? AF_INET6 : AF_INET);
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

static const struct kind_row {
	const char *says;
	const char *host;
	bool loopback, any, link_local;
} kinds[] = {
	{ "a host's IPv4", "10.0.0.4", false, false, false },
	{ "a host's IPv6", "fd00::1", false, false, false },
	{ "any IPv4", "0.0.0.0", false, true, false },
	{ "any IPv6", "::", false, true, false },
	{ "any IPv4 in IPv6", "::ffff:0.0.0.0", false, true, false },
	{ "IPv4's loopback", "127.1.2.3", true, false, false },
	{ "IPv4's loopback in IPv6", "::ffff:127.0.0.1", true, false, false },
	{ "IPv6's loopback", "::1", true, false, false },
	{ "IPv4 of one link", "169.254.7.7", false, false, true },
	{ "IPv4 that only begins so", "169.253.7.7", false, false, false },
	{ "IPv6 of one link", "fe80::1", false, false, true },
};

static void test_kind(void **state)
{
	const struct kind_row *row = *state;
	struct address a = make(row->host, 80, 0);

	assert_int_equal(address_is_loopback(&a), row->loopback);
	assert_int_equal(address_is_any(&a), row->any);
	assert_int_equal(address_is_link_local(&a), row->link_local);
}

static void test_of(void **state)
{
	const struct address v4 = make("10.0.0.4", 80, 0), v6 = make("fe80::1", 80, 3);
	const struct sockaddr other = { .sa_family = AF_UNIX };
	const struct address a = address_of(&v4.any), b = address_of(&v6.any);
	const struct address none = address_of(&other);

	(void)state;
	assert_true(address_same(&a, &v4) && address_size(&a) == sizeof(struct sockaddr_in));
	assert_true(address_same(&b, &v6) && address_size(&b) == sizeof(struct sockaddr_in6));
	assert_int_equal(b.v6.sin6_scope_id, 3);
	assert_int_equal(address_size(&none), 0);
	assert_true(address_is_any(&none));
	assert_false(address_is_loopback(&none) || address_is_link_local(&none));
}

static void test_find_host(void **state)
{
	const char *texts[] = { "a name", "10.0.0.5", "fd00::1", NULL };
	const struct vec list = { texts, 3, 4 };
	const struct address there = make("::ffff:10.0.0.5", 80, 0);
	const struct address absent = make("10.0.0.4", 80, 0);

	(void)state;
	assert_ptr_equal(address_find_host(&list, &there), texts[1]);
	assert_null(address_find_host(&list, &absent));
}

static void test_list(void **state)
{
	struct addresses list = { 0 };
	struct address a = make("10.0.0.4", 0, 0), first = make("::ffff:10.0.0.4", 1, 0);

	(void)state;
	for (uint16_t round = 0; round < 2; round++)
		for (uint16_t port = 1; port <= ADDRESSES_MAX + 1; port++) {
			address_set_port(&a, port);
			addresses_add(&list, &a);
			assert_int_equal(addresses_have(&list, &a), port <= ADDRESSES_MAX);
		}
	assert_int_equal(list.count, ADDRESSES_MAX);
	assert_true(addresses_have(&list, &first));
}

TESTS(address)
{
	static struct suite s;

	SUITE_ROWS(&s, test_text, rows);
	SUITE_ROWS(&s, test_unmapped, rows);
	SUITE_ROWS(&s, test_same, hosts);
	SUITE_ROWS(&s, test_kind, kinds);
	suite_add(&s, "what the kernel tells", test_of, NULL, NULL);
	suite_add(&s, "a host among texts", test_find_host, NULL, NULL);
	suite_add(&s, "a list: each address once, and no more than fit", test_list, NULL, NULL);
	suite_add(&s, "an address of no known family", test_unknown, NULL, NULL);
	return suite_run(&s);
}
