/* test_listed_nodes.c - the list of [cluster], and what is asked to find this machine in it. The
 * answers to look-ups are caught. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/vec.h"
#include "daemon/facts/listed_nodes.h"

/* What was asked, one letter a host, and the answer: the hosts that are this machine. */
static struct {
	char wanted[16];
	uint64_t limit_ms;
	const char *own; /* '1' by host; NULL: none may be asked */
	bool fails;
} asked;

int __wrap_host_lookup(const struct hosts *hosts, const bool *wanted, const struct vec *addresses,
	uint64_t limit_ms, struct arena *arena, struct host_answers *ret, struct failure *why);

int __wrap_host_lookup(const struct hosts *hosts, const bool *wanted, const struct vec *addresses,
	uint64_t limit_ms, struct arena *arena, struct host_answers *ret, struct failure *why)
{
	(void)arena;
	assert_non_null(asked.own);
	assert_int_equal(addresses->count, 1);
	asked.limit_ms = limit_ms;
	for (size_t i = 0; i < hosts->count; i++) {
		asked.wanted[i] = wanted[i] ? '1' : '0';
		if (asked.own[i] == '1')
			own_host_add(&ret->own, i);
	}
	ret->is_final = true;
	return asked.fails ? failure_set(why, -EAGAIN, "no process") : 0;
}

#define CLI(id, text) \
	{ \
		SET_##id, text, LEVEL_COMMAND_LINE \
	}

static const struct read_row {
	const char *says;
	struct setting_given put[3]; /* a host file's text is what it holds */
	const char *own;             /* of look-ups; NULL: none */
	const char *wanted;          /* what is looked up */
	size_t count;                /* of hosts; 0: refused */
	size_t matches, rank;
	const char *part; /* of the sentence */
} rows[] = {
	{ "by its name: nothing is looked up", { CLI(CLUSTER_NODES, "n0 n1") }, NULL, "", 2, 1, 1,
		NULL },
	{ "by its address", { CLI(CLUSTER_NODES, "10.0.0.7 n9") }, NULL, "", 2, 1, 0, NULL },
	{ "by nothing, so all names are looked up", { CLI(CLUSTER_NODES, "n0 10.0.0.8 a") }, "001",
		"101", 3, 1, 2, NULL },
	{ "... and none is this machine", { CLI(CLUSTER_NODES, "n0 a") }, "00", "11", 2, 0, 0,
		NULL },
	{ "addresses alone are not looked up", { CLI(CLUSTER_NODES, "10.0.0.8") }, NULL, "", 1, 0,
		0, NULL },
	{ "twice, surely", { CLI(CLUSTER_NODES, "n1 10.0.0.7") }, NULL, "", 2, 2, 0, NULL },
	{ "in two domains, which look-ups tell apart", { CLI(CLUSTER_NODES, "n0.a n1.a n1.b") },
		"001", "011", 3, 1, 2, NULL },
	{ "in one domain: nothing is looked up", { CLI(CLUSTER_NODES, "n0.a n1.a") }, NULL, "", 2,
		1, 1, NULL },
	{ "a given rank decides", { CLI(CLUSTER_NODES, "a b"), CLI(NODE_RANK, "1") }, NULL, "", 2,
		0, 0, NULL },
	{ "one of the system's file does not",
		{ CLI(CLUSTER_NODES, "n0 n1"), { SET_NODE_RANK, "0", LEVEL_SYSTEM_FILE } }, NULL,
		"", 2, 1, 1, NULL },
	{ "a host file", { CLI(CLUSTER_HOSTFILE, "n0\nn1 slots=2\n") }, NULL, "", 2, 1, 1, NULL },
	{ "of two lists the one of the higher level",
		{ { SET_CLUSTER_NODES, "x", LEVEL_FILE }, CLI(CLUSTER_HOSTFILE, "n0\nn1\nn2\n") },
		NULL, "", 3, 1, 1, NULL },
	{ "... whichever that is",
		{ CLI(CLUSTER_NODES, "n1"), { SET_CLUSTER_HOSTFILE, "n0\n", LEVEL_FILE } }, NULL,
		"", 1, 1, 0, NULL },
	{ "... a line for each slot", { CLI(CLUSTER_HOSTFILE, "n0\nn1\nn0\nn1\n") }, NULL, "", 2, 1,
		1, NULL },
	{ "one host may be loopback", { CLI(CLUSTER_NODES, "127.0.0.1") }, NULL, "", 1, 1, 0,
		NULL },

	{ "a wrong line in a file", { CLI(CLUSTER_HOSTFILE, "n0\nn1 x=\n") }, NULL, "", 0, 0, 0,
		":2: \"x=\" is not known" },
	{ "no file", { CLI(CLUSTER_HOSTFILE, NULL) }, NULL, "", 0, 0, 0,
		"given: /nowhere/hosts: No such file" },
	{ "loopback among several", { CLI(CLUSTER_NODES, "n1 127.0.0.2") }, NULL, "", 0, 0, 0,
		"127.0.0.2 is each node itself" },
	{ "localhost among several", { CLI(CLUSTER_NODES, "localhost n1") }, NULL, "", 0, 0, 0,
		"localhost is each node itself" },
};

/* A host file with that text. */
static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void test_read(void **state)
{
	const struct read_row *row = *state;
	char path[] = "/tmp/test_listed_nodes.XXXXXX";
	struct settings_fixture b;
	struct listed_nodes l = { 0 };
	struct vec addresses = { 0 };
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	(void)close(fd);
	settings_fixture_make(&b, false);
	vec_add(&b.arena, &addresses, "10.0.0.7");
	for (size_t i = 0; i < 3 && row->put[i].level; i++) {
		const char *text = row->put[i].text;

		if (row->put[i].id == SET_CLUSTER_HOSTFILE && text)
			write_file(path, text);
		if (row->put[i].id == SET_CLUSTER_HOSTFILE)
			text = text ? path : "/nowhere/hosts";
		settings_fixture_put_at(&b, row->put[i].id, text, row->put[i].level, "given");
	}
	memset(&asked, 0, sizeof asked);
	asked.own = row->own;
	assert_true(listed_nodes_given(&b.s));
	rc = listed_nodes_read(&b.s, "n1", &addresses, &b.arena, &l, &b.why);
	assert_int_equal(unlink(path), 0);
	assert_outcome(rc, row->count ? 0 : -EINVAL, &b.why, row->part);
	assert_int_equal(l.hosts.count, row->count);
	assert_int_equal(l.own.count, row->matches);
	if (row->matches > 0)
		assert_int_equal(l.own.at[0], row->rank);
	assert_string_equal(asked.wanted, row->wanted);
	assert_int_equal(l.asked_names, row->own != NULL);
	settings_fixture_done(&b);
}

static const struct limit_row {
	const char *says, *join_timeout;
	uint64_t limit_ms;
} limits[] = {
	{ "look-ups take no longer than nodes are waited for", "2", 2000 },
	{ "nor longer than half a minute", "600", 30000 },
};

static void test_limit(void **state)
{
	const struct limit_row *row = *state;
	const struct origin here = { LEVEL_COMMAND_LINE, "given" };
	struct settings_fixture b;
	struct listed_nodes l;
	struct vec addresses = { 0 };

	settings_fixture_make(&b, false);
	vec_add(&b.arena, &addresses, "10.0.0.7");
	assert_int_equal(settings_put(&b.s, SET_CLUSTER_NODES, "a", here, &b.why), 0);
	assert_int_equal(settings_put(&b.s, SET_JOIN_TIMEOUT, row->join_timeout, here, &b.why), 0);
	memset(&asked, 0, sizeof asked);
	asked.own = "1";
	assert_int_equal(listed_nodes_read(&b.s, "n1", &addresses, &b.arena, &l, &b.why), 0);
	assert_true(asked.limit_ms == row->limit_ms);
	asked.fails = true;
	assert_outcome(listed_nodes_read(&b.s, "n1", &addresses, &b.arena, &l, &b.why), -EAGAIN,
		&b.why, "no process");
	settings_fixture_done(&b);
}

static void test_given(void **state)
{
	const struct origin here = { LEVEL_COMMAND_LINE, "given" };
	struct settings_fixture b;

	(void)state;
	settings_fixture_make(&b, false);
	assert_false(listed_nodes_given(&b.s));
	assert_int_equal(settings_put(&b.s, SET_CLUSTER_HOSTFILE, "f", here, &b.why), 0);
	assert_true(listed_nodes_given(&b.s));
	assert_int_equal(settings_put(&b.s, SET_STANDALONE, "1", here, &b.why), 0);
	assert_false(listed_nodes_given(&b.s));
	settings_fixture_done(&b);
}

TESTS(listed_nodes)
{
	static struct suite s;

	SUITE_ROWS(&s, test_read, rows);
	SUITE_ROWS(&s, test_limit, limits);
	suite_add(&s, "--standalone sets lists aside", test_given, NULL, NULL);
	return suite_run(&s);
}
