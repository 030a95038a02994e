/* test_one_process.c - --per-process: the place of a launcher with one worker. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "daemon/facts/facts.h"
#include "daemon/plan/topology.h"

#define OMPI(rank, size)  "OMPI_COMM_WORLD_RANK=" rank, "OMPI_COMM_WORLD_SIZE=" size
#define LOCAL(rank, size) "OMPI_COMM_WORLD_LOCAL_RANK=" rank, "OMPI_COMM_WORLD_LOCAL_SIZE=" size
#define PMI(rank, size)   "PMI_RANK=" rank, "PMI_SIZE=" size
#define STEP(rank, size)  "SLURM_STEP_ID=0", "SLURM_PROCID=" rank, "SLURM_STEP_NUM_TASKS=" size
#define HNP               "OMPI_MCA_orte_hnp_uri=7.0;tcp://10.0.0.4,10.1.0.4:4001;tcp6://[fd00::4]:4002"

static const struct row {
	const char *says;
	const char *env[10];
	bool alone; /* --control off */
	struct {
		enum setting_id id;
		const char *text;
	} put[2];
	int rc;
	unsigned local_rank, local_world_size, host, hosts;
	const char *addr; /* or part of the sentence */
	unsigned port;
} rows[] = {
	{ "Open MPI, all on one host", { OMPI("1", "4"), LOCAL("1", "4"), "PMIX_NAMESPACE=5" },
		false, { { 0 } }, 0, 1, 4, 0, 1, "127.0.0.1", 16389 },
	{ "Open MPI, ranks host by host", { OMPI("5", "8"), LOCAL("1", "4"), HNP }, false,
		{ { 0 } }, 0, 1, 4, 1, 2, "10.0.0.4", 0 },
	{ "Open MPI, ranks in turn", { OMPI("5", "8"), LOCAL("2", "4"), HNP }, false, { { 0 } }, 0,
		2, 4, 1, 2, "10.0.0.4", 0 },
	{ "Open MPI 5 names mpirun's host",
		{ OMPI("5", "8"), LOCAL("1", "4"), "PMIX_NAMESPACE=prterun-my-head-47@1" }, false,
		{ { 0 } }, 0, 1, 4, 1, 2, "my-head", 16384 + 471 },
	{ "a host that has fewer, before the launchers meet",
		{ OMPI("6", "7"), LOCAL("2", "3"), HNP }, false, { { 0 } }, 0, 2, 3, 0, 0,
		"10.0.0.4", 0 },
	{ "and where they won't", { OMPI("6", "7"), LOCAL("2", "3"), HNP }, true, { { 0 } },
		-EINVAL, 0, 0, 0, 0, "which given prevents", 0 },
	{ "rank 0 is not beside mpirun", { OMPI("0", "8"), LOCAL("0", "4"), HNP }, false, { { 0 } },
		-EINVAL, 0, 0, 0, 0,
		"mpirun runs on 10.0.0.4 (OMPI_MCA_orte_hnp_uri) and rank 0 on "
		"another host, node7: give --master_addr",
		0 },
	{ "a given address goes above that", { OMPI("0", "8"), LOCAL("0", "4"), HNP }, false,
		{ { SET_MASTER_ADDR, "10.0.0.9" } }, 0, 0, 4, 0, 2, "10.0.0.9", 29501 },
	{ "Hydra, all on one host", { PMI("1", "2"), "MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=2" },
		false, { { 0 } }, 0, 1, 2, 0, 1, "127.0.0.1", 16384 + 4711 },
	{ "Slurm",
		{ STEP("3", "5"), "SLURM_LOCALID=1", "SLURM_NODEID=1", "SLURM_STEP_NUM_NODES=2",
			"SLURM_STEP_TASKS_PER_NODE=2,3", "SLURM_STEP_NODELIST=n[3-4]" },
		false, { { 0 } }, 0, 1, 3, 1, 2, "n3", 29501 },
	{ "Slurm, as many on each of some nodes",
		{ STEP("3", "6"), "SLURM_LOCALID=1", "SLURM_NODEID=1", "SLURM_STEP_NUM_NODES=3",
			"SLURM_STEP_TASKS_PER_NODE=2(x3)", "SLURM_STEP_NODELIST=n[3-5]" },
		true, { { 0 } }, 0, 1, 2, 1, 3, NULL, 0 },
	{ "Slurm with PMI-2",
		{ PMI("1", "2"), STEP("1", "2"), "SLURM_LOCALID=1", "SLURM_NODEID=0",
			"SLURM_STEP_NUM_NODES=1", "SLURM_STEP_TASKS_PER_NODE=2" },
		false, { { SET_MASTER_ADDR, "h" } }, 0, 1, 2, 0, 1, "h", 29501 },
	{ "Slurm's list is no list",
		{ STEP("3", "6"), "SLURM_LOCALID=1", "SLURM_NODEID=1",
			"SLURM_STEP_TASKS_PER_NODE=2(y3)" },
		false, { { 0 } }, -EINVAL, 0, 0, 0, 0,
		"\"2(y3)\" has no number of tasks for node 1", 0 },
	{ "Slurm's list is too short",
		{ STEP("3", "6"), "SLURM_LOCALID=1", "SLURM_NODEID=1",
			"SLURM_STEP_TASKS_PER_NODE=6" },
		false, { { 0 } }, -EINVAL, 0, 0, 0, 0, "\"6\" has no number of tasks for node 1",
		0 },
	{ "nobody has started it", { NULL }, false, { { 0 } }, -EINVAL, 0, 0, 0, 0,
		"from mpirun, mpiexec or srun, and none of them", 0 },
	{ "no local rank", { OMPI("1", "2") }, false, { { 0 } }, -EINVAL, 0, 0, 0, 0,
		"OMPI_COMM_WORLD_LOCAL_RANK is not set", 0 },
	{ "no local size", { PMI("1", "2"), "MPI_LOCALRANKID=1" }, false, { { 0 } }, -EINVAL, 0, 0,
		0, 0, "MPI_LOCALNRANKS is not set", 0 },
	{ "a local rank that is no number", { OMPI("1", "2"), LOCAL("x", "2") }, false, { { 0 } },
		-EINVAL, 0, 0, 0, 0, "OMPI_COMM_WORLD_LOCAL_RANK: \"x\" is not", 0 },
	{ "a local rank above the rank", { OMPI("1", "4"), LOCAL("2", "4") }, false, { { 0 } }, 0,
		2, 4, 0, 1, "127.0.0.1", 0 },
	{ "a local rank above the local size", { OMPI("3", "4"), LOCAL("2", "2") }, false,
		{ { 0 } }, -EINVAL, 0, 0, 0, 0, "can't be rank 3", 0 },
	{ "a local size above the size", { OMPI("1", "2"), LOCAL("1", "4") }, false, { { 0 } },
		-EINVAL, 0, 0, 0, 0, "of 4", 0 },
	{ "several workers", { OMPI("1", "2"), LOCAL("1", "2") }, false,
		{ { SET_NPROC_PER_NODE, "2" } }, -EINVAL, 0, 0, 0, 0,
		"each launcher starts one worker", 0 },
	{ "a list of nodes", { OMPI("1", "2"), LOCAL("1", "2") }, false,
		{ { SET_CLUSTER_NODES, "a,b" } }, -EINVAL, 0, 0, 0, 0,
		"several launchers on a node", 0 },
	{ "tasks that are made up", { OMPI("1", "2"), LOCAL("1", "2") }, false,
		{ { SET_MPI_ENV, "rewrite-slurm" } }, -EINVAL, 0, 0, 0, 0,
		"a worker has its task's own variables", 0 },
	{ "ranks that are made up", { OMPI("1", "2"), LOCAL("1", "2") }, false,
		{ { SET_MPI_ENV, "rewrite-pmi" } }, -EINVAL, 0, 0, 0, 0, "rewrite-pmi makes tasks",
		0 },
	{ "standalone", { OMPI("1", "2"), LOCAL("1", "2") }, false, { { SET_STANDALONE, "1" } },
		-EINVAL, 0, 0, 0, 0, "means one launcher", 0 },
};

static void test_place(void **state)
{
	const struct row *row = *state;
	const struct facts facts = {
		.env = row->env, .hostname = "node7", .cpus = 2, .parent = 4711
	};
	struct settings_fixture b;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };
	struct topology t = { 0 };
	int rc;

	settings_fixture_make(&b, false);
	settings_fixture_put(&b, SET_PER_PROCESS, "1", "given");
	if (row->alone)
		settings_fixture_put(&b, SET_CONTROL, "off", "given");
	for (size_t i = 0; i < 2 && row->put[i].text; i++)
		settings_fixture_put(&b, row->put[i].id, row->put[i].text, "given");
	rc = topology_begin(&d, &t);
	if (rc == 0)
		rc = topology_finish(&d, exchange_of(&b.s, &facts, &t) != EXCHANGE_NONE, &t);
	assert_outcome(rc, row->rc, &b.why, row->rc ? row->addr : NULL);
	if (row->rc == 0) {
		assert_true(t.process.is);
		assert_int_equal(t.nproc, 1);
		assert_int_equal(t.process.local_rank, row->local_rank);
		assert_int_equal(t.process.local_world_size, row->local_world_size);
		assert_int_equal(t.process.host, row->host);
		assert_int_equal(t.process.hosts, row->hosts);
		if (row->addr)
			assert_string_equal(t.master.addr, row->addr);
		if (row->port)
			assert_int_equal(t.control.port, row->port);
	}
	settings_fixture_done(&b);
}

static const struct order_row {
	const char *says;
	const char *env[6];
	const char *note; /* NULL: none */
} orders[] = {
	{ "Open MPI 5's default, with four on a host: rank 1 speaks",
		{ OMPI("1", "4"), LOCAL("2", "4"), "PRTE_LAUNCHED=1" },
		"mpirun gave rank 1 local rank 2 of 4" },
	{ "and names the remedy", { OMPI("1", "4"), LOCAL("2", "4"), "PRTE_LAUNCHED=1" },
		"--map-by ppr:4:node, or --map-by slot" },
	{ "for all of them", { OMPI("2", "4"), LOCAL("1", "4"), "PRTE_LAUNCHED=1" }, NULL },
	{ "several hosts", { OMPI("1", "8"), LOCAL("2", "4") }, "local rank 2 of 4" },
	{ "in order", { OMPI("1", "4"), LOCAL("1", "4") }, NULL },
	{ "one to each host in turn, as asked for", { OMPI("1", "8"), LOCAL("0", "4") }, NULL },
	{ "a host that has fewer than another", { OMPI("1", "7"), LOCAL("2", "4") }, NULL },
	{ "Hydra has no such option", { PMI("1", "4"), "MPI_LOCALRANKID=2", "MPI_LOCALNRANKS=4" },
		NULL },
};

static void test_order(void **state)
{
	const struct order_row *row = *state;
	const struct facts facts = { .env = row->env, .cpus = 2 };
	struct settings_fixture b;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };
	struct topology t = { 0 };

	settings_fixture_make(&b, false);
	settings_fixture_put(&b, SET_PER_PROCESS, "1", "given");
	assert_int_equal(topology_begin(&d, &t), 0);
	assert_int_equal(b.notes.first != NULL, row->note != NULL);
	if (row->note)
		assert_contains(b.notes.first->text, row->note);
	settings_fixture_done(&b);
}

/* A client of PMIx would use up what the worker is to have. */
static void test_pmix_is_the_workers(void **state)
{
	const char *const env[] = { OMPI("0", "2"), LOCAL("0", "1"), "PMIX_NAMESPACE=5",
		"PMIX_RANK=0", "PMIX_SERVER_URI41=x", NULL };
	const struct topology t = { .launcher = unit_launcher("mpirun"),
		.identity.by_launcher = true };
	const struct facts facts = { .env = env };
	struct settings_fixture b;

	(void)state;
	settings_fixture_make(&b, false);
	assert_int_equal(exchange_of(&b.s, &facts, &t), EXCHANGE_PMIX);
	settings_fixture_put(&b, SET_PER_PROCESS, "1", "given");
	assert_int_equal(mpi_env_of(&b.s), MPI_ENV_KEEP);
	assert_int_equal(exchange_of(&b.s, &facts, &t), EXCHANGE_NONE);
	settings_fixture_put(&b, SET_MPI_ENV, "rewrite", "given");
	assert_int_equal(mpi_env_of(&b.s), MPI_ENV_REWRITE);
	assert_int_equal(exchange_of(&b.s, &facts, &t), EXCHANGE_PMIX);
	settings_fixture_put(&b, SET_MPI_ENV, "keep", "given");
	assert_int_equal(exchange_of(&b.s, &facts, &t), EXCHANGE_NONE);
	settings_fixture_done(&b);
}

TESTS(one_process)
{
	static struct suite s;

	SUITE_ROWS(&s, test_place, rows);
	SUITE_ROWS(&s, test_order, orders);
	suite_add(&s, "PMIx is the worker's", test_pmix_is_the_workers, NULL, NULL);
	return suite_run(&s);
}
