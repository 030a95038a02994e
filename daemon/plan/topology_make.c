/* topology_make.c - where this node stands, put together; see topology.h */
#include "daemon/plan/topology.h"

#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/notes.h"
#include "common/num.h"
#include "common/text.h"
#include "config/settings.h"
#include "daemon/facts/devices.h"
#include "daemon/facts/facts.h"
#include "daemon/launchers/launchers.h"
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

/* How many workers the GPUs that launchd sees suffice for; 0: there are none, or their number is
 * not known, and then *ret_unknown. A list alone doesn't show whether NVIDIA's are there, but an
 * empty one hides them all. */
static int workers_by_gpus(const struct deciding *d, unsigned *ret, bool *ret_unknown)
{
	struct visible v;

	*ret = 0;
	if (visible_choose(d->s, d->facts->env, &d->facts->gpus, &v, d->why) < 0)
		return d->why->code;
	*ret_unknown = v.own.maker == GPU_NVIDIA && d->facts->gpus.here &&
		!(v.own.list && devices_count(v.own.list) == 0);
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

/* A variable's number, if it is one in these bounds. */
static bool is_number(
	const struct deciding *d, const char *name, uint64_t min, uint64_t max, uint64_t *ret)
{
	const char *text = env_get(d->facts->env, name);

	return text && num_parse(text, min, max, ret) == 0;
}

/* The variable in which a platform says how many GPUs this node has; NULL: none, or the user
 * chooses some. */
static const char *gpus_by_platform(const struct deciding *d)
{
	const struct launcher *p = NULL;

	if (env_get(d->facts->env, "CUDA_VISIBLE_DEVICES"))
		return NULL;
	while ((p = platform_of(d->facts->env, p)))
		if (p->gpus)
			return p->gpus;
	return NULL;
}

/* Refuses --nproc_per_node gpu, and auto where the number of GPUs is unknown. */
static int nproc_refuse(const struct deciding *d, bool unknown)
{
	const char *where = settings_where(d->s, SET_NPROC_PER_NODE);
	const char *said = d->facts->gpus.said ? d->facts->gpus.said : "";

	if (unknown)
		return failure_usage(d->why,
			"%s: \"%s\" needs the number of GPUs, but it isn't known here (%s): give a number, or cpu",
			where, settings_text(d->s, SET_NPROC_PER_NODE), said);
	if (settings_number(d->s, SET_GPUS_PER_WORKER) > 1 && d->facts->gpus.count > 0)
		return failure_usage(d->why,
			"%s: \"gpu\" means one worker for %u GPUs (%s), but there are fewer", where,
			(unsigned)settings_number(d->s, SET_GPUS_PER_WORKER),
			settings_label(d->s, SET_GPUS_PER_WORKER));
	return failure_usage(d->why,
		"%s: \"gpu\" means one worker per GPU, but NVML and CUDA_VISIBLE_DEVICES show no GPU here%s%s%s",
		where, *said ? " (" : "", said, *said ? ")" : "");
}

/* --nproc_per_node auto, cpu, gpu */
static int nproc_count(const struct deciding *d, struct topology *t)
{
	const char *text = settings_text(d->s, SET_NPROC_PER_NODE);
	const char *where = settings_where(d->s, SET_NPROC_PER_NODE);
	bool by_cpus = settings_is(d->s, SET_NPROC_PER_NODE, "cpu"), unknown = false;
	const char *platform = gpus_by_platform(d);
	uint64_t by_platform, most = setting_rows[SET_NPROC_PER_NODE].max;
	unsigned by_gpus = 0;

	if (!by_cpus && workers_by_gpus(d, &by_gpus, &unknown) < 0)
		return d->why->code;
	if (by_gpus > 0) {
		t->nproc = by_gpus;
		t->nproc_from = arena_printf(d->s->arena, "%s=%s, GPUs", where, text);
	} else if (!by_cpus && platform && is_number(d, platform, 1, most, &by_platform)) {
		t->nproc = (unsigned)by_platform;
		t->nproc_from = platform;
		if (unknown)
			notes_add(d->notes, NOTE_WARNING,
				"%s: the number of GPUs is %s's, because NVIDIA's driver doesn't give it: %s",
				where, platform, d->facts->gpus.said);
	} else if (by_cpus || (settings_is(d->s, SET_NPROC_PER_NODE, "auto") && !unknown)) {
		t->nproc = d->facts->cpus;
		t->nproc_from = arena_printf(d->s->arena, "%s=%s, CPUs", where, text);
	} else {
		return nproc_refuse(d, unknown);
	}
	return 0;
}

static int nproc_find(const struct deciding *d, struct topology *t)
{
	t->nproc = (unsigned)settings_number(d->s, SET_NPROC_PER_NODE);
	t->nproc_from = settings_where(d->s, SET_NPROC_PER_NODE);
	if (settings_flag(d->s, SET_NODE_ENV))
		return one_script(d, t);
	t->hosts = listed_slots(d, t);
	if (t->hosts) {
		const struct host *own = &t->hosts->at[t->identity.node_rank];

		t->nproc = own->slots;
		t->nproc_from = arena_printf(d->s->arena, "%s: slots", own->where);
	}
	return t->nproc ? 0 : nproc_count(d, t);
}

static bool is_several(const struct deciding *d, const char *name, uint64_t *ret)
{
	return is_number(d, name, 2, UINT32_MAX, ret);
}

/* Several tasks on a node would each start all of the node's workers. That a local size is a number
 * is checked where it counts (master.c). */
static void note_tasks(const struct deciding *d, const struct topology *t)
{
	const struct launcher *l = t->launcher;
	const char *const *env = d->facts->env;
	const char *local_size = launcher_variable(l->local_size, env);
	const char *nodes = l->nodes ? env_get(env, l->nodes) : NULL;
	uint64_t tasks = t->identity.nnodes, of;
	const char *where = " on this host";

	if (!t->identity.by_launcher || settings_flag(d->s, SET_PER_PROCESS) || !l->one_each)
		return;
	if (nodes && num_parse(nodes, 1, UINT32_MAX, &of) == 0 && of != tasks)
		where = arena_printf(d->s->arena, " on %llu nodes", (unsigned long long)of);
	else if (nodes || l->slurm_lists || !local_size || !is_several(d, local_size, &tasks))
		return;
	notes_add(d->notes, NOTE_WARNING,
		"%s started %llu launchers%s, and each counts as a node of its own; for one launcher per node use %s, for one per worker launchd --per-process",
		l->name, (unsigned long long)tasks, where, l->one_each);
}

/* What a task gets by default is mostly less than a launcher with several workers needs. */
static void note_resources(const struct deciding *d, const struct topology *t)
{
	const char *gpus = env_value(d->facts->env, "CUDA_VISIBLE_DEVICES");
	const struct launcher *l = t->launcher;

	if (l->more_cpus && d->facts->cpus < t->nproc && d->facts->cpus < d->facts->cpus_online)
		notes_add(d->notes, NOTE_WARNING,
			"%s lets this launcher use %u of %u CPUs, for %u workers: %s gives it more",
			l->name, d->facts->cpus, d->facts->cpus_online, t->nproc, l->more_cpus);
	/* the first that is wrong speaks for its host */
	if (t->process.is && t->process.local_rank == 1 && gpus && !strchr(gpus, ',') &&
		!settings_flag(d->s, SET_VIRTUAL_LOCAL_RANK))
		notes_warn_own(d->notes,
			"CUDA_VISIBLE_DEVICES=%s shows one GPU, but LOCAL_RANK is %u: a script that takes the GPU of that number fails; give --virtual-local-rank --share-gpus, by which LOCAL_RANK is 0, or srun --gpus-per-node",
			gpus, t->process.local_rank);
}

/* How many nodes an allocation has; 0: not known. */
static uint64_t nodes_of(const struct deciding *d, const struct launcher *a)
{
	const char *list = a->hosts[0] ? env_get(d->facts->env, a->hosts[0]) : NULL;
	const char *size = launcher_variable(a->size, d->facts->env);
	uint64_t n = 0;
	size_t len;

	if (size && is_several(d, size, &n))
		return n;
	for (unsigned i = 0; list && launcher_host(list, i, &len); i += 2)
		n++; /* "host 4 other 4" */
	return n ? n : d->facts->allocated_nodes;
}

/* What a batch script starts without srun or mpirun runs on the first node of its job only. */
static void note_batch_script(const struct deciding *d, const struct topology *t)
{
	const struct launcher *a = allocation_of(d->facts->env);
	uint64_t nodes = a ? nodes_of(d, a) : 0;

	if (t->launcher->kind == LAUNCHER_TASK || t->identity.nnodes != 1 || nodes < 2 ||
		settings_given(d->s, SET_NNODES) || settings_flag(d->s, SET_STANDALONE))
		return;
	notes_add(d->notes, NOTE_WARNING,
		"the %s job has %llu nodes, but this is a job of one node: %s launchd ... starts one launcher on each",
		a->name, (unsigned long long)nodes, a->one_each);
}

/* srun --pty gives a terminal to task 0. The shells of the other tasks read no command. */
static int refuse_typed(const struct deciding *d, const struct topology *t)
{
	const struct identity *id = &t->identity;

	if (!d->facts->typed || !id->by_launcher || settings_given(d->s, SET_NNODES) ||
		settings_given(d->s, SET_NODE_RANK))
		return 0;
	return failure_usage(d->why,
		"%s says %u, but this command was typed in the shell of one task (%s --pty), and no launcher runs in the others: --standalone starts a job of this node alone; for one job of all tasks give %s the command, without --pty; --nnodes says that you start the other nodes' launchers by hand",
		id->nnodes_from, id->nnodes, t->launcher->name, t->launcher->name);
}

/* PyTorch's own names, as Kubernetes' PyTorchJob and Azure ML's "type: pytorch" set them, tell of
 * a job of which this launcher is one process. Workers of any launcher have them, too, with
 * LOCAL_RANK: what starts there is a job of its own. */
static int look_at_ranks_of_others(const struct deciding *d, const struct topology *t)
{
	const char *rank = env_get(d->facts->env, "RANK");
	const struct launcher *platform = NULL;
	const char *from = t->identity.nnodes_from;
	unsigned nnodes = t->identity.nnodes;
	uint64_t size;

	if (t->launcher->kind == LAUNCHER_TASK || inside_worker(d->facts->env) || !rank || !*rank ||
		!is_several(d, "WORLD_SIZE", &size))
		return 0;
	while ((platform = platform_of(d->facts->env, platform)) &&
		launcher_variable(platform->size, d->facts->env) != from)
		;
	if (platform && platform->one_each && size > nnodes)
		notes_add(d->notes, NOTE_WARNING,
			"%s started %llu processes on %u node%s, and each starts all of a node's workers: %s",
			platform->name, (unsigned long long)size, nnodes, nnodes == 1 ? "" : "s",
			platform->one_each);
	if (strcmp(from, ONE_NODE) != 0 || env_get(d->facts->env, "LOCAL_RANK"))
		return 0;
	if (!d->s->as_torchrun) /* which has never read them */
		return failure_usage(d->why,
			"RANK=%s and WORLD_SIZE=%llu are set, so this is one of several processes: if they count nodes, give --env-ranks node, or --nnodes $WORLD_SIZE --node_rank $RANK; for a job of this node alone, --nnodes 1",
			rank, (unsigned long long)size);
	notes_add(d->notes, NOTE_WARNING,
		"RANK=%s and WORLD_SIZE=%llu are set, but this is a job of one node, as with torchrun: for one job on all nodes give --nnodes and --node_rank",
		rank, (unsigned long long)size);
	return 0;
}

/* MPI's and Slurm's own numbers can't be wrong; others may have exported those for another program.
 */
static void note_env_ranks(const struct deciding *d, const struct topology *t)
{
	if (t->launcher->kind == LAUNCHER_TASK && settings_is(d->s, SET_ENV_RANKS, "node") &&
		!settings_flag(d->s, SET_STANDALONE) &&
		strcmp(t->identity.nnodes_from, "WORLD_SIZE") != 0)
		notes_add(d->notes, NOTE_WARNING,
			"%s: RANK and WORLD_SIZE are not read, because %s started this launcher and "
			"says its rank (%s) and size (%s)",
			settings_label(d->s, SET_ENV_RANKS), t->launcher->name,
			t->identity.node_rank_from, t->identity.nnodes_from);
}

/* "srun's job 17.0", of the launcher or else the platform that gave rank and size; NULL: flags did,
 * or the job isn't known. */
static const char *job_of(const struct deciding *d, const struct topology *t)
{
	const struct identity *id = &t->identity;
	const char *const *env = d->facts->env;
	const struct launcher *l = NULL;
	struct text job = { 0 };
	const char *ret;

	if (id->nnodes < 2)
		return NULL;
	if (id->by_launcher &&
		(launcher_variable(t->launcher->size, env) || t->launcher->pmix_size) &&
		launcher_job(t->launcher, env))
		l = t->launcher;
	while (!l || !launcher_job(l, env))
		if (!(l = platform_of(env, l)))
			return NULL;
	if (l != t->launcher && !id->by_launcher &&
		launcher_variable(l->size, env) != id->nnodes_from)
		return NULL;
	text_printf(&job, "%s's job %s", l->name, launcher_job(l, env));
	for (size_t i = 1; l->job[i]; i++)
		if (env_value(env, l->job[i]))
			text_printf(&job, ".%s", env_value(env, l->job[i]));
	ret = arena_strdup(d->s->arena, text_string(&job));
	d->s->arena->failed = d->s->arena->failed || job.failed;
	text_done(&job);
	return ret;
}

int topology_begin(const struct deciding *d, struct topology *ret)
{
	struct topology t = { .launcher = launcher_of(d->facts->env) };
	bool per_process = settings_flag(d->s, SET_PER_PROCESS);

	if (identity_find(d, t.launcher, &t.identity) < 0 ||
		(per_process && process_find(d, &t, &t.process) < 0) || nproc_find(d, &t) < 0 ||
		listed_check(d, &t) < 0 || refuse_typed(d, &t) < 0 ||
		look_at_ranks_of_others(d, &t) < 0)
		return d->why->code;
	t.job = job_of(d, &t);
	note_batch_script(d, &t);
	note_env_ranks(d, &t);
	note_tasks(d, &t);
	note_resources(d, &t);
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

	if (master_find(d, &now, will_meet, &now.master) < 0 ||
		control_find(d, &now, &now.control) < 0 ||
		(now.process.is && process_find_host(d, &now) < 0))
		return d->why->code;
	*t = now;
	return arena_failed(d->s->arena) ? failure_oom(d->why) : 0;
}
