/* test_identity.c - node rank and number of nodes, from every launcher and every half of it. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "daemon/facts/facts.h"
#include "daemon/launchers/launchers.h"
#include "daemon/plan/topology.h"

/* Options first; NAME=VALUE of the environment; what comes of both. */
static const struct identity_row {
	const char *says;
	struct setting_given put[3]; /* ends with text NULL */
	const char *env[6];
	const char *launcher;
	int rc;
	unsigned nnodes, node_rank;
	const char *part[3]; /* rc 0: where nnodes and the rank are from; else of the sentence */
} rows[] = {
	{ "nothing said is one node", { { 0 } }, { NULL }, NULL, 0, 1, 0,
		{ "one node", "one node" } },
	{ "Open MPI says both", { { 0 } }, { "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4" },
		"mpirun", 0, 4, 1, { "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK" } },
	{ "Open MPI's node rank is another thing", { { 0 } }, { "OMPI_COMM_WORLD_NODE_RANK=3" },
		NULL, 0, 1, 0, { "one node" } },
	{ "Hydra says both", { { 0 } }, { "PMI_RANK=2", "PMI_SIZE=3" }, "mpiexec", 0, 3, 2,
		{ "PMI_SIZE", "PMI_RANK" } },
	{ "a step of srun says both", { { 0 } },
		{ "SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2" }, "srun", 0, 2, 1,
		{ "SLURM_STEP_NUM_TASKS", "SLURM_PROCID" } },
	{ "an older srun says the size in SLURM_NTASKS", { { 0 } },
		{ "SLURM_STEP_ID=3", "SLURM_PROCID=1", "SLURM_NTASKS=2" }, "srun", 0, 2, 1,
		{ "SLURM_NTASKS", "SLURM_PROCID" } },
	{ "the step's size is above the job's", { { 0 } },
		{ "SLURM_STEP_ID=3", "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_NTASKS=8" },
		"srun", 0, 2, 1, { "SLURM_STEP_NUM_TASKS" } },
	{ "a batch script is no step: no SLURM_STEP_ID", { { 0 } },
		{ "SLURM_PROCID=0", "SLURM_NTASKS=8" }, NULL, 0, 1, 0, { "one node" } },
	{ "a batch script is no step: its number is above all steps'", { { 0 } },
		{ "SLURM_STEP_ID=4294967291", "SLURM_PROCID=0", "SLURM_NTASKS=8" }, NULL, 0, 1, 0,
		{ "one node" } },
	{ "the largest number of a step", { { 0 } },
		{ "SLURM_STEP_ID=4294967279", "SLURM_PROCID=0", "SLURM_NTASKS=8" }, "srun", 0, 8, 0,
		{ "SLURM_NTASKS" } },
	{ "a step without a number is none", { { 0 } },
		{ "SLURM_STEP_ID=batch", "SLURM_PROCID=0", "SLURM_NTASKS=8" }, NULL, 0, 1, 0,
		{ "one node" } },
	{ "Open MPI before Slurm, where mpirun runs in an allocation", { { 0 } },
		{ "SLURM_STEP_ID=0", "SLURM_PROCID=0", "OMPI_COMM_WORLD_RANK=1",
			"OMPI_COMM_WORLD_SIZE=2" },
		"mpirun", 0, 2, 1, { "OMPI_COMM_WORLD_SIZE" } },
	{ "anyone's variables", { { 0 } }, { "NODE_RANK=1", "NNODES=2" }, NULL, 0, 2, 1,
		{ "NNODES", "NODE_RANK" } },
	{ "MPI above anyone's variables", { { 0 } },
		{ "NODE_RANK=5", "NNODES=9", "PMI_RANK=0", "PMI_SIZE=2" }, "mpiexec", 0, 2, 0,
		{ "PMI_SIZE", "PMI_RANK" } },
	{ "given numbers above anyone's variables",
		{ { SET_NNODES, "4", LEVEL_COMMAND_LINE },
			{ SET_NODE_RANK, "3", LEVEL_COMMAND_LINE } },
		{ "NODE_RANK=1", "NNODES=2" }, NULL, 0, 4, 3, { "given" } },
	{ "a given size and anyone's rank", { { SET_NNODES, "2", LEVEL_COMMAND_LINE } },
		{ "NODE_RANK=1" }, NULL, 0, 2, 1, { "given", "NODE_RANK" } },
	{ "a given size and MPI's rank", { { SET_NNODES, "2", LEVEL_COMMAND_LINE } },
		{ "OMPI_COMM_WORLD_RANK=1" }, "mpirun", 0, 2, 1,
		{ "given", "OMPI_COMM_WORLD_RANK" } },
	{ "given numbers that agree with MPI's",
		{ { SET_NNODES, "2", LEVEL_COMMAND_LINE }, { SET_NODE_RANK, "1", LEVEL_LAUNCHD } },
		{ "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2" }, "mpirun", 0, 2, 1,
		{ "given", "given" } },
	{ "a rank of 0 alone is one node", { { 0 } }, { "NODE_RANK=0" }, NULL, 0, 1, 0,
		{ "one node", "NODE_RANK" } },
	{ "a size of 1 alone is one node", { { 0 } }, { "NNODES=1" }, NULL, 0, 1, 0,
		{ "NNODES", "one node" } },
	{ "Azure ML's number of nodes", { { 0 } }, { "NODE_RANK=1", "AZUREML_NODE_COUNT=2" }, NULL,
		0, 2, 1, { "AZUREML_NODE_COUNT", "NODE_RANK" } },
	{ "... beside a given rank", { { SET_NODE_RANK, "1", LEVEL_COMMAND_LINE } },
		{ "NNODES=", "AZUREML_NODE_COUNT=2" }, NULL, 0, 2, 1,
		{ "AZUREML_NODE_COUNT", "given" } },
	{ "... of one", { { 0 } }, { "NODE_RANK=0", "AZUREML_NODE_COUNT=1" }, NULL, 0, 1, 0,
		{ "AZUREML_NODE_COUNT", "NODE_RANK" } },
	{ "... without a rank", { { 0 } }, { "AZUREML_NODE_COUNT=2" }, NULL, 0, 1, 0,
		{ "one node", "one node" } },
	{ "... that is no number", { { 0 } }, { "AZUREML_NODE_COUNT=x" }, NULL, -EINVAL, 0, 0,
		{ "AZUREML_NODE_COUNT: \"x\"" } },
	{ "... below NNODES", { { 0 } }, { "NODE_RANK=1", "NNODES=3", "AZUREML_NODE_COUNT=2" },
		NULL, 0, 3, 1, { "NNODES" } },
	{ "... below what is given", { { SET_NNODES, "1", LEVEL_COMMAND_LINE } },
		{ "NODE_RANK=0", "AZUREML_NODE_COUNT=2" }, NULL, 0, 1, 0, { "given" } },
	{ "... below MPI's", { { 0 } },
		{ "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "AZUREML_NODE_COUNT=2" },
		"mpirun", 0, 4, 1, { "OMPI_COMM_WORLD_SIZE" } },
	{ "... inside a worker", { { 0 } },
		{ "TORCHELASTIC_RUN_ID=x", "LOCAL_RANK=1", "NODE_RANK=1", "AZUREML_NODE_COUNT=2" },
		NULL, 0, 1, 0, { "one node" } },
	{ "empty variables say nothing", { { 0 } }, { "NODE_RANK=", "NNODES=" }, NULL, 0, 1, 0,
		{ "one node" } },
	{ "the system's file fills a gap", { { SET_NNODES, "2", LEVEL_SYSTEM_FILE } },
		{ "NODE_RANK=1" }, NULL, 0, 2, 1, { "given" } },
	{ "the system's file is below anyone's variables",
		{ { SET_NNODES, "2", LEVEL_SYSTEM_FILE } }, { "NODE_RANK=1", "NNODES=3" }, NULL, 0,
		3, 1, { "NNODES" } },
	{ "the system's file does not contradict MPI", { { SET_NNODES, "2", LEVEL_SYSTEM_FILE } },
		{ "PMI_RANK=0", "PMI_SIZE=3" }, "mpiexec", 0, 3, 0, { "PMI_SIZE" } },
	{ "a size without a rank is torchrun's rank 0", { { SET_NNODES, "2", LEVEL_COMMAND_LINE } },
		{ NULL }, NULL, 0, 2, 0, { "given", "default" } },
	{ "a size without a rank, which c10d chooses",
		{ { SET_NNODES, "2", LEVEL_COMMAND_LINE },
			{ SET_RDZV_BACKEND, "c10d", LEVEL_COMMAND_LINE } },
		{ NULL }, NULL, 0, 2, 0, { "given", "rendezvous" } },
	{ "anyone's size without a rank, which c10d chooses",
		{ { SET_RDZV_BACKEND, "c10d", LEVEL_COMMAND_LINE } }, { "NNODES=3" }, NULL, 0, 3, 0,
		{ "NNODES", "rendezvous" } },
	{ "a given rank with c10d",
		{ { SET_NNODES, "2", LEVEL_COMMAND_LINE }, { SET_NODE_RANK, "1", LEVEL_PET },
			{ SET_RDZV_BACKEND, "c10d", LEVEL_COMMAND_LINE } },
		{ NULL }, NULL, 0, 2, 1, { "given", "given" } },
	{ "a pod of an Indexed Job, with a given size", { { SET_NNODES, "3", LEVEL_COMMAND_LINE } },
		{ "JOB_COMPLETION_INDEX=2" }, NULL, 0, 3, 2, { "given", "JOB_COMPLETION_INDEX" } },
	{ "... with anyone's size", { { 0 } }, { "NNODES=3", "JOB_COMPLETION_INDEX=2" }, NULL, 0, 3,
		2, { "NNODES", "JOB_COMPLETION_INDEX" } },
	{ "... below anyone's rank", { { SET_NNODES, "3", LEVEL_PET } },
		{ "NODE_RANK=1", "JOB_COMPLETION_INDEX=2" }, NULL, 0, 3, 1,
		{ "given", "NODE_RANK" } },
	{ "... of a job of one node", { { 0 } }, { "JOB_COMPLETION_INDEX=7" }, NULL, 0, 1, 0,
		{ "one node", "one node" } },
	{ "... of a job that says so", { { SET_NNODES, "1", LEVEL_COMMAND_LINE } },
		{ "JOB_COMPLETION_INDEX=7" }, NULL, 0, 1, 0, { "given" } },
	{ "... where c10d chooses the ranks",
		{ { SET_NNODES, "2", LEVEL_COMMAND_LINE },
			{ SET_RDZV_BACKEND, "c10d", LEVEL_COMMAND_LINE } },
		{ "JOB_COMPLETION_INDEX=1" }, NULL, 0, 2, 0, { "given", "rendezvous" } },
	{ "... where c10d can't choose",
		{ { SET_NNODES, "2", LEVEL_COMMAND_LINE },
			{ SET_RDZV_BACKEND, "c10d", LEVEL_COMMAND_LINE },
			{ SET_CONTROL, "off", LEVEL_COMMAND_LINE } },
		{ "JOB_COMPLETION_INDEX=1" }, NULL, 0, 2, 1, { "given", "JOB_COMPLETION_INDEX" } },
	{ "... beside MPI", { { 0 } }, { "PMI_RANK=0", "PMI_SIZE=3", "JOB_COMPLETION_INDEX=1" },
		"mpiexec", 0, 3, 0, { "PMI_SIZE", "PMI_RANK" } },
	{ "... inside a worker", { { SET_NNODES, "2", LEVEL_COMMAND_LINE } },
		{ "TORCHELASTIC_RUN_ID=x", "LOCAL_RANK=1", "JOB_COMPLETION_INDEX=1" }, NULL, 0, 2,
		0, { "given", "default" } },
	{ "... outside the job", { { SET_NNODES, "2", LEVEL_COMMAND_LINE } },
		{ "JOB_COMPLETION_INDEX=2" }, NULL, -EINVAL, 0, 0,
		{ "node rank 2 (JOB_COMPLETION_INDEX)", "number of nodes, 2 (given)" } },
	{ "... that is no number", { { SET_NNODES, "2", LEVEL_COMMAND_LINE } },
		{ "JOB_COMPLETION_INDEX=x" }, NULL, -EINVAL, 0, 0,
		{ "JOB_COMPLETION_INDEX: \"x\" is not a whole number" } },
	{ "the environment's ranks are the node's",
		{ { SET_ENV_RANKS, "node", LEVEL_COMMAND_LINE } },
		{ "RANK=2", "WORLD_SIZE=3", "NODE_RANK=0", "NNODES=2", "LOCAL_RANK=0" }, NULL, 0, 3,
		2, { "WORLD_SIZE", "RANK" } },
	{ "... beside a given size",
		{ { SET_ENV_RANKS, "node", LEVEL_COMMAND_LINE },
			{ SET_NNODES, "4", LEVEL_COMMAND_LINE } },
		{ "RANK=2", "WORLD_SIZE=3" }, NULL, 0, 4, 2, { "given", "RANK" } },
	{ "... where mpirun says its own", { { SET_ENV_RANKS, "node", LEVEL_COMMAND_LINE } },
		{ "RANK=2", "WORLD_SIZE=3", "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4" },
		"mpirun", 0, 4, 1, { "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK" } },
	{ "... inside a worker", { { SET_ENV_RANKS, "node", LEVEL_COMMAND_LINE } },
		{ "TORCHELASTIC_RUN_ID=x", "LOCAL_RANK=1", "RANK=2", "WORLD_SIZE=3" }, NULL, 0, 1,
		0, { "one node" } },
	{ "... without a rank", { { SET_ENV_RANKS, "node", LEVEL_COMMAND_LINE } },
		{ "WORLD_SIZE=3" }, NULL, -EINVAL, 0, 0, { "RANK is not set" } },
	{ "... without a size", { { SET_ENV_RANKS, "node", LEVEL_COMMAND_LINE } }, { "RANK=0" },
		NULL, -EINVAL, 0, 0, { "WORLD_SIZE is not set" } },
	{ "... outside the job", { { SET_ENV_RANKS, "node", LEVEL_COMMAND_LINE } },
		{ "RANK=3", "WORLD_SIZE=3" }, NULL, -EINVAL, 0, 0,
		{ "node rank 3 (RANK)", "3 (WORLD_SIZE)" } },
	{ "by default they are a worker's", { { 0 } }, { "RANK=2", "WORLD_SIZE=3" }, NULL, 0, 1, 0,
		{ "one node" } },
	{ "inside a worker its ranks are not ours", { { 0 } },
		{ "TORCHELASTIC_RUN_ID=x", "LOCAL_RANK=1", "NODE_RANK=1", "NNODES=2",
			"OMPI_COMM_WORLD_RANK=3" },
		NULL, 0, 1, 0, { "one node", "one node" } },
	{ "mpirun in a worker brings ranks of its own", { { 0 } },
		{ "TORCHELASTIC_RUN_ID=x", "LOCAL_RANK=1", "PMIX_RANK=1", "OMPI_COMM_WORLD_RANK=1",
			"OMPI_COMM_WORLD_SIZE=2" },
		"mpirun", 0, 2, 1, { "OMPI_COMM_WORLD_SIZE" } },
	{ "what is no number and not looked at is no error",
		{ { SET_NNODES, "2", LEVEL_COMMAND_LINE },
			{ SET_NODE_RANK, "1", LEVEL_COMMAND_LINE } },
		{ "NODE_RANK=x", "NNODES=y" }, NULL, 0, 2, 1, { "given", "given" } },
	{ "standalone is one node, whatever MPI says", { { SET_STANDALONE, "1", LEVEL_PET } },
		{ "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4" }, "mpirun", 0, 1, 0,
		{ "given", "given" } },
	{ "standalone ignores even what is no number", { { SET_STANDALONE, "1", LEVEL_PET } },
		{ "PMI_RANK=x" }, "mpiexec", 0, 1, 0, { "given" } },

	{ "a rank above 0 without a size names --nnodes", { { 0 } }, { "NODE_RANK=1" }, NULL,
		-EINVAL, 0, 0, { "NODE_RANK says 1", "--nnodes" } },
	{ "a given rank above 0 without a size", { { SET_NODE_RANK, "1", LEVEL_COMMAND_LINE } },
		{ NULL }, NULL, -EINVAL, 0, 0, { "given says 1", "--nnodes" } },
	{ "MPI's rank without a size", { { 0 } }, { "OMPI_COMM_WORLD_RANK=0" }, "mpirun", -EINVAL,
		0, 0, { "OMPI_COMM_WORLD_RANK says 0", "OMPI_COMM_WORLD_SIZE" } },
	{ "MPI's size without a rank", { { 0 } }, { "PMI_SIZE=2" }, "mpiexec", -EINVAL, 0, 0,
		{ "PMI_SIZE says 2", "--node_rank", "PMI_RANK" } },
	{ "anyone's size without a rank", { { 0 } }, { "NNODES=2" }, NULL, -EINVAL, 0, 0,
		{ "NNODES says 2", "--node_rank" } },
	{ "a size without a rank, where c10d can't choose it",
		{ { SET_NNODES, "2", LEVEL_COMMAND_LINE },
			{ SET_RDZV_BACKEND, "c10d", LEVEL_COMMAND_LINE },
			{ SET_CONTROL, "off", LEVEL_COMMAND_LINE } },
		{ NULL }, NULL, -EINVAL, 0, 0, { "given says 2", "--node_rank" } },
	{ "MPI's size without a rank, with c10d", { { SET_RDZV_BACKEND, "c10d", LEVEL_PET } },
		{ "PMI_SIZE=2" }, "mpiexec", -EINVAL, 0, 0, { "--node_rank" } },
	{ "a given size that contradicts MPI's", { { SET_NNODES, "3", LEVEL_COMMAND_LINE } },
		{ "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2" }, "mpirun", -EINVAL, 0, 0,
		{ "given says 3, but OMPI_COMM_WORLD_SIZE says 2" } },
	{ "a given rank that contradicts MPI's", { { SET_NODE_RANK, "0", LEVEL_FILE } },
		{ "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2" }, "mpirun", -EINVAL, 0, 0,
		{ "given says 0, but OMPI_COMM_WORLD_RANK says 1" } },
	{ "a given rank that contradicts Slurm's", { { SET_NODE_RANK, "0", LEVEL_PET } },
		{ "SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_NTASKS=2" }, "srun", -EINVAL, 0, 0,
		{ "given says 0, but SLURM_PROCID says 1" } },
	{ "a rank as large as the size", { { 0 } }, { "PMI_RANK=2", "PMI_SIZE=2" }, "mpiexec",
		-EINVAL, 0, 0, { "node rank 2 (PMI_RANK)", "2 (PMI_SIZE)" } },
	{ "a given rank beyond anyone's size", { { SET_NODE_RANK, "5", LEVEL_COMMAND_LINE } },
		{ "NNODES=2" }, NULL, -EINVAL, 0, 0, { "5 (given)", "2 (NNODES)" } },
	{ "a rank that is no number", { { 0 } }, { "PMI_RANK=one", "PMI_SIZE=2" }, "mpiexec",
		-EINVAL, 0, 0, { "PMI_RANK: \"one\"" } },
	{ "a negative rank", { { 0 } }, { "NODE_RANK=-1", "NNODES=2" }, NULL, -EINVAL, 0, 0,
		{ "NODE_RANK: \"-1\"" } },
	{ "a size of 0", { { 0 } }, { "NODE_RANK=0", "NNODES=0" }, NULL, -EINVAL, 0, 0,
		{ "NNODES: \"0\" is not a whole number from 1" } },
	{ "a size beyond all bounds", { { 0 } }, { "NODE_RANK=0", "NNODES=4294967297" }, NULL,
		-EINVAL, 0, 0, { "NNODES: \"4294967297\"" } },
	{ "standalone with several nodes",
		{ { SET_STANDALONE, "1", LEVEL_COMMAND_LINE },
			{ SET_NNODES, "2", LEVEL_COMMAND_LINE } },
		{ NULL }, NULL, -EINVAL, 0, 0, { "means one node" } },
	{ "standalone with another rank",
		{ { SET_STANDALONE, "1", LEVEL_COMMAND_LINE },
			{ SET_NODE_RANK, "1", LEVEL_COMMAND_LINE } },
		{ NULL }, NULL, -EINVAL, 0, 0, { "means one node" } },
};

static void test_identity(void **state)
{
	const struct identity_row *row = *state;
	struct identity id = { 77, 77, NULL, NULL, false, false };
	struct settings_fixture b;
	int rc;
	const struct facts facts = { .env = row->env };
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	settings_fixture_make(&b, false);
	settings_fixture_put_all(&b, row->put, 3);
	assert_ptr_equal(launcher_of(row->env), unit_launcher(row->launcher));
	rc = identity_find(&d, unit_launcher(row->launcher), &id);
	assert_outcome(rc, row->rc, &b.why, NULL);
	if (rc < 0) {
		for (size_t i = 0; i < 3 && row->part[i]; i++)
			assert_contains(b.why.text, row->part[i]);
		assert_int_equal(id.nnodes, 77);
	} else {
		assert_int_equal(id.nnodes, row->nnodes);
		assert_int_equal(id.node_rank, row->node_rank);
		assert_string_equal(id.nnodes_from, row->part[0]);
		if (row->part[1])
			assert_string_equal(id.node_rank_from, row->part[1]);
		assert_int_equal(id.node_rank_known, strcmp(id.node_rank_from, "rendezvous") != 0);
	}
	settings_fixture_done(&b);
}

static void test_note(void **state)
{
	struct identity id;
	struct settings_fixture b;
	const struct facts facts = { .env = NULL };
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	(void)state;
	settings_fixture_make(&b, false);
	settings_fixture_put(&b, SET_NNODES, "2", "--nnodes");
	assert_int_equal(identity_find(&d, launcher_anyone(), &id), 0);
	assert_note(&b.notes, NOTE_WARNING, "--node_rank");
	settings_fixture_done(&b);
}

TESTS(identity)
{
	static struct suite s;

	SUITE_ROWS(&s, test_identity, rows);
	suite_add(&s, "a rank that is taken as 0 is said", test_note, NULL, NULL);
	return suite_run(&s);
}
