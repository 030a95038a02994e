/* test_own_host.c - which of the listed hosts this machine is. */
#include "tests/unit/unit.h"

#include "common/address.h"
#include "common/vec.h"
#include "config/hosts.h"
#include "daemon/facts/own_host.h"

static const struct name_row {
	const char *says, *listed, *hostname;
	enum own_name is;
} names[] = {
	{ "the same", "n0", "n0", OWN_NAME_WHOLE },
	{ "in another case", "GPU0", "gpu0", OWN_NAME_WHOLE },
	{ "with its domain", "n0.a", "n0.a", OWN_NAME_WHOLE },
	{ "the list has the domain", "n0.a", "n0", OWN_NAME_LABEL },
	{ "the host name has it", "n0", "n0.a", OWN_NAME_LABEL },
	{ "in different domains", "n0.b", "n0.a", OWN_NAME_NOT },
	{ "the begin of another name", "n01", "n0", OWN_NAME_NOT },
	{ "... with a domain", "n0", "n01.a", OWN_NAME_NOT },
	{ "localhost is everyone's", "localhost", "n0", OWN_NAME_WHOLE },
	{ "no host name", "n0", "", OWN_NAME_NOT },
};

static void test_name(void **state)
{
	const struct name_row *row = *state;

	assert_int_equal(own_host_is(row->listed, row->hostname), row->is);
}

static const struct find_row {
	const char *says, *list, *hostname;
	size_t count, first, second;
	bool certain;
} finds[] = {
	{ "by its name", "n0 n1 n2", "n1", 1, 1, 0, true },
	{ "by its name without the domain", "n0.a n1.a", "n1", 1, 1, 0, false },
	{ "by an address", "10.0.0.8 10.0.0.7", "n1", 1, 1, 0, true },
	{ "by an IPv6 address in another form", "n0 fd00:0::7", "n1", 1, 1, 0, true },
	{ "by loopback", "127.0.0.1", "n1", 1, 0, 0, true },
	{ "by loopback of IPv6", "::1", "n1", 1, 0, 0, true },
	{ "not at all", "n0 n2 10.0.0.8", "n1", 0, 0, 0, false },
	{ "by name and address", "n0 n1 10.0.0.7", "n1", 2, 1, 2, true },
	{ "by two addresses", "10.0.0.7 n0 fd00::7", "n1", 2, 0, 2, true },
	{ "by name with and without the domain", "n1 n0 n1.a", "n1", 2, 0, 2, true },
	{ "in two domains", "n1.a n1.b", "n1", 2, 0, 1, false },
	{ "of all ways the first two are kept", "n1 n1.a fd00::7 10.0.0.7", "n1", 4, 0, 1, true },
};

static void test_find(void **state)
{
	const struct find_row *row = *state;
	struct arena a = { 0 };
	struct failure why = { 0 };
	struct hosts h = { 0 };
	struct vec addresses = { 0 };
	struct own_hosts own = { .count = 77 };

	vec_add(&a, &addresses, "127.0.0.1");
	vec_add(&a, &addresses, "10.0.0.7");
	vec_add(&a, &addresses, "fd00::7");
	assert_int_equal(hosts_add_list(&a, row->list, "here", &h, &why), 0);
	own_host_find(&h, row->hostname, &addresses, &own);
	assert_int_equal(own.count, row->count);
	if (own.count > 0)
		assert_int_equal(own.at[0], row->first);
	if (own.count > 1)
		assert_int_equal(own.at[1], row->second);
	assert_int_equal(own.certain, row->certain);
	arena_done(&a);
}

TESTS(own_host)
{
	static struct suite s;

	SUITE_ROWS(&s, test_name, names);
	SUITE_ROWS(&s, test_find, finds);
	return suite_run(&s);
}
