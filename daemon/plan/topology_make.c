/* topology_make.c - where this node stands, put together; see topology.h */
#include "daemon/plan/topology.h"

#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/notes.h"
#include "common/num.h"
#include "config/settings.h"
#include "daemon/facts/facts.h"
#include "daemon/plan/visible.h"

/* --node-env: what starts its own ranks is started once, whatever the system's file or a list of
 * nodes says for other jobs. */
static int one_script(const struct deciding *d, struct topology *t)
{
	const struct value *given = &d->s->value[SET_NPROC_PER_NODE];

	if (given->from.level > LEVEL_SYSTEM_FILE && t->nproc != 1)
		return failure_usage(d->why,
			"%s starts the script once on each node, but %s says %s: leave it out, and tell "
			"the script how many ranks to start",
			settings_label(d->s, SET_NODE_ENV),
			settings_label(d->s, SET_NPROC_PER_NODE), given->text);
	t->nproc = 1;
	t->nproc_from = settings_where(d->s, SET_NODE_ENV);
	return 0;
}

/* How many workers the GPUs that launchd sees suffice for; 0: there are none, or nobody knows. Of
 * NVIDIA's a list alone doesn't tell whether they are there. */
static int workers_by_gpus(const struct deciding *d, unsigned *ret)
{
	struct visible v;

	*ret = 0;
	if (visible_choose(d->s, d->facts->env, &d->facts->gpus, &v, d->why) < 0)
		return d->why->code;
	if (v.own.maker == GPU_NVIDIA && !d->facts->gpus.known)
		return 0;
	*ret = visible_workers(&v);
	if (*ret > 0 && v.list.count % v.per_worker != 0)
		notes_add(d->notes, NOTE_WARNING,
			"%s: %zu of %zu GPUs are left over, as each worker takes %u",
			settings_label(d->s, SET_GPUS_PER_WORKER), v.list.count % v.per_worker,
			v.list.count, v.per_worker);
	return 0;
}

/* --nproc_per_node auto, cpu, gpu */
static int nproc_count(const struct deciding *d, struct topology *t)
{
	const char *text = settings_text(d->s, SET_NPROC_PER_NODE);
	const char *where = settings_where(d->s, SET_NPROC_PER_NODE);
	bool by_cpus = settings_is(d->s, SET_NPROC_PER_NODE, "cpu");
	unsigned by_gpus = 0;

	if (!by_cpus && workers_by_gpus(d, &by_gpus) < 0)
		return d->why->code;
	if (by_gpus > 0) {
		t->nproc = by_gpus;
		t->nproc_from = arena_printf(d->s->arena, "%s=%s, GPUs", where, text);
	} else if (by_cpus || settings_is(d->s, SET_NPROC_PER_NODE, "auto")) {
		t->nproc = d->facts->cpus;
		t->nproc_from = arena_printf(d->s->arena, "%s=%s, CPUs", where, text);
	} else if (settings_number(d->s, SET_GPUS_PER_WORKER) > 1 && d->facts->gpus.count > 0) {
		return failure_usage(d->why,
			"%s: \"gpu\" means one worker for %u GPUs (%s), but there are fewer", where,
			(unsigned)settings_number(d->s, SET_GPUS_PER_WORKER),
			settings_label(d->s, SET_GPUS_PER_WORKER));
	} else {
		return failure_usage(d->why,
			"%s: \"gpu\" means one worker per GPU, but NVML and CUDA_VISIBLE_DEVICES show no GPU here",
			where);
	}
	return 0;
}

static int nproc_find(const struct deciding *d, struct topology *t)
{
	t->nproc = (unsigned)settings_number(d->s, SET_NPROC_PER_NODE);
	t->nproc_from = settings_where(d->s, SET_NPROC_PER_NODE);
	if (settings_flag(d->s, SET_NODE_ENV))
		return one_script(d, t);
	if (listed_slots(d, t, &t->hosts) < 0)
		return d->why->code;
	if (t->hosts) {
		const struct host *own = &t->hosts->at[t->identity.node_rank];

		t->nproc = own->slots;
		t->nproc_from = arena_printf(d->s->arena, "%s: slots", own->where);
	}
	return t->nproc ? 0 : nproc_count(d, t);
}

/* Several tasks of one step on a node would each start all of the node's workers. */
static void note_slurm_tasks(const struct deciding *d)
{
	const char *tasks = env_get(d->facts->env, "SLURM_STEP_NUM_TASKS");
	const char *nodes = env_get(d->facts->env, "SLURM_STEP_NUM_NODES");

	if (tasks && nodes && strcmp(tasks, nodes) != 0)
		notes_add(d->notes, NOTE_WARNING,
			"srun started %s launchers on %s nodes, and each counts as a node of its own; for one launcher per node use srun --ntasks-per-node=1, for one per worker launchd --per-process",
			tasks, nodes);
}

/* The same of mpirun. That it is a number is checked where it counts (master.c). */
static void note_mpi_tasks(const struct deciding *d)
{
	const char *local_size = env_get(d->facts->env, "OMPI_COMM_WORLD_LOCAL_SIZE");
	uint64_t n;

	if (local_size && num_parse(local_size, 2, UINT32_MAX, &n) == 0)
		notes_add(d->notes, NOTE_WARNING,
			"mpirun started %s launchers on this host, and each counts as a node of its own; for one launcher per node use mpirun --map-by ppr:1:node, for one per worker launchd --per-process",
			local_size);
}

/* A batch script runs on the first node of its job; what it starts without srun runs there only. */
static void note_batch_script(const struct deciding *d, const struct topology *t)
{
	const char *nodes = env_get(d->facts->env, "SLURM_JOB_NUM_NODES");

	if (t->launcher != LAUNCHER_NONE || t->identity.nnodes != 1 || !nodes ||
		strcmp(nodes, "1") == 0 || settings_given(d->s, SET_NNODES) ||
		settings_flag(d->s, SET_STANDALONE) || inside_worker(d->facts->env))
		return;
	notes_add(d->notes, NOTE_WARNING,
		"the Slurm job has %s nodes, but this is a job of one node: srun "
		"--ntasks-per-node=1 launchd ... starts one launcher on each",
		nodes);
}

/* A variable's number, if it is one and above 1. */
static bool is_several(const struct deciding *d, const char *name, uint64_t *ret)
{
	const char *text = env_get(d->facts->env, name);

	return text && num_parse(text, 2, UINT32_MAX, ret) == 0;
}

/* PyTorch's own names, as Kubernetes' PyTorchJob and Azure ML's "type: pytorch" set them, tell of
 * a job of which this launcher is one process. Workers of any launcher have them, too, with
 * LOCAL_RANK: what starts there is a job of its own. */
static void note_ranks_of_others(const struct deciding *d, const struct topology *t)
{
	const char *rank = env_get(d->facts->env, "RANK");
	const char *from = t->identity.nnodes_from;
	unsigned nnodes = t->identity.nnodes;
	uint64_t size;

	if (t->launcher != LAUNCHER_NONE || inside_worker(d->facts->env) || !rank || !*rank ||
		!is_several(d, "WORLD_SIZE", &size))
		return;
	if (strcmp(from, AZURE_NODES) == 0 && size > nnodes)
		notes_add(d->notes, NOTE_WARNING,
			"Azure ML started %llu processes on %u node%s, and each starts all of a "
			"node's workers: set process_count_per_instance to 1",
			(unsigned long long)size, nnodes, nnodes == 1 ? "" : "s");
	if (strcmp(from, ONE_NODE) == 0 && !env_get(d->facts->env, "LOCAL_RANK"))
		notes_add(d->notes, NOTE_WARNING,
			"RANK=%s and WORLD_SIZE=%llu are set, but this is a job of one node: to run one job on all nodes, give --env-ranks node, or --nnodes $WORLD_SIZE --node_rank $RANK (--nnodes 1 confirms that one node is meant)",
			rank, (unsigned long long)size);
}

/* MPI's and Slurm's own numbers can't be wrong; others may have exported those for another program.
 */
static void note_env_ranks(const struct deciding *d, const struct topology *t)
{
	if (t->launcher != LAUNCHER_NONE && settings_is(d->s, SET_ENV_RANKS, "node") &&
		!settings_flag(d->s, SET_STANDALONE))
		notes_add(d->notes, NOTE_WARNING,
			"%s: RANK and WORLD_SIZE are not read, because %s started this launcher and "
			"says its rank (%s) and size (%s)",
			settings_label(d->s, SET_ENV_RANKS), launcher_name(t->launcher),
			t->identity.node_rank_from, t->identity.nnodes_from);
}

int topology_begin(const struct deciding *d, struct topology *ret)
{
	struct topology t = { .launcher = launcher_of(d->facts->env) };
	bool per_process = settings_flag(d->s, SET_PER_PROCESS);

	if (identity_find(d, t.launcher, &t.identity) < 0 ||
		(per_process && process_find(d, &t, &t.process) < 0) || nproc_find(d, &t) < 0 ||
		listed_check(d, &t) < 0)
		return d->why->code;
	note_batch_script(d, &t);
	note_ranks_of_others(d, &t);
	note_env_ranks(d, &t);
	if (t.launcher == LAUNCHER_OPEN_MPI && !settings_flag(d->s, SET_STANDALONE) && !per_process)
		note_mpi_tasks(d);
	if (t.launcher == LAUNCHER_SLURM && !settings_flag(d->s, SET_STANDALONE) && !per_process)
		note_slurm_tasks(d);
	if (d->facts->cpus_unbound)
		notes_add(d->notes, NOTE_VERBOSE,
			"mpirun bound this launcher to fewer CPUs than it may use; launchd has undone "
			"that, and workers may use all %u",
			d->facts->cpus);
	if (d->facts->cpus_error)
		notes_add(d->notes, NOTE_WARNING,
			"mpirun's CPU binding can't be undone (%s): workers share %u CPUs; give mpirun --bind-to none",
			strerror(d->facts->cpus_error), d->facts->cpus);
	*ret = t;
	return arena_failed(d->s->arena) ? failure_oom(d->why) : 0;
}

int topology_finish(const struct deciding *d, bool will_meet, struct topology *t)
{
	struct topology now = *t;

	if (master_find(d, now.launcher, &now.identity, will_meet, &now.master) < 0 ||
		control_find(d, &now, &now.control) < 0 ||
		(now.process.is && process_find_host(d, &now) < 0))
		return d->why->code;
	*t = now;
	return arena_failed(d->s->arena) ? failure_oom(d->why) : 0;
}
