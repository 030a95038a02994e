/* test_topology.c - number of workers, and what users should know of how they were started. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "daemon/facts/facts.h"
#include "daemon/plan/topology.h"

static const struct nproc_row {
	const char *says, *text;
	unsigned cpus, gpus;
	int rc;
	unsigned nproc;
	const char *from; /* or part of the sentence */
	const char *chosen, *per_worker;
	const char *said;     /* NVIDIA's GPUs are here, but this is all that NVML says */
	const char *variable; /* of the environment */
} nprocs[] = {
	{ "a number", "3", 8, 2, 0, 3, "--here", NULL, NULL, NULL, NULL },
	{ "cpu", "cpu", 8, 2, 0, 8, "--here=cpu, CPUs", NULL, NULL, NULL, NULL },
	{ "gpu", "gpu", 8, 2, 0, 2, "--here=gpu, GPUs", NULL, NULL, NULL, NULL },
	{ "auto with GPUs", "auto", 8, 2, 0, 2, "--here=auto, GPUs", NULL, NULL, NULL, NULL },
	{ "auto without any", "auto", 8, 0, 0, 8, "--here=auto, CPUs", NULL, NULL, NULL, NULL },
	{ "gpu without any", "gpu", 8, 0, -EINVAL, 0, "no GPU", NULL, NULL, NULL, NULL },
	{ "gpu, two of which are chosen", "gpu", 8, 6, 0, 2, "--here=gpu, GPUs", "0,5", NULL, NULL,
		NULL },
	{ "gpu, two for each worker", "gpu", 8, 6, 0, 3, "--here=gpu, GPUs", NULL, "2", NULL,
		NULL },
	{ "gpu, some are left over", "gpu", 8, 6, 0, 1, "--here=gpu, GPUs", NULL, "4", NULL, NULL },
	{ "gpu, two of three chosen ones for each", "gpu", 8, 6, 0, 1, "--here=gpu, GPUs", "0-2",
		"2", NULL, NULL },
	{ "gpu, fewer than each worker needs", "gpu", 8, 6, -EINVAL, 0, "but there are fewer", NULL,
		"7", NULL, NULL },
	{ "gpu that isn't there", "gpu", 8, 2, -EINVAL, 0, "no GPU 2 among the 2 GPUs", "2", NULL,
		NULL, NULL },
	{ "auto with chosen GPUs that nobody can count", "auto", 8, 0, 0, 8, "--here=auto, CPUs",
		"0,1", NULL, NULL, NULL },
	{ "gpu where NVML fails", "gpu", 8, 0, -EINVAL, 0,
		"--here: \"gpu\" needs the number of GPUs, but it isn't known here (NVML: nvmlInit: "
		"error 42): give a number, or cpu",
		NULL, NULL, "NVML: nvmlInit: error 42", NULL },
	{ "auto where NVML fails does not guess", "auto", 8, 0, -EINVAL, 0,
		"--here: \"auto\" needs the number of GPUs, but it isn't known here (error 42)",
		NULL, NULL, "error 42", NULL },
	{ "cpu where NVML fails", "cpu", 8, 0, 0, 8, "--here=cpu, CPUs", NULL, NULL, "error 42",
		NULL },
	{ "a number where NVML fails", "3", 8, 0, 0, 3, "--here", NULL, NULL, "error 42", NULL },
	{ "auto where all GPUs are hidden", "auto", 8, 0, 0, 8, "--here=auto, CPUs", NULL, NULL,
		"error 42", "CUDA_VISIBLE_DEVICES=" },
	{ "auto with a list of GPUs where NVML fails", "auto", 8, 0, -EINVAL, 0, "(error 42)", NULL,
		NULL, "error 42", "CUDA_VISIBLE_DEVICES=0,1" },
	{ "auto with AMD's GPUs by name", "auto", 8, 0, 0, 2, "--here=auto, GPUs", NULL, NULL,
		"error 42", "HIP_VISIBLE_DEVICES=0,1" },
	{ "two GPUs for each worker where NVML fails", "gpu", 8, 0, -EINVAL, 0,
		"--gpus-per-worker: which GPUs are here isn't known: error 42", NULL, "2",
		"error 42", NULL },
};

static void test_nproc(void **state)
{
	const struct nproc_row *row = *state;
	const char *const env[] = { row->variable, NULL };
	const struct facts facts = { .hostname = "h",
		.env = env,
		.cpus = row->cpus,
		.gpus = { .known = row->gpus > 0,
			.count = row->gpus,
			.loaded = row->said,
			.here = row->said,
			.said = row->said } };
	struct topology t = { 0 };
	struct settings_fixture b;
	int rc;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	settings_fixture_make(&b, false);
	settings_fixture_put(&b, SET_NPROC_PER_NODE, row->text, "--here");
	settings_fixture_put(&b, SET_GPUS, row->chosen, "--gpus");
	settings_fixture_put(&b, SET_GPUS_PER_WORKER, row->per_worker, "--gpus-per-worker");
	rc = topology_begin(&d, &t);
	assert_outcome(rc, row->rc, &b.why, rc < 0 ? row->from : NULL);
	assert_int_equal(t.nproc, row->nproc);
	if (rc == 0)
		assert_string_equal(t.nproc_from, row->from);
	if (strcmp(row->says, "gpu, some are left over") == 0)
		assert_note(&b.notes, NOTE_WARNING, "2 of 6 GPUs are left over");
	settings_fixture_done(&b);
}

static const struct typed_row {
	const char *says, *tasks;
	bool typed;
	enum setting_id given;
	const char *part; /* NULL: it is a job */
} typed[] = {
	{ "in the shell of one of two tasks", "2", true, SETTING_COUNT,
		"SLURM_STEP_NUM_TASKS says 2, but this command was typed in the shell of one task (srun --pty)" },
	{ "the advice", "2", true, SETTING_COUNT, "--standalone starts a job of this node alone" },
	{ "by srun itself, or by a script", "2", false, SETTING_COUNT, NULL },
	{ "in the shell of the only task", "1", true, SETTING_COUNT, NULL },
	{ "somebody starts the others, too", "2", true, SET_NNODES, NULL },
	{ "who has followed the advice", "2", true, SET_STANDALONE, NULL },
};

static void test_typed(void **state)
{
	const struct typed_row *row = *state;
	struct settings_fixture b;
	const char *env[] = { "SLURM_STEP_ID=0", "SLURM_PROCID=0", NULL, NULL };
	const struct facts facts = { .env = env, .typed = row->typed };
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };
	struct topology t = { 0 };

	settings_fixture_make(&b, false);
	env[2] = arena_printf(&b.arena, "SLURM_STEP_NUM_TASKS=%s", row->tasks);
	if (row->given != SETTING_COUNT)
		settings_fixture_put(
			&b, row->given, row->given == SET_NNODES ? row->tasks : "1", "given");
	assert_outcome(topology_begin(&d, &t), row->part ? -EINVAL : 0, &b.why, row->part);
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

TESTS(topology)
{
	static struct suite s;

	SUITE_ROWS(&s, test_nproc, nprocs);
	SUITE_ROWS(&s, test_typed, typed);
	SUITE_ROWS(&s, test_note, notes);
	return suite_run(&s);
}
