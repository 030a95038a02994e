/* test_topology.c - number of workers, and what users should know of how they were started. */
#include "tests/unit/unit.h"

#include <errno.h>

#include "daemon/facts/facts.h"
#include "daemon/plan/topology.h"

static const struct nproc_row {
	const char *says, *text;
	unsigned cpus, gpus;
	int rc;
	unsigned nproc;
	const char *from; /* or part of the sentence */
} nprocs[] = {
	{ "a number", "3", 8, 2, 0, 3, "--here" },
	{ "cpu", "cpu", 8, 2, 0, 8, "--here=cpu, CPUs" },
	{ "gpu", "gpu", 8, 2, 0, 2, "--here=gpu, GPUs" },
	{ "auto with GPUs", "auto", 8, 2, 0, 2, "--here=auto, GPUs" },
	{ "auto without any", "auto", 8, 0, 0, 8, "--here=auto, CPUs" },
	{ "gpu without any", "gpu", 8, 0, -EINVAL, 0, "no GPU" },
};

static void test_nproc(void **state)
{
	const struct nproc_row *row = *state;
	const struct facts facts = { .hostname = "h", .cpus = row->cpus, .gpus = row->gpus };
	struct topology t = { 0 };
	struct settings_fixture b;
	int rc;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	settings_fixture_make(&b, false);
	assert_int_equal(settings_put(&b.s, SET_NPROC_PER_NODE, row->text,
				 (struct origin){ LEVEL_COMMAND_LINE, "--here" }, &b.why),
		0);
	rc = topology_begin(&d, &t);
	assert_outcome(rc, row->rc, &b.why, rc < 0 ? row->from : NULL);
	assert_int_equal(t.nproc, row->nproc);
	if (rc == 0)
		assert_string_equal(t.nproc_from, row->from);
	settings_fixture_done(&b);
}

static const struct note_row {
	const char *says;
	const char *env[5];
	bool unbound;
	enum note_level level;
	const char *part;
} notes[] = {
	{ "a binding that was taken off is said to who asks", { NULL }, true, NOTE_VERBOSE,
		"fewer CPUs than it may use; launchd has undone that, and workers may use all 8" },
	{ "... and to nobody else", { NULL }, true, NOTE_INFO, NULL },
	{ "nothing to say", { NULL }, false, NOTE_INFO, NULL },
	{ "several tasks of srun on a node",
		{ "SLURM_STEP_ID=0", "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=4",
			"SLURM_STEP_NUM_NODES=2", "MASTER_ADDR=h" },
		false, NOTE_WARNING, "--ntasks-per-node=1" },
	{ "several launchers of mpirun on a host",
		{ "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=4",
			"OMPI_COMM_WORLD_LOCAL_SIZE=2", "MASTER_ADDR=h" },
		false, NOTE_WARNING, "mpirun started 2 launchers on this host" },
	{ "one task of srun on a node",
		{ "SLURM_STEP_ID=0", "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2",
			"SLURM_STEP_NUM_NODES=2", "MASTER_ADDR=h" },
		false, NOTE_INFO, NULL },
};

static void test_note(void **state)
{
	const struct note_row *row = *state;
	const char *env[6] = { NULL };
	struct facts facts = {
		.env = env, .hostname = "h", .cpus = 8, .cpus_unbound = row->unbound
	};
	struct topology t;
	struct settings_fixture b;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	for (size_t i = 0; i < 5; i++)
		env[i] = row->env[i];
	settings_fixture_make(&b, false);
	assert_outcome(topology_begin(&d, &t), 0, &b.why, NULL);
	assert_note(&b.notes, row->level, row->part);
	settings_fixture_done(&b);
}

int main(void)
{
	static struct suite s;

	SUITE_ROWS(&s, test_nproc, nprocs);
	SUITE_ROWS(&s, test_note, notes);
	return suite_run(&s);
}
