/* test_introduction.c - places among the launchers of a role, and of hosts. */
#include "tests/unit/unit.h"

#include <errno.h>

#include "common/failure.h"
#include "daemon/plan/introduction.h"

enum { NODES = 5 };

static const struct role_row {
	const char *says;
	uint64_t role[NODES];
	unsigned self, first, count;
} roles[] = {
	{ "one role for all: ranks are those of the job", { 7, 7, 7, 7, 7 }, 2, 3, 15 },
	{ "only workers of the role count", { 7, 8, 7, 8, 7 }, 2, 1, 9 },
	{ "the first of its role", { 7, 8, 8, 8, 8 }, 1, 0, 14 },
	{ "a role of one node", { 7, 7, 7, 7, 9 }, 4, 0, 5 },
};

static void test_role(void **state)
{
	static const unsigned nproc[NODES] = { 1, 2, 3, 4, 5 };
	const struct role_row *row = *state;
	struct peer peers[NODES] = { 0 };
	struct among a;

	for (unsigned i = 0; i < NODES; i++)
		peers[i].role = row->role[i];
	a = peers_role(peers, nproc, NODES, row->self);
	assert_int_equal(a.first, row->first);
	assert_int_equal(a.count, row->count);
}

static const struct host_row {
	const char *says;
	struct {
		uint64_t host;
		bool leads;
	} at[NODES];
	unsigned self, here;
	int rc;
	unsigned first, count;
} hosts[] = {
	{ "ranks dealt out host by host", { { 1, 1 }, { 1, 0 }, { 1, 0 }, { 2, 1 }, { 2, 0 } }, 4,
		2, 0, 1, 2 },
	{ "ranks dealt out in turn", { { 1, 1 }, { 2, 1 }, { 1, 0 }, { 2, 0 }, { 1, 0 } }, 3, 2, 0,
		1, 2 },
	{ "the last rank of the first host", { { 1, 1 }, { 2, 1 }, { 1, 0 }, { 2, 0 }, { 1, 0 } },
		4, 3, 0, 0, 2 },
	{ "each alone on its host", { { 0, 1 }, { 0, 1 }, { 0, 1 }, { 0, 1 }, { 0, 1 } }, 3, 1, 0,
		3, 5 },
	{ "two hosts of one name", { { 1, 1 }, { 1, 0 }, { 1, 1 }, { 1, 0 }, { 2, 1 } }, 1, 2,
		-EINVAL, 0, 0 },
	{ "nobody leads", { { 1, 0 }, { 1, 0 }, { 2, 1 }, { 2, 0 }, { 2, 0 } }, 1, 2, -EINVAL, 0,
		0 },
};

static void test_host(void **state)
{
	const struct host_row *row = *state;
	struct peer peers[NODES] = { 0 };
	struct failure why = { 0 };
	struct among a = { 77, 77 };

	for (unsigned i = 0; i < NODES; i++) {
		peers[i].host = row->at[i].host;
		peers[i].leads = row->at[i].leads;
	}
	assert_int_equal(peers_host(peers, NODES, row->self, row->here, &a, &why), row->rc);
	assert_int_equal(why.code, row->rc);
	assert_int_equal(a.first, row->rc ? 77 : row->first);
	assert_int_equal(a.count, row->rc ? 77 : row->count);
}

TESTS(introduction)
{
	static struct suite s;

	SUITE_ROWS(&s, test_role, roles);
	SUITE_ROWS(&s, test_host, hosts);
	return suite_run(&s);
}
