/* test_launchers.c - how launchers are told apart, and what a row is enough for: the table is
 * compiled here with one more, of a launcher that doesn't exist. */
#include "tests/unit/unit.h"

#include <string.h>

#define LAUNCHERS_MORE \
	{ .name = "made-up", \
		.kind = LAUNCHER_TASK, \
		.needs = { "MADE_UP_TASK" }, \
		.rank = { "MADE_UP_TASK" }, \
		.size = { "MADE_UP_TASKS" }, \
		.local_rank = { "MADE_UP_LOCAL" }, \
		.local_size = { "MADE_UP_LOCALS" }, \
		.addr = { "MADE_UP_FIRST" }, \
		.job = { "MADE_UP_JOB" }, \
		.own_ports = true, \
		.one_each = "made-up --one", \
		.leaks = (const struct launcher_leak[]){ \
			{ "MADE_UP_WIRE*", "made up", false }, { NULL, NULL, false } } },
#include "daemon/launchers/launchers.c" /* NOLINT: with one row more */

#include "daemon/facts/facts.h"
#include "daemon/plan/scrub.h"
#include "daemon/plan/topology.h"

#define STEP      "SLURM_STEP_ID=3", "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2"
#define IN_WORKER "TORCHELASTIC_RUN_ID=x", "LOCAL_RANK=0"

static const struct who_row {
	const char *says;
	const char *env[7];
	const char *task, *platform, *allocation; /* names; NULL: none */
	bool inside;
} whos[] = {
	{ "nobody", { "NODE_RANK=1", "NNODES=2" }, NULL, NULL, NULL, false },
	{ "Open MPI", { "OMPI_COMM_WORLD_RANK=0" }, "mpirun", NULL, NULL, false },
	{ "empty is unset", { "OMPI_COMM_WORLD_RANK=" }, NULL, NULL, NULL, false },
	{ "its users' settings mark nothing",
		{ "OMPI_MCA_btl=tcp", "PRTE_MCA_x=1", "HYDRA_HOST_FILE=h" }, NULL, NULL, NULL,
		false },
	{ "a rank within the node is another thing", { "OMPI_COMM_WORLD_NODE_RANK=3" }, NULL, NULL,
		NULL, false },
	{ "jsrun before Open MPI", { "JSM_NAMESPACE_RANK=0", "OMPI_COMM_WORLD_RANK=0" }, "jsrun",
		NULL, NULL, false },
	{ "Hydra", { "PMI_RANK=0", "PMI_SIZE=2" }, "mpiexec", NULL, NULL, false },
	{ "Hydra that srun carries", { STEP, "PMI_RANK=1", "PMI_SIZE=2", "MPI_LOCALRANKID=0" },
		"mpiexec", NULL, NULL, false },
	{ "PMI's variables that a step has inherited", { STEP, "PMI_RANK=0", "PMI_SIZE=1" }, "srun",
		NULL, NULL, false },
	{ "prterun that srun carries",
		{ STEP, "PMIX_RANK=1", "PMIX_NAMESPACE=x", "PRTE_LAUNCHED=1" }, "prterun", NULL,
		NULL, false },
	{ "srun --mpi=pmix", { STEP, "PMIX_RANK=1", "PMIX_NAMESPACE=slurm.pmix.1.3" }, "srun", NULL,
		NULL, false },
	{ "srun --mpi=pmi2", { STEP, "PMI_RANK=1", "PMI_SIZE=2" }, "srun", NULL, NULL, false },
	{ "Flux, with PMI", { "FLUX_TASK_RANK=1", "PMI_RANK=1" }, "flux run", NULL, NULL, false },
	{ "Hydra within Flux", { "FLUX_TASK_RANK=1", "PMI_RANK=1", "MPI_LOCALRANKID=0" }, "mpiexec",
		NULL, NULL, false },
	{ "PALS, with PMI", { "PALS_RANKID=1", "PMI_RANK=1", "PMI_SIZE=2" }, "mpiexec of PALS",
		NULL, NULL, false },
	{ "a step within its allocation", { STEP, "SLURM_JOB_ID=1" }, "srun", NULL, "Slurm",
		false },
	{ "a batch script", { "SLURM_JOB_ID=1", "SLURM_PROCID=0" }, NULL, NULL, "Slurm", false },
	{ "prterun", { "PMIX_RANK=0", "PMIX_NAMESPACE=x" }, "prterun", NULL, NULL, false },
	{ "Torque's batch script", { "PBS_JOBID=1", "PBS_NODENUM=0", "PBS_TASKNUM=1" }, NULL, NULL,
		"PBS", false },
	{ "pbsdsh", { "PBS_JOBID=1", "PBS_NODENUM=0", "PBS_TASKNUM=2000000F" }, "pbsdsh", NULL,
		"PBS", false },
	{ "a platform", { "LWS_WORKER_INDEX=0", "LWS_GROUP_SIZE=2" }, NULL, "LeaderWorkerSet", NULL,
		false },
	{ "a made-up one", { "MADE_UP_TASK=0" }, "made-up", NULL, NULL, false },
	{ "a worker", { IN_WORKER, "LWS_WORKER_INDEX=0", "SLURM_JOB_ID=1" }, NULL, NULL, NULL,
		true },
	{ "a worker with numbers rewritten", { IN_WORKER, "OMPI_COMM_WORLD_RANK=0" }, NULL, NULL,
		NULL, true },
	{ "mpirun in a worker", { IN_WORKER, "OMPI_COMM_WORLD_RANK=0", "PMIX_RANK=0" }, "mpirun",
		NULL, NULL, false },
	{ "srun in a worker", { IN_WORKER, STEP }, "srun", NULL, NULL, false },
	{ "srun in a worker of mpirun, whose numbers are rewritten",
		{ IN_WORKER, "OMPI_COMM_WORLD_RANK=0", STEP }, "srun", NULL, NULL, false },
	{ "a worker that has PMI's ranks for its own", { IN_WORKER, "PMI_RANK=1", "PMI_SIZE=2" },
		NULL, NULL, NULL, true },
	{ "mpiexec in such a worker", { IN_WORKER, "PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=5" },
		"mpiexec", NULL, NULL, false },
	{ "flux run in a worker", { IN_WORKER, "FLUX_TASK_RANK=1", "PMI_RANK=1" }, "flux run", NULL,
		NULL, false },
	{ "a worker of torchrun under Flux without PMI",
		{ IN_WORKER, "FLUX_TASK_RANK=0", "FLUX_JOB_SIZE=2" }, NULL, NULL, NULL, true },
	{ "Volcano, one role", { "VC_TASK_INDEX=1", "VC_WORKER_NUM=2" }, NULL, "Volcano", NULL,
		false },
	{ "Volcano numbers each role's",
		{ "VC_TASK_INDEX=1", "VC_WORKER_NUM=2", "VC_MASTER_NUM=1" }, NULL, NULL, NULL,
		false },
	{ "half of a worker", { "LOCAL_RANK=0", "LWS_WORKER_INDEX=0" }, NULL, "LeaderWorkerSet",
		NULL, false },
};

static void assert_named(const struct launcher *l, const char *name)
{
	if (name)
		assert_string_equal(l->name, name);
	else
		assert_null(l);
}

static void test_who(void **state)
{
	const struct who_row *row = *state;
	const struct launcher *task = launcher_of(row->env);

	assert_named(task == launcher_anyone() ? NULL : task, row->task);
	assert_named(platform_of(row->env, NULL), row->platform);
	assert_named(allocation_of(row->env), row->allocation);
	assert_int_equal(inside_worker(row->env), row->inside);
}

/* What a task is known by is read by it alone, and a worker of any row's has none of it. */
static void test_identity_is_scrubbed(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *const *lists[] = { rows[i].rank, rows[i].size, rows[i].local_rank,
			rows[i].local_size };

		for (size_t j = 0; j < sizeof lists / sizeof *lists; j++)
			for (size_t k = 0; rows[i].kind == LAUNCHER_TASK && lists[j][k]; k++)
				assert_non_null(launcher_leak_of(lists[j][k], strlen(lists[j][k])));
	}
	assert_non_null(launcher_leak_of("PBS_TASKNUM", 11));
	assert_null(launcher_leak_of("MPIRUN_OPTS", 11));
	assert_null(launcher_leak_of("NODE_RANK", 9));
	assert_null(launcher_leak_of("LWS_GROUP_SIZE", 14));
	assert_string_equal(launcher_leak_of("MADE_UP_WIRE_X", 14)->why, "made up");
}

static void test_hosts(void **state)
{
	static const char *const lists[] = { "[\"a-1\",\"b\"]", "a-1\nb\n", "a-1,b", "a-1 b",
		" [ 'a-1' , 'b' ] " };
	size_t len;

	(void)state;
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		const char *second = launcher_host(lists[i], 1, &len);

		assert_non_null(second);
		assert_int_equal(len, 1);
		assert_int_equal(*second, 'b');
		assert_memory_equal(launcher_host(lists[i], 0, &len), "a-1", 3);
		assert_int_equal(len, 3);
		assert_null(launcher_host(lists[i], 2, &len));
	}
	assert_null(launcher_host("[]", 0, &len));
}

/* Everything that follows from a row: rank, size, address, port, and what workers don't see. */
static void test_a_row_is_enough(void **state)
{
	static const char *const env[] = { "MADE_UP_TASK=1", "MADE_UP_TASKS=4", "MADE_UP_LOCAL=1",
		"MADE_UP_LOCALS=2", "MADE_UP_FIRST=10.0.0.4", "MADE_UP_JOB=12345", "MADE_UP_WIRE=x",
		NULL };
	const struct facts facts = { .env = env, .hostname = "node7", .cpus = 2 };
	struct settings_fixture b;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };
	struct topology t = { 0 };
	const char *why;

	(void)state;
	settings_fixture_make(&b, false);
	assert_outcome(topology_begin(&d, &t), 0, &b.why, NULL);
	assert_outcome(topology_finish(&d, false, &t), 0, &b.why, NULL);
	assert_string_equal(t.launcher->name, "made-up");
	assert_int_equal(t.identity.nnodes, 4);
	assert_int_equal(t.identity.node_rank, 1);
	assert_string_equal(t.identity.node_rank_from, "MADE_UP_TASK");
	assert_string_equal(t.master.addr, "10.0.0.4");
	assert_note(&b.notes, NOTE_WARNING, "for one launcher per node use made-up --one");
	assert_int_equal(scrub_of("MADE_UP_LOCALS", 14, MPI_ENV_SCRUB, &why), SCRUB_REMOVE);
	assert_int_equal(scrub_of("MADE_UP_JOB", 11, MPI_ENV_SCRUB, &why), SCRUB_PASS);
	settings_fixture_done(&b);
}

TESTS(launchers)
{
	static struct suite s;

	SUITE_ROWS(&s, test_who, whos);
	suite_add(&s, "what a task is known by workers don't have", test_identity_is_scrubbed, NULL,
		NULL);
	suite_add(&s, "lists of hosts", test_hosts, NULL, NULL);
	suite_add(&s, "a row is enough", test_a_row_is_enough, NULL, NULL);
	return suite_run(&s);
}
