/* test_slurm_tasks.c - workers as the tasks of a Slurm step. */
#include "tests/unit/unit.h"

#include <string.h>

#include "daemon/facts/facts.h"
#include "daemon/plan/decide.h"
#include "daemon/plan/plan.h"

static const struct tasks_row {
	const char *says;
	const char *env;
	enum mpi_env policy;
	unsigned nnodes, nproc[4];
	const char *tasks; /* NULL: none are shown */
	const char *note;  /* NULL: none */
} rows[] = {
	{ "one node", "SLURM_JOB_ID=7", MPI_ENV_REWRITE_SLURM, 1, { 4 }, "4", NULL },
	{ "nodes that have the same number", "SLURM_JOB_ID=7", MPI_ENV_REWRITE_SLURM, 3,
		{ 2, 2, 2 }, "2(x3)", NULL },
	{ "nodes that have not", "SLURM_JOB_ID=7", MPI_ENV_REWRITE_SLURM, 4, { 2, 2, 3, 2 },
		"2(x2),3,2", NULL },
	{ "not asked for", "SLURM_JOB_ID=7", MPI_ENV_REWRITE, 1, { 4 }, NULL, NULL },
	{ "no job of Slurm's", "A=b", MPI_ENV_REWRITE_SLURM, 1, { 4 }, NULL,
		"default: this is no Slurm job (SLURM_JOB_ID is not set), so rewrite-slurm is the "
		"same as rewrite" },
	{ "an empty number of a job is none", "SLURM_JOB_ID=", MPI_ENV_REWRITE_SLURM, 1, { 4 },
		NULL, "default: this is no Slurm job" },
};

static void test_tasks(void **state)
{
	const struct tasks_row *row = *state;
	const char *const env[] = { row->env, NULL };
	const struct facts facts = { .env = env };
	struct settings_fixture b;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };
	struct plan p = { .mpi_env = row->policy, .nnodes = row->nnodes };

	settings_fixture_make(&b, false);
	decide_slurm(&d, row->nproc, &p);
	if (row->tasks)
		assert_string_equal(p.slurm_tasks, row->tasks);
	else
		assert_null(p.slurm_tasks);
	if (row->note)
		assert_note(&b.notes, NOTE_INFO, row->note);
	else
		assert_null(b.notes.first);
	settings_fixture_done(&b);
}

TESTS(slurm_tasks)
{
	static struct suite s;

	SUITE_ROWS(&s, test_tasks, rows);
	return suite_run(&s);
}
