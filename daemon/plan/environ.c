/* environ.c - a worker's environment as changes of the launcher's; see plan.h */
#include "daemon/plan/plan.h"

#include <string.h>

#include "common/arena.h"
#include "config/settings.h"
#include "daemon/facts/torch_version.h"
#include "daemon/place/placing.h"
#include "daemon/plan/decide.h"
#include "daemon/plan/nccl_names.h"
#include "daemon/plan/scrub.h"

struct build {
	const struct plan *p;
	struct arena *arena;
	struct env_edits *edits;
};

/* The edit of a name, or NULL. */
static struct env_edit *edit_of(const struct env_edits *edits, const char *name, size_t len)
{
	for (size_t i = 0; i < edits->count; i++)
		if (*edits->at[i].name == *name && strlen(edits->at[i].name) == len &&
			strncmp(edits->at[i].name, name, len) == 0)
			return &edits->at[i];
	return NULL;
}

static struct env_edit *edit_new(struct build *b)
{
	struct env_edits *e = b->edits;

	if (e->count == e->room) {
		size_t room = e->room ? e->room * 2 : 64;
		struct env_edit *at = arena_alloc(b->arena, room * sizeof *at);

		if (!at)
			return NULL;
		if (e->count)
			memcpy(at, e->at, e->count * sizeof *at);
		e->at = at;
		e->room = room;
	}
	return &e->at[e->count++];
}

/* Sets, or with value NULL removes; a later edit of the same name replaces the earlier. */
static void edit(struct build *b, const char *name, const char *value, const char *why)
{
	const char *inherited = env_get(b->p->env, name);
	struct env_edit *e = edit_of(b->edits, name, strlen(name));

	if (!e)
		e = edit_new(b);
	if (!e)
		return;
	*e = (struct env_edit){
		.name = name,
		.value = value,
		.how = !value     ? ENV_REMOVED :
			inherited ? ENV_REWRITTEN :
				    ENV_SET,
		.why = why,
	};
}

static void edit_number(struct build *b, const char *name, unsigned n, const char *why)
{
	edit(b, name, arena_printf(b->arena, "%u", n), why);
}

/* Formulas: torch.distributed.elastic.agent.server.local_elastic_agent. NODE_RANK is what Composer
 * needs besides. */
static void edit_ranks(struct build *b, const struct worker_rank *r)
{
	const struct plan *p = b->p;
	const char *rank = "rank of the worker in the job";
	const char *node = "rank of this node";

	edit_number(b, "RANK", r->rank, rank);
	edit_number(b, "LOCAL_RANK", p->virtual_local_rank ? 0 : r->local_rank,
		p->virtual_local_rank ? p->visible.from : "rank of the worker on this node");
	edit_number(b, "WORLD_SIZE", r->world_size, "workers in the job");
	edit_number(b, "LOCAL_WORLD_SIZE", r->local_world_size, "workers on this node");
	edit_number(b, "NODE_RANK", r->node_rank, node);
	edit_number(b, "GROUP_RANK", r->node_rank, node);
	edit_number(b, "GROUP_WORLD_SIZE", r->nnodes, "number of nodes");
	edit(b, "ROLE_NAME", p->role, "role");
	edit_number(b, "ROLE_RANK", r->role_rank, "rank of the worker in its role");
	edit_number(b, "ROLE_WORLD_SIZE", r->role_world_size, "workers of the role");
}

/* --node-env: a program that starts its own ranks takes whatever looks like one for its own. */
static void edit_node(struct build *b, const struct worker_rank *r, const struct attempt *attempt)
{
	static const char elastic[] = "TORCHELASTIC_";
	static const char *const ranks[] = { "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
		"GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_NAME", "ROLE_RANK", "ROLE_WORLD_SIZE" };
	static const char why[] = "--node-env: the script starts its own ranks";

	edit(b, "MASTER_ADDR", b->p->master_addr, "where the script's rank 0 listens");
	edit(b, "MASTER_PORT", attempt->master_port, "where the script's rank 0 listens");
	edit_number(b, "NODE_RANK", r->node_rank, "rank of this node");
	for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
		if (env_get(b->p->env, ranks[i]))
			edit(b, ranks[i], NULL, why);
	for (const char *const *e = b->p->env; e && *e; e++)
		if (strncmp(*e, elastic, sizeof elastic - 1) == 0)
			edit(b, arena_strndup(b->arena, *e, env_name_length(*e)), NULL, why);
}

static void edit_elastic(struct build *b, unsigned local_rank, const struct attempt *attempt)
{
	const char *error_file = plan_error_file(attempt, local_rank, b->arena);
	bool by_agent = b->p->store == STORE_AGENT;

	edit(b, "MASTER_ADDR", b->p->master_addr, "where worker 0 listens");
	edit(b, "MASTER_PORT", attempt->master_port, "where worker 0 listens");
	edit(b, "TORCHELASTIC_RUN_ID", b->p->run_id, "name of the run");
	edit_number(b, "TORCHELASTIC_RESTART_COUNT", attempt->number, "attempt");
	edit_number(b, "TORCHELASTIC_MAX_RESTARTS", b->p->max_restarts, "limit on restarts");
	edit(b, "TORCHELASTIC_ERROR_FILE", error_file,
		error_file ? "where @record writes an exception" : "there is no directory for it");
	edit(b, "TORCHELASTIC_USE_AGENT_STORE", by_agent ? "True" : "False",
		by_agent ? "launchd hosts the store" : "worker 0 hosts the store");
}

/* torchrun's default. torch 2.2 has renamed the variable, and warns of the older name in each
 * worker; both are set where the version is not known. If the user set one of the two, the other
 * says the same. */
static void edit_nccl(struct build *b)
{
	static const char now[] = "TORCH_NCCL_ASYNC_ERROR_HANDLING";
	static const char before[] = "NCCL_ASYNC_ERROR_HANDLING";
	const struct plan *p = b->p;
	const char *set_now = env_given(p->user_env, p->env, now);
	const char *set_before = env_given(p->user_env, p->env, before);

	if (!set_now)
		edit(b, now, set_before ? set_before : "1",
			set_before ? "as NCCL_ASYNC_ERROR_HANDLING" : "default of torchrun");
	if (!set_before && !torch_version_since(p->torch_version, 2, 2))
		edit(b, before, set_now ? set_now : "1",
			set_now ? "as TORCH_NCCL_ASYNC_ERROR_HANDLING" : "default of torchrun");
	if (p->nccl_socket_ifname)
		edit(b, "NCCL_SOCKET_IFNAME", p->nccl_socket_ifname, "--nccl_socket_ifname");
}

/* --blackbox, --on-hang: so that what they know is found when they fail, or hang. */
static void edit_evidence(struct build *b, const struct attempt *attempt)
{
	static const char why[] = "--blackbox: where it is found after a failure";
	struct nccl_names names;

	nccl_names_choose(b->p, attempt, b->arena, &names);
	if (names.set_trace)
		edit(b, NCCL_TRACE, names.set_trace,
			"--blackbox: torch's flight recorder is off without it before 2.11");
	if (names.set_dumps)
		edit(b, names.dumps_variable, names.set_dumps, why);
	if (names.set_pipes)
		edit(b, NCCL_PIPES, names.set_pipes, why);
	if (names.set_ras)
		edit(b, NCCL_RAS, names.set_ras,
			b->p->blackbox_dir ? why : "--on-hang: where NCCL tells what it waits for");
}

static void edit_threads(struct build *b, const struct worker_rank *r)
{
	const struct plan *p = b->p;
	const char *count = p->omp_num_threads;

	if (count && strcmp(count, "auto") == 0)
		count = arena_printf(b->arena, "%u", p->placement->of[r->local_rank].threads);
	if (count)
		edit(b, "OMP_NUM_THREADS", count, p->omp_from);
}

/* HIP obeys CUDA's variable where its own isn't set. ROCm's own hides what it hides from all. */
/* programs take an empty list for one that isn't set */
#define NO_DEVICES "-1"

static void edit_devices(struct build *b, const struct worker_rank *r)
{
	const struct visible *v = &b->p->visible;
	const char *list, *why = v->from;

	switch (v->how) {
	case VISIBLE_KEEP:
		if (!v->chosen)
			return;
		list = visible_all(v, b->arena);
		why = v->list_from;
		break;
	case VISIBLE_ONE:
		list = visible_own(v, r->local_rank, b->arena);
		break;
	case VISIBLE_NONE:
		list = NO_DEVICES;
		break;
	default:
		return;
	}
	if (v->own.maker != GPU_INTEL)
		edit(b, CUDA_DEVICES, list, why);
	if (v->own.maker != GPU_NVIDIA)
		edit(b, v->own.maker == GPU_AMD ? HIP_DEVICES : ZE_DEVICES, list, why);
}

const char *const *plan_check_env(const struct plan *p, struct arena *arena)
{
	const struct visible *v = &p->visible;
	const char *list = env_given(p->user_env, p->env, CUDA_DEVICES);
	bool is_users = list != env_get(p->env, CUDA_DEVICES); /* it has the last word */
	struct vec env = { 0 };

	if (v->own.maker == GPU_INTEL || (!is_users && v->how != VISIBLE_NONE && !v->chosen))
		return p->env;
	if (!is_users)
		list = v->how == VISIBLE_NONE ? NO_DEVICES : visible_all(v, arena);
	for (const char *const *e = p->env; *e; e++)
		if (strncmp(*e, CUDA_DEVICES "=", sizeof CUDA_DEVICES) != 0)
			vec_add(arena, &env, *e);
	if (list)
		vec_add(arena, &env, arena_printf(arena, CUDA_DEVICES "=%s", list));
	vec_add(arena, &env, NULL);
	return (const char *const *)env.at;
}

const char *plan_check_devices(const struct plan *p, struct arena *arena)
{
	const char *const *env = plan_check_env(p, arena);

	return arena_failed(arena) ? NULL : env_get(env, CUDA_DEVICES);
}

static void edit_nic(struct build *b, const struct worker_rank *r)
{
	if (b->p->ucx_devices)
		edit(b, UCX_PORTS, b->p->ucx_devices[r->local_rank], "--nic gpu");
}

/* Which devices of those that it sees are its own: "0", "2,3". */
static const char *own_numbers(
	const struct visible *v, const struct worker_rank *r, struct arena *a)
{
	unsigned groups = visible_workers(v);
	unsigned group = v->how == VISIBLE_ONE ? 0 :
		v->share && groups > 0         ? r->local_rank % groups :
						 r->local_rank;
	unsigned first = group * v->per_worker;
	const char *list = arena_printf(a, "%u", first);

	for (unsigned n = 1; n < v->per_worker; n++)
		list = arena_printf(a, "%s,%u", list, first + n);
	return list;
}

static bool any_inherits_output(const struct plan *p)
{
	for (unsigned i = p->start_first; i < p->start_first + p->start_count; i++)
		for (int fd = 1; fd < 3; fd++)
			if (plan_stream(p, i, fd).way == STREAM_INHERIT)
				return true;
	return false;
}

/* It says where stderr goes (systemd.exec(5)), and is true as long as it goes there. */
static void edit_journal(struct build *b)
{
	if (b->p->service && env_get(b->p->env, "JOURNAL_STREAM") && !any_inherits_output(b->p))
		edit(b, "JOURNAL_STREAM", NULL, "the workers' output goes to launchd first");
}

static void edit_scrubbed(struct build *b, const struct worker_rank *r)
{
	for (const char *const *e = b->p->env; e && *e; e++) {
		size_t len = env_name_length(*e);
		const char *why = "";
		enum scrub what = scrub_of(*e, len, b->p->mpi_env, &why);
		const char *name;

		if (what == SCRUB_PASS)
			what = scrub_of_service(*e, len, b->p->service, &why);
		if (what == SCRUB_PASS)
			continue;
		name = arena_strndup(b->arena, *e, len);
		if (what == SCRUB_REWRITE)
			edit_number(b, name, scrub_value(*e, len, r), why);
		else
			edit(b, name, NULL, why);
	}
	/* JAX since 0.11.2 takes these variables for Open MPI 5's, and then asks mpi4py, even where
	 * a script hands it address and rank */
	if (b->p->mpi_env != MPI_ENV_SCRUB && b->p->mpi_env != MPI_ENV_KEEP &&
		env_get(b->p->env, "OMPI_COMM_WORLD_LOCAL_RANK"))
		edit(b, "OMPI_VERSION", "4", "else JAX asks mpi4py for its rank");
}

/* Slurm's own variables of a task (srun(1), OUTPUT ENVIRONMENT VARIABLES), as TensorFlow's
 * SlurmClusterResolver, JAX's SlurmCluster and others read them. SLURM_STEP_ID stays away: it tells
 * a launcher in the worker that srun has started it. */
static void edit_slurm(struct build *b, const struct worker_rank *r)
{
	static const char why[] = "--mpi-env rewrite-slurm";
	const char *nodes = env_get(b->p->env, "SLURM_STEP_NODELIST");
	const char *tasks = b->p->slurm_tasks;
	bool even = tasks && !strchr(tasks, ',');

	if (!tasks)
		return;
	if (!nodes)
		nodes = env_get(b->p->env, "SLURM_JOB_NODELIST");
	edit_number(b, "SLURM_PROCID", r->rank, why);
	edit_number(b, "SLURM_LOCALID", r->local_rank, why);
	edit_number(b, "SLURM_NODEID", r->node_rank, why);
	edit_number(b, "SLURM_NTASKS", r->world_size, why);
	edit_number(b, "SLURM_NPROCS", r->world_size, why);
	edit_number(b, "SLURM_STEP_NUM_TASKS", r->world_size, why);
	edit_number(b, "SLURM_STEP_NUM_NODES", r->nnodes, why);
	if (even)
		edit_number(b, "SLURM_NTASKS_PER_NODE", r->local_world_size, why);
	edit(b, "SLURM_TASKS_PER_NODE", tasks, why);
	edit(b, "SLURM_STEP_TASKS_PER_NODE", tasks, why);
	if (nodes)
		edit(b, "SLURM_STEP_NODELIST", nodes, why);
}

/* Hydra's own, for scripts that take RANK from PMI_RANK, as torch-ccl's examples do. oneCCL needs
 * none of them: torch-ccl sets CCL_LOCAL_RANK from LOCAL_RANK. With them oneCCL takes the worker
 * for a rank of mpiexec and uses MPI, in which the worker is alone, so it gets another transport.
 * PMI_FD stays away: MPI_Init has nobody to ask, and a launcher in the worker sees that no mpiexec
 * started it. */
static void edit_pmi(struct build *b, const struct worker_rank *r)
{
	static const char transport[] = "CCL_ATL_TRANSPORT", why[] = "--mpi-env rewrite-pmi";

	if (b->p->mpi_env != MPI_ENV_REWRITE_PMI)
		return;
	edit_number(b, "PMI_RANK", r->rank, why);
	edit_number(b, "PMI_SIZE", r->world_size, why);
	edit_number(b, "MPI_LOCALRANKID", r->local_rank, why);
	edit_number(b, "MPI_LOCALNRANKS", r->local_world_size, why);
	if (!env_get(b->p->env, transport))
		edit(b, transport, "ofi", "--mpi-env rewrite-pmi: else oneCCL takes MPI");
}

/* JAX has no variables for rank and size, but reads those of Open MPI where OMPI_MCA_orte_hnp_uri
 * is there, whatever it says (jax/_src/clusters/ompi_cluster.py, 0.4.7 to 0.12). Open MPI itself
 * takes an empty one as none. OMPI_VERSION of Open MPI 5 would make JAX ask mpi4py instead. A
 * user's list of devices for a node's only worker stays, as for JAX with one process on each host.
 */
static void edit_jax(struct build *b, const struct worker_rank *r)
{
	static const char bind[] = "JAX_COORDINATOR_BIND_ADDRESS",
			  devices[] = "JAX_LOCAL_DEVICE_IDS";
	static const char why[] = "--jax-env: JAX finds its ranks by it";
	const struct plan *p = b->p;
	const struct {
		const char *name;
		unsigned value;
	} ranks[] = {
		{ "OMPI_COMM_WORLD_RANK", r->rank },
		{ "OMPI_COMM_WORLD_SIZE", r->world_size },
		{ "OMPI_COMM_WORLD_LOCAL_RANK", r->local_rank },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE", r->local_world_size },
	};
	bool keeps = p->mpi_env == MPI_ENV_KEEP; /* the worker is that MPI process */

	edit(b, "JAX_COORDINATOR_ADDRESS", p->library.jax_coordinator, "--jax-env: in rank 0");
	edit_number(b, "JAX_NUM_PROCESSES", r->world_size, "--jax-env: for scripts");
	edit_number(b, "JAX_PROCESS_ID", r->rank, "--jax-env: for scripts");
	if (r->local_world_size > 1 || !env_get(p->env, devices))
		edit(b, devices, own_numbers(&p->visible, r, b->arena),
			"--jax-env: a device for each worker");
	if (env_get(p->env, bind))
		edit(b, bind, NULL, "--jax-env: of another job");
	for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
		if (!keeps || !env_get(p->env, ranks[i].name))
			edit_number(b, ranks[i].name, ranks[i].value, why);
	if (!keeps || !env_get(p->env, "OMPI_MCA_orte_hnp_uri"))
		edit(b, "OMPI_MCA_orte_hnp_uri", "", why);
	if (env_get(p->env, "OMPI_VERSION"))
		edit(b, "OMPI_VERSION", "4", "--jax-env: else JAX asks mpi4py");
}

void plan_environment(const struct plan *p, unsigned local_rank, const struct attempt *attempt,
	struct arena *arena, struct env_edits *ret)
{
	struct build b = { p, arena, ret };
	struct worker_rank r = plan_rank(p, local_rank);

	if (p->node_env) {
		edit_node(&b, &r, attempt);
	} else {
		edit_ranks(&b, &r);
		edit_elastic(&b, local_rank, attempt);
	}
	edit_nccl(&b);
	edit_evidence(&b, attempt);
	edit_threads(&b, &r);
	edit_devices(&b, &r);
	edit_nic(&b, &r);
	edit_scrubbed(&b, &r);
	edit_slurm(&b, &r);
	edit_pmi(&b, &r);
	edit_journal(&b);
	if (p->progress.by == PROGRESS_NOTIFY)
		edit(&b, PROGRESS_SOCKET_VARIABLE, plan_progress_socket(attempt->run_dir, arena),
			"--progress notify");
	if (p->library.tf_cluster)
		edit(&b, "TF_CONFIG", plan_tf_config(p, r.rank, arena), "--tf-config");
	if (p->library.jax_coordinator)
		edit_jax(&b, &r);
	for (const struct env_change *c = p->user_env; c; c = c->next)
		edit(&b, c->name, c->value, c->from.where);
}

void plan_untouched(
	const struct plan *p, const struct env_edits *edits, struct arena *arena, struct vec *ret)
{
	for (const char *const *e = p->env; e && *e; e++)
		if (!edit_of(edits, *e, env_name_length(*e)))
			vec_add(arena, ret, *e);
}
