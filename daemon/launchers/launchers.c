/* launchers.c - the rows; see launchers.h. Who comes first is recognised first: MPI before Slurm
 * and Flux, in whose allocations mpirun's daemons run as tasks, and hand those tasks' variables to
 * every rank. Prefixes mark nothing: OMPI_MCA_*, HYDRA_* and PRTE_MCA_* are set by users, too. */
#include "daemon/launchers/launchers.h"

#include <stdint.h>
#include <string.h>

#include "common/name.h"
#include "common/num.h"
#include "common/vec.h"

/* A step that srun started: Slurm numbers batch script, external and interactive steps from
 * 0xfffffff0 up (slurm.h), and those run one process, whatever the job's size. */
static bool is_slurm_step(const char *const *env)
{
	const char *step = env_get(env, "SLURM_STEP_ID");
	uint64_t n;

	return step && num_parse(step, 0, 0xffffffefu, &n) == 0;
}

/* They set PMI's variables beside their own, and what they start inherits these. */
static bool is_other_pmi(const char *const *env)
{
	return (is_slurm_step(env) && env_value(env, "SLURM_PROCID")) ||
		env_value(env, "FLUX_TASK_RANK") || env_value(env, "PALS_RANKID");
}

static bool is_hydra(const char *const *env)
{
	return env_value(env, "MPI_LOCALRANKID") || !is_other_pmi(env);
}

/* In an allocation its daemons are tasks of the allocation's launcher. Without its own mark it may
 * be any server of PMIx, but not Slurm's, whose variables a batch script may have inherited. */
static bool is_prterun(const char *const *env)
{
	return env_value(env, "PRTE_LAUNCHED") ||
		!(is_other_pmi(env) || env_value(env, "SLURM_JOB_ID"));
}

/* HTCondor sets both variables for one process, too. */
static bool is_several_condor(const char *const *env)
{
	const char *size = env_get(env, "_CONDOR_NPROCS");
	uint64_t n;

	return size && num_parse(size, 2, UINT32_MAX, &n) == 0;
}

/* The batch script has PBS_NODENUM=0, too, and in Torque PBS_TASKNUM=1: above 0, or with the eight
 * digits of OpenPBS's tasks, pbsdsh has started it. */
static bool is_pbs_task(const char *const *env)
{
	const char *node = env_get(env, "PBS_NODENUM"), *task = env_get(env, "PBS_TASKNUM");
	uint64_t n;

	return (node && num_parse(node, 1, UINT32_MAX, &n) == 0) || (task && strlen(task) == 8);
}

/* It numbers the pods of each role; its pytorch plugin sets RANK. */
static bool is_one_role(const char *const *env)
{
	unsigned roles = 0;

	for (; env && *env; env++) {
		size_t len = env_name_length(*env);

		roles += strncmp(*env, "VC_", 3) == 0 && len > 7 &&
			strncmp(*env + len - 4, "_NUM", 4) == 0;
	}
	return roles == 1;
}

/* clang-format off */
static const struct launcher_leak of_open_mpi[] = {
	{ "OMPI_COMM_WORLD_RANK", "MPI rank: read by Azure ML's helper, fairseq, mmengine", true },
	{ "OMPI_COMM_WORLD_SIZE", "MPI size: read by the same", true },
	{ "OMPI_COMM_WORLD_LOCAL_RANK", "MPI rank on the node: read by the same", true },
	{ "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI size on the node: read by the same", true },
	{ "OMPI_COMM_WORLD_NODE_RANK", "MPI rank on the node, over all jobs", true },
	{ "OMPI_WORLD_*", "of the launcher's MPI task (Open MPI 5)", false },
	{ "OMPI_UNIVERSE_SIZE", "of the launcher's MPI task", false },
	{ "OMPI_NUM_APP_CTX", "of the launcher's MPI task", false },
	{ "OMPI_FIRST_RANKS", "of the launcher's MPI task", false },
	{ "OMPI_APP_CTX_NUM_PROCS", "of the launcher's MPI task", false },
	{ "OMPI_COMMAND", "of the launcher's MPI task", false },
	{ "OMPI_ARGV", "of the launcher's MPI task", false },
	{ "OMPI_FILE_LOCATION", "of the launcher's MPI task", false },
	{ "OMPI_MCA_ess*", "wire-up: makes MPI_Init take the launcher's identity", false },
	{ "OMPI_MCA_orte_*", "wire-up: address and state of mpirun's daemons; JAX reads it", false },
	{ "OMPI_MCA_pmix*", "wire-up of PMIx", false },
	{ "OMPI_MCA_num_procs", "of the launcher's MPI task (Open MPI 5)", false },
	{ "OMPI_MCA_initial_wdir", "of the launcher's MPI task", false },
	{ "OMPI_MCA_rmaps*", "mapping of this mpirun: a worker's own mpirun would fail", false },
	{ "OMPI_MCA_plm*", "how this mpirun starts daemons: a worker's own would fail", false },
	{ "OMPI_MCA_routed*", "how this mpirun's daemons route: a worker's own would fail", false },
	{ "OMPI_MCA_shmem_RUNTIME*", "shared memory of the launcher's MPI task", false },
	{ "OMPI_MCA_mpi_oversubscribe", "of the launcher's MPI task", false },
	{ "ORTE_*", "wire-up of Open MPI", false },
	{ NULL, NULL, false },
};

static const struct launcher_leak of_prrte[] = {
	{ "PMIX_*", "wire-up: a second client with the launcher's identity hangs", false },
	{ "PRTE_*", "wire-up of PRRTE (Open MPI 5); JAX reads it", false },
	{ NULL, NULL, false },
};

static const struct launcher_leak of_hydra[] = {
	{ "PMI_*", "wire-up and identity of PMI; accelerate reads PMI_SIZE", false },
	{ "PMI2_*", "wire-up of PMI-2", false },
	{ "HYDRA_*", "wire-up of Hydra (MPICH)", false },
	{ "HYDI_*", "wire-up of Hydra (Intel MPI)", false },
	{ "I_MPI_PIN_INFO", "of the launcher's MPI task: where Intel MPI has bound it", false },
	{ "I_MPI_PIN_MAPPING", "of the launcher's MPI task: where Intel MPI has bound it", false },
	{ "MPI_LOCALRANKID", "identity of the launcher under Hydra", false },
	{ "MPI_LOCALNRANKS", "identity of the launcher under Hydra", false },
	{ NULL, NULL, false },
};

static const struct launcher_leak of_mvapich[] = {
	{ "MV2_COMM_WORLD_*", "identity of the launcher under MVAPICH", false },
	{ "MPIRUN_ID", "wire-up of mpirun_rsh (MVAPICH)", false },
	{ "MPIRUN_RANK", "identity of the launcher under MVAPICH", false },
	{ "MPIRUN_MPD", "wire-up of mpirun_rsh (MVAPICH)", false },
	{ NULL, NULL, false },
};

static const struct launcher_leak of_pals[] = {
	{ "PALS_*", "identity of the launcher under PALS (Cray)", false },
	{ NULL, NULL, false },
};

static const struct launcher_leak of_alps[] = {
	{ "ALPS_APP_*", "identity of the launcher under ALPS (Cray)", false },
	{ NULL, NULL, false },
};

static const struct launcher_leak of_jsrun[] = {
	{ "JSM_*", "wire-up and identity of jsrun (LSF)", false },
	{ NULL, NULL, false },
};

static const struct launcher_leak of_pbsdsh[] = {
	{ "PBS_NODENUM", "identity of the launcher's PBS task", false },
	{ "PBS_VNODENUM", "identity of the launcher's PBS task", false },
	{ "PBS_TASKNUM", "identity of the launcher's PBS task", false },
	{ NULL, NULL, false },
};

static const struct launcher_leak of_flux[] = {
	{ "FLUX_TASK_*", "identity of the launcher under Flux", false },
	{ NULL, NULL, false },
};

static const struct launcher_leak of_slurm[] = {
	{ "SLURM_PROCID", "identity of the launcher's Slurm task; Lightning takes it as rank", false },
	{ "SLURM_LOCALID", "identity of the launcher's Slurm task", false },
	{ "SLURM_NODEID", "identity of the launcher's Slurm task", false },
	{ "SLURM_NTASKS", "size of the launcher's Slurm step; Lightning checks it", false },
	{ "SLURM_NTASKS_PER_NODE", "size of the launcher's Slurm step; TensorFlow reads it", false },
	{ "SLURM_NPROCS", "size of the launcher's Slurm step", false },
	{ "SLURM_STEP_*", "of the launcher's Slurm step", false },
	{ "SLURM_STEPID", "of the launcher's Slurm step", false },
	{ "SLURM_SRUN_COMM_*", "address of the srun that started the launcher", false },
	{ "SLURM_TASK_PID", "identity of the launcher's Slurm task", false },
	{ "SLURM_GTIDS", "identity of the launcher's Slurm task", false },
	{ NULL, NULL, false },
};

static const struct launcher rows[] = { {
		.name = "the environment", .kind = LAUNCHER_ANYONE,
		.rank = { "NODE_RANK" }, .size = { "NNODES" },
	},
	{
		/* it is a server of PMIx, and may set Open MPI's variables besides */
		.name = "jsrun", .kind = LAUNCHER_TASK,
		.needs = { "JSM_NAMESPACE_RANK" }, .wire = "PMIX_RANK",
		.rank = { "JSM_NAMESPACE_RANK" }, .size = { "JSM_NAMESPACE_SIZE" },
		.local_rank = { "JSM_NAMESPACE_LOCAL_RANK" },
		.local_size = { "JSM_NAMESPACE_LOCAL_SIZE" },
		.job = { "LSB_JOBID", "LSB_JOBINDEX", "PMIX_NAMESPACE" }, .own_ports = true,
		.pmix = true, .merges_output = true, .more_cpus = "jsrun -c",
		.one_each = "jsrun -r 1 -a 1 -b none",
		.leaks = of_jsrun,
	},
	{
		/* Open MPI 5: its mpirun is PRRTE's, which has lost the parameter of Open MPI 4 */
		.name = "mpirun", .kind = LAUNCHER_TASK,
		.needs = { "OMPI_COMM_WORLD_RANK", "PRTE_LAUNCHED" }, .wire = "PMIX_RANK",
		.rank = { "OMPI_COMM_WORLD_RANK" }, .size = { "OMPI_COMM_WORLD_SIZE" },
		.local_rank = { "OMPI_COMM_WORLD_LOCAL_RANK" },
		.local_size = { "OMPI_COMM_WORLD_LOCAL_SIZE" },
		.job = { "PMIX_NAMESPACE" },
		.pmix = true, .azure = true, .own_host = true, .merges_output = true,
		.bound = "PRTE_LAUNCHED", .grace_ms = 250, .grace_from = "Open MPI 5", .lifeline = "PMIX_NAMESPACE",
		.one_each = "mpirun --map-by ppr:1:node", .maps_by = true, .leaks = of_prrte,
	},
	{
		/* Open MPI 4; never OMPI_COMM_WORLD_NODE_RANK: that is the rank within the node.
		 * SIGCONT, T seconds later SIGTERM, after T more SIGKILL: T is the parameter. */
		.name = "mpirun", .kind = LAUNCHER_TASK,
		.needs = { "OMPI_COMM_WORLD_RANK" }, .or_needs = { "OMPI_COMM_WORLD_SIZE" },
		.wire = "PMIX_RANK",
		.rank = { "OMPI_COMM_WORLD_RANK" }, .size = { "OMPI_COMM_WORLD_SIZE" },
		.local_rank = { "OMPI_COMM_WORLD_LOCAL_RANK" },
		.local_size = { "OMPI_COMM_WORLD_LOCAL_SIZE" },
		.job = { "PMIX_NAMESPACE" }, .job_or = "OMPI_MCA_ess_base_jobid",
		.pmix = true, .azure = true, .own_host = true, .merges_output = true,
		.bound = "OMPI_MCA_orte_bound_at_launch",
		.grace_ms = 1000, .grace_from = "mpirun's default",
		.grace_variable = "OMPI_MCA_odls_base_sigkill_timeout", .lifeline = "PMIX_NAMESPACE",
		.one_each = "mpirun --map-by ppr:1:node", .maps_by = true, .leaks = of_open_mpi,
	},
	{
		/* versions without MV2_* have the rank in PMI_ID */
		.name = "mpirun_rsh", .kind = LAUNCHER_TASK,
		.needs = { "MV2_COMM_WORLD_RANK" }, .or_needs = { "PMI_ID", "MPIRUN_NPROCS" },
		.rank = { "MV2_COMM_WORLD_RANK", "PMI_ID" },
		.size = { "MV2_COMM_WORLD_SIZE", "MPIRUN_NPROCS" },
		.local_rank = { "MV2_COMM_WORLD_LOCAL_RANK" },
		.local_size = { "MV2_COMM_WORLD_LOCAL_SIZE" },
		.job = { "MPIRUN_ID" }, .merges_output = true,
		.one_each = "mpirun_rsh with each host once", .leaks = of_mvapich,
	},
	{
		/* mpiexec of MPICH and Intel MPI */
		.name = "mpiexec", .kind = LAUNCHER_TASK,
		.needs = { "PMI_RANK" }, .or_needs = { "PMI_SIZE" }, .is_there = is_hydra,
		.wire = "PMI_FD",
		.rank = { "PMI_RANK" }, .size = { "PMI_SIZE" }, .local_rank = { "MPI_LOCALRANKID" },
		.local_size = { "MPI_LOCALNRANKS" }, .job_by_parent = true, .pmi = true,
		.merges_output = true, .one_each = "mpiexec -ppn 1", .leaks = of_hydra,
	},
	{
		/* PRRTE without Open MPI */
		.name = "prterun", .kind = LAUNCHER_TASK,
		.needs = { "PMIX_RANK", "PMIX_NAMESPACE" }, .is_there = is_prterun, .wire = "PMIX_RANK",
		.rank = { "PMIX_RANK" },
		.job = { "PMIX_NAMESPACE" },
		.pmix = true, .pmix_size = true, .own_host = true, .merges_output = true,
		.bound = "PRTE_LAUNCHED", .grace_ms = 250, .grace_from = "PRRTE", .lifeline = "PMIX_NAMESPACE",
		.one_each = "prterun --map-by ppr:1:node", .maps_by = true, .leaks = of_prrte,
	},
	{
		/* its nested instances have jobs of the same id, but of different paths */
		.name = "flux run", .kind = LAUNCHER_TASK,
		.needs = { "FLUX_TASK_RANK" }, .wire = "PMI_RANK",
		.rank = { "FLUX_TASK_RANK" }, .size = { "FLUX_JOB_SIZE" },
		.local_rank = { "FLUX_TASK_LOCAL_ID" }, .nodes = "FLUX_JOB_NNODES",
		.job = { "FLUX_JOB_ID", "FLUX_JOB_ID_PATH" }, .own_ports = true,
		.pmix = true, .pmi = true, .shows_output = true, .ends_others = true, /* exit-timeout */
		.more_cpus = "flux run --cores-per-task",
		.one_each = "flux run --tasks-per-node=1", .leaks = of_flux,
	},
	{
		/* a step; a batch script isn't one. A requeued job has its number still. */
		.name = "srun", .kind = LAUNCHER_TASK,
		.needs = { "SLURM_PROCID" }, .is_there = is_slurm_step, .wire = "SLURM_STEP_ID",
		.rank = { "SLURM_PROCID" }, .size = { "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS" },
		.local_rank = { "SLURM_LOCALID" }, .local_size = { "SLURM_STEP_TASKS_PER_NODE" },
		.node = "SLURM_NODEID", .nodes = "SLURM_STEP_NUM_NODES",
		.hosts = { "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST" },
		.slurm_lists = true,
		.job = { "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT" }, .own_ports = true,
		.pmix = true, .pmi = true, .shows_output = true, .ends_others = true, /* WaitTime, --wait */
		.lifeline = "SLURM_TASK_PID", .task_pid = "SLURM_TASK_PID",
		.more_cpus = "srun --cpus-per-task (since Slurm 22.05 it ignores sbatch's) or SRUN_CPUS_PER_TASK",
		.one_each = "srun --ntasks-per-node=1", .leaks = of_slurm,
	},
	{
		/* Cray's mpiexec, and Slurm's mpi/cray_shasta, which sets the same */
		.name = "mpiexec of PALS", .kind = LAUNCHER_TASK,
		.needs = { "PALS_RANKID" }, .wire = "PMI_RANK",
		.rank = { "PALS_RANKID" }, .size = { "PMI_SIZE" },
		.local_rank = { "PALS_LOCAL_RANKID", "PMI_LOCAL_RANK" },
		.local_size = { "PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE" },
		.job = { "PALS_APID" }, .merges_output = true, .one_each = "mpiexec --ppn 1",
		.leaks = of_pals,
	},
	{
		.name = "aprun", .kind = LAUNCHER_TASK,
		.needs = { "ALPS_APP_PE" },
		.rank = { "ALPS_APP_PE" },
		.job = { "ALPS_APP_ID" }, .merges_output = true, .one_each = "aprun -N 1 -cc none",
		.leaks = of_alps,
	},
	{
		.name = "blaunch", .kind = LAUNCHER_TASK,
		.needs = { "LSF_PM_TASKID" },
		.rank = { "LSF_PM_TASKID" }, .first_rank = 1,
		.merges_output = true,
	},
	{
		.name = "HTCondor", .kind = LAUNCHER_TASK,
		.needs = { "_CONDOR_PROCNO" }, .is_there = is_several_condor,
		.rank = { "_CONDOR_PROCNO" }, .size = { "_CONDOR_NPROCS" },
	},
	{
		.name = "pbsdsh", .kind = LAUNCHER_TASK,
		.needs = { "PBS_JOBID" }, .is_there = is_pbs_task,
		.rank = { "PBS_NODENUM" },
		.merges_output = true, .leaks = of_pbsdsh,
	},

	{
		.name = "LeaderWorkerSet", .kind = LAUNCHER_PLATFORM,
		.needs = { "LWS_WORKER_INDEX" },
		.rank = { "LWS_WORKER_INDEX" }, .size = { "LWS_GROUP_SIZE" },
		.addr = { "LWS_LEADER_ADDRESS" },
		.job = { "LWS_LEADER_ADDRESS" },
	},
	{
		.name = "SkyPilot", .kind = LAUNCHER_PLATFORM,
		.needs = { "SKYPILOT_NODE_RANK" },
		.rank = { "SKYPILOT_NODE_RANK" }, .size = { "SKYPILOT_NUM_NODES" },
		.hosts = { "SKYPILOT_NODE_IPS" }, .gpus = "SKYPILOT_NUM_GPUS_PER_NODE",
		.job = { "SKYPILOT_TASK_ID" },
	},
	{
		.name = "SageMaker", .kind = LAUNCHER_PLATFORM,
		.needs = { "SM_HOSTS", "SM_CURRENT_HOST" },
		.hosts = { "SM_HOSTS" }, .host = "SM_CURRENT_HOST", .gpus = "SM_NUM_GPUS",
		.addr = { "SM_MASTER_ADDR" },
	},
	{
		.name = "Azure ML", .kind = LAUNCHER_PLATFORM,
		.needs = { "AZUREML_NODE_COUNT" }, .one_each = "set process_count_per_instance to 1",
		.size = { "AZUREML_NODE_COUNT" },
		.job = { "AZUREML_RUN_ID" },
	},
	{
		/* Kubernetes numbers the pods of jobs of one node, too */
		.name = "an Indexed Job", .kind = LAUNCHER_PLATFORM,
		.needs = { "JOB_COMPLETION_INDEX" },
		.rank = { "JOB_COMPLETION_INDEX" },
	},
	{
		.name = "Volcano", .kind = LAUNCHER_PLATFORM,
		.needs = { "VC_TASK_INDEX" }, .is_there = is_one_role,
		.rank = { "VC_TASK_INDEX" },
	},

	{
		.name = "Slurm", .kind = LAUNCHER_ALLOCATION,
		.needs = { "SLURM_JOB_ID" }, .size = { "SLURM_JOB_NUM_NODES", "SLURM_NNODES" },
		.one_each = "srun --ntasks-per-node=1",
	},
	{
		.name = "PBS", .kind = LAUNCHER_ALLOCATION, .hostfile = "PBS_NODEFILE",
		.needs = { "PBS_JOBID" }, .size = { "PBS_NUM_NODES" },
		.one_each = "mpirun --map-by ppr:1:node",
	},
	{
		.name = "LSF", .kind = LAUNCHER_ALLOCATION,
		.needs = { "LSB_JOBID" },
		.hosts = { "LSB_MCPU_HOSTS" }, .one_each = "mpirun --map-by ppr:1:node",
	},
	{
		.name = "Grid Engine", .kind = LAUNCHER_ALLOCATION,
		.needs = { "PE_HOSTFILE" }, .size = { "NHOSTS" },
		.one_each = "mpirun --map-by ppr:1:node",
	},
#ifdef LAUNCHERS_MORE /* a test's */
	LAUNCHERS_MORE
#endif
};
/* clang-format on */

const char *launcher_variable(const char *const *names, const char *const *env)
{
	for (; *names; names++)
		if (env_value(env, *names))
			return *names;
	return NULL;
}

static bool are_set(const char *const *names, const char *const *env)
{
	const char *const *name = names;

	while (*name && env_value(env, *name))
		name++;
	return name > names && !*name;
}

/* The first row of that kind behind `after` (NULL: of all). in_worker: of a task that the worker
 * has started by a launcher of its own, which its wire-up shows. */
static const struct launcher *find_row(const char *const *env, enum launcher_kind kind,
	const struct launcher *after, bool in_worker)
{
	for (size_t i = after ? (size_t)(after - rows) + 1 : 0; i < sizeof rows / sizeof *rows;
		i++) {
		const struct launcher *l = &rows[i];

		if (l->kind == kind && (are_set(l->needs, env) || are_set(l->or_needs, env)) &&
			(!l->is_there || l->is_there(env)) &&
			(!in_worker || (l->wire && env_value(env, l->wire))))
			return l;
	}
	return NULL;
}

const struct launcher *launcher_anyone(void)
{
	return &rows[0];
}

bool started_in_worker(const char *const *env)
{
	return env_get(env, "TORCHELASTIC_RUN_ID") && env_get(env, "LOCAL_RANK");
}

bool inside_worker(const char *const *env)
{
	return started_in_worker(env) && !find_row(env, LAUNCHER_TASK, NULL, true);
}

const struct launcher *launcher_of(const char *const *env)
{
	const struct launcher *task = find_row(env, LAUNCHER_TASK, NULL, started_in_worker(env));

	return task ? task : launcher_anyone();
}

const struct launcher *platform_of(const char *const *env, const struct launcher *after)
{
	return inside_worker(env) ? NULL : find_row(env, LAUNCHER_PLATFORM, after, false);
}

const struct launcher *allocation_of(const char *const *env)
{
	return inside_worker(env) ? NULL : find_row(env, LAUNCHER_ALLOCATION, NULL, false);
}

bool launchers_have_others(const char *const *env)
{
	static const char *const of_batch[] = { "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID",
		"PE_HOSTFILE", "FLUX_JOB_ID", "COBALT_JOBID", "KUBERNETES_SERVICE_HOST" };

	for (size_t i = 0; i < sizeof of_batch / sizeof *of_batch; i++)
		if (env_value(env, of_batch[i]))
			return true;
	return platform_of(env, NULL) != NULL;
}

const char *launcher_job(const struct launcher *l, const char *const *env)
{
	const char *first = l->job[0] ? env_value(env, l->job[0]) : NULL;

	return first || !l->job_or ? first : env_value(env, l->job_or);
}

const char *launcher_host(const char *list, unsigned n, size_t *ret_len)
{
	static const char between[] = "[]\"', \t\r\n";

	for (;; n--) {
		list += strspn(list, between);
		*ret_len = strcspn(list, between);
		if (*ret_len == 0)
			return NULL;
		if (n == 0)
			return list;
		list += *ret_len;
	}
}

/* --- what workers must not see --- */

static bool is_of(const char *const *names, const char *name, size_t len)
{
	for (; *names; names++)
		if (name_matches(*names, name, len))
			return true;
	return false;
}

static bool is_known_by(const struct launcher *l, const char *name, size_t len)
{
	return is_of(l->rank, name, len) || is_of(l->size, name, len) ||
		is_of(l->local_rank, name, len) || is_of(l->local_size, name, len) ||
		(l->node && name_matches(l->node, name, len));
}

const struct launcher_leak *launcher_leak_of(const char *name, size_t len)
{
	static const struct launcher_leak known_by = { "", "identity of the launcher's task",
		false };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (const struct launcher_leak *k = rows[i].leaks; k && k->pattern; k++)
			if (name_matches(k->pattern, name, len))
				return k;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].kind == LAUNCHER_TASK && is_known_by(&rows[i], name, len))
			return &known_by;
	return NULL;
}
