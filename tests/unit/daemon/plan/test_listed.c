/* test_listed.c - what a list of nodes decides: rank, sizes, master address, workers. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "common/vec.h"
#include "daemon/facts/facts.h"
#include "daemon/plan/topology.h"

#define CLI(id, text) \
	{ \
		SET_##id, text, LEVEL_COMMAND_LINE \
	}

/* The list is a host file's text, "f"; level LEVEL_NONE: of --config. */
static const struct listed_row {
	const char *says, *list;
	enum level level;
	size_t own[2], matches;      /* this host in it */
	struct setting_given put[3]; /* ends with text NULL */
	const char *env[4];
	int rc;
	const char *part;                           /* of the sentence */
	unsigned nnodes, node_rank, nproc;          /* nproc 0: 1 */
	const char *nnodes_from, *rank_from, *addr; /* NULL: not looked at */
} rows[] = {
	{ "all three numbers", "n0\nn1\nn2\n", LEVEL_NONE, { 1 }, 1, { { 0 } }, { NULL }, 0, NULL,
		3, 1, 0, "f", "f:2: n1", "n0" },
	{ "one node", "n1\n", LEVEL_NONE, { 0 }, 1, { { 0 } }, { NULL }, 0, NULL, 1, 0, 0, "f",
		"f:1: n1", "127.0.0.1" },
	{ "numbers that agree", "n0\nn1\n", LEVEL_NONE, { 1 }, 1,
		{ CLI(NNODES, "2"), CLI(MASTER_ADDR, "ib0") }, { NULL }, 0, NULL, 2, 1, 0, "given",
		"f:2: n1", "ib0" },
	{ "a given rank decides", "n0\nn1\n", LEVEL_NONE, { 0 }, 0, { CLI(NODE_RANK, "1") },
		{ NULL }, 0, NULL, 2, 1, 0, "f", "given", "n0" },
	{ "above anyone's variables", "n0\nn1\n", LEVEL_NONE, { 1 }, 1, { { 0 } },
		{ "NODE_RANK=x", "NNODES=7", "MASTER_ADDR=h" }, 0, NULL, 2, 1, 0, "f", "f:2: n1",
		"n0" },
	{ "an MPI that says the same", "n0\nn1\n", LEVEL_NONE, { 1 }, 1, { { 0 } },
		{ "PMI_RANK=1", "PMI_SIZE=2" }, 0, NULL, 2, 1, 0, "f", "f:2: n1", "n0" },
	{ "inside a worker a list of one's own counts", "n0\nn1\n", LEVEL_NONE, { 1 }, 1, { { 0 } },
		{ "TORCHELASTIC_RUN_ID=x", "LOCAL_RANK=1" }, 0, NULL, 2, 1, 0, "f", "f:2: n1",
		"n0" },
	{ "an endpoint goes above the first host", "n0\nn1\n", LEVEL_NONE, { 1 }, 1,
		{ CLI(RDZV_BACKEND, "c10d"), CLI(RDZV_ENDPOINT, "ib0:29400") }, { NULL }, 0, NULL,
		2, 1, 0, "f", "f:2: n1", "ib0" },

	{ "absent", "n0\nn2\n", LEVEL_NONE, { 0 }, 0, { { 0 } }, { NULL }, -EINVAL,
		"f: this host is not one of the nodes n0, n2: its name is \"n1\", its addresses: "
		"10.0.0.7; ",
		0, 0, 0, NULL, NULL, NULL },
	{ "absent from many", "n[1-9]x\n", LEVEL_NONE, { 0 }, 0, { { 0 } }, { NULL }, -EINVAL,
		"n1x, n2x, n3x, n4x, n5x, n6x, n7x, n8x, ...: its name", 0, 0, 0, NULL, NULL,
		NULL },
	{ "twice", "n1\nn0\n10.0.0.7\n", LEVEL_NONE, { 0, 2 }, 2, { { 0 } }, { NULL }, -EINVAL,
		"f:3: 10.0.0.7 and n1 (f:1) are both this host, \"n1\"", 0, 0, 0, NULL, NULL,
		NULL },
	{ "another size", "n0\nn1\n", LEVEL_NONE, { 1 }, 1, { CLI(NNODES, "3") }, { NULL }, -EINVAL,
		"given says 3, but f lists 2 nodes", 0, 0, 0, NULL, NULL, NULL },
	{ "another size of one", "n1\n", LEVEL_NONE, { 0 }, 1, { CLI(NNODES, "3") }, { NULL },
		-EINVAL, "f lists 1 node:", 0, 0, 0, NULL, NULL, NULL },
	{ "a given rank beyond it", "n0\nn1\n", LEVEL_NONE, { 1 }, 1, { CLI(NODE_RANK, "2") },
		{ NULL }, -EINVAL, "node rank 2 (given) must be below", 0, 0, 0, NULL, NULL, NULL },
	{ "an MPI that says another rank", "n0\nn1\n", LEVEL_NONE, { 1 }, 1, { { 0 } },
		{ "PMI_RANK=0", "PMI_SIZE=2" }, -EINVAL, "f:2: n1 says 1, but PMI_RANK says 0", 0,
		0, 0, NULL, NULL, NULL },
	{ "an MPI that says another size", "n0\nn1\n", LEVEL_NONE, { 1 }, 1, { { 0 } },
		{ "PMI_RANK=1", "PMI_SIZE=3" }, -EINVAL, "f says 2, but PMI_SIZE says 3", 0, 0, 0,
		NULL, NULL, NULL },

	{ "the system's file fills gaps", "n0\nn1\n", LEVEL_SYSTEM_FILE, { 1 }, 1, { { 0 } },
		{ NULL }, 0, NULL, 2, 1, 0, "f", "f:2: n1", "n0" },
	{ "... below anyone's variables", "n0\nn1\n", LEVEL_SYSTEM_FILE, { 1 }, 1, { { 0 } },
		{ "NODE_RANK=0", "MASTER_ADDR=h" }, 0, NULL, 2, 0, 0, "f", "NODE_RANK", "h" },
	{ "... and is nothing beside an MPI", "n0\nn1\n", LEVEL_SYSTEM_FILE, { 1 }, 1,
		{ CLI(MASTER_ADDR, "h") }, { "PMI_RANK=0", "PMI_SIZE=3" }, 0, NULL, 3, 0, 0,
		"PMI_SIZE", "PMI_RANK", "h" },
	{ "... nor inside a worker", "n0\nn1\n", LEVEL_SYSTEM_FILE, { 1 }, 1, { { 0 } },
		{ "TORCHELASTIC_RUN_ID=x", "LOCAL_RANK=1" }, 0, NULL, 1, 0, 0, "one node",
		"one node", "127.0.0.1" },
	{ "... nor beside a given size", "n0\nn1\n", LEVEL_SYSTEM_FILE, { 1 }, 1,
		{ CLI(NNODES, "1") }, { NULL }, 0, NULL, 1, 0, 0, "given", "one node",
		"127.0.0.1" },
	{ "... unless it is the same", "n0\nn1\n", LEVEL_SYSTEM_FILE, { 1 }, 1,
		{ CLI(NNODES, "2") }, { NULL }, 0, NULL, 2, 1, 0, "given", "f:2: n1", "n0" },
	{ "... nor beside another of the environment", "n0\nn1\n", LEVEL_SYSTEM_FILE, { 1 }, 1,
		{ CLI(MASTER_ADDR, "h") }, { "NODE_RANK=2", "NNODES=3" }, 0, NULL, 3, 2, 0,
		"NNODES", "NODE_RANK", "h" },

	{ "slots are numbers of workers", "n0 slots=2\nn1 slots=4\n", LEVEL_NONE, { 1 }, 1,
		{ { 0 } }, { NULL }, 0, NULL, 2, 1, 4, "f", "f:2: n1", "n0" },
	{ "... where none is given", "n0 slots=2\nn1\n", LEVEL_NONE, { 1 }, 1,
		{ CLI(NPROC_PER_NODE, "3") }, { NULL }, 0, NULL, 2, 1, 3, "f", "f:2: n1", "n0" },
	{ "... and one beside hosts that have them", "n0 slots=2\nn1\n", LEVEL_NONE, { 1 }, 1,
		{ { 0 } }, { NULL }, 0, NULL, 2, 1, 1, "f", "f:2: n1", "n0" },
	{ "as many as max_slots", "n0\nn1 max_slots=3\n", LEVEL_NONE, { 1 }, 1,
		{ CLI(NPROC_PER_NODE, "3") }, { NULL }, 0, NULL, 2, 1, 3, "f", "f:2: n1", "n0" },
	{ "more than max_slots", "n0\nn1 max_slots=3\n", LEVEL_NONE, { 1 }, 1,
		{ CLI(NPROC_PER_NODE, "4") }, { NULL }, -EINVAL,
		"f:2: n1 has max_slots=3, but given says 4 workers", 0, 0, 0, NULL, NULL, NULL },
};

static void prepare(const struct listed_row *row, struct settings_fixture *b, struct facts *f)
{
	const enum level level = row->level ? row->level : LEVEL_FILE;

	settings_fixture_make(b, false);
	settings_fixture_put_at(b, SET_CLUSTER_HOSTFILE, "f", level, "job.ini:4");
	settings_fixture_put_all(b, row->put, 3);
	*f = (struct facts){ .env = row->env, .hostname = "n1", .cpus = 8 };
	vec_add(&b->arena, &f->addresses, "127.0.0.1");
	vec_add(&b->arena, &f->addresses, "fe80::7");
	vec_add(&b->arena, &f->addresses, "10.0.0.7");
	f->listed = (struct listed_nodes){ .id = SET_CLUSTER_HOSTFILE,
		.where = "f",
		.own = { { row->own[0], row->own[1] }, row->matches, true } };
	assert_int_equal(hosts_read_file(&b->arena, row->list, strlen(row->list), "f",
				 &f->listed.hosts, &b->why),
		0);
}

/* The names go by the nodes' ranks, and with a list that counts only. */
static void check_names(const struct deciding *d, const struct topology *t)
{
	const struct hosts *hosts = &d->facts->listed.hosts;
	const char *const *names = listed_names(d, t);
	bool given;

	assert_int_equal(!names, !listed_nodes(d, t->launcher, &given));
	for (unsigned i = 0; names && i < t->identity.nnodes; i++)
		assert_string_equal(names[i], hosts->at[i].name);
}

static void test_listed(void **state)
{
	const struct listed_row *row = *state;
	struct settings_fixture b;
	struct topology t = { 0 };
	struct facts facts;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };
	int rc;

	prepare(row, &b, &facts);
	rc = topology_begin(&d, &t);
	if (rc == 0)
		rc = topology_finish(&d, false, &t);
	assert_outcome(rc, row->rc, &b.why, row->part);
	if (rc == 0) {
		assert_int_equal(t.identity.nnodes, row->nnodes);
		assert_int_equal(t.identity.node_rank, row->node_rank);
		assert_true(t.identity.node_rank_known);
		assert_int_equal(t.nproc, row->nproc ? row->nproc : 1);
		assert_string_equal(t.identity.nnodes_from, row->nnodes_from);
		assert_string_equal(t.identity.node_rank_from, row->rank_from);
		assert_string_equal(t.master.addr, row->addr);
		check_names(&d, &t);
	}
	settings_fixture_done(&b);
}

/* What could not be looked up in time is no mistake of the user's. */
static void test_unanswered(void **state)
{
	struct settings_fixture b;
	struct facts facts;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };
	struct topology t;
	const struct listed_row absent = { .list = "a\nb\n" };

	(void)state;
	prepare(&absent, &b, &facts);
	facts.listed.asked_names = true;
	facts.listed.answers.unknown = "b: no answer";
	assert_outcome(
		topology_begin(&d, &t), -EAGAIN, &b.why, "could be looked up: b: no answer;");
	assert_int_equal(failure_exit_code(&b.why), 1);
	b.why = (struct failure){ 0 };
	facts.listed.answers.is_final = true;
	assert_outcome(topology_begin(&d, &t), -EINVAL, &b.why, "; not found: b: no answer;");
	assert_int_equal(failure_exit_code(&b.why), 2);
	settings_fixture_done(&b);
}

TESTS(listed)
{
	static struct suite s;

	SUITE_ROWS(&s, test_listed, rows);
	suite_add(&s, "names without an answer", test_unanswered, NULL, NULL);
	return suite_run(&s);
}
