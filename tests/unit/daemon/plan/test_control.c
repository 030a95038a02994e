/* test_control.c - where the launchers meet, and what the meeting adds to a topology. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "daemon/facts/facts.h"
#include "daemon/plan/topology.h"

#define CLI(id, text) \
	{ \
		SET_##id, text, LEVEL_COMMAND_LINE \
	}
#define MPI   "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2"
#define SRUN  "SLURM_STEP_ID=0", "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2"
#define PMIX  "PMIX_NAMESPACE=1", "PMIX_RANK=0", "PMIX_SERVER_URI41=tcp4://10.0.0.1:5"
#define NODES CLI(NNODES, "2"), CLI(NODE_RANK, "0")

static const struct control_row {
	const char *says;
	struct setting_given put[6]; /* ends with text NULL */
	const char *env[8];
	int rc;
	enum control_how how;
	const char *addr;
	unsigned port;
	const char *from; /* or part of the sentence */
} rows[] = {
	{ "one node", { { 0 } }, { NULL }, 0, CONTROL_NONE, NULL, 0, "one node" },
	{ "one node with PMIx", { { 0 } },
		{ "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1", PMIX }, 0, CONTROL_NONE, NULL,
		0, "OMPI_COMM_WORLD_SIZE" },
	{ "standalone", { CLI(STANDALONE, "1") }, { MPI, PMIX }, 0, CONTROL_NONE, NULL, 0,
		"given" },
	{ "switched off", { NODES, CLI(MASTER_ADDR, "h"), CLI(CONTROL, "off") }, { NULL }, 0,
		CONTROL_NONE, NULL, 0, "given" },
	{ "static: above the master port", { NODES, CLI(MASTER_ADDR, "h") }, { NULL }, 0,
		CONTROL_STATIC, "h", 29501, "master port + 1" },
	{ "static: above a given master port",
		{ NODES, CLI(MASTER_ADDR, "h"), CLI(MASTER_PORT, "65534") }, { NULL }, 0,
		CONTROL_STATIC, "h", 65535, "master port + 1" },
	{ "static: a given port",
		{ NODES, CLI(MASTER_ADDR, "h"), CLI(CONTROL_PORT, "7"), CLI(MASTER_PORT, "65535") },
		{ NULL }, 0, CONTROL_STATIC, "h", 7, "given" },
	{ "static: no port above the master port",
		{ NODES, CLI(MASTER_ADDR, "h"), CLI(MASTER_PORT, "65535") }, { NULL }, 0,
		CONTROL_STATIC, "h", 65534, "master port - 1" },
	{ "static: the port that is worker 0's",
		{ NODES, CLI(MASTER_ADDR, "h"), CLI(MASTER_PORT, "7"), CLI(CONTROL_PORT, "7") },
		{ NULL }, -EINVAL, CONTROL_NONE, NULL, 0, "worker 0 listens on port 7" },
	{ "a static endpoint", { NODES, CLI(RDZV_ENDPOINT, "h:7") }, { NULL }, 0, CONTROL_STATIC,
		"h", 8, "master port + 1" },
	{ "a c10d endpoint", { NODES, CLI(RDZV_ENDPOINT, "h:7"), CLI(RDZV_BACKEND, "c10d") },
		{ NULL }, 0, CONTROL_STATIC, "h", 7, "given" },
	{ "a c10d endpoint without a port",
		{ NODES, CLI(RDZV_ENDPOINT, "h"), CLI(RDZV_BACKEND, "c10d") }, { NULL }, 0,
		CONTROL_STATIC, "h", 29400, "given" },
	{ "a c10d endpoint and a given port",
		{ NODES, CLI(RDZV_ENDPOINT, "h:7"), CLI(RDZV_BACKEND, "c10d"),
			CLI(CONTROL_PORT, "9") },
		{ NULL }, 0, CONTROL_STATIC, "h", 9, "given" },
	{ "c10d with an address and no endpoint",
		{ NODES, CLI(MASTER_ADDR, "h"), CLI(RDZV_BACKEND, "c10d") }, { NULL }, 0,
		CONTROL_STATIC, "h", 29501, "master port + 1" },
	{ "Open MPI with PMIx and no address", { { 0 } }, { MPI, PMIX }, 0, CONTROL_EXCHANGE, NULL,
		0, "PMIX_NAMESPACE" },
	{ "Open MPI with PMIx and a given port", { CLI(CONTROL_PORT, "9") }, { MPI, PMIX }, 0,
		CONTROL_EXCHANGE, NULL, 9, "PMIX_NAMESPACE" },
	{ "Open MPI with PMIx and an address", { CLI(MASTER_ADDR, "h") }, { MPI, PMIX }, 0,
		CONTROL_EXCHANGE, "h", 29501, "PMIX_NAMESPACE" },
	{ "Open MPI with PMIx: no port above the master port",
		{ CLI(MASTER_ADDR, "h"), CLI(MASTER_PORT, "65535") }, { MPI, PMIX }, 0,
		CONTROL_EXCHANGE, "h", 65534, "PMIX_NAMESPACE" },
	{ "Open MPI without PMIx", { CLI(MASTER_ADDR, "h") }, { MPI }, 0, CONTROL_STATIC, "h",
		29501, "master port + 1" },
	{ "half of PMIx is none", { CLI(MASTER_ADDR, "h") },
		{ MPI, "PMIX_NAMESPACE=1", "PMIX_RANK=0" }, 0, CONTROL_STATIC, "h", 29501,
		"master port + 1" },
	{ "srun with PMIx", { { 0 } }, { SRUN, PMIX, "SLURM_STEP_NODELIST=a,b" }, 0,
		CONTROL_EXCHANGE, "a", 29501, "PMIX_NAMESPACE" },
	{ "srun without PMIx", { { 0 } }, { SRUN, "SLURM_STEP_NODELIST=a,b" }, 0, CONTROL_STATIC,
		"a", 29501, "master port + 1" },
	{ "Hydra meets by address, whatever is offered", { CLI(MASTER_ADDR, "h") },
		{ "PMI_RANK=0", "PMI_SIZE=2", PMIX }, 0, CONTROL_STATIC, "h", 29501,
		"master port + 1" },
	{ "Azure ML's address", { { 0 } }, { MPI, "AZ_BATCH_MASTER_NODE=10.1.2.3:6000" }, 0,
		CONTROL_STATIC, "10.1.2.3", 6106, "master port + 1" },
};

/* The topology of settings and an environment, as far as it goes without a meeting. */
static int find(struct settings_fixture *b, const struct setting_given *put, const char *const *env,
	struct topology *ret)
{
	const struct facts facts = { .env = env, .hostname = "node7", .cpus = 2 };
	int rc;
	const struct deciding d = { &b->s, &facts, &b->notes, &b->why };

	settings_fixture_make(b, false);
	settings_fixture_put_all(b, put, 6);
	rc = topology_begin(&d, ret);
	assert_outcome(rc, 0, &b->why, NULL);
	return topology_finish(&d, exchange_of(&b->s, &facts, ret) != EXCHANGE_NONE, ret);
}

static void test_control(void **state)
{
	const struct control_row *row = *state;
	struct topology t = { 0 };
	const struct control *c = &t.control;
	struct settings_fixture b;
	int rc = find(&b, row->put, row->env, &t);

	assert_outcome(rc, row->rc, &b.why, rc < 0 ? row->from : NULL);
	if (rc < 0) {
		assert_null(t.master.addr);
		settings_fixture_done(&b);
		return;
	}
	assert_int_equal(c->how, row->how);
	assert_int_equal(c->port, row->port);
	assert_true((c->addr == NULL) == (row->addr == NULL));
	if (row->addr)
		assert_string_equal(c->addr, row->addr);
	assert_string_equal(c->from, row->from);
	assert_int_equal(c->required, c->how != CONTROL_NONE);
	assert_note(&b.notes, NOTE_WARNING, NULL);
	settings_fixture_done(&b);
}

static void test_required(void **state)
{
	static const struct setting_given put[6] = { NODES, CLI(MASTER_ADDR, "h"),
		CLI(CONTROL, "required") };
	static const char *const env[] = { NULL };
	struct topology t;
	struct settings_fixture b;

	(void)state;
	assert_int_equal(find(&b, put, env, &t), 0);
	assert_true(t.control.required);
	settings_fixture_done(&b);
}

static const struct met_row {
	const char *says;
	struct setting_given put[6];
	const char *env[8];
	struct meeting_facts met;
	int rc;
	unsigned node_rank;
	const char *addr; /* or part of the sentence */
	unsigned port;
	const char *port_from;
} mets[] = {
	{ "what was known stays", { NODES, CLI(MASTER_ADDR, "h") }, { NULL }, { 1, NULL, 5 }, 0, 0,
		"h", 29500, "default" },
	{ "an address that is told counts: the store's, where a name was known",
		{ NODES, CLI(MASTER_ADDR, "h") }, { NULL }, { 1, "10.0.0.1", 5 }, 0, 0, "10.0.0.1",
		29500, "default" },
	{ "one node keeps its free port", { { 0 } }, { NULL }, { 1, NULL, 5 }, 0, 0, "127.0.0.1", 0,
		"one node: a free port" },
	{ "address and port by the meeting", { { 0 } }, { MPI, PMIX }, { 0, "10.0.0.1", 5 }, 0, 0,
		"10.0.0.1", 5, "rendezvous" },
	{ "the address by the meeting, the port is given", { CLI(MASTER_PORT, "7") }, { MPI, PMIX },
		{ 0, "10.0.0.1", 5 }, 0, 0, "10.0.0.1", 7, "given" },
	{ "the address is given, port 0 by the meeting",
		{ CLI(MASTER_ADDR, "h"), CLI(MASTER_PORT, "0") }, { MPI, PMIX }, { 0, NULL, 5 }, 0,
		0, "h", 5, "rendezvous" },
	{ "nobody says the address", { { 0 } }, { MPI, PMIX }, { 0, NULL, 5 }, -EINVAL, 0,
		"--master_addr", 0, NULL },
	{ "nobody says the port", { { 0 } }, { MPI, PMIX }, { 0, "10.0.0.1", 0 }, -EINVAL, 0,
		"--master_port", 0, NULL },
	{ "the node rank by the meeting, worker 0 off the endpoint's port",
		{ CLI(NNODES, "2"), CLI(RDZV_ENDPOINT, "h:7"), CLI(RDZV_BACKEND, "c10d") },
		{ NULL }, { 1, NULL, 5 }, 0, 1, "h", 5, "rendezvous" },
	{ "worker 0 on the endpoint's port where nobody says another",
		{ CLI(NNODES, "2"), CLI(RDZV_ENDPOINT, "h:7"), CLI(RDZV_BACKEND, "c10d") },
		{ NULL }, { 1, NULL, 0 }, 0, 1, "h", 7, "given" },
	{ "worker 0 on the endpoint's port where the launchers have another",
		{ CLI(NNODES, "2"), CLI(RDZV_ENDPOINT, "h:7"), CLI(RDZV_BACKEND, "c10d"),
			CLI(CONTROL_PORT, "9") },
		{ NULL }, { 1, NULL, 5 }, 0, 1, "h", 7, "given" },
};

static void test_met(void **state)
{
	const struct met_row *row = *state;
	struct topology t;
	struct settings_fixture b;
	int rc;

	assert_int_equal(find(&b, row->put, row->env, &t), 0);
	rc = topology_met(&t, &row->met, &b.why);
	assert_outcome(rc, row->rc, &b.why, rc < 0 ? row->addr : NULL);
	if (rc == 0) {
		assert_true(t.identity.node_rank_known);
		assert_int_equal(t.identity.node_rank, row->node_rank);
		assert_string_equal(t.master.addr, row->addr);
		assert_int_equal(t.master.port, row->port);
		assert_string_equal(t.master.port_from, row->port_from);
	}
	settings_fixture_done(&b);
}

TESTS(control)
{
	static struct suite s;

	SUITE_ROWS(&s, test_control, rows);
	SUITE_ROWS(&s, test_met, mets);
	suite_add(&s, "a meeting can be required", test_required, NULL, NULL);
	return suite_run(&s);
}
