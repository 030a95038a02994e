/* explain.c - see explain.h */
#include "daemon/launchers/launchers.h"
#include "daemon/report/explain.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "common/arena.h"
#include "common/bits.h"
#include "common/json.h"
#include "common/notes.h"
#include "common/num.h"
#include "common/signame.h"
#include "common/text.h"
#include "config/loglevel.h"
#include "config/settings.h"
#include "daemon/check/phases.h"
#include "daemon/facts/facts.h"
#include "daemon/facts/machine.h"
#include "daemon/place/picture.h"
#include "daemon/place/placing.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/topology.h"

/* What only the nodes together can tell. */
#define BY_MEETING "<decided when nodes meet>"

static const char *const stream_names[] = { "stdin", "stdout", "stderr" };

static const char *const change_words[ENV_HOW_COUNT] = {
	[ENV_SET] = "set",
	[ENV_REWRITTEN] = "rewritten",
	[ENV_REMOVED] = "removed",
};

/* A decided value, and what decided it. */
struct fact {
	const char *name, *value, *from;
};

struct fact_list {
	struct fact at[48];
	size_t count;
};

/* All that is printed in either form. */
struct shown {
	const struct explained *e;
	struct arena *arena;
	struct attempt attempt; /* what an attempt will choose when it starts, in words */
	struct fact_list facts;
	struct env_edits *edits; /* by local rank; NULL: out of memory */
};

/* The directory that the run will make for its logs, in words where it has no name yet; NULL: there
 * will be none. */
static const char *log_tree(const struct plan *p, struct arena *arena)
{
	const char *tmp = env_get(p->env, "TMPDIR");
	const char *dir = p->output.log_dir;

	if (!p->output.tree)
		return NULL;
	if (!dir)
		dir = arena_printf(arena, "%s/launchd_logs_XXXXXX", tmp && *tmp ? tmp : "/tmp");
	return arena_printf(arena, "%s/%s_XXXXXXXX", dir, p->run_id);
}

/* A dry run takes no port and makes no directory, so what an attempt chooses when it starts is
 * shown in words. */
static struct attempt attempt_in_words(const struct explained *e, struct arena *arena)
{
	const struct plan *p = e->plan;
	const char *tree = log_tree(p, arena);
	bool known = p->master_port && !(p->nnodes > 1 && e->topology->control.takes_master_port);

	return (struct attempt){
		.master_port = known  ? arena_printf(arena, "%u", p->master_port) :
			p->nnodes > 1 ? BY_MEETING :
					"<a free port>",
		.run_dir = "<run directory>",
		.log_dir = tree ? arena_printf(arena, "%s/attempt_0", tree) : NULL,
	};
}

static void add_fact(struct fact_list *t, const char *name, const char *value, const char *from)
{
	assert(t->count < sizeof t->at / sizeof *t->at);
	t->at[t->count++] = (struct fact){ name, value, from };
}

static const char *number(struct arena *a, unsigned n)
{
	return arena_printf(a, "%u", n);
}

/* "0-7", "3" or "none" */
static const char *started_ranks(const struct plan *p, struct arena *a)
{
	unsigned first = p->first_rank + p->start_first;

	return p->start_count == 0  ? "none" :
		p->start_count == 1 ? number(a, first) :
				      arena_printf(a, "%u-%u", first, first + p->start_count - 1);
}

const char *explain_control(const struct control *c, struct arena *a)
{
	bool v6 = c->addr && strchr(c->addr, ':');

	switch (c->how) {
	case CONTROL_NONE:
		break;
	case CONTROL_STATIC:
		return arena_printf(a, "%s%s%s:%u", v6 ? "[" : "", c->addr, v6 ? "]" : "", c->port);
	case CONTROL_EXCHANGE:
		return c->exchange == EXCHANGE_PMIX ? "by PMIx" : "by PMI";
	}
	return "none";
}

/* "3", "3 within 3600 s, the first after 5 s; 2 without a new step end the job" */
static const char *restarts_shown(const struct plan *p, struct arena *a)
{
	const char *shown = number(a, p->max_restarts);

	if (p->restart_window_ms)
		shown = arena_printf(
			a, "%s within %s s", shown, num_seconds(p->restart_window_ms).text);
	if (p->restart_delay_ms)
		shown = arena_printf(a, "%s, the first after %s s", shown,
			num_seconds(p->restart_delay_ms).text);
	if (p->no_progress_restarts)
		shown = arena_printf(a, "%s; %u attempts without a new step end the job", shown,
			p->no_progress_restarts);
	return shown;
}

static void add_output(const struct explained *e, struct arena *a, struct fact_list *t)
{
	const struct settings *s = e->settings;
	const struct output_plan *o = &e->plan->output;
	/* with none of the three there is no tree */
	enum setting_id asked = o->log_dir       ? SET_LOG_DIR :
		settings_given(s, SET_REDIRECTS) ? SET_REDIRECTS :
						   SET_TEE;

	if (o->tree)
		add_fact(t, "logs", log_tree(e->plan, a), settings_where(s, asked));
	if (o->events_path)
		add_fact(t, "events", o->events_path, settings_where(s, SET_EVENTS));
	if (o->events_fd >= 0)
		add_fact(t, "events", arena_printf(a, "fd:%d", o->events_fd),
			settings_where(s, SET_EVENTS));
}

/* What placement knows of the machine. */
static void add_machine(const struct explained *e, struct arena *a, struct fact_list *t)
{
	const struct machine *m = e->facts->machine;

	add_fact(t, "machine",
		arena_printf(a, "%u socket%s, %zu NUMA node%s, %u core%s, %zu GPU%s",
			m->package_count, m->package_count == 1 ? "" : "s", m->numa_count,
			m->numa_count == 1 ? "" : "s", m->core_count, m->core_count == 1 ? "" : "s",
			m->gpu_count, m->gpu_count == 1 ? "" : "s"),
		m->from);
	if (m->quota)
		add_fact(t, "cpu_quota", arena_strdup(a, num_seconds(m->quota).text),
			"the cgroup's");
}

static void add_limits(const struct explained *e, struct arena *a, struct fact_list *t)
{
	const struct worker_limits *l = &e->plan->limits;

	if (l->memory_bytes)
		add_fact(t, "memory_limit", arena_strdup(a, num_size(l->memory_bytes).text),
			l->memory_from);
	if (l->cpus)
		add_fact(t, "cpus_limit", arena_strdup(a, num_seconds(l->cpus).text), l->cpus_from);
	if (l->pids)
		add_fact(t, "pids_limit", arena_printf(a, "%llu", (unsigned long long)l->pids),
			l->pids_from);
}

static void add_attributes(const struct explained *e, struct arena *a, struct fact_list *t)
{
	const struct attributes *given = &e->plan->attributes;
	struct text limits = { 0 };

	for (size_t i = 0; i < given->limits.count; i++) {
		text_add(&limits, i > 0 ? "," : "");
		rlimits_add(&given->limits.at[i], &limits);
	}
	if (limits.len)
		add_fact(t, "rlimits", arena_strdup(a, text_string(&limits)),
			settings_where(e->settings, SET_RLIMIT));
	text_done(&limits);
	if (given->has_nice)
		add_fact(t, "nice", arena_printf(a, "%d", given->nice),
			settings_where(e->settings, SET_NICE));
	if (given->oom_score_adj)
		add_fact(t, "oom_score_adj", given->oom_score_adj,
			settings_where(e->settings, SET_OOM_SCORE_ADJ));
}

/* --per-process */
static void add_process(const struct explained *e, struct arena *a, struct fact_list *t)
{
	const struct one_process *p = &e->plan->process;

	add_fact(t, "local_rank", number(a, p->local_rank), p->from);
	add_fact(t, "host", p->hosts ? arena_printf(a, "%u of %u", p->host, p->hosts) : BY_MEETING,
		"--per-process");
	if (e->plan->mpi_env == MPI_ENV_KEEP)
		add_fact(t, "mpi_identity", "the worker's",
			settings_given(e->settings, SET_MPI_ENV) ?
				settings_where(e->settings, SET_MPI_ENV) :
				"--per-process");
}

/* "quick; quick before each restart; a bad node ends the job" */
static void add_check(const struct explained *e, struct arena *a, struct fact_list *t)
{
	const struct plan *p = e->plan;
	struct text how = { 0 };

	phases_add(&how, p->check_first);
	if (p->max_restarts > 0 && p->check_again) {
		text_add(&how, p->check_first ? "; before a restart: " : "before a restart: ");
		phases_add(&how, p->check_again);
	}
	text_add(&how,
		p->stop_for_bad_node ? "; a bad node ends the job" : "; a bad node is reported");
	add_fact(t, "node_check", arena_strdup(a, text_string(&how)),
		settings_where(e->settings, p->check_first ? SET_PREFLIGHT : SET_RESTART_GATE));
	text_done(&how);
}

static const char *progress_shown(const struct progress_plan *p, struct arena *a)
{
	switch (p->by) {
	case PROGRESS_LINES:
		return arena_printf(a, "lines of output that match %s", p->what);
	case PROGRESS_FILE:
		return arena_printf(a, "changes of %s", p->what);
	case PROGRESS_NOTIFY:
		return "datagrams to " PROGRESS_SOCKET_VARIABLE;
	case PROGRESS_NONE:
		break;
	}
	return "none";
}

/* What only some jobs have. */
static void add_rare_facts(const struct explained *e, struct arena *a, struct fact_list *t)
{
	const struct plan *p = e->plan;

	if (p->wrap.count > 0)
		add_fact(t, "wrapper", p->wrapper ? p->wrapper : "not found, not needed here",
			settings_where(e->settings, SET_WRAP));
	if (p->process.is)
		add_process(e, a, t);
	if (p->nnodes > 1)
		add_fact(t, "control", explain_control(&e->topology->control, a),
			e->topology->control.from);
	if (e->key)
		add_fact(t, "key", e->key,
			settings_given(e->settings, SET_KEY_FILE) ?
				settings_where(e->settings, SET_KEY_FILE) :
				"environment");
	if (p->check_first || (p->max_restarts > 0 && p->check_again))
		add_check(e, a, t);
	if (p->max_restarts > 0)
		add_fact(t, "restarts", restarts_shown(p, a),
			settings_where(e->settings, SET_MAX_RESTARTS));
	if (p->torch_version)
		add_fact(t, "torch", p->torch_version, p->program);
	if (p->report_path)
		add_fact(t, "report", p->report_path, settings_where(e->settings, SET_REPORT));
	if (p->blackbox_dir)
		add_fact(t, "blackbox", p->blackbox_dir,
			settings_where(e->settings,
				settings_given(e->settings, SET_BLACKBOX) ? SET_BLACKBOX :
									    SET_LOG_DIR));
	if (p->preempt_watch)
		add_fact(t, "preempt_watch", p->preempt_watch[0],
			settings_where(e->settings, SET_PREEMPT_WATCH));
	if (p->post_attempt)
		add_fact(t, "post_attempt",
			arena_printf(a, "%s, for %s s at most", p->post_attempt[0],
				num_seconds(p->post_attempt_ms).text),
			settings_where(e->settings, SET_POST_ATTEMPT));
	if (p->progress.by != PROGRESS_NONE)
		add_fact(t, "progress", progress_shown(&p->progress, a),
			settings_where(e->settings, SET_PROGRESS));
	if (p->on_hang != ON_HANG_OFF)
		add_fact(t, "on_hang",
			p->hang_modest ? "report, modestly" :
					 settings_text(e->settings, SET_ON_HANG),
			settings_where(e->settings, SET_ON_HANG));
	if (p->hang_trace_path)
		add_fact(t, "hang_trace", p->hang_trace_path,
			settings_where(e->settings, SET_HANG_TRACE));
	if (p->blackbox_dir && p->stack_signal)
		add_fact(t, "stack_signal", signal_name(p->stack_signal),
			settings_where(e->settings, SET_STACK_SIGNAL));
	if (p->error_file)
		add_fact(t, "error_file", p->error_file, "TORCHELASTIC_ERROR_FILE");
	if (p->metrics_path)
		add_fact(t, "metrics_file", p->metrics_path,
			settings_where(e->settings, SET_METRICS_FILE));
	if (settings_text(e->settings, SET_METRICS_LISTEN))
		add_fact(t, "metrics_listen", settings_text(e->settings, SET_METRICS_LISTEN),
			settings_where(e->settings, SET_METRICS_LISTEN));
	if (!p->ctl_socket)
		add_fact(t, "ctl_socket", "none", settings_where(e->settings, SET_CTL_SOCKET));
	if (e->facts->machine)
		add_machine(e, a, t);
	add_limits(e, a, t);
	add_attributes(e, a, t);
	add_output(e, a, t);
	if (p->output.journal != JOURNAL_NONE)
		add_fact(t, "journal",
			p->output.journal == JOURNAL_ALL ? "messages and workers' lines" :
							   "messages",
			settings_where(e->settings, SET_JOURNAL));
	if (p->ready_joined)
		add_fact(t, "ready_when", "joined", settings_where(e->settings, SET_READY_WHEN));
	if (p->mpirun_grace_from)
		add_fact(t, "mpirun_grace", arena_strdup(a, num_seconds(p->mpirun_grace_ms).text),
			p->mpirun_grace_from);
}

static void find_facts(const struct explained *e, const struct attempt *attempt, struct arena *a,
	struct fact_list *t)
{
	const struct topology *top = e->topology;
	const struct settings *s = e->settings;
	const struct plan *p = e->plan;
	const char *all = "nproc_per_node of every node";
	const char *started_by = top->launcher->kind == LAUNCHER_TASK ? top->launcher->name :
		e->facts->under_systemd                               ? "systemd" :
									"a user or script";
	bool no_input = p->input.how == STDIO_FILE, known = top->identity.node_rank_known;

	add_fact(t, "nnodes", number(a, p->nnodes), top->identity.nnodes_from);
	add_fact(t, "node_rank", known ? number(a, p->node_rank) : BY_MEETING,
		top->identity.node_rank_from);
	add_fact(t, "nproc_per_node", number(a, p->nproc),
		p->process.is ? top->launcher->name : top->nproc_from);
	add_fact(t, "world_size", number(a, p->world_size),
		p->process.is ? top->identity.nnodes_from : all);
	if (!p->process.is) /* its host's ranks need not be consecutive */
		add_fact(t, "first_rank", known ? number(a, p->first_rank) : BY_MEETING, all);
	add_fact(t, "started_ranks", known ? started_ranks(p, a) : BY_MEETING,
		settings_given(s, SET_ONLY_RANK) ? settings_where(s, SET_ONLY_RANK) :
			p->process.is            ? top->identity.node_rank_from :
						   top->nproc_from);
	add_fact(t, "master_addr", p->master_addr ? p->master_addr : BY_MEETING,
		top->master.addr_from);
	add_fact(t, "master_port", attempt->master_port, top->master.port_from);
	add_fact(t, "run_id", p->run_id,
		settings_where(s, settings_flag(s, SET_STANDALONE) ? SET_STANDALONE : SET_RDZV_ID));
	add_fact(t, "store", p->store == STORE_AGENT ? "agent" : "rank0", p->store_from);
	add_fact(t, "program", p->program, e->facts->program.from);
	add_fact(t, "stdin", no_input ? p->input.path : "inherited",
		!settings_is(s, SET_STDIN, "auto") || !no_input ? settings_where(s, SET_STDIN) :
			e->facts->background                    ? "a background job" :
								  started_by);
	add_fact(t, "started_by", started_by, "environment");
	add_rare_facts(e, a, t);
}

/* The signals worth a line of their own, those that end the job first; the rest are forwarded. */
static size_t shown_signals(const struct plan *p, int ret[REACTION_SIGNALS])
{
	static const enum reaction_kind order[] = { REACTION_END, REACTION_STOP, REACTION_PREEMPT,
		REACTION_SUSPEND, REACTION_RESUME, REACTION_RESTART, REACTION_REOPEN,
		REACTION_IGNORE, REACTION_FORWARD };
	size_t count = 0;

	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		for (int n = 1; n < REACTION_SIGNALS; n++) {
			const struct reaction *r = &p->reactions.of[n];

			if (r->kind == order[i] && (r->kind != REACTION_FORWARD || r->named))
				ret[count++] = n;
		}
	return count;
}

/* Settings worth a line: those that were given or decided and ask for no act. Defaults
 * need --verbose, so a new setting does not change the output of jobs that don't use it. */
static bool is_shown(const struct settings *s, int id)
{
	const struct value *v = &s->value[id];

	if (v->from.level == LEVEL_NONE || (setting_rows[id].only_flag && id != SET_CONFIG))
		return false;
	if (v->from.level > LEVEL_DEFAULT)
		return true;
	if (setting_rows[id].support != SUPPORTED)
		return false;
	/* launchd's own decisions have a default's level, and a source that says why */
	return loglevel_least(s) == NOTE_VERBOSE || strcmp(v->from.where, SETTING_DEFAULT) != 0;
}

static bool ranks_are_known(const struct explained *e)
{
	return e->topology->identity.node_rank_known;
}

/* Values that only the meeting tells; names ends with NULL. */
static void hide(struct env_edits *edits, const char *const *names)
{
	for (size_t k = 0; k < edits->count; k++)
		for (const char *const *name = names; *name; name++)
			if (strcmp(edits->at[k].name, *name) == 0 && edits->at[k].value)
				edits->at[k].value = BY_MEETING;
}

static void hide_unknown(const struct shown *s, struct env_edits *edits)
{
	static const char *const of_rank[] = { "RANK", "NODE_RANK", "GROUP_RANK", "ROLE_RANK",
		"SLURM_PROCID", "SLURM_NODEID", "TF_CONFIG", "JAX_PROCESS_ID",
		"OMPI_COMM_WORLD_RANK", NULL };
	static const char *const of_host[] = { "NODE_RANK", "GROUP_RANK", "GROUP_WORLD_SIZE",
		NULL };

	if (!ranks_are_known(s->e)) /* taken for those of node rank 0 */
		hide(edits, of_rank);
	if (s->e->plan->process.is && s->e->plan->process.hosts == 0)
		hide(edits, of_host);
}

static struct env_edits *all_edits(const struct shown *s)
{
	struct plan plan = *s->e->plan;
	struct env_edits *edits = arena_alloc(s->arena, plan.nproc * sizeof *edits);

	if (!plan.master_addr)
		plan.master_addr = BY_MEETING;
	for (unsigned i = 0; edits && i < plan.nproc; i++) {
		plan_environment(&plan, i, &s->attempt, s->arena, &edits[i]);
		hide_unknown(s, &edits[i]);
	}
	return arena_failed(s->arena) ? NULL : edits;
}

static struct shown show(const struct explained *e, struct arena *arena)
{
	struct shown s = { .e = e, .arena = arena, .attempt = attempt_in_words(e, arena) };

	find_facts(e, &s.attempt, arena, &s.facts);
	s.edits = all_edits(&s);
	return s;
}

/* Of a stream with a log file. */
static const char *log_path(const struct shown *s, unsigned local_rank, int fd)
{
	return arena_printf(
		s->arena, "%s/%u/%s.log", s->attempt.log_dir, local_rank, stream_names[fd]);
}

/* --- as text --- */

/* Ends a line that began at `start` with what decided it, in a column of its own where it fits. */
static void add_from(struct text *out, size_t start, size_t column, const char *from)
{
	size_t len = out->len - start;

	text_printf(out, "%*s  (%s)\n", len < column ? (int)(column - len) : 0, "", from);
}

static void add_signals(const struct plan *p, struct text *out)
{
	int shown[REACTION_SIGNALS];
	size_t count = shown_signals(p, shown);

	text_add(out, "\nSignals\n");
	for (size_t i = 0; i < count; i++) {
		const struct reaction *r = &p->reactions.of[shown[i]];
		size_t start = out->len;

		text_printf(out, "  %-16s %s", signal_name(shown[i]), reaction_word(r->kind));
		if (reaction_ends(r))
			text_printf(out, " within %s s", num_seconds(r->grace_ms).text);
		add_from(out, start, 62, r->from);
	}
	text_printf(out, "  %-16s %-43s  (default)\n", "others", reaction_word(REACTION_FORWARD));
}

static void add_edit(const struct env_edit *edit, struct text *out)
{
	size_t start = out->len;

	text_printf(out, "    %-9s %s", change_words[edit->how], edit->name);
	if (edit->value) {
		text_add(out, "=");
		text_add_shell(out, edit->value);
	}
	add_from(out, start, 58, edit->why);
}

/* Whether an edit is the same for all workers, so that it is shown once. */
static bool is_common(const struct shown *s, const struct env_edit *edit, size_t index)
{
	const struct plan *p = s->e->plan;

	for (unsigned i = p->start_first; i < p->start_first + p->start_count; i++) {
		const struct env_edit *other = &s->edits[i].at[index];

		if (index >= s->edits[i].count || strcmp(other->name, edit->name) != 0 ||
			(other->value == NULL) != (edit->value == NULL) ||
			(edit->value && strcmp(other->value, edit->value) != 0))
			return false;
	}
	return true;
}

/* A worker's edits that all have, or those that not all have. */
static void add_edits(const struct shown *s, unsigned local_rank, bool common, struct text *out)
{
	const struct env_edits *edits = &s->edits[local_rank];

	for (size_t k = 0; k < edits->count; k++)
		if (is_common(s, &edits->at[k], k) == common)
			add_edit(&edits->at[k], out);
}

static void add_stream(const struct shown *s, unsigned local_rank, int fd, struct text *out)
{
	const struct stream_plan stream = plan_stream(s->e->plan, local_rank, fd);

	text_printf(out, "    %-9s ", stream_names[fd]);
	if (stream.file)
		text_add_shell(out, log_path(s, local_rank, fd));
	if (stream.way == STREAM_INHERIT)
		text_add(out, "launchd's own, a terminal");
	else if (stream.console)
		text_printf(out, stream.file ? " and the %s" : "the %s, in whole lines",
			s->e->plan->output.journal == JOURNAL_ALL ? "journal" : "console");
	else if (stream.way == STREAM_PIPE)
		text_add(out, stream.file ? ", written by launchd" : "kept for the report only");
	if (stream.prefix) {
		text_add(out, ", with the prefix ");
		text_add_shell(out, stream.prefix);
	}
	if (stream.filtered)
		text_printf(out, ", and some lines to filtered_%s.log", stream_names[fd]);
	text_add(out, "\n");
}

/* A worker's argv, in which what only the nodes together can tell stays a placeholder. */
static void add_command(const struct shown *s, unsigned local_rank, struct vec *ret)
{
	struct plan plan = *s->e->plan;

	if (plan.expand_args == EXPAND_ALL && (!ranks_are_known(s->e) || !plan.master_addr))
		plan.expand_args = EXPAND_LOCAL_RANK;
	plan_command(&plan, local_rank, &s->attempt, s->arena, ret);
}

/* "8-15 (8 cores)", "all", "prefer 1", "local" */
static const char *cpus_shown(const struct worker_place *w, struct arena *a)
{
	return w->cpus.words ? arena_printf(a, "%s (%u core%s)", bits_text(&w->cpus, a), w->cores,
				       w->cores == 1 ? "" : "s") :
			       "as launchd's own";
}

static const char *memory_shown(const struct worker_place *w, struct arena *a)
{
	return arena_printf(a, "%s%s%s", memory_word(w->memory), w->nodes.words ? " " : "",
		bits_text(&w->nodes, a));
}

static void add_place(const struct shown *s, unsigned local_rank, struct text *out)
{
	const struct placement *all = s->e->plan->placement;
	const struct worker_place *w = all ? &all->of[local_rank] : NULL;

	if (!w || (!w->cpus.words && w->memory == MEMORY_LEFT))
		return;
	text_printf(out, "    cpus      %s: %s\n", cpus_shown(w, s->arena), w->why);
	text_printf(out, "    memory    %s\n", memory_shown(w, s->arena));
}

static void add_worker(const struct shown *s, unsigned local_rank, struct text *out)
{
	const struct plan *p = s->e->plan;
	struct vec argv = { 0 };

	text_add(out, "\nWorker rank ");
	if (ranks_are_known(s->e))
		text_printf(out, "%u", plan_rank(p, local_rank).rank);
	else
		text_add(out, BY_MEETING);
	text_printf(out, ", local rank %u\n    command  ", local_rank);
	add_command(s, local_rank, &argv);
	for (size_t i = 0; i < argv.count; i++) {
		text_add(out, " ");
		text_add_shell(out, argv.at[i]);
	}
	text_add(out, "\n");
	add_place(s, local_rank, out);
	add_stream(s, local_rank, 1, out);
	add_stream(s, local_rank, 2, out);
	add_edits(s, local_rank, false, out);
}

/* "check-nvlinks of H100" */
static const char *model_name(const struct model_value *m, struct arena *arena)
{
	return arena_printf(arena, "%s of %s", setting_rows[m->id].flag, m->model);
}

static void add_settings(const struct settings *s, struct arena *arena, struct text *out)
{
	const char *heading = "\nSettings\n";

	for (int id = 0; id < SETTING_COUNT; id++)
		if (is_shown(s, id)) {
			text_printf(out, "%s  %-24s %-20s  (%s)\n", heading, setting_rows[id].flag,
				*s->value[id].text ? s->value[id].text : "\"\"",
				s->value[id].from.where);
			heading = "";
		}
	for (const struct model_value *m = s->models; m; m = m->next) {
		text_printf(out, "%s  %-24s %-20s  (%s)\n", heading, model_name(m, arena),
			m->value.text, m->value.from.where);
		heading = "";
	}
}

/* Only where somebody asks for a placement. */
static bool is_pictured(const struct explained *e, struct picture *ret)
{
	if (!e->plan->placement)
		return false;
	*ret = plan_picture(e->plan);
	ret->ranks_known = e->topology->identity.node_rank_known;
	return true;
}

static void add_picture(const struct explained *e, struct arena *arena, struct text *out)
{
	struct picture picture;
	struct vec lines = { 0 };

	if (!is_pictured(e, &picture))
		return;
	picture_lines(&picture, arena, &lines);
	text_add(out, "\nPlacement\n");
	for (size_t i = 0; i < lines.count; i++)
		text_printf(out, "  %s\n", lines.at[i]);
}

void explain_text(const struct explained *e, struct arena *arena, struct text *out)
{
	const struct shown s = show(e, arena);
	const struct plan *p = e->plan;

	text_add(out, "Dry run: nothing is started.\n\nJob\n");
	for (size_t i = 0; i < s.facts.count; i++)
		text_printf(out, "  %-16s %-24s  (%s)\n", s.facts.at[i].name, s.facts.at[i].value,
			s.facts.at[i].from);
	add_settings(e->settings, arena, out);
	add_signals(p, out);
	add_picture(e, arena, out);
	if (e->notes->first)
		text_add(out, "\nNotes\n");
	for (const struct note *n = e->notes->first; n; n = n->next)
		text_printf(out, "  %s: %s\n", note_word(n->level), n->text);
	out->failed = out->failed || !s.edits;
	if (out->failed || p->start_count == 0)
		return;
	text_add(out, "\nEnvironment of every worker\n");
	add_edits(&s, p->start_first, true, out);
	for (unsigned i = p->start_first; i < p->start_first + p->start_count; i++)
		add_worker(&s, i, out);
}

/* --- as JSON --- */

static void json_value(struct json *j, const char *name, const char *value, const char *from)
{
	json_object_begin(j, name);
	json_string(j, "value", value);
	json_string(j, "source", from);
	json_object_end(j);
}

static void json_stream(const struct shown *s, unsigned local_rank, int fd, struct json *j)
{
	static const char *const ways[] = {
		[STREAM_INHERIT] = "inherit",
		[STREAM_DIRECT] = "file",
		[STREAM_PIPE] = "pipe",
	};
	const struct stream_plan stream = plan_stream(s->e->plan, local_rank, fd);
	bool is_journal = s->e->plan->output.journal == JOURNAL_ALL;

	json_object_begin(j, stream_names[fd]);
	json_string(j, "way", ways[stream.way]);
	json_string(j, "file", stream.file ? log_path(s, local_rank, fd) : NULL);
	json_bool(j, "console", stream.console && !is_journal);
	json_bool(j, "journal", stream.console && is_journal);
	json_string(j, "prefix", stream.prefix);
	json_bool(j, "filtered", stream.filtered);
	json_object_end(j);
}

/* Only where somebody asks for a placement. */
static void json_place(const struct shown *s, unsigned local_rank, struct json *j)
{
	const struct placement *all = s->e->plan->placement;
	const struct worker_place *w = all ? &all->of[local_rank] : NULL;

	if (!w)
		return;
	json_object_begin(j, "place");
	json_string(j, "cpus", w->cpus.words ? bits_text(&w->cpus, s->arena) : NULL);
	json_number(j, "cores", w->cores);
	json_string(j, "memory", w->memory == MEMORY_LEFT ? NULL : memory_word(w->memory));
	json_string(j, "memory_nodes", w->nodes.words ? bits_text(&w->nodes, s->arena) : NULL);
	json_string(j, "why", w->why);
	json_object_end(j);
}

static void json_worker(const struct shown *s, unsigned local_rank, struct json *j)
{
	const struct env_edits *edits = &s->edits[local_rank];
	const struct plan *p = s->e->plan;
	struct vec argv = { 0 };

	add_command(s, local_rank, &argv);
	json_object_begin(j, NULL);
	json_number_if(j, "rank", ranks_are_known(s->e), plan_rank(p, local_rank).rank);
	json_number(j, "local_rank", local_rank);
	json_strings(j, "command", &argv);
	json_place(s, local_rank, j);
	json_stream(s, local_rank, 1, j);
	json_stream(s, local_rank, 2, j);
	json_array_begin(j, "environment");
	for (size_t k = 0; k < edits->count; k++) {
		json_object_begin(j, NULL);
		json_string(j, "name", edits->at[k].name);
		json_string(j, "change", change_words[edits->at[k].how]);
		json_string(j, "value", edits->at[k].value);
		json_string(j, "why", edits->at[k].why);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

static void json_signals(const struct shown *s, struct json *j)
{
	int shown[REACTION_SIGNALS];
	size_t count = shown_signals(s->e->plan, shown);

	for (size_t i = 0; i < count; i++) {
		const struct reaction *r = &s->e->plan->reactions.of[shown[i]];

		json_value(j, signal_name(shown[i]), reaction_action(s->arena, r), r->from);
	}
	json_value(j, "others", "forward", "default");
}

static void json_notes(const struct notes *notes, struct json *j)
{
	static const char *const words[] = { "verbose", "note", "warning" };

	for (const struct note *n = notes->first; n; n = n->next) {
		json_object_begin(j, NULL);
		json_string(j, "level", words[n->level]);
		json_string(j, "text", n->text);
		json_object_end(j);
	}
}

void explain_json(const struct explained *e, struct arena *arena, struct text *out)
{
	const struct shown s = show(e, arena);
	const struct plan *p = e->plan;
	struct json j = { .out = out, .lines = true };
	struct picture picture;

	if (!s.edits) {
		out->failed = true;
		return;
	}
	json_object_begin(&j, NULL);
	json_number(&j, "schema", EXPLAIN_SCHEMA);
	json_object_begin(&j, "job");
	for (size_t i = 0; i < s.facts.count; i++)
		json_value(&j, s.facts.at[i].name, s.facts.at[i].value, s.facts.at[i].from);
	json_object_end(&j);
	json_object_begin(&j, "settings");
	for (int id = 0; id < SETTING_COUNT; id++)
		if (is_shown(e->settings, id))
			json_value(&j, setting_rows[id].flag, e->settings->value[id].text,
				e->settings->value[id].from.where);
	for (const struct model_value *m = e->settings->models; m; m = m->next)
		json_value(&j, model_name(m, arena), m->value.text, m->value.from.where);
	json_object_end(&j);
	json_object_begin(&j, "signals");
	json_signals(&s, &j);
	json_object_end(&j);
	json_array_begin(&j, "notes");
	json_notes(e->notes, &j);
	json_array_end(&j);
	if (is_pictured(e, &picture)) {
		json_object_begin(&j, "placement");
		picture_json(&picture, arena, &j);
		json_object_end(&j);
	}
	json_array_begin(&j, "workers");
	for (unsigned i = p->start_first; i < p->start_first + p->start_count; i++)
		json_worker(&s, i, &j);
	json_array_end(&j);
	json_object_end(&j);
	text_add(out, "\n");
}
