/* plan_make.c - all decisions together; see plan.h. The larger ones are in files of their own. */
#include "daemon/plan/plan.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/notes.h"
#include "config/settings.h"
#include "daemon/check/phases.h"
#include "daemon/facts/facts.h"
#include "daemon/launchers/launchers.h"
#include "daemon/plan/decide.h"
#include "daemon/plan/topology.h"

int plan_ranks(const unsigned *nproc_of_node, unsigned nnodes, unsigned node_rank,
	unsigned *ret_first_rank, unsigned *ret_world_size)
{
	unsigned first = 0, size = 0;

	if (node_rank >= nnodes)
		return -ERANGE;
	for (unsigned i = 0; i < nnodes; i++) {
		if (i == node_rank)
			first = size;
		if (nproc_of_node[i] > INT_MAX - size) /* ranks are signed ints to all readers */
			return -ERANGE;
		size += nproc_of_node[i];
	}
	*ret_first_rank = first;
	*ret_world_size = size;
	return 0;
}

/* As torchrun does: without it each worker starts as many OpenMP threads as the node has CPUs, and
 * eight workers on a node fight for them eightfold. One line for the whole job: node rank 0's. */
static void decide_threads(const struct deciding *d, const struct identity *id, struct plan *p)
{
	bool speaks = id->node_rank_known && id->node_rank == 0;

	if (settings_given(d->s, SET_OMP_THREADS)) {
		if (env_value(d->facts->env, "OMP_NUM_THREADS") ||
			env_change_of(d->s->env, "OMP_NUM_THREADS"))
			return;
		p->omp_num_threads = settings_text(d->s, SET_OMP_THREADS);
		p->omp_from = settings_label(d->s, SET_OMP_THREADS);
		return;
	}
	if (p->nproc < 2 || p->process.is || env_value(d->facts->env, "OMP_NUM_THREADS") ||
		env_change_of(d->s->env, "OMP_NUM_THREADS"))
		return;
	p->omp_num_threads = "1";
	p->omp_from = "unset, several workers";
	if (p->start_count == 0)
		return;
	notes_add(d->notes, speaks ? NOTE_INFO : NOTE_VERBOSE,
		"OMP_NUM_THREADS is not set: launchd sets it to 1 for each worker");
}

static void decide_input(const struct deciding *d, const struct topology *t, struct plan *p)
{
	/* what mpirun hands to one of its processes is not for several workers of one node */
	bool started_by_another = (t->launcher->kind == LAUNCHER_TASK || d->facts->under_systemd) &&
		!settings_given(d->s, SET_ONLY_RANK) && !t->process.is;
	bool automatic = settings_is(d->s, SET_STDIN, "auto");

	/* A job in the background that reads its terminal is stopped (TTIN). That is for processes
	 * of the terminal's session: workers, in sessions of their own, would get what is typed for
	 * the shell. */
	p->input = (struct stdio){ .how = STDIO_INHERIT };
	if (settings_is(d->s, SET_STDIN, "null") ||
		(automatic && (started_by_another || d->facts->background)))
		p->input = (struct stdio){ .how = STDIO_FILE, .path = "/dev/null" };
}

static void note_proc(const struct deciding *d)
{
	static const char then[] =
		"processes that workers leave behind can't be found, only ended as they turn up; mount this namespace's own (unshare --mount-proc, bwrap --proc /proc)";

	if (d->facts->proc == PROC_FOREIGN)
		notes_add(
			d->notes, NOTE_WARNING, "/proc belongs to another PID namespace: %s", then);
	else if (d->facts->proc == PROC_NONE)
		notes_add(d->notes, NOTE_WARNING, "/proc is not mounted: %s", then);
}

/* LOCAL_RANK numbers what a worker sees, so it is 0 where that is its own GPU only. */
static int decide_visible(const struct deciding *d, struct plan *p)
{
	p->visible.per_worker = 1; /* for what is decided after a failure, to find the next */
	if (visible_choose(d->s, p->env, &d->facts->gpus, &p->visible, d->why) < 0 ||
		visible_check(d->s, &p->visible, p->nproc, d->why) < 0)
		return d->why->code;
	p->virtual_local_rank = p->visible.how == VISIBLE_ONE;
	return 0;
}

/* What --job-name says; else the base name of --config's file, without ".conf"; else the id that
 * was given to the run. */
static const char *job_name(const struct settings *s)
{
	const char *file = settings_text(s, SET_CONFIG), *slash = file ? strrchr(file, '/') : NULL;
	const char *name = slash ? slash + 1 : file;
	const char *end = name ? strstr(name, ".conf") : NULL;

	if (settings_given(s, SET_JOB_NAME))
		return settings_text(s, SET_JOB_NAME);
	if (name)
		return end && end > name && strcmp(end, ".conf") == 0 ?
			arena_strndup(s->arena, name, (size_t)(end - name)) :
			name;
	return settings_given(s, SET_RDZV_ID) ? settings_text(s, SET_RDZV_ID) : "job";
}

/* The worker is one of those on its host; the others are other launchers'. The host's ranks need
 * not be consecutive, nor in the order of its local ranks (Open MPI 5): the first one only serves
 * plan_rank(), and may be below 0, modulo 2^32. */
static void place_process(struct plan *p)
{
	p->nproc = p->process.local_world_size;
	p->first_rank -= p->process.local_rank;
}

/* What the worker needs to be the MPI process that the launcher would be. */
static void decide_identity(const struct deciding *d, struct plan *p)
{
	if (p->start_count > 1) {
		notes_add(d->notes, NOTE_WARNING,
			"%s: all %u workers see the launcher's own MPI identity; only one of them "
			"can call MPI_Init",
			settings_where(d->s, SET_MPI_ENV), p->start_count);
		return;
	}
	p->kept_fd = d->facts->pmi_fd;
	if (p->max_restarts > 0)
		notes_add(d->notes, NOTE_WARNING,
			"%s: a worker that has called MPI_Init can't do so again after a restart: its "
			"MPI identity is used up",
			settings_label(d->s, SET_MAX_RESTARTS));
}

/* The variable that tells processes of this rank from the launcher's own and from other jobs';
 * NULL: no launcher has started this process. */
static const char *lifeline_of(const struct launcher *l, const char *const *env)
{
	if (l->kind != LAUNCHER_TASK)
		return NULL;
	return l->lifeline && env_get(env, l->lifeline) ? l->lifeline : l->rank[0];
}

/* As torchrun: a scheduler, or the launcher in whose worker this one runs, reads it there. */
static const char *error_file_of(const char *const *env)
{
	const char *path = env_get(env, "TORCHELASTIC_ERROR_FILE");

	return path && *path ? path : NULL;
}

static bool is_service(const char *const *env)
{
	const char *socket = env_get(env, "NOTIFY_SOCKET");

	return socket && *socket;
}

static enum preflight_mode preflight_of(const struct settings *s)
{
	return (enum preflight_mode)settings_number(s, SET_PREFLIGHT);
}

/* --progress and --hang-trace ask for it. By default a job of several workers has its modest form.
 * What dump keeps needs a place. */
static int decide_hang(const struct deciding *d, struct plan *p)
{
	if (!settings_given(d->s, SET_ON_HANG)) {
		bool asked = p->progress.by != PROGRESS_NONE || p->hang_trace_path;

		p->on_hang = asked || p->world_size > 1 ? ON_HANG_REPORT : ON_HANG_OFF;
		p->hang_modest = !asked;
	}
	if (p->on_hang == ON_HANG_OFF && p->hang_trace_path)
		return failure_usage(d->why, "%s needs %s other than off",
			settings_label(d->s, SET_HANG_TRACE), settings_label(d->s, SET_ON_HANG));
	if (p->on_hang != ON_HANG_DUMP || p->blackbox_dir)
		return 0;
	return failure_usage(d->why,
		"%s: \"dump\" needs a directory for bundles: --blackbox DIR, or --log-dir DIR",
		settings_label(d->s, SET_ON_HANG));
}

int plan_make(const struct deciding *d, const struct topology *t, const unsigned *nproc_of_node,
	struct plan *ret)
{
	const struct settings *s = d->s;
	const struct facts *facts = d->facts;
	const struct identity *id = &t->identity;
	struct plan p = {
		.process = t->process,
		.nproc = t->nproc,
		.nnodes = id->nnodes,
		.provisional = t->control.how != CONTROL_NONE && !t->met,
		.node_rank = id->node_rank,
		.node_names = listed_names(d, t),
		.program = facts->program.path,
		.script = s->script,
		.foreign_line = facts->program.foreign_line,
		.args = &s->args,
		.python = !settings_flag(s, SET_NO_PYTHON),
		.module = settings_flag(s, SET_MODULE),
		.use_env = settings_flag(s, SET_USE_ENV) || settings_flag(s, SET_NODE_ENV),
		.node_env = settings_flag(s, SET_NODE_ENV),
		.expand_args = (enum expansion)settings_number(s, SET_EXPAND_ARGS),
		.local_rank_arg = settings_text(s, SET_LOCAL_RANK_ARG),
		.run_id = settings_flag(s, SET_STANDALONE) ? facts->random_id :
							     settings_text(s, SET_RDZV_ID),
		.role = settings_text(s, SET_ROLE),
		.job_name = job_name(s),
		.master_addr = t->master.addr,
		.master_port = t->master.port,
		.nccl_socket_ifname = settings_text(s, SET_NCCL_SOCKET_IFNAME),
		.mpi_env = mpi_env_of(s),
		.env = facts->env,
		.user_env = s->env,
		.limits = { .memory_bytes = settings_number(s, SET_CGROUP_MEMORY),
			.cpus = settings_number(s, SET_CGROUP_CPUS),
			.pids = settings_number(s, SET_CGROUP_PIDS),
			.memory_from = settings_where(s, SET_CGROUP_MEMORY),
			.cpus_from = settings_where(s, SET_CGROUP_CPUS),
			.pids_from = settings_where(s, SET_CGROUP_PIDS) },
		.signal_scope = (enum signal_scope)settings_number(s, SET_SIGNAL_SCOPE),
		.grace_ms = settings_number(s, SET_SHUTDOWN_TIMEOUT),
		.leftover_grace_ms = settings_number(s, SET_LEFTOVER_GRACE),
		.max_runtime_ms = settings_number(s, SET_MAX_RUNTIME),
		.unfinished_note_ms = settings_number(s, SET_UNFINISHED_NOTE),
		.requeue_code = (unsigned)settings_number(s, SET_REQUEUE_EXIT_CODE),
		.blackbox_hold_ms = settings_number(s, SET_BLACKBOX_HOLD),
		.blackbox_keep = (unsigned)settings_number(s, SET_BLACKBOX_KEEP),
		.on_hang = (enum on_hang)settings_number(s, SET_ON_HANG),
		.on_hang_after_ms = settings_number(s, SET_ON_HANG_AFTER),
		.hang_trace_path = settings_text(s, SET_HANG_TRACE),
		.check_first = phases_first(preflight_of(s)),
		.check_again =
			phases_again(preflight_of(s), settings_is(s, SET_RESTART_GATE, "on")),
		.stop_for_bad_node = settings_is(s, SET_ON_BAD_NODE, "stop"),
		.max_restarts = (unsigned)settings_number(s, SET_MAX_RESTARTS),
		.restart_delay_ms = settings_number(s, SET_RESTART_DELAY),
		.restart_min_uptime_ms = settings_number(s, SET_RESTART_MIN_UPTIME),
		.restart_on = settings_text(s, SET_RESTART_ON),
		.no_restart_on = settings_text(s, SET_NO_RESTART_ON),
		.restart_window_ms = settings_number(s, SET_RESTART_WINDOW),
		.no_progress_restarts = (unsigned)settings_number(s, SET_NO_PROGRESS_RESTARTS),
		.join_timeout_ms = settings_number(s, SET_JOIN_TIMEOUT),
		.node_timeout_ms = settings_number(s, SET_NODE_TIMEOUT),
		.lifeline_mark = lifeline_of(t->launcher, facts->env),
		.error_file = error_file_of(facts->env),
		.service = is_service(facts->env),
		.ready_joined = settings_is(s, SET_READY_WHEN, "joined"),
		.ctl_socket = settings_is(s, SET_CTL_SOCKET, "auto"),
	};

	if (p.node_env && !settings_given(s, SET_MPI_ENV))
		p.mpi_env = MPI_ENV_SCRUB; /* a rank of MPI's would be taken for its own */
	if (plan_ranks(nproc_of_node, id->nnodes, id->node_rank, &p.first_rank, &p.world_size) < 0)
		return failure_usage(
			d->why, "%u nodes with %u workers each are too many", id->nnodes, p.nproc);
	p.in_role = t->peers ? peers_role(t->peers, nproc_of_node, id->nnodes, id->node_rank) :
			       (struct among){ p.first_rank, p.world_size };
	if (p.process.is)
		place_process(&p);
	if (!failure_go_on(decide_visible(d, &p), d->why) ||
		!failure_go_on(reactions_make(s, &p.reactions, d->why), d->why) ||
		!failure_go_on(decide_attributes(d, &p), d->why) ||
		!failure_go_on(decide_start(d, nproc_of_node, &p), d->why) ||
		!failure_go_on(decide_placement(d, &p), d->why) ||
		!failure_go_on(decide_nics(d, &p), d->why) ||
		!failure_go_on(decide_store(d, &p), d->why) ||
		!failure_go_on(decide_report(d, &p), d->why) ||
		!failure_go_on(decide_metrics(d, &p), d->why) ||
		!failure_go_on(progress_parse(settings_text(s, SET_PROGRESS),
				       settings_label(s, SET_PROGRESS), &p.progress, d->why),
			d->why) ||
		!failure_go_on(decide_output(d, t, nproc_of_node, &p), d->why) ||
		!failure_go_on(decide_hang(d, &p), d->why) ||
		!failure_go_on(decide_libraries(d, t, nproc_of_node, &p), d->why))
		return d->why->code;
	if (p.mpi_env == MPI_ENV_KEEP && t->launcher->kind == LAUNCHER_TASK)
		decide_identity(d, &p);
	if (p.progress.by == PROGRESS_NONE)
		p.no_progress_restarts =
			0; /* the system's file may say so for jobs that have steps */
	decide_slurm(d, nproc_of_node, &p);
	decide_mpirun_grace(d, t->launcher, &p);
	decide_threads(d, id, &p);
	note_proc(d);
	decide_input(d, t, &p);
	if (arena_failed(s->arena))
		return failure_oom(d->why);
	*ret = p;
	return 0;
}

int plan_bind(const struct plan *provisional, const struct deciding *d, const struct topology *t,
	const struct agreement *a, struct plan *ret)
{
	struct plan bound = *provisional;
	struct topology met = *t;

	met.peers = a->peers;
	/* a node that meets nobody carries out what it has planned, if it has an address for that
	 */
	if (a->alone && bound.master_addr && !a->met.addr) {
		bound.provisional = false;
		if (decide_libraries(d, &met, a->nproc_of_node, &bound) < 0)
			return d->why->code;
	} else if (topology_met(&met, &a->met, d->why) < 0 ||
		(met.process.is && process_find_host(d, &met) < 0) ||
		plan_make(d, &met, a->nproc_of_node, &bound) < 0) {
		return d->why->code;
	}
	bound.max_restarts = a->max_restarts;
	bound.store = a->agent_store ? STORE_AGENT : STORE_RANK0;
	*ret = bound;
	return 0;
}
