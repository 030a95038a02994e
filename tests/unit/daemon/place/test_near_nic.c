/* test_near_nic.c - which port each GPU is closest to. */
#include "tests/unit/unit.h"

#include <string.h>

#include "daemon/place/near_nic.h"
#include "tests/unit/daemon/place/machine_fixture.h"

struct port {
	const char *bus, *device;
	int numa;
	bool down;
};

static const struct near_row {
	const char *says;
	const char *gpus[5]; /* their buses; the first two are on NUMA node 0 */
	struct port ports[5];
	int near[4];
} rows[] = {
	{ "each below its own switch", { "a", "b", "c", "d" },
		{ { "d", "m0", 1, false }, { "c", "m1", 1, false }, { "b", "m2", 0, false },
			{ "a", "m3", 0, false } },
		{ 3, 2, 1, 0 } },
	{ "two below a switch with two ports take one each", { "a", "a", "b", "b" },
		{ { "a", "m0", 0, false }, { "a", "m1", 0, false }, { "b", "m2", 1, false },
			{ "b", "m3", 1, false } },
		{ 0, 1, 2, 3 } },
	{ "two share a port", { "a", "a", "b", "b" },
		{ { "a", "m0", 0, false }, { "b", "m1", 1, false } }, { 0, 0, 1, 1 } },
	{ "four share two ports of their machine in turn", { "a", "b", "c", "d" },
		{ { "x", "m0", 2, false }, { "y", "m1", 2, false } }, { 0, 1, 0, 1 } },
	{ "a port that is down isn't near", { "a", "b", "c", "d" },
		{ { "a", "m0", 0, true }, { "x", "m1", 0, false }, { "c", "m2", 1, false } },
		{ 1, 1, 2, 2 } },
	{ "Ethernet without RDMA isn't near", { "a", "b", "c", "d" },
		{ { "a", NULL, 0, false }, { "b", "m1", 0, false }, { "c", "m2", 1, false } },
		{ 1, 1, 2, 2 } },
	{ "no port", { "a", "b", "c", "d" }, { { "a", NULL, 0, false } },
		{ MACHINE_NOWHERE, MACHINE_NOWHERE, MACHINE_NOWHERE, MACHINE_NOWHERE } },
	{ "no NIC", { "a", "b", "c", "d" }, { { 0 } },
		{ MACHINE_NOWHERE, MACHINE_NOWHERE, MACHINE_NOWHERE, MACHINE_NOWHERE } },
};

static void test_near(void **state)
{
	const struct near_row *row = *state;
	struct arena a = { 0 };
	struct machine m = machine_make(&a, 1, 2, 2, 1);

	for (int i = 0; row->gpus[i]; i++)
		machine_add_gpu(&m, &a, i / 2, row->gpus[i]);
	for (const struct port *p = row->ports; p->bus; p++)
		machine_add_nic(&m, &a, p->numa, p->bus, p->device, "eth0", !p->down);
	for (int i = 0; i < 4; i++)
		assert_int_equal(near_nic(&m, i), row->near[i]);
	assert_int_equal(near_nic(&m, MACHINE_NOWHERE), MACHINE_NOWHERE);
	arena_done(&a);
}

static void test_names(void **state)
{
	const struct machine_nic port = { "mlx5_3", 2, "ib0", "x", 0, true };
	const struct machine_nic net = { NULL, 0, "eth0", "x", 0, true };
	struct arena a = { 0 };

	(void)state;
	assert_string_equal(nic_name(&port, &a), "mlx5_3:2");
	assert_string_equal(nic_name(&net, &a), "eth0");
	arena_done(&a);
}

TESTS(near_nic)
{
	static struct suite s;

	SUITE_ROWS(&s, test_near, rows);
	suite_add(&s, "ports as UCX calls them", test_names, NULL, NULL);
	return suite_run(&s);
}
