/* test_scrub.c - what workers inherit of the launcher's MPI or Slurm task. */
#include "tests/unit/unit.h"

#include <string.h>

#include "daemon/plan/plan.h"
#include "daemon/plan/scrub.h"

enum { PASS = SCRUB_PASS, REMOVE = SCRUB_REMOVE, REWRITE = SCRUB_REWRITE };

static const struct scrub_row {
	const char *says; /* the name */
	int what;         /* by --mpi-env=rewrite; scrub makes REMOVE of REWRITE */
} rows[] = {
	{ "OMPI_COMM_WORLD_RANK", REWRITE },
	{ "OMPI_COMM_WORLD_SIZE", REWRITE },
	{ "OMPI_COMM_WORLD_LOCAL_RANK", REWRITE },
	{ "OMPI_COMM_WORLD_LOCAL_SIZE", REWRITE },
	{ "OMPI_COMM_WORLD_NODE_RANK", REWRITE },
	{ "OMPI_UNIVERSE_SIZE", REMOVE },
	{ "OMPI_ARGV", REMOVE },
	{ "OMPI_COMMAND", REMOVE },
	{ "OMPI_MCA_ess", REMOVE },
	{ "OMPI_MCA_ess_base_jobid", REMOVE },
	{ "OMPI_MCA_orte_hnp_uri", REMOVE },
	{ "OMPI_MCA_pmix", REMOVE },
	{ "OMPI_MCA_rmaps_base_mapping_policy", REMOVE },
	{ "OMPI_MCA_plm_rsh_agent", REMOVE },
	{ "OMPI_MCA_routed", REMOVE },
	{ "OMPI_MCA_shmem_RUNTIME_QUERY_hint", REMOVE },
	{ "OMPI_MCA_mpi_oversubscribe", REMOVE },
	{ "PMIX_RANK", REMOVE },
	{ "PMIX_SERVER_URI41", REMOVE },
	{ "PMI_RANK", REMOVE },
	{ "PMI_SIZE", REMOVE },
	{ "PMI_FD", REMOVE },
	{ "PMI2_JOBID", REMOVE },
	{ "PRTE_LAUNCHED", REMOVE },
	{ "ORTE_SCHIZO_DETECTION", REMOVE },
	{ "HYDRA_LAUNCHER", REMOVE },
	{ "MPI_LOCALRANKID", REMOVE },
	{ "MPI_LOCALNRANKS", REMOVE },
	{ "SLURM_PROCID", REMOVE },
	{ "SLURM_LOCALID", REMOVE },
	{ "SLURM_NODEID", REMOVE },
	{ "SLURM_NTASKS", REMOVE },
	{ "SLURM_STEP_ID", REMOVE },
	{ "SLURM_STEP_NODELIST", REMOVE },
	{ "SLURM_TASK_PID", REMOVE },
	{ "SLURM_JOB_ID", PASS },
	{ "SLURM_JOB_NODELIST", PASS },
	{ "SLURM_CPUS_PER_TASK", PASS },
	{ "SLURM_NTASKS_PER_NODE", REMOVE },
	{ "SLURM_SRUN_COMM_HOST", REMOVE },
	{ "OMPI_WORLD_LOCAL_SIZE", REMOVE },
	{ "OMPI_MCA_num_procs", REMOVE },
	{ "SLURM_JOB_NUM_NODES", PASS },
	{ "OMPI_MCA_btl", PASS },
	{ "OMPI_MCA_btl_tcp_if_include", PASS },
	{ "OMPI_MCA_pml", PASS },
	{ "OMPI_MCA_coll_hcoll_enable", PASS },
	{ "OMPI_MCA_shmem_mmap_enable_nfs_warning", PASS },
	{ "OMPI_COMM_WORLD", PASS },
	{ "OMPI_COMM_WORLD_RANKS", PASS },
	{ "OMPI_ALLOW_RUN_AS_ROOT", PASS },
	{ "UCX_NET_DEVICES", PASS },
	{ "I_MPI_FABRICS", PASS },
	{ "FI_PROVIDER", PASS },
	{ "NCCL_DEBUG", PASS },
	{ "PATH", PASS },
	{ "PMI", PASS },
	{ "xPMI_RANK", PASS },
};

static void test_scrub(void **state)
{
	const struct scrub_row *row = *state;
	size_t len = strlen(row->says);
	const char *why = NULL;

	assert_int_equal(scrub_of(row->says, len, MPI_ENV_REWRITE, &why), row->what);
	assert_true((why && *why) == (row->what != PASS));
	assert_int_equal(
		scrub_of(row->says, len, MPI_ENV_SCRUB, &why), row->what == PASS ? PASS : REMOVE);
	assert_int_equal(scrub_of(row->says, len, MPI_ENV_REWRITE_SLURM, &why), row->what);
	assert_int_equal(scrub_of(row->says, len, MPI_ENV_REWRITE_PMI, &why), row->what);
	assert_int_equal(scrub_of(row->says, len, MPI_ENV_KEEP, &why), PASS);
}

/* Whatever is kept of MPI: the key that the launchers know each other by is not for workers. */
static void test_key(void **state)
{
	static const char key[] = "LAUNCHD_KEY=secret", other[] = "LAUNCHD_KEYS=1";
	const char *why = NULL;

	(void)state;
	for (int policy = MPI_ENV_REWRITE; policy <= MPI_ENV_REWRITE_PMI; policy++) {
		assert_int_equal(scrub_of(key, 11, (enum mpi_env)policy, &why), REMOVE);
		assert_contains(why, "key");
		assert_int_equal(scrub_of(other, 12, (enum mpi_env)policy, &why), PASS);
	}
}

/* What is launchd's alone at any rate, and what a login shell may have of its own unit. */
static void test_service(void **state)
{
	static const struct {
		const char *name;
		enum scrub shell, service;
	} of[] = {
		{ "NOTIFY_SOCKET", SCRUB_REMOVE, SCRUB_REMOVE },
		{ "WATCHDOG_USEC", SCRUB_REMOVE, SCRUB_REMOVE },
		{ "WATCHDOG_PID", SCRUB_REMOVE, SCRUB_REMOVE },
		{ "LISTEN_FDNAMES", SCRUB_REMOVE, SCRUB_REMOVE },
		{ "INVOCATION_ID", SCRUB_PASS, SCRUB_REMOVE },
		{ "RUNTIME_DIRECTORY", SCRUB_PASS, SCRUB_REMOVE },
		{ "CREDENTIALS_DIRECTORY", SCRUB_PASS, SCRUB_REMOVE },
		{ "MANAGERPID", SCRUB_PASS, SCRUB_REMOVE },
		{ "SYSTEMD_EXEC_PID", SCRUB_PASS, SCRUB_REMOVE },
		{ "SYSTEMD_PAGER", SCRUB_PASS, SCRUB_PASS },
		{ "XDG_RUNTIME_DIR", SCRUB_PASS, SCRUB_PASS },
		{ "NOTIFY_SOCKETS", SCRUB_PASS, SCRUB_PASS },
	};
	const char *why;

	(void)state;
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		size_t len = strlen(of[i].name);

		assert_int_equal(scrub_of_service(of[i].name, len, false, &why), of[i].shell);
		assert_int_equal(scrub_of_service(of[i].name, len, true, &why), of[i].service);
	}
}

static void test_length(void **state)
{
	const char *why;

	(void)state;
	assert_int_equal(scrub_of("PMI_RANK=3", 8, MPI_ENV_REWRITE, &why), REMOVE);
	assert_int_equal(scrub_of("OMPI_COMM_WORLD_RANK=3", 20, MPI_ENV_REWRITE, &why), REWRITE);
	assert_int_equal(scrub_of("OMPI_COMM_WORLD_RANK=3", 22, MPI_ENV_REWRITE, &why), PASS);
}

/* All numbers differ, so that a value from the wrong place shows. */
static const struct worker_rank rank = { .rank = 11,
	.local_rank = 3,
	.world_size = 16,
	.local_world_size = 8,
	.node_rank = 1,
	.nnodes = 2 };

static const struct own_row {
	const char *says;
	unsigned value;
} owns[] = {
	{ "OMPI_COMM_WORLD_RANK", 11 }, { "OMPI_COMM_WORLD_SIZE", 16 },
	{ "OMPI_COMM_WORLD_LOCAL_RANK", 3 }, { "OMPI_COMM_WORLD_LOCAL_SIZE", 8 },
	{ "OMPI_COMM_WORLD_NODE_RANK", 3 }, /* the rank within the node, over all jobs there */
};

static void test_own(void **state)
{
	const struct own_row *row = *state;

	assert_int_equal(scrub_value(row->says, strlen(row->says), &rank), row->value);
}

/* A name that is rewritten and has no value of its own would become 0 for every worker. */
static void test_all_have_values(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		size_t len = strlen(rows[i].says);
		const char *why;

		if (scrub_of(rows[i].says, len, MPI_ENV_REWRITE, &why) == SCRUB_REWRITE)
			assert_int_not_equal(scrub_value(rows[i].says, len, &rank), 0);
	}
}

TESTS(scrub)
{
	static struct suite s;

	SUITE_ROWS(&s, test_scrub, rows);
	SUITE_ROWS(&s, test_own, owns);
	suite_add(&s, "the job's key is removed always", test_key, NULL, NULL);
	suite_add(&s, "what systemd says to launchd alone", test_service, NULL, NULL);
	suite_add(&s, "a name ends where its length says", test_length, NULL, NULL);
	suite_add(&s, "every name that is rewritten has a value", test_all_have_values, NULL, NULL);
	return suite_run(&s);
}
