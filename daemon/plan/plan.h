/* plan.h - everything that will be started, decided before anything is. Pure.
 *
 * A plan is the same for all attempts of a run; what an attempt adds (its number, its port, its
 * files) is in struct attempt, and plan_command() and plan_environment() take both. */
#ifndef LAUNCHD_DAEMON_PLAN_PLAN_H
#define LAUNCHD_DAEMON_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/address.h"
#include "common/vec.h"
#include "config/reaction.h"
#include "daemon/place/picture.h"
#include "daemon/plan/attributes.h"
#include "daemon/plan/output_plan.h"
#include "daemon/plan/introduction.h"
#include "daemon/plan/step_source.h"
#include "daemon/plan/visible.h"

struct agreement;
struct arena;
struct deciding;
struct placement;
struct topology;

/* Where a worker stands. Ranks of one node are consecutive; a node's first rank is the number of
 * workers on all nodes before it, which need not have equal numbers. */
struct worker_rank {
	unsigned rank, local_rank;
	unsigned world_size, local_world_size;
	unsigned node_rank, nnodes; /* with --per-process, of its host */
	unsigned role_rank, role_world_size;
};

enum stdio_how {
	STDIO_INHERIT, /* the launcher's own */
	STDIO_PIPE,    /* a pipe, whose other end the launcher keeps */
	STDIO_FILE,    /* opened for the worker: read for stdin, else append */
	STDIO_OPEN,    /* a descriptor of the launcher's, which stays open there */
};

struct stdio {
	enum stdio_how how;
	const char *path; /* STDIO_FILE only */
	int fd;           /* STDIO_OPEN only */
};

/* the choices of --mpi-env */
enum mpi_env {
	MPI_ENV_REWRITE,
	MPI_ENV_SCRUB,
	MPI_ENV_KEEP,
	MPI_ENV_REWRITE_SLURM,
	MPI_ENV_REWRITE_PMI,
};

/* What a '$' in the script's arguments means: itself, torchrun's local_rank, or any variable that
 * launchd sets for the worker. */
enum expansion { EXPAND_NOTHING, EXPAND_LOCAL_RANK, EXPAND_ALL };

/* Who gets the signals that launchd passes on. */
enum signal_scope { SCOPE_WORKER, SCOPE_GROUP, SCOPE_TREE };

/* The choices of --on-hang, from nothing to more. */
enum on_hang { ON_HANG_OFF, ON_HANG_REPORT, ON_HANG_DUMP, ON_HANG_STOP, ON_HANG_RESTART };

/* What --blackbox may take from the end of a node's workers on, until the job hears of it. */
enum { BOX_REST_MS = 5000 };

/* What --post-attempt may add to an end beyond its own time: one that SIGKILL doesn't end at once.
 */
enum { POST_ATTEMPT_REST_MS = 7000 };

/* Who hosts the store in which workers meet: worker 0, or node rank 0's launcher. */
enum store_host { STORE_RANK0, STORE_AGENT };

/* What --tf-config and --jax-env add to a worker's environment. */
struct library_plan {
	const char *tf_cluster;      /* "cluster" of TF_CONFIG, as JSON; NULL: not asked for */
	const char *tf_roles;        /* --tf-roles, which is well-formed; NULL: all are workers */
	const char *jax_coordinator; /* HOST:PORT; NULL: not asked for */
};

/* Of each worker, with all that it starts. 0: none. */
struct worker_limits {
	uint64_t memory_bytes;
	uint64_t cpus; /* in thousandths of a CPU */
	uint64_t pids; /* processes and threads */
	/* where each comes from: "--cgroup-memory", "job.ini:12" */
	const char *memory_from, *cpus_from, *pids_from;
};

struct plan {
	unsigned nproc, nnodes, node_rank, first_rank, world_size;
	unsigned master_port;          /* 0: the attempt has one */
	struct among in_role;          /* of this node's workers: among those with its role */
	struct one_process process;    /* --per-process */
	const char *const *node_names; /* by node rank, as [cluster] lists them; NULL: not listed */
	const char *program;           /* path to execute */
	const char *script;
	const char
		*foreign_line;  /* of a script that Python runs; see facts/program.h; NULL: none */
	const struct vec *args; /* the script's */
	bool provisional;       /* nodes have yet to meet, and may have other numbers of workers */
	bool python, module, use_env, virtual_local_rank;
	bool node_env; /* the script starts its own ranks, and gets no rank but its node's */
	enum expansion expand_args;
	bool ctl_socket; /* there is one, for launchctl */
	bool service;    /* systemd, or what speaks like it, has started us: NOTIFY_SOCKET is set */
	bool ready_joined; /* it is told that this node is ready when its workers have joined the
			      store */
	const char *local_rank_arg;
	const char *run_id, *role;
	const char *job_name;        /* by which users know it, in this run and the next */
	const char *master_addr;     /* NULL: the nodes learn it when they meet */
	const char *omp_num_threads; /* NULL: left as it is; "auto": the placement's */
	const char *omp_from;        /* what decided it */
	/* by --nic, for each local rank: UCX_NET_DEVICES; NULL: left as it is */
	const char *const *ucx_devices;
	const struct machine *machine; /* NULL: nobody asks for a placement */
	const int *gpus_of; /* each local rank's own, visible.per_worker each, as the machine
			     * numbers them, or MACHINE_NOWHERE; NULL without a placement */
	const struct placement *placement; /* of all workers of this node; NULL: nobody asks */
	const char *nccl_socket_ifname;    /* NULL: left as it is */
	enum mpi_env mpi_env;
	int kept_fd; /* of PMI, which the worker inherits with its name; 0: none */
	struct library_plan library;
	const char *slurm_tasks; /* "2(x3),1": workers of each node; NULL: no Slurm task is shown */
	const char *const *env;  /* the launcher's, borrowed */
	const struct env_change *user_env;
	struct visible visible; /* GPUs */
	struct stdio input;     /* of every worker */
	struct output_plan output;

	unsigned start_first, start_count; /* local ranks to start: all, one, or none of them */
	struct vec wrap;                   /* words before a worker's own command; none: no wrap */
	const char *wrapper;               /* path to execute for them */
	const char *wrap_ranks;            /* the ranks that have them; NULL: all */

	struct worker_limits limits;
	struct attributes attributes; /* of each worker */
	struct reactions reactions;
	const char *const *preempt_watch; /* its words, the first one a path; NULL: none */
	const char *const *post_attempt;  /* likewise */
	uint64_t post_attempt_ms;
	unsigned requeue_code; /* of a job that was preempted */
	enum signal_scope signal_scope;
	uint64_t grace_ms, leftover_grace_ms;
	uint64_t max_runtime_ms, unfinished_note_ms; /* 0: none */
	const char *blackbox_dir;                    /* NULL: nothing of a failure is kept */
	uint64_t blackbox_hold_ms;
	unsigned blackbox_keep;
	struct progress_plan progress;
	int stack_signal;     /* has a worker print its stacks; 0: none is known */
	enum on_hang on_hang; /* what follows a hang */
	bool hang_modest;     /* without --on-hang: see run/hang_watch.h */
	uint64_t on_hang_after_ms;
	const char *hang_trace_path; /* NULL: none; node rank 0 writes it */
	/* phases of the check of all nodes (daemon/check/phases.h) before the first attempt, and
	 * before the others; 0: none. Where a node is bad: stop the job, or only report it */
	unsigned check_first, check_again;
	bool stop_for_bad_node;
	unsigned max_restarts;
	uint64_t restart_delay_ms, restart_min_uptime_ms;
	const char *restart_on, *no_restart_on; /* for ends_contain(); NULL: not given */
	uint64_t restart_window_ms;             /* 0: all restarts count */
	unsigned no_progress_restarts;          /* 0: none are too many */
	enum store_host store;
	const char *store_from, *torch_version; /* torch_version NULL: not known */
	uint64_t join_timeout_ms, node_timeout_ms;
	const char *report_path;        /* NULL: none */
	const char *error_file;         /* where whoever started us looks for the failure; NULL */
	const char *metrics_path;       /* NULL: none */
	struct address metrics_address; /* to listen at; { 0 }: nowhere */
	uint64_t mpirun_grace_ms;       /* between mpirun's own SIGTERM and SIGKILL */
	const char *mpirun_grace_from;  /* who says so; NULL: no mpirun, or it isn't known */
	const char *mpirun_cuts;        /* sentence: that is less than the grace; NULL: it isn't */
	/* under mpirun, srun: their end, or a hang-up of stdout or stderr, ends the job, and this
	 * variable tells processes of this rank from theirs; NULL: under none of them */
	const char *lifeline_mark;
};

struct attempt {
	unsigned number;         /* from 0 */
	const char *master_port; /* as text */
	const char *run_dir; /* holds the error files of attempts without a log_dir; NULL: none */
	const char *log_dir; /* of this attempt's logs and error files; NULL: none */
};

enum env_how { ENV_SET, ENV_REWRITTEN, ENV_REMOVED, ENV_HOW_COUNT };

struct env_edit {
	const char *name;
	const char *value; /* NULL: removed */
	enum env_how how;
	const char *why;
};

struct env_edits {
	struct env_edit *at;
	size_t count, room;
};

/* The first rank of a node, and the job's size, from the number of workers of every node.
 * -ERANGE: node_rank isn't one of them, or the size does not fit. */
int plan_ranks(const unsigned *nproc_of_node, unsigned nnodes, unsigned node_rank,
	unsigned *ret_first_rank, unsigned *ret_world_size);

/* Decides. nproc_of_node has an entry for each node. The plan borrows from settings, facts and
 * topology, and what it must render is the settings' arena's. -EINVAL: the values contradict each
 * other in a way that only shows here; -ENOENT, -EACCES: the command of --wrap is not there, or
 * can't be executed. */
int plan_make(const struct deciding *d, const struct topology *t, const unsigned *nproc_of_node,
	struct plan *ret);

/* The final plan, once the nodes have met: all that was decided before stays as it is. The
 * agreement is borrowed like the rest. As plan_make(), and -EINVAL where something is missing
 * still. */
int plan_bind(const struct plan *provisional, const struct deciding *d, const struct topology *t,
	const struct agreement *a, struct plan *ret);

/* The socket of --progress notify; NULL: none, as there is no run_dir. */
const char *plan_progress_socket(const char *run_dir, struct arena *arena);

struct worker_rank plan_rank(const struct plan *p, unsigned local_rank);

/* What becomes of a stream of a worker that starts here; fd is 1 or 2. */
struct stream_plan plan_stream(const struct plan *p, unsigned local_rank, int fd);

/* Whether --wrap's command stands before the worker's own. */
bool plan_is_wrapped(const struct plan *p, unsigned local_rank);

/* The path to execute for a worker. */
const char *plan_program(const struct plan *p, unsigned local_rank);

/* The worker's argv. */
void plan_command(const struct plan *p, unsigned local_rank, const struct attempt *attempt,
	struct arena *arena, struct vec *ret);

/* An attempt as far as a plan knows it, the rest in words. */
struct attempt plan_attempt(const struct plan *p, unsigned number, struct arena *arena);

/* The worker's changes of the launcher's environment, in the order of --dry-run; the names are the
 * same for all workers of a plan. */
void plan_environment(const struct plan *p, unsigned local_rank, const struct attempt *attempt,
	struct arena *arena, struct env_edits *ret);

/* A worker's TF_CONFIG, the arena's. The plan has a tf_cluster. */
const char *plan_tf_config(const struct plan *p, unsigned rank, struct arena *arena);

/* The launcher's environment as a check of this node's GPUs needs it: CUDA_VISIBLE_DEVICES has all
 * that the workers may see. The arena's, or the plan's. */
const char *const *plan_check_env(const struct plan *p, struct arena *arena);

/* Its CUDA_VISIBLE_DEVICES; NULL: the job uses all GPUs. */
const char *plan_check_devices(const struct plan *p, struct arena *arena);

/* The inherited environment without the names that edits touch. */
void plan_untouched(
	const struct plan *p, const struct env_edits *edits, struct arena *arena, struct vec *ret);

/* Where this node's workers run; the plan has a placement. */
struct picture plan_picture(const struct plan *p);

/* Path of a worker's error file: in the tree of logs where there is one. Else all lie in one
 * directory: to make and remove one for each worker took more time than to start the worker (0.5 ms
 * on a disk). NULL: there is no place for it. */
const char *plan_error_file(
	const struct attempt *attempt, unsigned local_rank, struct arena *arena);

#endif
