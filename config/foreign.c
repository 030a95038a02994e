/* foreign.c - see foreign.h */
#include "config/foreign.h"

#include <stdbool.h>
#include <string.h>

#include "common/name.h"

#define PER_NODE "--nproc_per_node is the number of workers on each node"
#define HOSTS \
	"one launchd runs on each node: --mpirun-hosts or --mpirun-hostfile starts them by mpirun, " \
	"--cluster-nodes or --cluster-hostfile lists nodes on which something else starts them"
#define GPUS "--gpus says which GPUs workers see"
#define IN_SCRIPT \
	"that is the script's business: put it behind the script, or into its configuration"

/* Of horovodrun, deepspeed, accelerate launch, mpirun and srun, as far as no option of ours or of
 * torchrun has the same name. */
/* clang-format off */
static const struct {
	const char *names; /* "a|b"; one letter: behind a single dash */
	const char *hint;
} rows[] = {
	{ "num_gpus|num_proc|gpus_per_node|ntasks_per_node|npernode|ppn|workers", PER_NODE },
	{ "num_processes|ntasks|world_size|n",
	  PER_NODE "; the job's size is their sum" },
	{ "num_nodes|num_machines|nodes|N", "--nnodes is the number of nodes" },
	{ "machine_rank|node_id", "--node_rank is this node's rank" },
	{ "rank", "--node_rank is this node's rank, and workers get their RANK from launchd" },
	{ "main_process_ip|master_ip", "--master_addr is the address of node rank 0" },
	{ "main_process_port", "--master_port is the port on node rank 0" },
	{ "host|hosts|hostfile|host_file|H|nodelist|include|exclude", HOSTS },
	{ "config_file", "--config reads a file of launchd's settings" },
	{ "gpu_ids|devices", GPUS "; " PER_NODE },
	{ "network_interface|network_interfaces|nics", "--interface names the networks that launchers use, "
	  "--nccl_socket_ifname NCCL's" },
	{ "num_cpu_threads_per_process|cpus_per_task", "--env OMP_NUM_THREADS=N sets the number of threads" },
	{ "start_timeout", "--join-timeout is how long nodes wait for one another" },
	{ "timeout", "--max-runtime limits how long the job may run, --join-timeout how long nodes wait "
	  "for one another" },
	{ "output_filename|enable_each_rank_log|output", "--log-dir keeps a log file of each worker" },
	{ "tag_output|prefix_output_with_timestamp|label", "--log-line-prefix-template puts a prefix before each line" },
	{ "x|export", "workers have the launcher's environment; --env NAME=VALUE sets a variable of it" },
	{ "no_local_rank", "--use_env leaves the argument --local_rank out" },
	{ "min_restarts|restarts", "--max-restarts is how many times a failed job is restarted" },
	{ "map_by|bind_to|mca|allow_run_as_root|oversubscribe", "it is mpirun's: put it before launchd" },
	{ "launcher|no_ssh|ssh_port|p|gloo|use_gloo|use_mpi|multi_gpu|same_network",
	  "launchd doesn't need it; " HOSTS },
	{ "mixed_precision|use_deepspeed|use_fsdp|deepspeed|deepspeed_config|zero_stage|dynamo_backend",
	  IN_SCRIPT },
};
/* clang-format on */

static bool is_one_of(const char *names, const char *name, size_t len)
{
	while (*names) {
		size_t n = strcspn(names, "|");

		if (n == len && name_begins(names, name, len))
			return true;
		names += n;
		names += *names == '|';
	}
	return false;
}

const char *foreign_hint(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (is_one_of(rows[i].names, name, len))
			return rows[i].hint;
	return NULL;
}
