/* slurm_tasks.c - workers as the tasks of a Slurm step; see decide.h */
#include "daemon/plan/decide.h"

#include <string.h>

#include "common/arena.h"
#include "common/notes.h"
#include "common/text.h"
#include "common/vec.h"
#include "config/settings.h"
#include "daemon/facts/facts.h"
#include "daemon/plan/plan.h"

/* As SLURM_TASKS_PER_NODE has it (sbatch(1)): nodes in a row that have the same number share it. */
static void add_tasks(const unsigned *nproc_of_node, unsigned nnodes, struct text *out)
{
	unsigned same;

	for (unsigned i = 0; i < nnodes; i += same) {
		for (same = 1; i + same < nnodes && nproc_of_node[i + same] == nproc_of_node[i];)
			same++;
		text_printf(out, "%s%u", i ? "," : "", nproc_of_node[i]);
		if (same > 1)
			text_printf(out, "(x%u)", same);
	}
}

void decide_slurm(const struct deciding *d, const unsigned *nproc_of_node, struct plan *p)
{
	const char *job = env_get(d->facts->env, "SLURM_JOB_ID");
	struct text tasks = { 0 };

	if (p->mpi_env != MPI_ENV_REWRITE_SLURM)
		return;
	if (!job || !*job) {
		notes_add(d->notes, NOTE_INFO,
			"%s: this is no Slurm job (SLURM_JOB_ID is not set), so rewrite-slurm is the "
			"same as rewrite",
			settings_where(d->s, SET_MPI_ENV));
		return;
	}
	add_tasks(nproc_of_node, p->nnodes, &tasks);
	p->slurm_tasks = arena_strdup(d->s->arena, text_string(&tasks));
	d->s->arena->failed = d->s->arena->failed || tasks.failed;
	text_done(&tasks);
}
