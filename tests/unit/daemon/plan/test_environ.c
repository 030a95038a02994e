/* test_environ.c - what a worker gets, changed, and does not get of its environment. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "daemon/plan/nccl_names.h"
#include "daemon/plan/plan.h"

/* A plan of node 1 of 2, whose worker 3 is rank 11; all numbers differ. */
static struct plan plan_of(const char *const *env)
{
	return (struct plan){ .nproc = 5,
		.nnodes = 2,
		.node_rank = 1,
		.first_rank = 8,
		.world_size = 13,
		.in_role = { 2, 7 },
		.program = "/py",
		.script = "s.py",
		.python = true,
		.local_rank_arg = "--local_rank",
		.run_id = "run7",
		.role = "trainer",
		.master_addr = "h",
		.env = env };
}

static const struct attempt attempt = { 2, "1234", "/run/x", NULL };

static const struct env_edit *edit_of(const struct env_edits *edits, const char *name)
{
	const struct env_edit *found = NULL;

	for (size_t i = 0; i < edits->count; i++)
		if (strcmp(edits->at[i].name, name) == 0) {
			assert_null(found); /* one edit a name */
			found = &edits->at[i];
		}
	return found;
}

static void assert_edit(
	const struct env_edits *edits, const char *name, const char *value, enum env_how how)
{
	const struct env_edit *e = edit_of(edits, name);

	if (!e)
		fail_msg("%s is not touched", name);
	assert_int_equal(e->how, how);
	if (value)
		assert_string_equal(e->value, value);
	else
		assert_null(e->value);
	assert_true(e->why && *e->why);
}

static const struct gets_row {
	const char *says; /* the name */
	const char *value;
} gets[] = {
	{ "RANK", "11" },
	{ "LOCAL_RANK", "3" },
	{ "WORLD_SIZE", "13" },
	{ "LOCAL_WORLD_SIZE", "5" },
	{ "NODE_RANK", "1" },
	{ "GROUP_RANK", "1" },
	{ "GROUP_WORLD_SIZE", "2" },
	{ "ROLE_NAME", "trainer" },
	{ "ROLE_RANK", "5" },
	{ "ROLE_WORLD_SIZE", "7" },
	{ "MASTER_ADDR", "h" },
	{ "MASTER_PORT", "1234" },
	{ "TORCHELASTIC_RUN_ID", "run7" },
	{ "TORCHELASTIC_RESTART_COUNT", "2" },
	{ "TORCHELASTIC_MAX_RESTARTS", "0" },
	{ "TORCHELASTIC_ERROR_FILE", "/run/x/attempt_2_local_rank_3_error.json" },
	{ "TORCHELASTIC_USE_AGENT_STORE", "False" },
	{ "TORCH_NCCL_ASYNC_ERROR_HANDLING", "1" },
	{ "NCCL_ASYNC_ERROR_HANDLING", "1" },
};

static void test_gets(void **state)
{
	const struct gets_row *row = *state;
	const char *inherited[] = { NULL, NULL };
	struct plan p = plan_of(NULL);
	struct arena a = { 0 };
	struct env_edits edits = { 0 };

	plan_environment(&p, 3, &attempt, &a, &edits);
	assert_edit(&edits, row->says, row->value, ENV_SET);
	if (!strstr(row->says, "ASYNC")) { /* these two are the user's, where set */
		inherited[0] = arena_printf(&a, "%s=old", row->says);
		p.env = inherited;
		edits = (struct env_edits){ 0 };
		plan_environment(&p, 3, &attempt, &a, &edits);
		assert_edit(&edits, row->says, row->value, ENV_REWRITTEN);
	}
	arena_done(&a);
}

static void test_agent_store(void **state)
{
	struct plan p = plan_of(NULL);
	struct arena a = { 0 };
	struct env_edits edits = { 0 };

	(void)state;
	p.store = STORE_AGENT;
	p.max_restarts = 3;
	plan_environment(&p, 3, &attempt, &a, &edits);
	assert_edit(&edits, "TORCHELASTIC_USE_AGENT_STORE", "True", ENV_SET);
	assert_edit(&edits, "TORCHELASTIC_MAX_RESTARTS", "3", ENV_SET);
	assert_edit(&edits, "TORCHELASTIC_RESTART_COUNT", "2", ENV_SET);
	arena_done(&a);
}

/* No name but those above is touched, unless there is a reason. */
static void test_nothing_else(void **state)
{
	static const char *const env[] = { "PATH=/bin", "HOME=/h", "OMP_NUM_THREADS=4",
		"NCCL_DEBUG=INFO", NULL };
	struct plan p = plan_of(env);
	struct arena a = { 0 };
	struct env_edits edits = { 0 };
	struct vec untouched = { 0 };

	(void)state;
	plan_environment(&p, 3, &attempt, &a, &edits);
	assert_int_equal(edits.count, sizeof gets / sizeof *gets);
	plan_untouched(&p, &edits, &a, &untouched);
	assert_int_equal(untouched.count, 4);
	for (size_t i = 0; i < 4; i++)
		assert_ptr_equal(untouched.at[i], env[i]);
	arena_done(&a);
}

static const char *const mpi[] = { "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2",
	"OMPI_COMM_WORLD_LOCAL_RANK=0", "PMIX_RANK=1", "OMPI_MCA_btl=tcp", "SLURM_PROCID=1",
	"SLURM_JOB_ID=5", NULL };

/* What the launcher sees is what workers see, one for each. */
static struct visible visible_of(const char *const *env, enum visible_how how, struct arena *a)
{
	struct visible v = {
		.how = how, .own = devices_find(env, GPU_NVIDIA), .per_worker = 1, .from = "--here"
	};

	v.known = v.own.list != NULL;
	for (unsigned i = 0; v.known && i < devices_count(v.own.list); i++)
		vec_add(a, &v.list, devices_nth(a, v.own.list, i));
	return v;
}

static const struct jax_row {
	const char *says;
	enum mpi_env policy;
	unsigned nproc;
	bool is_virtual;
	const char *env[4];
	const char *name, *value; /* "": not touched; NULL: removed */
	unsigned gpus;            /* of each worker; 0: one */
} jax[] = {
	{ "where rank 0 is", MPI_ENV_REWRITE, 5, false, { NULL }, "JAX_COORDINATOR_ADDRESS", "h:7",
		0 },
	{ "for scripts", MPI_ENV_REWRITE, 5, false, { NULL }, "JAX_NUM_PROCESSES", "13", 0 },
	{ "for scripts", MPI_ENV_REWRITE, 5, false, { NULL }, "JAX_PROCESS_ID", "11", 0 },
	{ "a device each", MPI_ENV_REWRITE, 5, false, { "JAX_LOCAL_DEVICE_IDS=0,1", 0 },
		"JAX_LOCAL_DEVICE_IDS", "3", 0 },
	{ "two devices each", MPI_ENV_REWRITE, 5, false, { NULL }, "JAX_LOCAL_DEVICE_IDS", "6,7",
		2 },
	{ "the only two that are seen", MPI_ENV_REWRITE, 5, true, { NULL }, "JAX_LOCAL_DEVICE_IDS",
		"0,1", 2 },
	{ "the only one that is seen", MPI_ENV_REWRITE, 5, true, { NULL }, "JAX_LOCAL_DEVICE_IDS",
		"0", 0 },
	{ "the user's for one worker", MPI_ENV_REWRITE, 1, false, { "JAX_LOCAL_DEVICE_IDS=0,1", 0 },
		"JAX_LOCAL_DEVICE_IDS", "", 0 },
	{ "whom JAX takes for mpirun", MPI_ENV_REWRITE, 5, false, { NULL }, "OMPI_MCA_orte_hnp_uri",
		"", 0 },
	{ "not mpirun itself", MPI_ENV_REWRITE, 5, false, { "OMPI_MCA_orte_hnp_uri=x", 0 },
		"OMPI_MCA_orte_hnp_uri", "", 0 },
	{ "a rank", MPI_ENV_SCRUB, 5, false, { "OMPI_COMM_WORLD_RANK=1" }, "OMPI_COMM_WORLD_RANK",
		"11", 0 },
	{ "a size", MPI_ENV_SCRUB, 5, false, { NULL }, "OMPI_COMM_WORLD_SIZE", "13", 0 },
	{ "a local rank", MPI_ENV_SCRUB, 5, false, { NULL }, "OMPI_COMM_WORLD_LOCAL_RANK", "3", 0 },
	{ "a local size", MPI_ENV_SCRUB, 5, false, { NULL }, "OMPI_COMM_WORLD_LOCAL_SIZE", "5", 0 },
	{ "not Open MPI 5", MPI_ENV_REWRITE, 5, false, { "OMPI_VERSION=5.0.1" }, "OMPI_VERSION",
		"4", 0 },
	{ "what is not there need not be", MPI_ENV_REWRITE, 5, false, { NULL }, "OMPI_VERSION", "",
		0 },
	{ "another job's", MPI_ENV_REWRITE, 5, false, { "JAX_COORDINATOR_BIND_ADDRESS=x", 0 },
		"JAX_COORDINATOR_BIND_ADDRESS", NULL, 0 },
	{ "an MPI process keeps mpirun", MPI_ENV_KEEP, 5, false, { "OMPI_MCA_orte_hnp_uri=x", 0 },
		"OMPI_MCA_orte_hnp_uri", "", 0 },
	{ "and its rank", MPI_ENV_KEEP, 5, false, { "OMPI_COMM_WORLD_RANK=11", 0 },
		"OMPI_COMM_WORLD_RANK", "", 0 },
	{ "a process that is none gets one", MPI_ENV_KEEP, 5, false, { NULL, 0 },
		"OMPI_COMM_WORLD_RANK", "11", 0 },
};

static void test_jax(void **state)
{
	const struct jax_row *row = *state;
	struct plan p = plan_of(row->env);
	struct arena a = { 0 };
	struct env_edits edits = { 0 };
	bool mpirun = strcmp(row->name, "OMPI_MCA_orte_hnp_uri") == 0; /* it is set to nothing */
	bool kept = row->policy == MPI_ENV_KEEP && row->env[0];
	enum env_how how = !row->value ? ENV_REMOVED : row->env[0] ? ENV_REWRITTEN : ENV_SET;

	p.nproc = row->nproc;
	p.mpi_env = row->policy;
	p.virtual_local_rank = row->is_virtual;
	p.visible = visible_of(row->env, row->is_virtual ? VISIBLE_ONE : VISIBLE_KEEP, &a);
	p.visible.per_worker = row->gpus > 0 ? row->gpus : 1;
	p.library.jax_coordinator = "h:7";
	plan_environment(&p, 3, &attempt, &a, &edits);
	if (!row->value || *row->value || (mpirun && !kept))
		assert_edit(&edits, row->name, row->value, how);
	else
		assert_null(edit_of(&edits, row->name));
	arena_done(&a);
}

static void test_tf_config(void **state)
{
	static const char *const env[] = { "TF_CONFIG=old", NULL };
	struct plan p = plan_of(env);
	struct arena a = { 0 };
	struct env_edits edits = { 0 };

	(void)state;
	p.library.tf_cluster = "{}";
	p.library.tf_roles = "ps=9,worker=4";
	plan_environment(&p, 3, &attempt, &a, &edits);
	assert_edit(&edits, "TF_CONFIG",
		"{\"cluster\":{},\"task\":{\"type\":\"worker\",\"index\":2}}", ENV_REWRITTEN);
	assert_null(edit_of(&edits, "JAX_COORDINATOR_ADDRESS"));
	arena_done(&a);
}

static const struct policy_row {
	const char *says;
	enum mpi_env policy;
	const char *rank, *pmix; /* "": not touched; NULL: removed */
} policies[] = {
	{ "rewrite: own values, no wire-up", MPI_ENV_REWRITE, "11", NULL },
	{ "scrub: neither", MPI_ENV_SCRUB, NULL, NULL },
	{ "keep: all as it is", MPI_ENV_KEEP, "", "" },
	{ "rewrite-slurm, in no job of Slurm's", MPI_ENV_REWRITE_SLURM, "11", NULL },
	{ "rewrite-pmi: as rewrite", MPI_ENV_REWRITE_PMI, "11", NULL },
};

static void assert_policy(const struct env_edits *edits, const char *name, const char *value)
{
	if (value && !*value)
		assert_null(edit_of(edits, name));
	else
		assert_edit(edits, name, value, value ? ENV_REWRITTEN : ENV_REMOVED);
}

static void test_policy(void **state)
{
	const struct policy_row *row = *state;
	struct plan p = plan_of(mpi);
	struct arena a = { 0 };
	struct env_edits edits = { 0 };

	p.mpi_env = row->policy;
	plan_environment(&p, 3, &attempt, &a, &edits);
	assert_policy(&edits, "OMPI_COMM_WORLD_RANK", row->rank);
	assert_policy(&edits, "PMIX_RANK", row->pmix);
	assert_policy(&edits, "SLURM_PROCID", row->pmix);
	assert_null(edit_of(&edits, "OMPI_MCA_btl"));
	assert_null(edit_of(&edits, "SLURM_JOB_ID"));
	assert_null(edit_of(&edits, "OMPI_COMM_WORLD_LOCAL_SIZE")); /* was not set */
	arena_done(&a);
}

static void test_rewritten(void **state)
{
	struct plan p = plan_of(mpi);
	struct arena a = { 0 };
	struct env_edits edits = { 0 };

	(void)state;
	plan_environment(&p, 3, &attempt, &a, &edits);
	assert_edit(&edits, "OMPI_COMM_WORLD_SIZE", "13", ENV_REWRITTEN);
	assert_edit(&edits, "OMPI_COMM_WORLD_LOCAL_RANK", "3", ENV_REWRITTEN);
	assert_edit(&edits, "OMPI_VERSION", "4", ENV_SET);
	for (p.mpi_env = MPI_ENV_SCRUB; p.mpi_env <= MPI_ENV_REWRITE_PMI; p.mpi_env++) {
		edits = (struct env_edits){ 0 };
		plan_environment(&p, 3, &attempt, &a, &edits);
		assert_int_equal(edit_of(&edits, "OMPI_VERSION") != NULL,
			p.mpi_env >= MPI_ENV_REWRITE_SLURM);
	}
	arena_done(&a);
}

/* --node-env: of three names no rank but the node's is left. */
static void test_node(void **state)
{
	static const char *const env[] = { "RANK=3", "ROLE_NAME=x", "TORCHELASTIC_RUN_ID=y",
		"TORCHELASTIC_NEW=z", "HOME=/root", NULL };
	struct plan p = plan_of(env);
	struct arena a = { 0 };
	struct env_edits edits = { 0 };

	(void)state;
	p.node_env = true;
	plan_environment(&p, 0, &attempt, &a, &edits);
	assert_edit(&edits, "RANK", NULL, ENV_REMOVED);
	assert_edit(&edits, "ROLE_NAME", NULL, ENV_REMOVED);
	assert_edit(&edits, "TORCHELASTIC_RUN_ID", NULL, ENV_REMOVED);
	assert_edit(&edits, "TORCHELASTIC_NEW", NULL, ENV_REMOVED);
	assert_null(edit_of(&edits, "LOCAL_RANK"));
	assert_null(edit_of(&edits, "TORCHELASTIC_ERROR_FILE"));
	assert_non_null(edit_of(&edits, "NODE_RANK"));
	assert_non_null(edit_of(&edits, "MASTER_PORT"));
	arena_done(&a);
}

/* Nothing could be made for it: the launcher's own is not the workers'. */
static void test_no_run_dir(void **state)
{
	static const char *const env[] = { "TORCHELASTIC_ERROR_FILE=/ours", "HOME=/root", NULL };
	const struct attempt nowhere = { .number = 2, .master_port = "7001" };
	struct plan p = plan_of(env);
	struct arena a = { 0 };
	struct env_edits edits = { 0 };

	(void)state;
	p.progress.by = PROGRESS_NOTIFY;
	p.blackbox_dir = "/box";
	plan_environment(&p, 0, &nowhere, &a, &edits);
	assert_edit(&edits, "TORCHELASTIC_ERROR_FILE", NULL, ENV_REMOVED);
	assert_edit(&edits, PROGRESS_SOCKET_VARIABLE, NULL, ENV_REMOVED);
	assert_null(edit_of(&edits, "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"));
	assert_null(edit_of(&edits, NCCL_PIPES));
	assert_non_null(edit_of(&edits, "RANK"));
	assert_false(arena_failed(&a));
	arena_done(&a);
}

/* The names that TensorFlow's and JAX's readers of Slurm take, set even where the launcher has
 * none.
 */
static void test_slurm(void **state)
{
	static const char *const env[] = { "SLURM_JOB_ID=7", "SLURM_STEP_ID=0", "SLURM_PROCID=1",
		"SLURM_NTASKS=2", "SLURM_STEP_NODELIST=n[4-5]", "SLURM_JOB_NODELIST=n[0-9]",
		"SLURM_TASK_PID=5", NULL };
	static const char *const batch[] = { "SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[0-9]", NULL };
	struct plan p = plan_of(env);
	struct arena a = { 0 };
	struct env_edits edits = { 0 }, uneven = { 0 }, none = { 0 };

	(void)state;
	p.mpi_env = MPI_ENV_REWRITE_SLURM;
	p.slurm_tasks = "5(x2)";
	plan_environment(&p, 3, &attempt, &a, &edits);
	assert_edit(&edits, "SLURM_PROCID", "11", ENV_REWRITTEN);
	assert_edit(&edits, "SLURM_LOCALID", "3", ENV_SET);
	assert_edit(&edits, "SLURM_NTASKS", "13", ENV_REWRITTEN);
	assert_edit(&edits, "SLURM_NPROCS", "13", ENV_SET);
	assert_edit(&edits, "SLURM_STEP_NUM_TASKS", "13", ENV_SET);
	assert_edit(&edits, "SLURM_TASKS_PER_NODE", "5(x2)", ENV_SET);
	assert_edit(&edits, "SLURM_STEP_TASKS_PER_NODE", "5(x2)", ENV_SET);
	assert_edit(&edits, "SLURM_STEP_NODELIST", "n[4-5]", ENV_REWRITTEN);
	assert_edit(&edits, "SLURM_STEP_ID", NULL, ENV_REMOVED);
	assert_edit(&edits, "SLURM_TASK_PID", NULL, ENV_REMOVED);
	assert_non_null(edit_of(&edits, "SLURM_NTASKS_PER_NODE"));
	p.env = batch;
	p.slurm_tasks = "5,8";
	plan_environment(&p, 3, &attempt, &a, &uneven);
	assert_edit(&uneven, "SLURM_STEP_NODELIST", "n[0-9]", ENV_SET);
	assert_null(edit_of(&uneven, "SLURM_NTASKS_PER_NODE"));
	p.slurm_tasks = NULL;
	plan_environment(&p, 3, &attempt, &a, &none);
	assert_null(edit_of(&none, "SLURM_PROCID"));
	arena_done(&a);
}

/* Hydra's variables are the worker's own, set even where the launcher has none. oneCCL takes MPI
 * for its transport where it sees them. */
static void test_pmi(void **state)
{
	static const char *const env[] = { "PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=9",
		"CCL_ATL_TRANSPORT=mpi", NULL };
	struct plan p = plan_of(env);
	struct arena a = { 0 };
	struct env_edits task = { 0 }, shell = { 0 };

	(void)state;
	p.mpi_env = MPI_ENV_REWRITE_PMI;
	plan_environment(&p, 3, &attempt, &a, &task);
	assert_edit(&task, "PMI_RANK", "11", ENV_REWRITTEN);
	assert_edit(&task, "PMI_SIZE", "13", ENV_REWRITTEN);
	assert_edit(&task, "PMI_FD", NULL, ENV_REMOVED);
	assert_null(edit_of(&task, "CCL_ATL_TRANSPORT"));
	p.env = env + 4;
	plan_environment(&p, 3, &attempt, &a, &shell);
	assert_edit(&shell, "PMI_RANK", "11", ENV_SET);
	assert_edit(&shell, "MPI_LOCALRANKID", "3", ENV_SET);
	assert_edit(&shell, "MPI_LOCALNRANKS", "5", ENV_SET);
	assert_edit(&shell, "CCL_ATL_TRANSPORT", "ofi", ENV_SET);
	arena_done(&a);
}

/* The two names of NCCL's error handling, by what the user set of them. */
static const struct nccl_row {
	const char *says;
	const char *env[3];
	const char *now, *before; /* NULL: not touched */
	const char *torch;
} nccls[] = {
	{ "neither set: both 1", { NULL }, "1", "1", NULL },
	{ "the newer set: the older says the same", { "TORCH_NCCL_ASYNC_ERROR_HANDLING=3" }, NULL,
		"3", NULL },
	{ "the older set: the newer says the same", { "NCCL_ASYNC_ERROR_HANDLING=0" }, "0", NULL,
		NULL },
	{ "both set: both stay",
		{ "TORCH_NCCL_ASYNC_ERROR_HANDLING=3", "NCCL_ASYNC_ERROR_HANDLING=0" }, NULL, NULL,
		NULL },
	{ "torch 2.2, which warns of the older name: the newer alone", { NULL }, "1", NULL,
		"2.2.0" },
	{ "likewise with a value of the user's", { "TORCH_NCCL_ASYNC_ERROR_HANDLING=3" }, NULL,
		NULL, "2.15.0+cu132" },
	{ "the user's older one stays, and the newer says the same",
		{ "NCCL_ASYNC_ERROR_HANDLING=0" }, "0", NULL, "2.15.0+cu132" },
	{ "torch 2.1, which reads only the older: both", { NULL }, "1", "1", "2.1.2" },
};

static void test_nccl(void **state)
{
	const struct nccl_row *row = *state;
	struct plan p = plan_of(row->env);
	struct arena a = { 0 };
	struct env_edits edits = { 0 };

	p.torch_version = row->torch;
	plan_environment(&p, 0, &attempt, &a, &edits);
	if (row->now)
		assert_edit(&edits, "TORCH_NCCL_ASYNC_ERROR_HANDLING", row->now, ENV_SET);
	else
		assert_null(edit_of(&edits, "TORCH_NCCL_ASYNC_ERROR_HANDLING"));
	if (row->before)
		assert_edit(&edits, "NCCL_ASYNC_ERROR_HANDLING", row->before, ENV_SET);
	else
		assert_null(edit_of(&edits, "NCCL_ASYNC_ERROR_HANDLING"));
	assert_null(edit_of(&edits, "NCCL_SOCKET_IFNAME"));
	arena_done(&a);
}

static void test_on_request(void **state)
{
	struct plan p = plan_of(NULL);
	struct arena a = { 0 };
	struct env_edits edits = { 0 };

	(void)state;
	p.nccl_socket_ifname = "^docker0,lo";
	p.omp_num_threads = "1";
	p.omp_from = "unset, several workers";
	plan_environment(&p, 0, &attempt, &a, &edits);
	assert_edit(&edits, "NCCL_SOCKET_IFNAME", "^docker0,lo", ENV_SET);
	assert_edit(&edits, "OMP_NUM_THREADS", "1", ENV_SET);
	arena_done(&a);
}

/* Worker 1 of a plan with virtual ranks. */
static const struct device_row {
	const char *says;
	const char *env[3];
	const char *cuda, *hip; /* NULL: not touched */
} devices[] = {
	{ "no list: the rank is the device", { NULL }, "1", NULL },
	{ "the list's own entry", { "CUDA_VISIBLE_DEVICES=3,5" }, "5", NULL },
	{ "blanks around an entry", { "CUDA_VISIBLE_DEVICES=3, 5 ,7" }, "5", NULL },
	{ "names of devices", { "CUDA_VISIBLE_DEVICES=GPU-a,GPU-b" }, "GPU-b", NULL },
	{ "AMD's list is that of both", { "HIP_VISIBLE_DEVICES=2,4", "CUDA_VISIBLE_DEVICES=3,5" },
		"4", "4" },
	{ "an empty one of AMD's is none", { "HIP_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES=3,5" },
		"5", NULL },
};

static void test_device(void **state)
{
	const struct device_row *row = *state;
	struct plan p = plan_of(row->env);
	struct arena a = { 0 };
	struct env_edits edits = { 0 };

	p.virtual_local_rank = true;
	p.visible = visible_of(row->env, VISIBLE_ONE, &a);
	plan_environment(&p, 1, &attempt, &a, &edits);
	assert_string_equal(edit_of(&edits, "CUDA_VISIBLE_DEVICES")->value, row->cuda);
	if (row->hip)
		assert_string_equal(edit_of(&edits, "HIP_VISIBLE_DEVICES")->value, row->hip);
	else
		assert_null(edit_of(&edits, "HIP_VISIBLE_DEVICES"));
	assert_edit(&edits, "LOCAL_RANK", "0", ENV_SET);
	assert_edit(&edits, "RANK", "9", ENV_SET);
	assert_edit(&edits, "LOCAL_WORLD_SIZE", "5", ENV_SET);
	arena_done(&a);
}

/* What worker 1 is told of the GPUs 3, 5, 7 and 9 of each maker. */
static const struct shows_row {
	const char *says;
	enum gpu_maker maker;
	enum visible_how how;
	bool chosen;
	unsigned per_worker;
	const char *cuda, *hip, *ze; /* NULL: not touched */
	const char *rank;
} shows[] = {
	{ "all of them, without a word", GPU_NVIDIA, VISIBLE_KEEP, false, 1, NULL, NULL, NULL,
		"1" },
	{ "all that were chosen", GPU_NVIDIA, VISIBLE_KEEP, true, 2, "3,5,7,9", NULL, NULL, "1" },
	{ "its own", GPU_NVIDIA, VISIBLE_ONE, true, 1, "5", NULL, NULL, "0" },
	{ "its own two", GPU_NVIDIA, VISIBLE_ONE, false, 2, "7,9", NULL, NULL, "0" },
	{ "none", GPU_NVIDIA, VISIBLE_NONE, false, 1, "-1", NULL, NULL, "1" },
	{ "AMD's that were chosen", GPU_AMD, VISIBLE_KEEP, true, 1, "3,5,7,9", "3,5,7,9", NULL,
		"1" },
	{ "AMD's own", GPU_AMD, VISIBLE_ONE, false, 1, "5", "5", NULL, "0" },
	{ "none of AMD's", GPU_AMD, VISIBLE_NONE, false, 1, "-1", "-1", NULL, "1" },
	{ "Intel's that were chosen", GPU_INTEL, VISIBLE_KEEP, true, 1, NULL, NULL, "3,5,7,9",
		"1" },
	{ "Intel's own", GPU_INTEL, VISIBLE_ONE, false, 1, NULL, NULL, "5", "0" },
};

static void assert_maybe(const struct env_edits *edits, const char *name, const char *value)
{
	if (value)
		assert_edit(edits, name, value, ENV_SET);
	else
		assert_null(edit_of(edits, name));
}

static void test_shows(void **state)
{
	static const char *const list[] = { "3", "5", "7", "9" };
	const struct shows_row *row = *state;
	static const char *const env[] = { NULL };
	struct plan p = plan_of(env);
	struct arena a = { 0 };
	struct env_edits edits = { 0 };

	p.visible = (struct visible){ .how = row->how,
		.own = devices_find(env, row->maker),
		.known = true,
		.chosen = row->chosen,
		.per_worker = row->per_worker,
		.from = "--here",
		.list_from = "--there" };
	for (size_t i = 0; i < 4; i++)
		vec_add(&a, &p.visible.list, list[i]);
	p.virtual_local_rank = row->how == VISIBLE_ONE;
	plan_environment(&p, 1, &attempt, &a, &edits);
	assert_maybe(&edits, "CUDA_VISIBLE_DEVICES", row->cuda);
	assert_maybe(&edits, "HIP_VISIBLE_DEVICES", row->hip);
	assert_maybe(&edits, "ZE_AFFINITY_MASK", row->ze);
	assert_null(edit_of(&edits, "ROCR_VISIBLE_DEVICES"));
	assert_edit(&edits, "LOCAL_RANK", row->rank, ENV_SET);
	arena_done(&a);
}

static void test_nic(void **state)
{
	static const char *const ports[] = { "mlx5_0:1", "mlx5_3:1" };
	static const char *const env[] = { NULL };
	struct plan p = plan_of(env);
	struct arena a = { 0 };
	struct env_edits edits = { 0 };

	(void)state;
	plan_environment(&p, 1, &attempt, &a, &edits);
	assert_null(edit_of(&edits, "UCX_NET_DEVICES"));
	p.ucx_devices = ports;
	plan_environment(&p, 1, &attempt, &a, &edits);
	assert_edit(&edits, "UCX_NET_DEVICES", "mlx5_3:1", ENV_SET);
	arena_done(&a);
}

static void test_user(void **state)
{
	static const char *const env[] = { "PMIX_RANK=1", "GONE=1", "STAYS=1", NULL };
	struct env_change gone = { .name = "GONE", .from = { LEVEL_FILE, "f.ini:3" } };
	struct env_change added = { .name = "ADDED", .value = "", .next = &gone };
	struct env_change pmix = { .name = "PMIX_RANK", .value = "7", .next = &added };
	struct plan p = plan_of(env);
	struct arena a = { 0 };
	struct env_edits edits = { 0 };
	struct vec untouched = { 0 };

	(void)state;
	added.from = pmix.from = (struct origin){ LEVEL_COMMAND_LINE, "--env" };
	p.user_env = &pmix;
	plan_environment(&p, 0, &attempt, &a, &edits);
	assert_edit(&edits, "PMIX_RANK", "7", ENV_REWRITTEN);
	assert_edit(&edits, "ADDED", "", ENV_SET);
	assert_edit(&edits, "GONE", NULL, ENV_REMOVED);
	assert_string_equal(edit_of(&edits, "GONE")->why, "f.ini:3");
	plan_untouched(&p, &edits, &a, &untouched);
	assert_int_equal(untouched.count, 1);
	assert_string_equal(untouched.at[0], "STAYS=1");
	arena_done(&a);
}

/* The pool renders what all workers share from worker 0's names. */
static void test_same_names(void **state)
{
	struct plan p = plan_of(mpi);
	struct arena a = { 0 };
	struct env_edits first = { 0 };

	(void)state;
	p.virtual_local_rank = true;
	plan_environment(&p, 0, &attempt, &a, &first);
	for (unsigned i = 1; i < p.nproc; i++) {
		struct env_edits other = { 0 };

		plan_environment(&p, i, &attempt, &a, &other);
		assert_int_equal(other.count, first.count);
		for (size_t k = 0; k < first.count; k++)
			assert_string_equal(other.at[k].name, first.at[k].name);
	}
	arena_done(&a);
}

/* config/settings.c refuses --env and --unset-env of the names that are set here; its list is its
 * own, as settings know no plan. */
static void test_refused(void **state)
{
	static const char *const users[] = { "TORCH_NCCL_ASYNC_ERROR_HANDLING",
		"NCCL_ASYNC_ERROR_HANDLING", "NCCL_SOCKET_IFNAME", "OMP_NUM_THREADS",
		"CUDA_VISIBLE_DEVICES" };
	const char *env[] = { NULL };
	struct plan p = plan_of(env);
	struct env_edits edits = { 0 };
	size_t refused = 0;
	struct settings_fixture b;

	(void)state;
	p.virtual_local_rank = true;
	p.omp_num_threads = "1";
	p.omp_from = "unset, several workers";
	p.nccl_socket_ifname = "eth0";
	settings_fixture_make(&b, false);
	p.visible = visible_of(env, VISIBLE_ONE, &b.arena);
	plan_environment(&p, 3, &attempt, &b.arena, &edits);
	for (size_t i = 0; i < edits.count; i++) {
		struct failure why = { 0 };
		bool left = false;
		int rc = settings_put_env(&b.s, edits.at[i].name, "x",
			(struct origin){ LEVEL_COMMAND_LINE, "--env" }, &why);

		for (size_t k = 0; k < sizeof users / sizeof *users; k++)
			left |= strcmp(users[k], edits.at[i].name) == 0;
		assert_outcome(rc, left ? 0 : -EINVAL, &why, left ? NULL : edits.at[i].name);
		refused += rc < 0;
	}
	assert_int_equal(refused + sizeof users / sizeof *users, edits.count);
	settings_fixture_done(&b);
}

static void test_many(void **state)
{
	static const char *env[501];
	struct plan p = plan_of(env);
	struct arena a = { 0 };
	struct env_edits edits = { 0 };
	struct vec untouched = { 0 };

	(void)state;
	for (int i = 0; i < 500; i++)
		env[i] = arena_printf(&a, "PMIX_%d=x", i);
	plan_environment(&p, 0, &attempt, &a, &edits);
	for (int i = 0; i < 500; i++)
		assert_edit(&edits, arena_printf(&a, "PMIX_%d", i), NULL, ENV_REMOVED);
	plan_untouched(&p, &edits, &a, &untouched);
	assert_int_equal(untouched.count, 0);
	assert_false(arena_failed(&a));
	arena_done(&a);
}

TESTS(environ)
{
	static struct suite s;

	suite_add(&s, "the launcher's store and restarts are told", test_agent_store, NULL, NULL);
	SUITE_ROWS(&s, test_gets, gets);
	SUITE_ROWS(&s, test_jax, jax);
	suite_add(&s, "TensorFlow's cluster and the worker's task", test_tf_config, NULL, NULL);
	SUITE_ROWS(&s, test_policy, policies);
	SUITE_ROWS(&s, test_nccl, nccls);
	SUITE_ROWS(&s, test_device, devices);
	SUITE_ROWS(&s, test_shows, shows);
	suite_add(&s, "nothing else is touched", test_nothing_else, NULL, NULL);
	suite_add(&s, "rewritten names have the worker's own values", test_rewritten, NULL, NULL);
	suite_add(&s, "one script for each node", test_node, NULL, NULL);
	suite_add(&s, "no directory for error files", test_no_run_dir, NULL, NULL);
	suite_add(&s, "tasks of Slurm by --mpi-env rewrite-slurm", test_slurm, NULL, NULL);
	suite_add(&s, "ranks of mpiexec by --mpi-env rewrite-pmi", test_pmi, NULL, NULL);
	suite_add(&s, "what is set on request only", test_on_request, NULL, NULL);
	suite_add(&s, "the ports of UCX", test_nic, NULL, NULL);
	suite_add(&s, "the user has the last word", test_user, NULL, NULL);
	suite_add(&s, "the names are the same for all workers", test_same_names, NULL, NULL);
	suite_add(&s, "what launchd sets can't be set by hand", test_refused, NULL, NULL);
	suite_add(&s, "hundreds of names", test_many, NULL, NULL);
	return suite_run(&s);
}
