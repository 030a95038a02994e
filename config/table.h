/* table.h - the one table of settings.
 *
 * A row of the table is everything about a setting: its flag, INI section and key, variables, its
 * kind and bounds, its default (as text, so that one parser reads all sources), its place in
 * --help, the man page and the shells' completion. */
#ifndef LAUNCHD_CONFIG_TABLE_H
#define LAUNCHD_CONFIG_TABLE_H

#include <stdint.h>

enum setting_id {
	SET_NPROC_PER_NODE,
	SET_NNODES,
	SET_NODE_RANK,
	SET_ENV_RANKS,
	SET_MASTER_ADDR,
	SET_MASTER_PORT,
	SET_STANDALONE,
	SET_PER_PROCESS,
	SET_LOCAL_ADDR,
	SET_CONTROL,
	SET_CONTROL_PORT,
	SET_JOIN_TIMEOUT,
	SET_NODE_TIMEOUT,
	SET_CLUSTER_NODES,
	SET_CLUSTER_HOSTFILE,
	SET_MPIRUN_HOSTS,
	SET_MPIRUN_HOSTFILE,
	SET_KEY_FILE,
	SET_INTERFACE,
	SET_STORE,
	SET_MODULE,
	SET_NO_PYTHON,
	SET_PYTHON,
	SET_USE_ENV,
	SET_LOCAL_RANK_ARG,
	SET_EXPAND_ARGS,
	SET_SCRIPT,
	SET_ARGS,
	SET_STDIN,
	SET_VIRTUAL_LOCAL_RANK,
	SET_NODE_ENV,
	SET_ROLE,
	SET_ONLY_RANK,
	SET_WRAP,
	SET_WRAP_RANKS,
	SET_ENV,
	SET_UNSET_ENV,
	SET_MPI_ENV,
	SET_TF_CONFIG,
	SET_TF_ROLES,
	SET_JAX_ENV,
	SET_NCCL_SOCKET_IFNAME,
	SET_BIND,
	SET_NUMA_BINDING,
	SET_MEMBIND,
	SET_CPUS_PER_WORKER,
	SET_OMP_THREADS,
	SET_RLIMIT,
	SET_NICE,
	SET_OOM_SCORE_ADJ,
	SET_GPUS,
	SET_GPUS_PER_WORKER,
	SET_VISIBLE_DEVICES,
	SET_SHARE_GPUS,
	SET_NIC,
	SET_CGROUP_MEMORY,
	SET_CGROUP_CPUS,
	SET_CGROUP_PIDS,
	SET_CHECK_NODE,
	SET_JSON,
	SET_CHECK_GPUS,
	SET_CHECK_GPU_UUIDS,
	SET_CHECK_COMMAND,
	SET_CHECK_WHEN,
	SET_CHECK_TIMEOUT,
	SET_CHECK_NVLINKS,
	SET_CHECK_PCIE_WIDTH,
	SET_CHECK_ECC_ERRORS,
	SET_CHECK_GPU_MEMORY,
	SET_CHECK_LEAST_MEMORY,
	SET_CHECK_LEAST_COMPUTE,
	SET_CHECK_LEAST_NODE,
	SET_CHECK_LEAST_NICS,
	SET_CHECK_LEAST_PAIRS,
	SET_CHECK_LEAST_JOB,
	SET_CHECK_IB_PORTS,
	SET_CHECK_IB_RATE,
	SET_CHECK_SHM,
	SET_CHECK_MEMLOCK,
	SET_CHECK_DISK,
	SET_CHECK_CLOCK,
	SET_PREFLIGHT,
	SET_ON_BAD_NODE,
	SET_LOG_DIR,
	SET_REDIRECTS,
	SET_TEE,
	SET_LOCAL_RANKS_FILTER,
	SET_LOG_LINE_PREFIX_TEMPLATE,
	SET_DUPLICATE_STDOUT_FILTERS,
	SET_DUPLICATE_STDERR_FILTERS,
	SET_LOG_MAX_SIZE,
	SET_LOG_KEEP,
	SET_LOG_TIMESTAMPS,
	SET_CONSOLE_OVERFLOW,
	SET_TAIL_LINES,
	SET_EVENTS,
	SET_LOG_FORMAT,
	SET_MERGE_LOGS,
	SET_METRICS_FILE,
	SET_METRICS_LISTEN,
	SET_CTL_SOCKET,
	SET_JOB_NAME,
	SET_JOURNAL,
	SET_READY_WHEN,
	SET_SHUTDOWN_TIMEOUT,
	SET_LEFTOVER_GRACE,
	SET_ON_SIGNAL,
	SET_SIGNALS_TO_HANDLE,
	SET_SIGNAL_SCOPE,
	SET_MAX_RUNTIME,
	SET_PREEMPT_WATCH,
	SET_PREEMPT_SIGNAL,
	SET_REQUEUE_EXIT_CODE,
	SET_UNFINISHED_NOTE,
	SET_REPORT,
	SET_BLACKBOX,
	SET_BLACKBOX_HOLD,
	SET_BLACKBOX_KEEP,
	SET_PROGRESS,
	SET_STACK_SIGNAL,
	SET_ON_HANG,
	SET_ON_HANG_AFTER,
	SET_HANG_TRACE,
	SET_MAX_RESTARTS,
	SET_RESTART_DELAY,
	SET_RESTART_MIN_UPTIME,
	SET_RESTART_ON,
	SET_NO_RESTART_ON,
	SET_RESTART_WINDOW,
	SET_NO_PROGRESS_RESTARTS,
	SET_RESTART_GATE,
	SET_RESTART_GATE_TIMEOUT,
	SET_POST_ATTEMPT,
	SET_POST_ATTEMPT_TIMEOUT,
	SET_RDZV_BACKEND,
	SET_RDZV_ENDPOINT,
	SET_RDZV_ID,
	SET_RDZV_CONF,
	SET_CONFIG,
	SET_CHECK,
	SET_DRY_RUN,
	SET_SELF_CHECK,
	SET_QUIET,
	SET_VERBOSE,
	SET_PRINT_COMPLETION,
	SET_EXPLAIN,
	SET_INSTALL_TORCHRUN,
	SET_VERSION,
	SET_HELP,
	SET_MONITOR_INTERVAL,
	SET_START_METHOD,
	SET_EVENT_LOG_HANDLER,
	SET_LOGS_SPECS,
	SET_RUN_PATH,
	SETTING_COUNT,
};

/* The key of the job's launchers, see --key-file. It has no row, as nothing may show its value. */
#define SETTING_KEY_VARIABLE "LAUNCHD_KEY"

enum setting_kind {
	KIND_FLAG,         /* number is 0 or 1, or 2 and up for one of the row's choices */
	KIND_COUNT,        /* number, min..max of the row */
	KIND_NPROC,        /* number; 0: text is one of the row's choices */
	KIND_NNODES,       /* number, from N or N:N */
	KIND_SECONDS,      /* number is milliseconds; min and max of the row in seconds */
	KIND_TEXT,         /* any text that is not empty */
	KIND_TEXT_OR_NONE, /* any text */
	KIND_CHOICE,       /* number is the index in the row's choices */
	KIND_CONF,         /* torchrun's k=v,k=v: checked, kept as text */
	KIND_ENV,          /* NAME=VALUE, adds to the list of changes */
	KIND_UNSET,        /* NAME[,NAME...], adds to the list of changes */
	KIND_RANKS,        /* R[-R][,R[-R]...], kept as text, empty where the default is; see
			    * ranks_contain() */
	KIND_STREAMS,      /* streams by local rank, kept as text; see streams_of() */
	KIND_SIZE,         /* number is bytes, from N, NK, NM or NG; max of the row, too */
	KIND_ARGS,         /* words as a shell splits them, adds to them; see script.h */
	KIND_HOSTS,        /* names and addresses of hosts, kept as text; see hosts.h */
	KIND_HOSTS_SLOTS,  /* the same, with HOST:N for the workers there */
	KIND_CPUS,  /* number is thousandths, 0 or CPUS_LEAST..max of the row in whole ones */
	KIND_RATE,  /* number is thousandths, 0..max of the row in whole ones */
	KIND_LISTS, /* number is as KIND_CHOICE's; if it is one more than the last: lists of numbers
		     * by worker, kept as text; see bits_lists() */
	KIND_SIGNED,  /* number as int64_t, between min and max of the row, which are that, too */
	KIND_RLIMITS, /* resource limits, kept as text; see rlimits.h */
	KIND_DEVICES, /* GPUs, kept as text: "all", numbers and ranges, or names; see gpus_check()
		       */
	KIND_ENDS, /* ends of workers: exit codes and signals, kept as text; see ends_contain() */
	KIND_ENDS_OR_REPEAT, /* the same with "repeat" among them; see ends_have_repeat() */
};

/* The least time of a CPU that the kernel gives a cgroup: in thousandths. */
enum { CPUS_LEAST = 10 };

/* What becomes of a setting that has a value. */
enum setting_support {
	SUPPORTED,       /* works */
	SUPPORT_IGNORED, /* means nothing here: accepted, with a warning of what is done instead */
	SUPPORT_REFUSED, /* refused, with the way out */
};

/* Sections of the INI files. */
enum setting_section {
	SECTION_LAUNCHD,
	SECTION_ENV, /* its keys are names of variables */
	SECTION_CLUSTER,
	SECTION_CGROUP,
	SECTION_CHECK, /* and [check MODEL], for GPUs with MODEL in their name */
	SECTION_COUNT,
};

enum setting_group {
	GROUP_JOB,
	GROUP_NODES,
	GROUP_WORKERS,
	GROUP_ENVIRONMENT,
	GROUP_PLACEMENT,
	GROUP_CGROUP,
	GROUP_NODE_CHECK,
	GROUP_OUTPUT,
	GROUP_END,
	GROUP_FAILURE,
	GROUP_RESTART,
	GROUP_RDZV,
	GROUP_GENERAL,
	GROUP_LATER,
	GROUP_COUNT,
};

/* --explain without a value. */
#define EXPLAIN_NEWEST "newest"

struct setting_row {
	const char *flag;      /* without dashes; '-' and '_' are the same to all readers */
	char letter;           /* short option; 0: none */
	unsigned original : 1; /* a flag of torchrun, classic launch or Azure ML's launch.py */
	unsigned pet : 1;      /* torchrun reads PET_<NAME> for it */
	unsigned optional : 1; /* its value may be left out: the first choice is meant */
	unsigned in_next : 1; /* optional, and the next word is the value where that is no option */
	unsigned only_flag : 1; /* no INI key, no variable: it asks for an act, not a value */
	unsigned only_key : 1;  /* an INI key only: no flag, no variable */
	unsigned by_model : 1;  /* a key of [check MODEL], too */
	unsigned head : 1;      /* not for the launchers of the nodes that mpirun starts for us */
	enum setting_kind kind;
	enum setting_support support;
	enum setting_group group;
	enum setting_section section; /* of its INI key */
	const char *key;              /* the INI key; NULL: it is the flag */
	const char *variable;         /* another variable that sets it, below PET_*; NULL: none */
	const char *metavar;
	const char *choices;    /* "a|b|c" */
	const char *by_default; /* NULL: not set */
	uint64_t min, max;
	const char *help;    /* what it does; if not SUPPORTED: what to do, or what is done */
	const char *foreign; /* "a|b": values of torchrun's that are not supported; NULL: none */
	const char *instead; /* of these */
	const char *hint;    /* added to the error about another bad value; NULL: none */
};

extern const struct setting_row setting_rows[SETTING_COUNT];
extern const char *const setting_group_titles[GROUP_COUNT];
extern const char *const setting_section_names[SECTION_COUNT];

#endif
