/* scrub.c - see scrub.h */
#include "daemon/plan/scrub.h"

#include <stdbool.h>

#include "common/name.h"
#include "config/settings.h"

/* The one table. A pattern that ends with '*' matches every name that begins so. Users' tuning
 * (OMPI_MCA_btl*, pml*, coll*, UCX_*, I_MPI_*, FI_*, SLURM_JOB_*) is in no row and stays. */
/* clang-format off */
static const struct {
	const char *pattern;
	const char *why;
	bool rewritten; /* by --mpi-env=rewrite, rewrite-slurm; always removed otherwise */
} rows[] = {
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
	{ "PMIX_*", "wire-up: a second client with the launcher's identity hangs", false },
	{ "PMI_*", "wire-up and identity of PMI; accelerate reads PMI_SIZE", false },
	{ "PMI2_*", "wire-up of PMI-2", false },
	{ "PRTE_*", "wire-up of PRRTE (Open MPI 5); JAX reads it", false },
	{ "ORTE_*", "wire-up of Open MPI", false },
	{ "HYDRA_*", "wire-up of Hydra (MPICH)", false },
	{ "HYDI_*", "wire-up of Hydra (Intel MPI)", false },
	{ "MPI_LOCALRANKID", "identity of the launcher under Hydra", false },
	{ "MPI_LOCALNRANKS", "identity of the launcher under Hydra", false },
	{ "MV2_COMM_WORLD_*", "identity of the launcher under MVAPICH", false },
	{ "PALS_*", "identity of the launcher under PALS (Cray)", false },
	{ "FLUX_TASK_*", "identity of the launcher under Flux", false },
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
};
/* clang-format on */

/* clang-format off */
/* What systemd says to the process that it has started, and to nobody below it. A login shell may have
 * those of the second half, too, of its own unit; they are removed where launchd is the unit. */
static const struct {
	const char *pattern;
	const char *why;
	bool only_service;
} service_rows[] = {
	{ "NOTIFY_SOCKET", "launchd's own: a worker would tell systemd that the service is ready", false },
	{ "WATCHDOG_*", "launchd's own: systemd awaits its signs of life", false },
	{ "LISTEN_*", "descriptors that systemd has handed to launchd", false },
	{ "FDSTORE", "launchd's own: descriptors that systemd keeps", true },
	{ "MAINPID", "of launchd's unit", true },
	{ "MANAGERPID*", "of launchd's unit", true },
	{ "SYSTEMD_EXEC_PID", "of launchd's unit: the pid is launchd's", true },
	{ "INVOCATION_ID", "of launchd's unit", true },
	{ "RUNTIME_DIRECTORY", "launchd's own: its control socket lies there", true },
	{ "STATE_DIRECTORY", "of launchd's unit", true },
	{ "CACHE_DIRECTORY", "of launchd's unit", true },
	{ "LOGS_DIRECTORY", "of launchd's unit", true },
	{ "CONFIGURATION_DIRECTORY", "of launchd's unit", true },
	{ "CREDENTIALS_DIRECTORY", "of launchd's unit: secrets that are launchd's alone", true },
	{ "MEMORY_PRESSURE_*", "of launchd's unit", true },
	{ "TRIGGER_*", "of launchd's unit", true },
};
/* clang-format on */

enum scrub scrub_of_service(const char *name, size_t len, bool service, const char **ret_why)
{
	for (size_t i = 0; i < sizeof service_rows / sizeof *service_rows; i++) {
		if (service_rows[i].only_service && !service)
			continue;
		if (!name_matches(service_rows[i].pattern, name, len))
			continue;
		*ret_why = service_rows[i].why;
		return SCRUB_REMOVE;
	}
	return SCRUB_PASS;
}

enum scrub scrub_of(const char *name, size_t len, enum mpi_env policy, const char **ret_why)
{
	if (name_matches(SETTING_KEY_VARIABLE, name, len)) {
		*ret_why = "key of the job's launchers";
		return SCRUB_REMOVE;
	}
	if (policy == MPI_ENV_KEEP)
		return SCRUB_PASS;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (!name_matches(rows[i].pattern, name, len))
			continue;
		*ret_why = rows[i].why;
		return rows[i].rewritten && policy != MPI_ENV_SCRUB ? SCRUB_REWRITE : SCRUB_REMOVE;
	}
	return SCRUB_PASS;
}

unsigned scrub_value(const char *name, size_t len, const struct worker_rank *r)
{
	const struct {
		const char *name;
		unsigned value;
	} own[] = {
		{ "OMPI_COMM_WORLD_RANK", r->rank },
		{ "OMPI_COMM_WORLD_SIZE", r->world_size },
		{ "OMPI_COMM_WORLD_LOCAL_RANK", r->local_rank },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE", r->local_world_size },
		{ "OMPI_COMM_WORLD_NODE_RANK", r->local_rank },
	};

	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (name_matches(own[i].name, name, len))
			return own[i].value;
	return 0;
}
