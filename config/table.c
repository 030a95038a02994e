/* table.c - see table.h. Adding a setting is adding a row (and using its value). */
#include "config/table.h"

const char *const setting_group_titles[GROUP_COUNT] = {
	[GROUP_JOB] = "Job and nodes",
	[GROUP_NODES] = "Multiple nodes",
	[GROUP_WORKERS] = "Workers",
	[GROUP_ENVIRONMENT] = "Workers' environment",
	[GROUP_PLACEMENT] = "Placement of workers",
	[GROUP_CGROUP] = "Limits of each worker, by cgroups",
	[GROUP_NODE_CHECK] = "Checking nodes",
	[GROUP_OUTPUT] = "Output",
	[GROUP_END] = "Ending the job",
	[GROUP_FAILURE] = "After a failure, and hangs",
	[GROUP_RESTART] = "Restarts",
	[GROUP_RDZV] = "Rendezvous, as with torchrun",
	[GROUP_GENERAL] = "General",
	[GROUP_LATER] = "Limited or without effect",
};

const char *const setting_section_names[SECTION_COUNT] = {
	[SECTION_LAUNCHD] = "launchd",
	[SECTION_ENV] = "env",
	[SECTION_CLUSTER] = "cluster",
	[SECTION_CGROUP] = "cgroup",
	[SECTION_CHECK] = "check",
};

#define C10D_OR_MPIRUN \
	"use c10d with --rdzv-endpoint HOST:PORT (of node rank 0), or start launchd with mpirun"

/* a row is a paragraph: clang-format would make it a column */
/* clang-format off */
const struct setting_row setting_rows[SETTING_COUNT] = {
	[SET_NPROC_PER_NODE] = { .flag = "nproc_per_node", .original = 1, .pet = 1,
		.kind = KIND_NPROC, .group = GROUP_JOB, .metavar = "N|auto|cpu|gpu",
		.choices = "auto|cpu|gpu", .by_default = "1", .min = 1, .max = 65536,
		.foreign = "xpu|mps", .instead = "give a number",
		.help = "Workers to start on this node: a number, gpu (one per GPU), cpu (one per "
			"CPU that this process may use) or auto (gpu if there are any, otherwise "
			"cpu)." },
	[SET_NNODES] = { .flag = "nnodes", .original = 1, .pet = 1, .kind = KIND_NNODES,
		.group = GROUP_JOB, .metavar = "N", .min = 1, .max = 65536,
		.help = "Number of nodes. Default: what mpirun, srun, NNODES or Azure ML's "
			"AZUREML_NODE_COUNT says, otherwise 1.",
		.hint = "elastic jobs (MIN:MAX with MIN below MAX) are not supported: give one "
			"number" },
	[SET_NODE_RANK] = { .flag = "node_rank", .original = 1, .pet = 1, .kind = KIND_COUNT,
		.group = GROUP_JOB, .metavar = "R", .min = 0, .max = 65535,
		.help = "This node's rank, from 0. Default: what mpirun, srun or NODE_RANK says." },
	[SET_ENV_RANKS] = { .flag = "env-ranks", .kind = KIND_CHOICE, .group = GROUP_JOB,
		.metavar = "worker|node", .choices = "worker|node", .by_default = "worker",
		.help = "What RANK and WORLD_SIZE mean in the environment. worker: a worker's rank and the "
			"job's size, which launchd does not read. node: this node's rank and the number "
			"of nodes, as Kubernetes' PyTorchJob sets them, and Azure ML's type: pytorch "
			"with one process per node." },
	[SET_MASTER_ADDR] = { .flag = "master_addr", .original = 1, .pet = 1, .kind = KIND_TEXT,
		.group = GROUP_JOB, .metavar = "ADDR",
		.help = "Address of node rank 0 that all nodes can reach. Default: Azure ML's "
			"variables, MASTER_ADDR, Slurm's first host, or 127.0.0.1 on one node and where "
			"mpirun started all launchers on this host." },
	[SET_MASTER_PORT] = { .flag = "master_port", .original = 1, .pet = 1, .kind = KIND_COUNT,
		.group = GROUP_JOB, .metavar = "PORT", .min = 0, .max = 65535,
		.help = "Port on node rank 0 that worker 0 listens on; 0 means a free one (one "
			"node only). Default: Azure ML's rule, MASTER_PORT if MASTER_ADDR is used, "
			"29500, or a free port on one node and under such an mpirun." },
	[SET_STANDALONE] = { .flag = "standalone", .original = 1, .pet = 1, .kind = KIND_FLAG,
		.group = GROUP_JOB, .by_default = "0",
		.help = "Run a job on this node alone, whatever mpirun or the environment says: on "
			"127.0.0.1 and a free port, with a run ID of its own." },
	[SET_PER_PROCESS] = { .flag = "per-process", .only_flag = 1, .kind = KIND_FLAG,
		.group = GROUP_JOB, .by_default = "0",
		.help = "This launcher is one of several that mpirun, mpiexec or srun has started on "
			"this host, and starts one worker, which has its ranks, its CPU binding and its "
			"MPI identity." },
	[SET_LOCAL_ADDR] = { .flag = "local-addr", .original = 1, .pet = 1, .kind = KIND_TEXT,
		.group = GROUP_JOB, .metavar = "ADDR",
		.help = "Address of this node. On one node it is also the master address, unless "
			"that is given; on several, it is where the other nodes reach this one." },

	[SET_CONTROL] = { .flag = "control", .kind = KIND_CHOICE, .group = GROUP_NODES,
		.metavar = "auto|required|off", .choices = "auto|required|off",
		.by_default = "required",
		.help = "Whether the launchers of all nodes connect to one another and act as one. "
			"required: a job whose nodes don't all meet fails; auto: its workers start "
			"all the same, with a warning, and don't notice if the others fail; off: each "
			"launcher is on its own." },
	[SET_CONTROL_PORT] = { .flag = "control-port", .kind = KIND_COUNT, .group = GROUP_NODES,
		.metavar = "PORT", .min = 1, .max = 65535,
		.help = "Port on node rank 0 that its launcher listens on for the others. "
			"Default: the port of --rdzv-endpoint with --rdzv-backend c10d, else the "
			"master port + 1; with PMIx, a free one." },
	[SET_JOIN_TIMEOUT] = { .flag = "join-timeout", .kind = KIND_SECONDS, .group = GROUP_NODES,
		.metavar = "SECONDS", .by_default = "900", .min = 1, .max = 31536000,
		.help = "How long to wait for all nodes to join. With --rdzv-backend c10d the "
			"default is 600, as torchrun's." },
	[SET_NODE_TIMEOUT] = { .flag = "node-timeout", .kind = KIND_SECONDS, .group = GROUP_NODES,
		.metavar = "SECONDS", .by_default = "10", .min = 1, .max = 86400,
		.help = "How long a node may be silent before it counts as lost and the job ends." },
	[SET_CLUSTER_NODES] = { .flag = "cluster-nodes", .section = SECTION_CLUSTER, .key = "nodes",
		.kind = KIND_HOSTS, .group = GROUP_NODES, .metavar = "HOST[,HOST...]",
		.help = "All nodes of the job by names or addresses, the same list on each; node "
			"rank 0 first. gpu[01-16,20] is short for 17 names. Each node finds itself "
			"in it by its host name or by an address that it has, which gives "
			"--nnodes, --node_rank and --master_addr." },
	[SET_CLUSTER_HOSTFILE] = { .flag = "cluster-hostfile", .section = SECTION_CLUSTER,
		.key = "hostfile", .kind = KIND_TEXT, .group = GROUP_NODES, .metavar = "FILE",
		.help = "The same from a host file of Open MPI, Hydra, DeepSpeed, horovodrun, an MPI "
			"operator or PBS. slots=N or :N behind a host is its number of workers where "
			"--nproc_per_node is not given." },
	[SET_MPIRUN_HOSTS] = { .flag = "mpirun-hosts", .only_flag = 1, .head = 1,
		.kind = KIND_HOSTS_SLOTS, .group = GROUP_NODES, .metavar = "HOST[:N][,HOST[:N]...]",
		.help = "Become Open MPI's mpirun, which starts this command on these hosts, one "
			"launcher on each. N is the number of workers on a host, if --nproc_per_node is "
			"not given." },
	[SET_MPIRUN_HOSTFILE] = { .flag = "mpirun-hostfile", .only_flag = 1, .head = 1,
		.kind = KIND_TEXT, .group = GROUP_NODES, .metavar = "FILE|azureml",
		.help = "The same for the hosts of a file, as for --cluster-hostfile. azureml: the "
			"file that AZUREML_MPI_HOSTFILE names." },
	[SET_KEY_FILE] = { .flag = "key-file", .kind = KIND_TEXT, .group = GROUP_NODES,
		.metavar = "FILE",
		.help = "File with the job's key, by which launchers authenticate one another: the "
			"same on all nodes, and readable by its owner only. LAUNCHD_KEY may hold "
			"the key itself instead; workers never see it." },
	[SET_INTERFACE] = { .flag = "interface", .kind = KIND_TEXT, .group = GROUP_NODES,
		.metavar = "NAME[,NAME]",
		.help = "Network interfaces by which the other nodes reach this one, best first. "
			"--local-addr takes precedence." },
	[SET_STORE] = { .flag = "store", .kind = KIND_CHOICE, .group = GROUP_NODES,
		.metavar = "agent|rank0", .choices = "agent|rank0",
		.help = "Who hosts the store that workers rendezvous through: node rank 0's "
			"launcher, or worker 0. Default: the launcher if it supports the workers' "
			"version of torch; worker 0 otherwise, with --node-env, --only-rank, --jax-env, "
			"--tf-config, --no_python and --control=off, and if the script seems to need "
			"the master port." },

	[SET_MODULE] = { .flag = "module", .letter = 'm', .original = 1, .pet = 1,
		.kind = KIND_FLAG, .group = GROUP_WORKERS, .by_default = "0",
		.help = "The script is a Python module: run python -m SCRIPT." },
	[SET_NO_PYTHON] = { .flag = "no_python", .original = 1, .pet = 1, .kind = KIND_FLAG,
		.group = GROUP_WORKERS, .by_default = "0",
		.help = "The script is a program of its own: don't run it with Python. Needs "
			"--use_env." },
	[SET_PYTHON] = { .flag = "python", .kind = KIND_TEXT, .group = GROUP_WORKERS,
		.variable = "PYTHON_EXEC", .metavar = "PATH",
		.help = "Python interpreter for the workers. Default: PYTHON_EXEC; then, where "
			"VIRTUAL_ENV is not set, python3 of the virtual environment in which launchd "
			"is installed, if it has PyTorch; then python3, then python on PATH." },
	[SET_USE_ENV] = { .flag = "use_env", .original = 1, .kind = KIND_FLAG,
		.group = GROUP_WORKERS, .by_default = "0",
		.help = "Pass the local rank in LOCAL_RANK only, not also as an argument "
			"--local_rank=N. The default when run as torchrun." },
	[SET_LOCAL_RANK_ARG] = { .flag = "local_rank_arg", .kind = KIND_TEXT,
		.group = GROUP_WORKERS, .metavar = "FLAG", .by_default = "--local_rank",
		.help = "Spelling of that argument; torch.distributed.launch has used --local-rank "
			"since 2.0." },
	[SET_EXPAND_ARGS] = { .flag = "expand-args", .kind = KIND_FLAG, .group = GROUP_WORKERS,
		.by_default = "0", .choices = "all",
		.help = "Expand the script's arguments as torchrun does: $local_rank and "
			"${local_rank} become the local rank, $$ becomes $. --expand-args=all: also "
			"$RANK, $MASTER_ADDR and every other variable that launchd sets for the "
			"worker, in capitals or small letters." },
	[SET_SCRIPT] = { .flag = "script", .only_key = 1, .kind = KIND_TEXT,
		.group = GROUP_WORKERS, .metavar = "PATH",
		.help = "The training script, where the command line names none." },
	[SET_ARGS] = { .flag = "args", .only_key = 1, .kind = KIND_ARGS,
		.group = GROUP_WORKERS, .metavar = "WORDS",
		.help = "The script's arguments. Quotes and backslashes work as in a shell; nothing "
			"else is expanded. May be given several times: the words add up. A script on "
			"the command line replaces the file's script and args." },
	[SET_STDIN] = { .flag = "stdin", .kind = KIND_CHOICE, .group = GROUP_WORKERS,
		.metavar = "auto|inherit|null", .choices = "auto|inherit|null",
		.by_default = "auto",
		.help = "Workers' standard input: the launcher's, or /dev/null. auto: /dev/null "
			"under mpirun, srun and systemd unless --only-rank is given, and in the "
			"background of a terminal; otherwise the launcher's." },
	[SET_VIRTUAL_LOCAL_RANK] = { .flag = "virtual-local-rank", .original = 1, .pet = 1,
		.kind = KIND_FLAG, .group = GROUP_WORKERS, .by_default = "0",
		.help = "Let every worker see one GPU, as device 0: LOCAL_RANK is 0 and "
			"CUDA_VISIBLE_DEVICES is the worker's own entry of the launcher's list." },
	[SET_NODE_ENV] = { .flag = "node-env", .kind = KIND_FLAG, .group = GROUP_WORKERS,
		.by_default = "0",
		.help = "Start the script once on each node, with MASTER_ADDR, MASTER_PORT and "
			"NODE_RANK only: for programs that start their own ranks, such as Lightning "
			"with devices=N and num_nodes=M. See \"One script for each node\" in "
			"launchd(1)." },
	[SET_ROLE] = { .flag = "role", .original = 1, .pet = 1, .kind = KIND_TEXT,
		.group = GROUP_WORKERS, .metavar = "NAME", .by_default = "default",
		.help = "ROLE_NAME of the workers." },
	[SET_ONLY_RANK] = { .flag = "only-rank", .kind = KIND_COUNT, .group = GROUP_WORKERS,
		.metavar = "R", .min = 0, .max = 2147483647,
		.help = "Start only the worker of this rank, with the ranks and sizes of the "
			"whole job: to debug one rank while the others run elsewhere." },
	[SET_WRAP] = { .flag = "wrap", .kind = KIND_TEXT, .group = GROUP_WORKERS,
		.metavar = "COMMAND",
		.help = "Command to run the workers' own commands under, as in 'nsys profile -o "
			"out'. Quotes and backslashes work as in a shell; nothing else is "
			"expanded." },
	[SET_WRAP_RANKS] = { .flag = "wrap-ranks", .kind = KIND_RANKS, .group = GROUP_WORKERS,
		.metavar = "R[-R][,R[-R]...]",
		.help = "Ranks that --wrap applies to, as in 0,4-7. Default: all." },
	[SET_RLIMIT] = { .flag = "rlimit", .kind = KIND_RLIMITS, .group = GROUP_WORKERS,
		.metavar = "NAME=N[:HARD][,...]",
		.help = "Resource limits of each worker, as in nofile=65536,memlock=unlimited,core=0: the "
			"names of setrlimit(2) in small letters. N is the soft and the hard limit, "
			"SOFT:HARD are the two; sizes are bytes, or have K, M, G or T. Default: the "
			"launcher's own limits." },
	[SET_NICE] = { .flag = "nice", .kind = KIND_SIGNED, .group = GROUP_WORKERS,
		.metavar = "N", .min = (uint64_t)-20, .max = 19,
		.help = "Nice value of each worker: from -20, which gets the most CPU time, to 19. "
			"Default: the launcher's." },
	[SET_OOM_SCORE_ADJ] = { .flag = "oom-score-adj", .kind = KIND_SIGNED,
		.group = GROUP_WORKERS, .metavar = "N", .min = (uint64_t)-1000, .max = 1000,
		.help = "How likely the kernel is to end each worker when memory runs out: from -1000, "
			"never, to 1000, first. Default: as likely as the launcher." },

	[SET_ENV] = { .flag = "env", .kind = KIND_ENV, .group = GROUP_ENVIRONMENT,
		.section = SECTION_ENV,
		.metavar = "NAME=VALUE",
		.help = "Set a variable for the workers; may be repeated. In a file: section "
			"[env]." },
	[SET_UNSET_ENV] = { .flag = "unset-env", .kind = KIND_UNSET, .group = GROUP_ENVIRONMENT,
		.metavar = "NAME[,NAME...]",
		.help = "Remove a variable from the workers' environment; may be repeated." },
	[SET_MPI_ENV] = { .flag = "mpi-env", .kind = KIND_CHOICE, .group = GROUP_ENVIRONMENT,
		.metavar = "POLICY", .choices = "rewrite|scrub|keep|rewrite-slurm|rewrite-pmi", .by_default = "rewrite",
		.help = "What workers see of the launcher's own MPI or Slurm task: "
			"OMPI_COMM_WORLD_* with the worker's own values (rewrite), nothing "
			"(scrub), everything unchanged (keep: one worker can call MPI_Init), in a Slurm job also SLURM_PROCID, "
			"SLURM_NTASKS and their like with the worker's own values (rewrite-slurm), or PMI_RANK, "
			"PMI_SIZE, MPI_LOCALRANKID and MPI_LOCALNRANKS likewise (rewrite-pmi)." },
	[SET_TF_CONFIG] = { .flag = "tf-config", .kind = KIND_FLAG, .group = GROUP_ENVIRONMENT,
		.by_default = "0",
		.help = "Give each worker a TF_CONFIG for TensorFlow's multi-worker strategies: the "
			"addresses of all workers, with a port that its launcher has reserved for "
			"each, and the worker's own place among them." },
	[SET_TF_ROLES] = { .flag = "tf-roles", .kind = KIND_TEXT, .group = GROUP_ENVIRONMENT,
		.metavar = "TYPE=N[,TYPE=N...]",
		.help = "Task types in the order of the ranks, for --tf-config: chief, worker, ps, "
			"evaluator, as in ps=2,worker=6. Together they must be all workers of the "
			"job. Default: all are of type worker." },
	[SET_JAX_ENV] = { .flag = "jax-env", .kind = KIND_FLAG, .group = GROUP_ENVIRONMENT,
		.by_default = "0",
		.help = "Let jax.distributed.initialize() work without arguments: set JAX's variables, "
			"and those of Open MPI by which it finds its ranks." },
	[SET_NCCL_SOCKET_IFNAME] = { .flag = "nccl_socket_ifname", .kind = KIND_TEXT,
		.group = GROUP_ENVIRONMENT, .metavar = "NAMES",
		.help = "Set NCCL_SOCKET_IFNAME for the workers." },

	[SET_BIND] = { .flag = "bind", .kind = KIND_LISTS, .group = GROUP_PLACEMENT,
		.metavar = "MODE|LIST", .choices = "none|core|l3|numa|socket|gpu|auto",
		.by_default = "none",
		.help = "Which CPUs each worker may run on: an even share of all cores (core); those "
			"of an L3 cache, a NUMA node or a socket, in the order of the workers (l3, "
			"numa, socket); of the NUMA node next to its GPU (gpu); the best of these "
			"(auto: gpu; without GPUs numa; with one NUMA node core); all (none). LIST: "
			"CPUs of each worker, as in 0-3,16-19:4-7,20-23." },
	[SET_NUMA_BINDING] = { .flag = "numa-binding", .original = 1, .kind = KIND_CHOICE,
		.group = GROUP_PLACEMENT, .metavar = "node|socket|exclusive|core-complex",
		.choices = "node|socket|exclusive|core-complex",
		.help = "The same as torchrun has it, by the GPU whose number is the worker's local "
			"rank: the CPUs of its NUMA node, of its socket, a share of its NUMA node's "
			"cores, or one L3 cache there. Needs no numactl." },
	[SET_MEMBIND] = { .flag = "membind", .kind = KIND_LISTS, .group = GROUP_PLACEMENT,
		.metavar = "MODE|LIST", .choices = "none|bind|preferred|local|interleave",
		.help = "Where workers' memory comes from: only the NUMA nodes of a worker's CPUs "
			"(bind), these first (preferred), the node that a thread runs on (local), "
			"these in turn (interleave), or as launchd's own (none). LIST: only these "
			"nodes, as in 0-1, or 0:1 by worker. Default: preferred with --bind or "
			"--numa-binding, otherwise none." },
	[SET_CPUS_PER_WORKER] = { .flag = "cpus-per-worker", .kind = KIND_COUNT,
		.group = GROUP_PLACEMENT, .metavar = "N", .min = 1, .max = 16384,
		.help = "Cores for each worker, its alone, with all their hardware threads. Without "
			"--bind they are chosen as with --bind auto." },
	[SET_OMP_THREADS] = { .flag = "omp-threads", .kind = KIND_NPROC,
		.group = GROUP_PLACEMENT, .metavar = "N|auto", .choices = "auto", .min = 1,
		.max = 16384,
		.help = "Set OMP_NUM_THREADS for the workers, unless it is set already. auto: the "
			"cores that there are for each, by its CPUs and the cgroup's quota. Default: "
			"1 for two or more workers, as torchrun." },
	[SET_GPUS] = { .flag = "gpus", .kind = KIND_DEVICES, .group = GROUP_PLACEMENT,
		.metavar = "all|LIST", .by_default = "all",
		.help = "GPUs for this node's workers, as in 0,2,4-7: numbers among those that the "
			"launcher itself sees, or names, as in GPU-8f3a...,MIG-5c21...; all: each that "
			"it sees. Workers see these only, in this order." },
	[SET_GPUS_PER_WORKER] = { .flag = "gpus-per-worker", .kind = KIND_COUNT,
		.group = GROUP_PLACEMENT, .metavar = "N", .by_default = "1", .min = 1, .max = 1024,
		.help = "How many GPUs are each worker's own: N times as many must be there as there are "
			"workers, and --nproc_per_node gpu starts one worker for N of them." },
	[SET_VISIBLE_DEVICES] = { .flag = "visible-devices", .kind = KIND_CHOICE,
		.group = GROUP_PLACEMENT, .metavar = "keep|one|none", .choices = "keep|one|none",
		.by_default = "keep",
		.help = "GPUs that a worker sees. keep: all of --gpus, of which LOCAL_RANK is its own; one: its "
			"own only, as device 0, and LOCAL_RANK is 0, which is what --virtual-local-rank "
			"means; none: no GPU." },
	[SET_SHARE_GPUS] = { .flag = "share-gpus", .kind = KIND_FLAG, .group = GROUP_PLACEMENT,
		.by_default = "0",
		.help = "Let workers share GPUs where there are fewer than they need, in turn: with 2 GPUs "
			"workers 0 and 2 have the first. Without it that is an error." },
	[SET_NIC] = { .flag = "nic", .kind = KIND_CHOICE, .group = GROUP_PLACEMENT,
		.metavar = "none|gpu", .choices = "none|gpu", .by_default = "none",
		.help = "Which network devices UCX uses. gpu: UCX_NET_DEVICES, where it is not set, is the "
			"InfiniBand or RoCE port closest to the worker's GPU; none: UCX decides. NCCL finds "
			"that port itself." },

	[SET_CGROUP_MEMORY] = { .flag = "cgroup-memory", .section = SECTION_CGROUP, .key = "memory",
		.kind = KIND_SIZE,
		.group = GROUP_CGROUP, .metavar = "BYTES", .by_default = "0", .max = 1ull << 60,
		.help = "Memory that each worker may use, with all processes that it starts and "
			"without swap; beyond that the kernel kills all of them, and the report "
			"names the rank. K, M and G are powers of 1024 bytes; 0: no limit. Needs a "
			"delegated cgroup: see CGROUPS in launchd(1)." },
	[SET_CGROUP_CPUS] = { .flag = "cgroup-cpus", .section = SECTION_CGROUP, .key = "cpus",
		.kind = KIND_CPUS, .group = GROUP_CGROUP,
		.metavar = "N", .by_default = "0", .max = 65536,
		.help = "CPU time that each worker may use, in CPUs, with all processes that it "
			"starts; may have decimals, as in 1.5. 0: no limit. Needs a delegated "
			"cgroup." },
	[SET_CGROUP_PIDS] = { .flag = "cgroup-pids", .section = SECTION_CGROUP, .key = "pids",
		.kind = KIND_COUNT, .group = GROUP_CGROUP,
		.metavar = "N", .by_default = "0", .max = 4194304,
		.help = "How many processes and threads each worker may have at the same time; 0: "
			"no limit. Needs a delegated cgroup." },

	[SET_CHECK_NODE] = { .flag = "check-node", .only_flag = 1, .optional = 1,
		.kind = KIND_CHOICE, .group = GROUP_NODE_CHECK, .metavar = "text|json|prometheus",
		.choices = "text|json|prometheus",
		.help = "Look whether this node is fit for a job (GPUs, links, disks, mounts, clock), "
			"print what was found and start nothing. The exit code is 0, or 3 if the node is "
			"bad: see NODE CHECK in launchd(1)." },
	[SET_JSON] = { .flag = "json", .only_flag = 1, .kind = KIND_FLAG,
		.group = GROUP_NODE_CHECK, .by_default = "0",
		.help = "With --check-node, short for --check-node=json." },
	[SET_CHECK_GPUS] = { .flag = "check-gpus", .section = SECTION_CHECK, .key = "gpus",
		.kind = KIND_COUNT, .group = GROUP_NODE_CHECK, .metavar = "N", .min = 0, .max = 1024,
		.help = "How many GPUs the node has to have; with another number it is bad. Default: "
			"any number is right." },
	[SET_CHECK_GPU_UUIDS] = { .flag = "check-gpu-uuids", .section = SECTION_CHECK,
		.key = "gpu-uuids", .only_key = 1, .kind = KIND_TEXT, .group = GROUP_NODE_CHECK,
		.metavar = "UUID[,UUID...]",
		.help = "The UUIDs of the node's GPUs, of which each may be cut, as in "
			"GPU-8f6a2c1d. Default: any." },
	[SET_CHECK_COMMAND] = { .flag = "check-command", .section = SECTION_CHECK,
		.key = "command", .kind = KIND_TEXT, .group = GROUP_NODE_CHECK,
		.metavar = "COMMAND",
		.help = "A check of your own, split into words as --wrap is: the node is bad if it "
			"exits with another code than 0, or prints a JSON verdict of CRITICAL." },
	[SET_CHECK_WHEN] = { .flag = "check-when", .section = SECTION_CHECK, .key = "when",
		.kind = KIND_CHOICE, .group = GROUP_NODE_CHECK,
		.metavar = "start|restart|start,restart",
		.choices = "start|restart|start,restart|restart,start", .by_default = "start",
		.help = "When a job runs --check-command: before its first start, or before "
			"restarts, or both. --check-node runs it in any case." },
	[SET_CHECK_TIMEOUT] = { .flag = "check-timeout", .section = SECTION_CHECK,
		.key = "timeout", .kind = KIND_SECONDS, .group = GROUP_NODE_CHECK,
		.metavar = "SECONDS", .by_default = "60", .min = 1, .max = 86400,
		.help = "Time that --check-command has. After that it is killed, with all that it has "
			"started, and what it was to find is unknown." },
	[SET_CHECK_NVLINKS] = { .flag = "check-nvlinks", .section = SECTION_CHECK,
		.key = "nvlinks", .only_key = 1, .by_model = 1, .kind = KIND_COUNT,
		.group = GROUP_NODE_CHECK, .metavar = "N", .max = 64,
		.help = "How many NVLinks of a GPU have to be up. Default: as many as its model has "
			"on an HGX board, else all or none of those that it has." },
	[SET_CHECK_PCIE_WIDTH] = { .flag = "check-pcie-width", .section = SECTION_CHECK,
		.key = "pcie-width", .only_key = 1, .by_model = 1, .kind = KIND_COUNT,
		.group = GROUP_NODE_CHECK, .metavar = "N", .max = 64,
		.help = "PCIe lanes that a GPU has to have at least. Default: the most that GPU and "
			"slot can." },
	[SET_CHECK_ECC_ERRORS] = { .flag = "check-ecc-errors", .section = SECTION_CHECK,
		.key = "ecc-errors", .only_key = 1, .by_model = 1, .kind = KIND_COUNT,
		.group = GROUP_NODE_CHECK, .metavar = "N", .by_default = "0", .max = 1000000000,
		.help = "Uncorrectable memory errors since its driver was loaded that a GPU may have." },
	[SET_CHECK_GPU_MEMORY] = { .flag = "check-gpu-memory", .section = SECTION_CHECK,
		.key = "gpu-memory", .only_key = 1, .by_model = 1, .kind = KIND_SIZE,
		.group = GROUP_NODE_CHECK, .metavar = "BYTES", .by_default = "1G",
		.max = 1ull << 50,
		.help = "Memory of a GPU that may be in use before the job starts; 0: whatever is." },
	[SET_CHECK_LEAST_MEMORY] = { .flag = "check-least-memory", .section = SECTION_CHECK,
		.key = "least-memory", .only_key = 1, .by_model = 1, .kind = KIND_RATE,
		.group = GROUP_NODE_CHECK, .metavar = "GB/s", .max = 1000000,
		.help = "GB/s at which a GPU has to copy its own memory, as launchd-nodecheck "
			"measures it. Default: three quarters of its data sheet." },
	[SET_CHECK_LEAST_COMPUTE] = { .flag = "check-least-compute", .section = SECTION_CHECK,
		.key = "least-compute", .only_key = 1, .by_model = 1, .kind = KIND_RATE,
		.group = GROUP_NODE_CHECK, .metavar = "TFLOP/s", .max = 1000000,
		.help = "TFLOP/s that a GPU has to do. Default: what its peers do." },
	[SET_CHECK_LEAST_NODE] = { .flag = "check-least-node", .section = SECTION_CHECK,
		.key = "least-node", .only_key = 1, .by_model = 1, .kind = KIND_RATE,
		.group = GROUP_NODE_CHECK, .metavar = "GB/s", .max = 1000000,
		.help = "Bus bandwidth in GB/s of an all-reduce inside a node. Default: what "
			"large fleets demand of its model." },
	[SET_CHECK_LEAST_NICS] = { .flag = "check-least-nics", .section = SECTION_CHECK,
		.key = "least-nics", .only_key = 1, .by_model = 1, .kind = KIND_RATE,
		.group = GROUP_NODE_CHECK, .metavar = "GB/s", .max = 1000000,
		.help = "The same by the node's network cards alone. Default: what its peers "
			"do." },
	[SET_CHECK_LEAST_PAIRS] = { .flag = "check-least-pairs", .section = SECTION_CHECK,
		.key = "least-pairs", .only_key = 1, .by_model = 1, .kind = KIND_RATE,
		.group = GROUP_NODE_CHECK, .metavar = "GB/s", .max = 1000000,
		.help = "The same between two nodes. Default: what its peers do." },
	[SET_CHECK_LEAST_JOB] = { .flag = "check-least-job", .section = SECTION_CHECK,
		.key = "least-job", .only_key = 1, .by_model = 1, .kind = KIND_RATE,
		.group = GROUP_NODE_CHECK, .metavar = "GB/s", .max = 1000000,
		.help = "The same among all nodes. Default: any." },
	[SET_CHECK_IB_PORTS] = { .flag = "check-ib-ports", .section = SECTION_CHECK,
		.key = "ib-ports", .only_key = 1, .kind = KIND_COUNT, .group = GROUP_NODE_CHECK,
		.metavar = "N", .max = 1024,
		.help = "How many InfiniBand or RoCE ports have to be up. Default: each InfiniBand "
			"port that isn't switched off." },
	[SET_CHECK_IB_RATE] = { .flag = "check-ib-rate", .section = SECTION_CHECK,
		.key = "ib-rate", .only_key = 1, .kind = KIND_COUNT, .group = GROUP_NODE_CHECK,
		.metavar = "GBIT", .max = 100000,
		.help = "Gb/s that each InfiniBand port that is up has to have. Default: as much as "
			"the others of its node." },
	[SET_CHECK_SHM] = { .flag = "check-shm", .section = SECTION_CHECK, .key = "shm",
		.only_key = 1, .kind = KIND_SIZE, .group = GROUP_NODE_CHECK,
		.metavar = "BYTES", .max = 1ull << 50,
		.help = "Bytes that have to be free in /dev/shm. Default: 1G with several GPUs, else "
			"whatever is." },
	[SET_CHECK_MEMLOCK] = { .flag = "check-memlock", .section = SECTION_CHECK,
		.key = "memlock", .only_key = 1, .kind = KIND_SIZE, .group = GROUP_NODE_CHECK,
		.metavar = "BYTES", .max = 1ull << 50,
		.help = "Memory that a process has to be allowed to lock. Default: 1G with InfiniBand "
			"or RoCE, else whatever is." },
	[SET_CHECK_DISK] = { .flag = "check-disk", .section = SECTION_CHECK, .key = "disk",
		.only_key = 1, .kind = KIND_SIZE, .group = GROUP_NODE_CHECK, .metavar = "BYTES",
		.by_default = "256M", .max = 1ull << 50,
		.help = "Bytes that have to be free for the logs, in TMPDIR and in the working "
			"directory." },
	[SET_CHECK_CLOCK] = { .flag = "check-clock", .section = SECTION_CHECK, .key = "clock",
		.only_key = 1, .kind = KIND_SECONDS, .group = GROUP_NODE_CHECK,
		.metavar = "SECONDS", .by_default = "1", .max = 86400,
		.help = "How far the node's clock may be off, as far as who sets it knows." },
	[SET_PREFLIGHT] = { .flag = "preflight", .kind = KIND_CHOICE, .group = GROUP_NODE_CHECK,
		.metavar = "none|quick|links|gpu|full", .choices = "none|quick|links|gpu|full",
		.by_default = "none",
		.help = "Check all nodes at once before the workers start, with one verdict: "
			"quick: a dozen facts of each node, and who differs from the others, in "
			"about a second, again before each restart; links: that, and the TCP links "
			"between nodes, in up to 10 s; gpu: quick, and GPUs and what lies between "
			"them, by launchd-nodecheck, in about a minute; full: all of these." },
	[SET_ON_BAD_NODE] = { .flag = "on-bad-node", .kind = KIND_CHOICE,
		.group = GROUP_NODE_CHECK, .metavar = "stop|report", .choices = "stop|report",
		.by_default = "stop",
		.help = "What to do where --preflight finds bad nodes: stop: start no worker, name "
			"the hosts to exclude and exit with 122; report: name them and go on." },

	[SET_LOG_DIR] = { .flag = "log-dir", .original = 1, .pet = 1, .kind = KIND_TEXT,
		.group = GROUP_OUTPUT, .metavar = "DIR",
		.help = "Directory in which each run creates its own tree of log files. On its "
			"own, it logs all workers to files as well as to the console; with "
			"--redirects or --tee, only what those choose. /dev/null: no files at all." },
	[SET_REDIRECTS] = { .flag = "redirects", .letter = 'r', .original = 1, .pet = 1,
		.kind = KIND_STREAMS, .group = GROUP_OUTPUT, .metavar = "STREAMS",
		.by_default = "0",
		.help = "Streams that go to files instead of the console: 0 none, 1 stdout, 2 "
			"stderr, 3 both; or by local rank, as in 0:1,4-7:3." },
	[SET_TEE] = { .flag = "tee", .letter = 't', .original = 1, .pet = 1,
		.kind = KIND_STREAMS, .group = GROUP_OUTPUT, .metavar = "STREAMS",
		.by_default = "0",
		.help = "Streams that go to files and to the console, where each line has a "
			"prefix; the syntax is that of --redirects." },
	[SET_LOCAL_RANKS_FILTER] = { .flag = "local-ranks-filter", .original = 1, .pet = 1,
		.kind = KIND_RANKS, .group = GROUP_OUTPUT, .metavar = "R[-R][,R[-R]...]",
		.by_default = "",
		.help = "Local ranks whose output is shown on the console, as in 0,4-7. Default: "
			"all." },
	[SET_LOG_LINE_PREFIX_TEMPLATE] = { .flag = "log-line-prefix-template", .original = 1,
		.pet = 1, .kind = KIND_TEXT_OR_NONE, .group = GROUP_OUTPUT,
		.variable = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", .metavar = "TEMPLATE",
		.by_default = "",
		.help = "Prefix of a worker's lines on the console, in which ${role_name}, "
			"${local_rank}, ${rank}, ${node_rank}, ${hostname}, ${stream} and ${time} "
			"are replaced by the line's own values. Default: "
			"[${role_name}${local_rank}]: with --tee, [${hostname}:${rank}]: with "
			"--merge-logs, otherwise none." },
	[SET_DUPLICATE_STDOUT_FILTERS] = { .flag = "duplicate-stdout-filters", .original = 1,
		.pet = 1, .kind = KIND_TEXT_OR_NONE, .group = GROUP_OUTPUT,
		.metavar = "TEXT[,TEXT...]", .by_default = "",
		.help = "Lines of a tee'd stdout that contain one of these texts also go to "
			"filtered_stdout.log; ,, is a comma within a text." },
	[SET_DUPLICATE_STDERR_FILTERS] = { .flag = "duplicate-stderr-filters", .original = 1,
		.pet = 1, .kind = KIND_TEXT_OR_NONE, .group = GROUP_OUTPUT,
		.metavar = "TEXT[,TEXT...]", .by_default = "",
		.help = "The same for stderr and filtered_stderr.log." },
	[SET_LOG_MAX_SIZE] = { .flag = "log-max-size", .kind = KIND_SIZE, .group = GROUP_OUTPUT,
		.metavar = "BYTES", .by_default = "0", .max = 1ull << 50,
		.help = "Start a new log file before one grows beyond this size; K, M and G are "
			"powers of 1024 bytes. 0: no limit." },
	[SET_LOG_KEEP] = { .flag = "log-keep", .kind = KIND_COUNT, .group = GROUP_OUTPUT,
		.metavar = "N", .by_default = "5", .min = 1, .max = 1000,
		.help = "How many full log files of a stream to keep, as stdout.log.1 (the "
			"newest) and so on." },
	[SET_LOG_TIMESTAMPS] = { .flag = "log-timestamps", .kind = KIND_FLAG,
		.group = GROUP_OUTPUT, .by_default = "0",
		.help = "Put the time of day (UTC) before each line of a log file." },
	[SET_CONSOLE_OVERFLOW] = { .flag = "console-overflow", .kind = KIND_CHOICE,
		.group = GROUP_OUTPUT, .metavar = "block|drop", .choices = "block|drop",
		.by_default = "block",
		.help = "What to do when a worker without a log file writes faster than the "
			"console takes it: make the worker wait, or drop lines and say how many." },
	[SET_TAIL_LINES] = { .flag = "tail-lines", .kind = KIND_COUNT, .group = GROUP_OUTPUT,
		.metavar = "N", .by_default = "20", .max = 1000,
		.help = "How many of the last lines of the worker that failed first to show in the "
			"report, 8 KB at most; 0: none." },
	[SET_EVENTS] = { .flag = "events", .kind = KIND_TEXT, .group = GROUP_OUTPUT,
		.metavar = "FILE|fd:N",
		.help = "Write what happens as JSON, one object per line: see EVENTS in "
			"launchd(1). %n, %h and %% in the name as with --report; fd:N is a "
			"descriptor that launchd was started with." },
	[SET_LOG_FORMAT] = { .flag = "log-format", .kind = KIND_CHOICE, .group = GROUP_OUTPUT,
		.metavar = "text|json", .choices = "text|json", .by_default = "text",
		.help = "Format of launchd's own messages: text, or one JSON object per line." },
	[SET_MERGE_LOGS] = { .flag = "merge-logs", .kind = KIND_FLAG, .group = GROUP_OUTPUT,
		.by_default = "0",
		.help = "Show the output of all nodes' workers on node rank 0's console, each line "
			"with a prefix. mpirun does that by itself." },
	[SET_METRICS_FILE] = { .flag = "metrics-file", .kind = KIND_TEXT, .group = GROUP_OUTPUT,
		.metavar = "FILE",
		.help = "Keep a file of this node's metrics for Prometheus: see METRICS in "
			"launchd(1). For node_exporter's textfile collector its name ends in "
			".prom. %n, %h and %% as with --report." },
	[SET_METRICS_LISTEN] = { .flag = "metrics-listen", .kind = KIND_TEXT,
		.group = GROUP_OUTPUT, .metavar = "ADDR:PORT",
		.help = "Let Prometheus ask for this node's metrics: http://ADDR:PORT/metrics, "
			"without encryption or password. 127.0.0.1:9400 is for this host alone, "
			"[::]:9400 for all." },
	[SET_CTL_SOCKET] = { .flag = "ctl-socket", .kind = KIND_CHOICE, .group = GROUP_OUTPUT,
		.metavar = "auto|none", .choices = "auto|none", .by_default = "auto",
		.help = "Whether launchctl(1) can reach the job: auto: by a socket for its user "
			"and root, which launchd-control(7) describes; none: it can't." },
	[SET_JOB_NAME] = { .flag = "job-name", .kind = KIND_TEXT, .group = GROUP_OUTPUT,
		.metavar = "NAME",
		.help = "Name of the job in its metrics and for launchctl, in this run and the next. "
			"Default: the base name of --config's file without .conf, else --rdzv-id, "
			"else job." },
	[SET_JOURNAL] = { .flag = "journal", .kind = KIND_CHOICE, .group = GROUP_OUTPUT,
		.metavar = "none|messages|all|auto", .choices = "none|messages|all|auto",
		.by_default = "auto",
		.help = "What goes to systemd's journal with fields such as RANK=: launchd's own "
			"messages, or also what of the workers' output would be on the console. "
			"auto: messages, where stderr is the journal." },
	[SET_READY_WHEN] = { .flag = "ready-when", .kind = KIND_CHOICE, .group = GROUP_OUTPUT,
		.metavar = "started|joined", .choices = "started|joined",
		.by_default = "started",
		.help = "When systemd is told that this node is ready: its workers have started, or "
			"they are connected to the store, which is looked at once a second until "
			"then." },

	[SET_SHUTDOWN_TIMEOUT] = { .flag = "shutdown-timeout", .original = 1, .pet = 1,
		.kind = KIND_SECONDS, .group = GROUP_END,
		.variable = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", .metavar = "SECONDS",
		.by_default = "30",
		.max = 31536000,
		.help = "Time from the signal that ends the job to SIGKILL, whatever ends the job; "
			"may have decimals. A second signal cuts the remaining time to a quarter, "
			"5 s at most; a third one ends it." },
	[SET_LEFTOVER_GRACE] = { .flag = "leftover-grace", .kind = KIND_SECONDS,
		.group = GROUP_END, .metavar = "SECONDS", .by_default = "5", .max = 31536000,
		.help = "Time from SIGTERM to SIGKILL for processes that a worker left behind "
			"when it ended." },
	[SET_ON_SIGNAL] = { .flag = "on-signal", .kind = KIND_TEXT, .group = GROUP_END,
		.metavar = "SIGNAL=ACTION[,...]",
		.help = "What to do with a signal: forward (pass it on, the job continues), "
			"forward:SECONDS (pass it on, the job ends within that time), "
			"stop[:SECONDS] (SIGTERM to the workers, the job ends), preempt[:SECONDS] "
			"(--preempt-signal to the workers, the job ends with --requeue-exit-code), "
			"restart (SIGTERM to "
			"the workers, and the job starts again, whatever --max-restarts says), "
			"reopen (reopen log files by their names, as logrotate needs it) or ignore. SIGNAL is a "
			"name (TERM, SIGUSR1, RTMIN+1) or a number." },
	[SET_SIGNALS_TO_HANDLE] = { .flag = "signals-to-handle", .original = 1, .pet = 1,
		.kind = KIND_TEXT, .group = GROUP_END, .metavar = "SIGNALS",
		.variable = "TORCHELASTIC_SIGNALS_TO_HANDLE",
		.by_default = "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
		.help = "Signals that end the job, in addition to these four, which always do. All "
			"others that can be caught are forwarded." },
	[SET_SIGNAL_SCOPE] = { .flag = "signal-scope", .kind = KIND_CHOICE, .group = GROUP_END,
		.metavar = "worker|group|tree", .choices = "worker|group|tree",
		.by_default = "worker",
		.help = "Who gets a signal: each worker's own process, its process group, or its "
			"whole process tree. SIGTERM to the group ends PyTorch's data loaders "
			"before a worker has written its checkpoint. SIGKILL always goes to all of "
			"them." },
	[SET_MAX_RUNTIME] = { .flag = "max-runtime", .kind = KIND_SECONDS, .group = GROUP_END,
		.metavar = "SECONDS", .by_default = "0", .max = 31536000,
		.help = "End the job, with exit code 124, when it has run for this long; 0: no "
			"limit." },
	[SET_PREEMPT_WATCH] = { .flag = "preempt-watch", .kind = KIND_TEXT, .group = GROUP_END,
		.metavar = "COMMAND",
		.help = "Run this on every node while the job runs, split into words as --wrap is: "
			"when it exits with 0 the node is about to be preempted, and the number that "
			"it has printed is how many seconds are left. Workers then get "
			"--preempt-signal, and SIGKILL when that time is over." },
	[SET_PREEMPT_SIGNAL] = { .flag = "preempt-signal", .kind = KIND_TEXT, .group = GROUP_END,
		.metavar = "SIGNAL", .by_default = "SIGTERM",
		.help = "The signal that tells workers of a preemption: a name (SIGTERM, USR1) or a "
			"number." },
	[SET_REQUEUE_EXIT_CODE] = { .flag = "requeue-exit-code", .kind = KIND_COUNT,
		.group = GROUP_END, .metavar = "N", .by_default = "75", .min = 1, .max = 255,
		.help = "Exit code of a job that was preempted, by which a batch script or system "
			"knows that it is to run again. If it is given, SIGTERM to launchd counts as "
			"a preemption, too." },
	[SET_UNFINISHED_NOTE] = { .flag = "unfinished-note", .kind = KIND_SECONDS,
		.group = GROUP_END, .metavar = "SECONDS", .by_default = "60", .max = 31536000,
		.help = "Say which ranks are still running this long after the first one exited "
			"with 0; 0: never." },
	[SET_REPORT] = { .flag = "report", .kind = KIND_TEXT, .group = GROUP_END,
		.metavar = "FILE",
		.help = "Write a report of the job to a file when it has ended, as JSON: see "
			"REPORT in launchd(1). In the name, %n is the node rank, %h the host name "
			"and %% a percent sign; without %n and %h only node rank 0 writes it." },

	[SET_BLACKBOX] = { .flag = "blackbox", .kind = KIND_TEXT, .group = GROUP_FAILURE,
		.metavar = "DIR|none",
		.help = "Keep what can be known of each failure below DIR, for --explain: what the "
			"workers were doing, their last lines, GPUs, NCCL, and what launchd knew; "
			"none: don't. With --log-dir the default is blackbox below that." },
	[SET_BLACKBOX_HOLD] = { .flag = "blackbox-hold", .kind = KIND_SECONDS,
		.group = GROUP_FAILURE, .metavar = "SECONDS", .by_default = "0", .max = 3600,
		.help = "After a failure, let the other workers run on for up to this time, until "
			"--blackbox has seen them all, before they get SIGTERM. Without it only "
			"those that outlive SIGTERM long enough are looked at closely." },
	[SET_BLACKBOX_KEEP] = { .flag = "blackbox-keep", .kind = KIND_COUNT,
		.group = GROUP_FAILURE, .metavar = "N", .by_default = "10", .min = 1,
		.max = 100000,
		.help = "Keep the newest N failures below the directory of --blackbox." },
	[SET_PROGRESS] = { .flag = "progress", .kind = KIND_TEXT, .group = GROUP_FAILURE,
		.metavar = "REGEX|FILE|notify|none", .by_default = "none",
		.help = "What a step of the job is: a line of workers' output that matches this "
			"extended regular expression, whose one group is the step's number "
			"(\\d is a digit); a "
			"change of a file (file:PATH, or a path with / in front); or a datagram "
			"STEP=N or WATCHDOG=1 of a worker's to LAUNCHD_PROGRESS_SOCKET." },
	[SET_STACK_SIGNAL] = { .flag = "stack-signal", .kind = KIND_TEXT, .group = GROUP_FAILURE,
		.metavar = "SIGNAL",
		.help = "A signal that the script has registered with Python's faulthandler: "
			"--blackbox sends it to workers that live when another has failed, so that "
			"their stacks are in the last lines. Only workers that have a handler for "
			"it get it. Those that SIGTERM ends at once need --blackbox-hold." },
	[SET_ON_HANG] = { .flag = "on-hang", .kind = KIND_CHOICE, .group = GROUP_FAILURE,
		.metavar = "off|report|dump|stop|restart",
		.choices = "off|report|dump|stop|restart", .by_default = "report",
		.help = "Look for hangs, and say within 10 s which ranks one seems to be about: "
			"report only says so, dump takes a bundle of --blackbox while the job goes "
			"on, stop ends the job with exit code 121, restart ends the attempt as a "
			"failure that --max-restarts counts. They act only after --on-hang-after. "
			"The default is a modest report, and off with a single worker: looks begin "
			"after 60 s without a line, and only what is certain is said." },
	[SET_ON_HANG_AFTER] = { .flag = "on-hang-after", .kind = KIND_SECONDS,
		.group = GROUP_FAILURE, .metavar = "SECONDS", .by_default = "600", .min = 10,
		.max = 31536000,
		.help = "Time without any sign of life before --on-hang acts. It never acts before "
			"three times the longest quiet time that this job has shown; sooner only "
			"where a stopped process is what the job waits for." },
	[SET_HANG_TRACE] = { .flag = "hang-trace", .kind = KIND_TEXT, .group = GROUP_FAILURE,
		.metavar = "FILE",
		.help = "Append to this file on node rank 0 all that --on-hang saw, and when: "
			"counters, states and waits of workers, no data. It is what to send with a "
			"report of a hang that was judged wrong, as it can be judged again. At most "
			"64 MiB. It asks for --on-hang report." },

	[SET_MAX_RESTARTS] = { .flag = "max-restarts", .original = 1, .pet = 1,
		.kind = KIND_COUNT, .group = GROUP_RESTART, .metavar = "N", .by_default = "0",
		.max = 1000000,
		.help = "How many times to restart a failed job, on all nodes together. A job "
			"that a signal, --max-runtime or a lost node has ended is not restarted." },
	[SET_RESTART_DELAY] = { .flag = "restart-delay", .kind = KIND_SECONDS,
		.group = GROUP_RESTART, .metavar = "SECONDS", .by_default = "0", .max = 300,
		.help = "Time before the first restart; doubled for each further one, up to "
			"300 s." },
	[SET_RESTART_MIN_UPTIME] = { .flag = "restart-min-uptime", .kind = KIND_SECONDS,
		.group = GROUP_RESTART, .metavar = "SECONDS", .by_default = "0", .max = 31536000,
		.help = "Don't restart a job that failed within this time of its start or last "
			"restart; 0: restart it in any case." },
	[SET_RESTART_ON] = { .flag = "restart-on", .kind = KIND_ENDS, .group = GROUP_RESTART,
		.metavar = "LIST",
		.help = "Restart only if the first worker to fail ended in one of these ways: "
			"exit codes, ranges of them and names of signals, as in 1,64-77,SIGSEGV. "
			"Default: in any way." },
	[SET_NO_RESTART_ON] = { .flag = "no-restart-on", .kind = KIND_ENDS_OR_REPEAT,
		.group = GROUP_RESTART, .metavar = "LIST",
		.help = "Don't restart if it ended in one of these ways. repeat: if an exception of "
			"the same type came from the same line as in the attempt before." },
	[SET_RESTART_WINDOW] = { .flag = "restart-window", .kind = KIND_SECONDS,
		.group = GROUP_RESTART, .metavar = "SECONDS", .by_default = "0", .max = 31536000,
		.help = "Count only restarts of this last time against --max-restarts, which is "
			"then a rate: 10 in 24h, say. 0: count all." },
	[SET_NO_PROGRESS_RESTARTS] = { .flag = "no-progress-restarts", .kind = KIND_COUNT,
		.group = GROUP_RESTART, .metavar = "N", .by_default = "0", .max = 1000000,
		.help = "End the job with exit code 123 when so many attempts in a row have failed "
			"without a step beyond the best one before them; 0: never. Needs "
			"--progress." },
	[SET_RESTART_GATE] = { .flag = "restart-gate", .kind = KIND_CHOICE,
		.group = GROUP_RESTART, .metavar = "on|off", .choices = "off|on",
		.by_default = "on",
		.help = "Before a restart, look on all nodes at once whether another attempt is "
			"worth starting: the GPUs' memory is free again, no process hangs in the "
			"kernel, /dev/shm and disks are not full. A node where it isn't is bad: see "
			"--on-bad-node." },
	[SET_RESTART_GATE_TIMEOUT] = { .flag = "restart-gate-timeout", .kind = KIND_SECONDS,
		.group = GROUP_RESTART, .metavar = "SECONDS", .by_default = "60", .max = 86400,
		.help = "How long --restart-gate may take in all, on all nodes, while it waits for "
			"memory and processes of the attempt before to go. At least 3." },
	[SET_POST_ATTEMPT] = { .flag = "post-attempt", .kind = KIND_TEXT, .group = GROUP_RESTART,
		.metavar = "COMMAND",
		.help = "Command to run on each node after each attempt, when its workers have "
			"ended, split into words as --wrap is. What happened is in LAUNCHD_* "
			"variables: see POST-ATTEMPT COMMAND in launchd(1)." },
	[SET_POST_ATTEMPT_TIMEOUT] = { .flag = "post-attempt-timeout", .kind = KIND_SECONDS,
		.group = GROUP_RESTART, .metavar = "SECONDS", .by_default = "60", .min = 1,
		.max = 86400,
		.help = "Time that --post-attempt has. After that it is killed, with all that it "
			"has started." },

	[SET_RDZV_BACKEND] = { .flag = "rdzv-backend", .original = 1, .pet = 1,
		.kind = KIND_CHOICE, .group = GROUP_RDZV, .metavar = "static|c10d",
		.choices = "static|c10d", .by_default = "static",
		.help = "How nodes find one another. Both use the address of --rdzv-endpoint; with "
			"c10d, nodes need no --node_rank.",
		.foreign = "etcd|etcd-v2", .instead = C10D_OR_MPIRUN,
		.hint = "custom backends are not supported: " C10D_OR_MPIRUN },
	[SET_RDZV_ENDPOINT] = { .flag = "rdzv-endpoint", .original = 1, .pet = 1,
		.kind = KIND_TEXT_OR_NONE, .group = GROUP_RDZV, .metavar = "HOST[:PORT]",
		.by_default = "",
		.help = "Master address and port in one; the port defaults to 29400 with c10d, "
			"otherwise to that of --master_port." },
	[SET_RDZV_ID] = { .flag = "rdzv-id", .original = 1, .pet = 1, .kind = KIND_TEXT,
		.group = GROUP_RDZV, .metavar = "ID", .by_default = "none",
		.help = "Name of the run: TORCHELASTIC_RUN_ID. It keeps apart jobs that use the "
			"same address." },
	[SET_RDZV_CONF] = { .flag = "rdzv-conf", .original = 1, .pet = 1, .kind = KIND_CONF,
		.group = GROUP_RDZV, .metavar = "K=V[,K=V...]", .by_default = "",
		.help = "Rendezvous settings of torchrun: join_timeout, and timeout with the "
			"static backend, mean --join-timeout; the others are checked, and a "
			"warning for each says why it has no effect." },

	[SET_CONFIG] = { .flag = "config", .only_flag = 1, .kind = KIND_TEXT,
		.group = GROUP_GENERAL, .metavar = "FILE",
		.help = "Read settings from an INI file. The command line overrides them, and "
			"they override the environment." },
	[SET_CHECK] = { .flag = "check", .only_flag = 1, .head = 1, .kind = KIND_TEXT,
		.group = GROUP_GENERAL, .metavar = "FILE",
		.help = "Print all errors of what --config FILE would run, with their lines, and "
			"all warnings; start nothing. The exit code is 2 if there are errors." },
	[SET_DRY_RUN] = { .flag = "dry-run", .only_flag = 1, .optional = 1, .head = 1,
		.kind = KIND_CHOICE, .group = GROUP_GENERAL, .metavar = "text|json", .choices = "text|json",
		.help = "Print every value that was given or decided, with its source, and every "
			"worker's command and environment changes; start nothing. --verbose adds "
			"the settings that have their default." },
	[SET_SELF_CHECK] = { .flag = "self-check", .only_flag = 1, .kind = KIND_FLAG,
		.group = GROUP_GENERAL, .by_default = "0",
		.help = "Print what this machine has of what launchd can use (libraries, kernel, "
			"cgroup, PMIx, GPUs), and how nodes would meet; start nothing. "
			"--version --verbose does the same." },
	[SET_QUIET] = { .flag = "quiet", .kind = KIND_FLAG, .group = GROUP_GENERAL,
		.by_default = "0",
		.help = "Print no notes or warnings, only errors and the report of a failure." },
	[SET_VERBOSE] = { .flag = "verbose", .kind = KIND_FLAG, .group = GROUP_GENERAL,
		.by_default = "0", .help = "Also print notes about what goes as expected, "
			"and with --dry-run the settings that have their default." },
	[SET_PRINT_COMPLETION] = { .flag = "print-completion", .original = 1, .only_flag = 1,
		.kind = KIND_CHOICE, .group = GROUP_GENERAL, .metavar = "bash|zsh",
		.choices = "bash|zsh", .help = "Print a shell's completion script and exit." },
	[SET_EXPLAIN] = { .flag = "explain", .only_flag = 1, .optional = 1, .in_next = 1,
		.kind = KIND_TEXT, .group = GROUP_GENERAL, .metavar = "BUNDLE",
		.choices = EXPLAIN_NEWEST,
		.help = "Print the story of a failure that --blackbox has kept, and exit: its "
			"directory, a file index.json or bundle.json in it, or a directory with "
			"such failures; the newest of them is taken. Without BUNDLE: the newest "
			"below the directory of --blackbox or --log-dir, else below the working "
			"directory." },
	[SET_INSTALL_TORCHRUN] = { .flag = "install-torchrun", .only_flag = 1, .kind = KIND_TEXT,
		.group = GROUP_GENERAL, .metavar = "DIR",
		.help = "Make DIR/torchrun a link to this program and exit. Another torchrun that "
			"is there is not touched." },
	[SET_VERSION] = { .flag = "version", .only_flag = 1, .kind = KIND_FLAG,
		.group = GROUP_GENERAL, .by_default = "0", .help = "Print the version and exit." },
	[SET_HELP] = { .flag = "help", .letter = 'h', .original = 1, .only_flag = 1,
		.kind = KIND_FLAG, .group = GROUP_GENERAL, .by_default = "0",
		.help = "Print this help and exit." },

	[SET_MONITOR_INTERVAL] = { .flag = "monitor-interval", .original = 1, .pet = 1,
		.kind = KIND_TEXT, .support = SUPPORT_IGNORED, .group = GROUP_LATER,
		.metavar = "SECONDS",
		.help = "has no effect: a worker's end is noticed at once, without polling" },
	[SET_START_METHOD] = { .flag = "start-method", .original = 1, .pet = 1,
		.kind = KIND_CHOICE, .choices = "spawn|fork|forkserver",
		.support = SUPPORT_IGNORED, .group = GROUP_LATER, .metavar = "METHOD",
		.help = "has no effect: every worker is a process of its own, started by execve" },
	[SET_EVENT_LOG_HANDLER] = { .flag = "event-log-handler", .original = 1, .pet = 1,
		.kind = KIND_TEXT, .support = SUPPORT_IGNORED, .group = GROUP_LATER,
		.metavar = "NAME",
		.help = "has no effect: launchd reports what happens on its standard error" },
	[SET_LOGS_SPECS] = { .flag = "logs-specs", .original = 1, .kind = KIND_TEXT,
		.support = SUPPORT_REFUSED, .group = GROUP_LATER, .metavar = "NAME",
		.by_default = "default",
		.help = "is not supported because it names a Python class: use -r, -t and "
			"--log-dir to choose where output goes" },
	[SET_RUN_PATH] = { .flag = "run-path", .original = 1, .pet = 1, .kind = KIND_FLAG,
		.support = SUPPORT_IGNORED, .group = GROUP_LATER, .by_default = "0",
		.help = "has no effect: the launcher has no Python of its own to run the script "
			"in, and every worker is a Python process" },
};
