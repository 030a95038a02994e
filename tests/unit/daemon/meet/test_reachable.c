/* test_address.c - which of a host's addresses others are told of, and in which order. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/vec.h"
#include "daemon/facts/interfaces.h"
#include "daemon/meet/reachable.h"

#define LO \
	{ \
		"lo", "127.0.0.1", true, true \
	}
#define LO6 \
	{ \
		"lo", "::1", true, true \
	}
#define UP(name, address) \
	{ \
		name, address, true, false \
	}
#define DOWN(name, address) \
	{ \
		name, address, false, false \
	}

#define MEANT(...) \
	.meant = { .at = (const char *[]){ __VA_ARGS__ }, \
		.count = sizeof(const char *[]){ __VA_ARGS__ } / sizeof(char *) }

static const struct choice_row {
	const char *says;
	struct interface have[10];
	struct reachable_wish wish;
	const char *chosen; /* with blanks; NULL: refused */
	const char *part;
} choices[] = {
	{ "one address", { LO, LO6, UP("eth0", "10.0.0.1") }, { 0 }, "10.0.0.1", NULL },
	{ "all of them, in the kernel's order",
		{ LO, UP("eth1", "192.168.1.1"), UP("eth0", "10.0.0.1"), UP("eth1", "10.9.0.1") },
		{ 0 }, "192.168.1.1 10.0.0.1 10.9.0.1", NULL },
	{ "IPv4 before IPv6",
		{ LO, UP("eth0", "2001:db8::1"), UP("eth0", "10.0.0.1"), UP("ib0", "fd00::1") },
		{ 0 }, "10.0.0.1 2001:db8::1 fd00::1", NULL },
	{ "IPv6 alone", { LO, LO6, UP("eth0", "2001:db8::1"), UP("eth0", "fe80::1") }, { 0 },
		"2001:db8::1", NULL },
	{ "link-local ones are of no use",
		{ UP("eth0", "fe80::1"), UP("eth0", "169.254.0.1"), UP("eth0", "169.253.0.1") },
		{ 0 }, "169.253.0.1", NULL },
	{ "networks within the host come last",
		{ UP("docker0", "172.17.0.1"), UP("br-12ab", "172.18.0.1"),
			UP("virbr0", "192.168.122.1"), UP("veth12", "10.5.0.1"),
			UP("cni0", "10.6.0.1"), UP("lxcbr0", "10.7.0.1"), UP("eth0", "10.0.0.1"),
			UP("eth0", "2001:db8::1"), UP("br0", "10.8.0.1") },
		{ 0 },
		"10.0.0.1 10.8.0.1 2001:db8::1 172.17.0.1 172.18.0.1 192.168.122.1 10.5.0.1 "
		"10.6.0.1 10.7.0.1",
		NULL },
	{ "what is down is not told", { DOWN("eth0", "10.0.0.1"), UP("eth1", "10.1.0.1") }, { 0 },
		"10.1.0.1", NULL },
	{ "an address that two have is told once",
		{ UP("eth0", "10.0.0.1"), UP("eth1", "10.0.0.1") }, { 0 }, "10.0.0.1", NULL },
	{ "loopback on one host, last", { LO, LO6, UP("docker0", "172.17.0.1") },
		{ .one_host = true }, "172.17.0.1 127.0.0.1 ::1", NULL },
	{ "nothing but loopback on one host", { LO }, { .one_host = true }, "127.0.0.1", NULL },
	{ "nothing but loopback", { LO, LO6, DOWN("eth0", "10.0.0.1"), UP("eth1", "fe80::1") },
		{ 0 }, NULL,
		"this node has no address that others can reach (--interface and --local-addr say "
		"which to use); it has: lo (127.0.0.1, ::1), eth0 (10.0.0.1, down), eth1 "
		"(fe80::1)" },
	{ "nothing at all", { { 0 } }, { 0 }, NULL, "it has: no interface with an address" },
	{ "--local-addr is the only one", { UP("eth0", "10.0.0.1"), UP("eth1", "10.1.0.1") },
		{ .local_addr = "10.1.0.1", MEANT("10.1.0.1"), .interfaces = "eth0" }, "10.1.0.1",
		NULL },
	{ "... in whatever spelling", { UP("eth0", "2001:db8::1") },
		{ .local_addr = "2001:DB8:0::1", MEANT("2001:DB8:0::1") }, "2001:db8::1", NULL },
	{ "... of an interface that is down", { UP("eth0", "10.0.0.1"), DOWN("eth1", "10.1.0.1") },
		{ .local_addr = "10.1.0.1", MEANT("10.1.0.1") }, "10.1.0.1", NULL },
	{ "... of loopback", { LO, UP("eth0", "10.0.0.1") },
		{ .local_addr = "127.0.0.1", MEANT("127.0.0.1") }, "127.0.0.1", NULL },
	{ "... all of which is this host", { LO, UP("eth0", "10.0.0.1") },
		{ .local_addr = "127.0.0.9", MEANT("127.0.0.9") }, "127.0.0.9", NULL },
	{ "--local-addr may be a name of this node",
		{ LO, UP("eth0", "10.0.0.1"), UP("ib0", "10.1.0.1"), UP("ib0", "fd00::1") },
		{ .local_addr = "node1-ib", MEANT("fd00::1", "10.1.0.1", "10.1.0.9") },
		"fd00::1 10.1.0.1", NULL },
	{ "a name that means loopback on its own host says nothing",
		{ LO, UP("eth0", "10.0.0.1"), UP("ib0", "fd00::1") },
		{ .local_addr = "node1", MEANT("127.0.1.1") }, "10.0.0.1 fd00::1", NULL },
	{ "... but that of loopback itself", { LO, UP("eth0", "10.0.0.1") },
		{ .local_addr = "localhost", MEANT("127.0.0.1") }, "127.0.0.1", NULL },
	{ "... and where it means more than that",
		{ LO, UP("eth0", "10.0.0.1"), UP("ib0", "10.1.0.1") },
		{ .local_addr = "node1", MEANT("127.0.1.1", "10.1.0.1") }, "10.1.0.1", NULL },
	{ "--local-addr of another node", { LO, UP("eth0", "10.0.0.1") },
		{ .local_addr = "10.0.0.9", MEANT("10.0.0.9"), .local_where = "--local-addr" },
		NULL,
		"--local-addr: \"10.0.0.9\" is not an address of this node; it has: eth0 "
		"(10.0.0.1)" },
	{ "a name of another node", { LO, UP("eth0", "10.0.0.1") },
		{ .local_addr = "node2",
			MEANT("10.0.0.9", "fd00::9"),
			.local_where = "PET_LOCAL_ADDR" },
		NULL,
		"PET_LOCAL_ADDR: \"node2\" (10.0.0.9, fd00::9) is not an address of this node; it "
		"has: eth0 (10.0.0.1)" },
	{ "a name that nobody knows", { LO, UP("eth0", "10.0.0.1") },
		{ .local_addr = "foo",
			.local_unknown = "Name or service not known",
			.local_where = "--local-addr" },
		NULL,
		"--local-addr: the name \"foo\" can't be resolved (Name or service not known); "
		"this node's addresses are: eth0 (10.0.0.1)" },
	{ "empty settings are none", { UP("eth0", "10.0.0.1") },
		{ .local_addr = "", .interfaces = "" }, "10.0.0.1", NULL },
	{ "--interface", { UP("eth0", "10.0.0.1"), UP("ib0", "10.1.0.1"), UP("ib0", "fd00::1") },
		{ .interfaces = "ib0" }, "10.1.0.1 fd00::1", NULL },
	{ "several, in their order",
		{ UP("eth0", "10.0.0.1"), UP("eth1", "10.1.0.1"), UP("eth2", "10.2.0.1") },
		{ .interfaces = "eth2, eth0" }, "10.2.0.1 10.0.0.1", NULL },
	{ "names that only other nodes have", { UP("eth0", "10.0.0.1") },
		{ .interfaces = "ib0,,eth0" }, "10.0.0.1", NULL },
	{ "a bridge that was asked for", { UP("eth0", "10.0.0.1"), UP("docker0", "172.17.0.1") },
		{ .interfaces = "docker0" }, "172.17.0.1", NULL },
	{ "loopback that was asked for", { LO, UP("eth0", "10.0.0.1") }, { .interfaces = "lo" },
		"127.0.0.1", NULL },
	{ "a name is whole", { UP("eth0", "10.0.0.1"), UP("eth01", "10.1.0.1") },
		{ .interfaces = "eth", .where = "--interface" }, NULL,
		"--interface: \"eth\" names no interface of this node that is up and has an "
		"address others can reach; it has: eth0 (10.0.0.1), eth01 (10.1.0.1)" },
	{ "one that is down", { LO, DOWN("ib0", "10.0.0.1") },
		{ .interfaces = "ib0", .where = "--interface" }, NULL,
		"it has: ib0 (10.0.0.1, down)" },
	{ "what nobody would choose is not told",
		{ LO, LO6, UP("eth0", "10.0.0.1"), UP("eth0", "fe80::1"), UP("veth7", "10.9.0.1"),
			UP("docker0", "172.17.0.1") },
		{ .interfaces = "eth9", .where = "--interface" }, NULL,
		"--interface: \"eth9\" names no interface of this node that is up and has an "
		"address others can reach; it has: eth0 (10.0.0.1)" },
	{ "nothing to choose from", { LO, UP("veth7", "10.9.0.1") },
		{ .interfaces = "eth9", .where = "--interface" }, NULL,
		"it has: no interface with an address" },
	{ "one with nothing but link-local", { UP("ib0", "fe80::1") },
		{ .interfaces = "ib0", .where = "--interface" }, NULL, "ib0 (fe80::1)" },
};

static void test_choice(void **state)
{
	const struct choice_row *row = *state;
	struct interfaces all = { .at = row->have };
	struct arena arena = { 0 };
	struct failure why = { 0 };
	struct vec got = { 0 };
	char line[512] = "";
	int rc;

	while (row->have[all.count].name)
		all.count++;
	rc = reachable_choose(&all, &row->wish, &arena, &got, &why);
	for (size_t i = 0; i < got.count; i++) {
		(void)strcat(line, i > 0 ? " " : "");
		(void)strcat(line, got.at[i]);
	}
	arena_done(&arena);
	if (row->chosen)
		assert_int_equal(rc, 0);
	else
		assert_int_equal(rc,
			row->wish.interfaces || row->wish.local_addr ? -EINVAL : -EADDRNOTAVAIL);
	assert_outcome(rc, rc, &why, row->part);
	assert_string_equal(line, row->chosen ? row->chosen : "");
}

TESTS(reachable)
{
	static struct suite s;

	SUITE_ROWS(&s, test_choice, choices);
	return suite_run(&s);
}
