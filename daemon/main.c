/* main.c - the order of things: settings, facts, topology, plan, workers, report, exit code. */
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/notes.h"
#include "common/patience.h"
#include "common/text.h"
#include "common/vec.h"
#include "config/help.h"
#include "config/hosts.h"
#include "config/loglevel.h"
#include "config/sources.h"
#include "daemon/blackbox/explain_bundle.h"
#include "daemon/check/gpu_phase.h"
#include "daemon/check/phases.h"
#include "daemon/check/quick_input.h"
#include "daemon/cluster/member.h"
#include "daemon/control/ctl_place.h"
#include "daemon/ctl/launchctl.h"
#include "daemon/facts/facts.h"
#include "daemon/facts/machine.h"
#include "daemon/facts/machine_read.h"
#include "daemon/install.h"
#include "daemon/join.h"
#include "daemon/launchers/launchers.h"
#include "daemon/mpirun.h"
#include "daemon/net/key.h"
#include "daemon/net/death_notice.h"
#include "daemon/node_report.h"
#include "daemon/observe/say.h"
#include "daemon/os/kernel.h"
#include "daemon/os/process.h"
#include "daemon/os/rehearsal.h"
#include "daemon/os/secret.h"
#include "daemon/outputs.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/topology.h"
#include "daemon/report/explain.h"
#include "daemon/report/explain_head.h"
#include "daemon/report/failure_record.h"
#include "daemon/report/report_file.h"
#include "daemon/run/run.h"
#include "daemon/self_check.h"
#include "daemon/supervise.h"
#include "daemon/os/cgroup_paths.h"
#include "daemon/workers/divide.h"
#include "daemon/workers/guard.h"

/* All that one run is made of, in the order in which it is decided. */
struct launch {
	struct arena arena;
	struct notes notes;
	struct failure why;
	struct failures failures; /* of --check, which wants them all */
	struct inherited inherited;
	struct settings settings;
	struct facts facts;
	struct topology topology;
	struct plan plan;  /* provisional, where nodes have yet to meet */
	struct plan bound; /* to what they agreed on */
	struct member_config member;
	struct mpirun mpirun; /* instead of all that stands before, from the facts on */
};

/* Under MPI and srun all nodes have the same command line and nearly the same environment, so one
 * of them speaks for all. */
static bool another_node_speaks(const struct launch *l)
{
	return l->topology.launcher->kind == LAUNCHER_TASK && l->topology.identity.node_rank > 0 &&
		loglevel_least(&l->settings) != NOTE_VERBOSE;
}

static bool is_loud(const struct launch *l, const struct note *n)
{
	return n->level >= loglevel_least(&l->settings);
}

/* before: NULL, or notes of which those that were loud have been said. */
static bool was_said(const struct launch *l, const struct notes *before, const char *text)
{
	for (const struct note *n = before ? before->first : NULL; n; n = n->next)
		if (is_loud(l, n) && strcmp(n->text, text) == 0)
			return true;
	return false;
}

/* own: prints only notes that no other launcher has. */
static void say_notes(
	const struct launch *l, const struct notes *notes, const struct notes *before, bool own)
{
	for (const struct note *n = notes->first; n; n = n->next)
		if (is_loud(l, n) && (n->own || !own) && !was_said(l, before, n->text))
			say(note_word(n->level), n->text);
}

/* What is replaced here, for who wants to know; whoever doesn't is not to wait for it. */
static void note_kernel(struct launch *l)
{
	for (unsigned f = 0; f < KERNEL_FEATURES; f++) {
		const struct kernel_row *row = kernel_row((enum kernel_feature)f);
		int error = kernel_ask((enum kernel_feature)f);

		if (error)
			notes_add(&l->notes, NOTE_VERBOSE,
				"%s (Linux %s) is not available: %s; launchd uses %s instead%s%s",
				row->name, row->since, strerror(error), row->instead,
				row->weaker ? ", which is weaker: " : "",
				row->weaker ? row->weaker : "");
	}
}

static void note_cgroup(struct launch *l)
{
	struct cgroup_paths paths = { 0 };
	struct text words = { 0 };

	if (cgroup_paths_read("", &l->arena, &paths) == 0)
		divide_describe(&paths, &words);
	if (words.len)
		notes_add(&l->notes, NOTE_VERBOSE, "cgroup: %s", text_string(&words));
	text_done(&words);
}

static bool wants_self_check(const struct settings *s)
{
	return settings_flag(s, SET_SELF_CHECK) ||
		(settings_flag(s, SET_VERSION) && settings_flag(s, SET_VERBOSE));
}

/* The system's file is no job, and is read anyway. */
static bool checks_system_file(const struct settings *s)
{
	return settings_given(s, SET_CHECK) &&
		strcmp(settings_text(s, SET_CHECK), SYSTEM_CONFIG) == 0;
}

/* --check FILE is --config FILE, of which all failures are wanted. */
static int begin_check(struct launch *l)
{
	static const struct {
		enum setting_id id;
		const char *because;
	} others[] = {
		{ SET_CONFIG, "--check FILE reads FILE as --config FILE does" },
		{ SET_DRY_RUN, "--check prints no plan" },
	};
	struct settings *s = &l->settings;
	const struct origin from = s->value[SET_CHECK].from;

	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (settings_given(s, others[i].id))
			return failure_usage(&l->why, "%s and %s are mutually exclusive: %s",
				from.where, settings_where(s, others[i].id), others[i].because);
	l->failures.arena = &l->arena;
	l->why.all = &l->failures;
	return checks_system_file(s) ?
		0 :
		settings_put(s, SET_CONFIG, settings_text(s, SET_CHECK), from, &l->why);
}

/* The file of --config. */
static int load_file(struct launch *l)
{
	struct settings *s = &l->settings;
	const char *path = settings_text(s, SET_CONFIG);

	if (strcmp(path, SYSTEM_CONFIG) == 0)
		return failure_usage(&l->why,
			"%s: %s has the defaults of all jobs and is read by each: it can't be a "
			"job, so no job can have the name launchd",
			settings_where(s, SET_CONFIG), path);
	if (path_answers(settings_where(s, SET_CONFIG), path, &l->why) < 0)
		return l->why.code;
	return settings_load_file(s, path, LEVEL_FILE, false, &l->why);
}

/* Of the environment and of files. */
static int read_sources(struct launch *l)
{
	const char *const *env = (const char *const *)environ;
	struct settings *s = &l->settings;
	bool may_be_absent = !checks_system_file(s);
	struct failure *why = &l->why;

	if (!failure_go_on(settings_read_environment(s, env, &l->notes, why), why) ||
		path_answers("", SYSTEM_CONFIG, why) < 0 ||
		!failure_go_on(
			settings_load_file(s, SYSTEM_CONFIG, LEVEL_SYSTEM_FILE, may_be_absent, why),
			why))
		return why->code;
	if (settings_given(s, SET_CONFIG) && !failure_go_on(load_file(l), why))
		return why->code;
	if (settings_is(s, SET_LOG_FORMAT, "json"))
		say_json();
	return settings_check(s, &l->notes, &l->why);
}

static bool explains_newest(const struct settings *s)
{
	return settings_given(s, SET_EXPLAIN) && settings_is(s, SET_EXPLAIN, EXPLAIN_NEWEST);
}

/* Reads all sources. What only asks for information does not need the rest to be right. */
static int read_settings(struct launch *l, const char *const *argv)
{
	struct settings *s = &l->settings;
	const char *name = argv[0] ? basename(argv[0]) : "launchd";

	settings_init(s, &l->arena, strcmp(name, "torchrun") == 0);
	if (settings_read_argv(s, argv, &l->why) < 0)
		return l->why.code;
	if (wants_self_check(s)) {
		(void)read_sources(l); /* it says what is wrong */
		return 0;
	}
	if (settings_flag(s, SET_HELP) || settings_flag(s, SET_VERSION) ||
		settings_given(s, SET_PRINT_COMPLETION) ||
		settings_given(s, SET_INSTALL_TORCHRUN) ||
		(settings_given(s, SET_EXPLAIN) && !explains_newest(s)))
		return 0;
	if (settings_given(s, SET_CHECK) && begin_check(l) < 0)
		return l->why.code;
	return read_sources(l);
}

/* --help and its like. -1: none was asked for. */
static int inform(const struct launch *l)
{
	const struct settings *s = &l->settings;
	struct text out = { 0 };

	if (settings_flag(s, SET_HELP))
		help_text(&out);
	else if (wants_self_check(s))
		self_check(s, (const char *const *)environ, l->why.text, &out);
	else if (settings_flag(s, SET_VERSION))
		text_add(&out, "launchd " LAUNCHD_VERSION "\n");
	else if (!settings_given(s, SET_PRINT_COMPLETION))
		return -1;
	else if (settings_is(s, SET_PRINT_COMPLETION, "bash"))
		help_bash(&out);
	else
		help_zsh(&out);
	return print_text(&out);
}

/* --check-node: 3 where the node is bad. */
static int check_node(struct launch *l)
{
	const struct settings *s = &l->settings;
	struct text out = { 0 };
	int bad = node_report(s, (const char *const *)environ, &l->arena, &out, &l->why);
	int rc = bad < 0 ? bad : print_text(&out);

	return rc == 0 && bad ? 3 : rc;
}

/* Where a failure would be kept, and why there; else what lies below the working directory. */
static const char *bundles_place(const struct launch *l, const char **ret_reason)
{
	static const enum setting_id places[] = { SET_BLACKBOX, SET_LOG_DIR };
	const struct settings *s = &l->settings;

	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		const char *dir = settings_text(s, places[i]);

		if (!dir || !*dir || (places[i] == SET_BLACKBOX && strcmp(dir, "none") == 0))
			continue;
		*ret_reason = arena_printf(s->arena, ", of %s", settings_where(s, places[i]));
		return dir;
	}
	*ret_reason = ", the working directory, as neither --blackbox nor --log-dir is given";
	return ".";
}

struct explaining {
	struct launch *l;
	const char *path, *reason; /* as explain_bundle() has them */
};

static void explain_rehearse(const void *how)
{
	const struct explaining *e = how;
	struct text ignored = { 0 };

	rehearsal_path(settings_where(&e->l->settings, SET_EXPLAIN), e->path);
	(void)explain_bundle(e->path, e->reason, &e->l->arena, &ignored, &e->l->why);
}

/* --explain */
static int explain_failure(struct launch *l)
{
	struct explaining e = { .l = l, .path = settings_text(&l->settings, SET_EXPLAIN) };
	struct text out = { 0 };
	int rc = 0;

	if (explains_newest(&l->settings))
		e.path = bundles_place(l, &e.reason);
	if (path_is_far(e.path))
		rc = rehearse(explain_rehearse, &e, &l->why);

	if (rc == 0)
		rc = explain_bundle(e.path, e.reason, &l->arena, &out, &l->why);
	return rc < 0 ? rc : print_text(&out);
}

static int install(struct launch *l)
{
	const char *dir = settings_text(&l->settings, SET_INSTALL_TORCHRUN);
	const char *where = settings_where(&l->settings, SET_INSTALL_TORCHRUN);
	struct text out = { 0 };
	int rc = path_answers(where, dir, &l->why);

	if (rc == 0)
		rc = install_torchrun(
			dir, where, (const char *const *)environ, &l->arena, &out, &l->why);

	return rc < 0 ? rc : print_text(&out);
}

/* Whether the command of --check-command can be run, where a check before the workers will, and
 * launchd-nodecheck, where that is what the user wants: of a full check it is a part. */
static int check_preflight(struct launch *l)
{
	const char *const *env = (const char *const *)environ;
	struct quick_input ignored;
	const char *program;
	int rc = 0;

	if (l->plan.check_first)
		rc = quick_input_make(
			&l->settings, env, false, false, &l->arena, &ignored, &l->why);
	if (failure_go_on(rc, &l->why) && l->plan.check_again)
		rc = quick_input_make(&l->settings, env, true, false, &l->arena, &ignored, &l->why);
	if (failure_go_on(rc, &l->why) && settings_is(&l->settings, SET_PREFLIGHT, "gpu"))
		rc = gpu_phase_program(env, &l->arena, &program, &l->why);
	return failure_go_on(rc, &l->why) ? 0 : l->why.code;
}

static int need_script(struct launch *l)
{
	return l->settings.script ?
		0 :
		failure_usage(&l->why,
			"no training script: launchd [options] script [script's arguments], or script = "
			"PATH in the file of --config; see launchd --help");
}

/* The command of --mpirun-hosts. Script, Python and GPUs are for the nodes to look at. */
static int decide_mpirun(struct launch *l, const char *const *words)
{
	if (need_script(l) < 0 ||
		mpirun_prepare(&l->settings, words, (const char *const *)environ, &l->arena,
			&l->mpirun, &l->why) < 0)
		return l->why.code;
	notes_append(&l->notes, &l->mpirun.hosts.notes);
	return 0;
}

/* From settings to a plan. Where nodes have yet to meet it is not for good: all are taken to have
 * as many workers as this one, where no list says more. */
static int decide(struct launch *l)
{
	const struct settings *s = &l->settings;
	const struct deciding d = { s, &l->facts, &l->notes, &l->why };
	struct topology *t = &l->topology;
	unsigned *nproc_of_node;

	if (need_script(l) < 0 ||
		facts_read(s, (const char *const *)environ, &l->arena, &l->facts, &l->why) < 0)
		return l->why.code;
	notes_append(&l->notes, &l->facts.listed.hosts.notes);
	if (topology_begin(&d, t) < 0 ||
		topology_finish(&d, join_tells_master(s, &l->facts, t), t) < 0)
		return l->why.code;
	if (t->identity.node_rank_known)
		say_node(t->identity.node_rank);
	nproc_of_node = arena_alloc(&l->arena, t->identity.nnodes * sizeof *nproc_of_node);
	if (!nproc_of_node)
		return failure_oom(&l->why);
	for (unsigned i = 0; i < t->identity.nnodes; i++)
		nproc_of_node[i] = t->hosts ? t->hosts->at[i].slots : t->nproc;
	if (plan_make(&d, t, nproc_of_node, &l->plan) < 0)
		return l->why.code;
	if (outputs_check(s, &l->plan, &l->why) < 0)
		return l->why.code;
	return check_preflight(l);
}

/* What is worth a note has been said of the first plan. */
static const struct plan *bind_plan(void *owner, const struct meeting *m, struct failure *why)
{
	struct launch *l = owner;
	const struct agreement agreed = {
		.met = { m->node_rank, m->master_addr, m->master_port },
		.nproc_of_node = m->nproc_of_node,
		.peers = m->peers,
		.alone = m->alone,
		.max_restarts = m->max_restarts,
		.agent_store = m->agent_store,
	};
	struct notes notes = { .arena = &l->arena };
	const struct deciding d = { &l->settings, &l->facts, &notes, why };

	if (plan_bind(&l->plan, &d, &l->topology, &agreed, &l->bound) < 0)
		return NULL;
	if (!l->topology.identity.node_rank_known) /* nobody knew which node would speak for all */
		say_notes(l, &notes, &l->notes, false);
	return &l->bound;
}

/* What --check has found, and the exit code: not that of the start, but 2 for whatever the user can
 * put right. */
static int conclude(const struct launch *l)
{
	const struct vec *wrong = &l->failures.texts;
	size_t errors = wrong->count + (l->why.code != 0);
	enum note_level said = loglevel_least(&l->settings);
	enum note_level least = said == NOTE_INFO ? NOTE_WARNING : said; /* notes are for runs */
	struct text out = { 0 };
	int rc = 0;

	for (size_t i = 0; i < wrong->count; i++)
		say("error", wrong->at[i]);
	if (l->why.code != 0)
		say("error", l->why.text);
	for (const struct note *n = l->notes.first; n; n = n->next)
		if (n->level >= least)
			say(note_word(n->level), n->text);
	text_printf(&out, "%s: ", settings_text(&l->settings, SET_CHECK));
	if (errors)
		text_printf(&out, "%zu error%s%s\n", errors, errors == 1 ? "" : "s",
			errors > FAILURES_MAX ? ", and the rest was not read" : "");
	else
		text_add(&out, "no errors\n");
	if (said == NOTE_NONE)
		text_done(&out);
	else
		rc = print_text(&out);
	return wrong->count > 0 ? 2 : l->why.code != 0 ? failure_exit_code(&l->why) : rc;
}

/* --check: all that a start needs, as far as that can be seen without starting, meeting or changing
 * anything. read: the settings were, wrong ones included. */
static int check(struct launch *l, bool read, char **argv, const char *const *words)
{
	const struct settings *s = &l->settings;
	bool right = read && l->failures.texts.count == 0;

	if (right && head_node_given(s))
		(void)decide_mpirun(l, words);
	else if (right && (s->script || !checks_system_file(s)) && decide(l) == 0)
		(void)join_config(
			s, &l->facts, &l->topology, &l->plan, argv, &l->member, &l->notes, &l->why);
	(void)failure_go_on(l->why.code, &l->why);
	if (arena_failed(&l->arena))
		(void)failure_oom(&l->why);
	return conclude(l);
}

static int dry_run(struct launch *l)
{
	const struct explained e = { &l->settings, &l->facts, &l->topology, &l->plan, &l->notes,
		l->member.key.from };
	struct text out = { 0 };

	if (settings_is(&l->settings, SET_DRY_RUN, "text"))
		explain_text(&e, &l->arena, &out);
	else
		explain_json(&e, &l->arena, &out);
	return print_text(&out);
}

/* --mpirun-hosts */
static int run_mpirun(struct launch *l, const char *const *words)
{
	const struct mpirun *m = &l->mpirun;
	struct explained_head e = { &l->settings, &m->hosts, NULL, &m->plan, &l->notes };
	struct text out = { 0 };
	int rc = decide_mpirun(l, words);

	if (rc < 0)
		return rc;
	if (!settings_given(&l->settings, SET_DRY_RUN)) {
		say_notes(l, &l->notes, NULL, false);
		return mpirun_become(m, &l->inherited, &l->why);
	}
	e.hosts_from = m->hosts_from;
	if (settings_is(&l->settings, SET_DRY_RUN, "text"))
		explain_head_text(&e, &l->arena, &out);
	else
		explain_head_json(&e, &l->arena, &out);
	return print_text(&out);
}

/* A picture of another machine is for --dry-run. */
static int check_machine(struct launch *l)
{
	const struct machine *m = l->facts.machine;

	return !m || m->is_this ?
		0 :
		failure_usage(&l->why,
			"%s: workers can't be placed by a machine that isn't this one (%s); "
			"--dry-run shows what would be",
			machine_is_needed(&l->settings), m->from);
}

/* What must be so, and be there, before the first process is started. */
static int prepare(struct launch *l)
{
	int rc = check_machine(l);

	if (rc == 0)
		rc = run_check_descriptors(&l->plan, &l->why);
	if (rc == 0)
		rc = outputs_prepare(&l->settings, &l->plan, &l->why);
	return rc;
}

static bool tell_others(void *death_notice, int signal)
{
	return death_notice_tell(death_notice, signal);
}

/* The two processes of a run: the guard waits, the supervisor does the rest. */
static int run(struct launch *l, char **argv)
{
	struct guard guard;
	struct supervision s = {
		.run = {
			.plan = &l->plan,
			.settings = &l->settings,
			.member = &l->member,
			.inherited = &l->inherited,
			.guard = &guard,
			.arena = &l->arena,
			.bind = bind_plan,
			.owner = l,
		},
		.hostname = l->facts.hostname,
		.least = loglevel_least(&l->settings),
	};
	struct death_notice death_notice = DEATH_NOTICE_NONE;
	pid_t pid;
	int rc;

	if (loglevel_least(&l->settings) == NOTE_VERBOSE) {
		note_kernel(l);
		note_cgroup(l);
	}
	say_notes(l, &l->notes, NULL, another_node_speaks(l));
	if (l->plan.start_count == 0)
		return 0;
	rc = prepare(l);
	if (rc == 0)
		rc = join_hold_ports(&l->settings, &l->topology, &l->member, &l->why);
	if (rc < 0)
		return rc;
	rc = guard_init(&guard, &l->plan, &l->inherited.ignored, &l->why);
	if (rc == 0)
		rc = guard_use_cgroups(&guard, &l->arena, &l->why);
	if (rc == 0 && l->member.way != MEET_NOBODY) {
		death_notice_make(&death_notice);
		l->member.death_notice = &death_notice;
	}
	pid = rc < 0 ? rc : guard_fork(&guard, &l->why);
	if (pid < 0) {
		guard_drop_cgroups(&guard);
		return pid;
	}
	if (pid == 0) {
		death_notice_is_supervisors(&death_notice);
		process_rename(argv, SUPERVISOR_NAME);
		rc = supervise(&s, &l->why);
		guard_leave_lost(&guard);
		guard_wake(&guard);
		return rc;
	}
	secret_wipe(l->member.key.bytes, sizeof l->member.key.bytes); /* the supervisor's alone */
	death_notice_is_guards(&death_notice);
	guard.on_killed = (struct killed_hook){ tell_others, &death_notice };
	rc = guard_wait(&guard, &l->why);
	ctl_forget(&guard.shared->control, 0); /* of a supervisor that could not */
	say_patience(patience_for_ms(l->plan.grace_ms));
	if (l->why.code != 0)
		say(rc == 0 ? "warning" : "error", l->why.text);
	guard_end_as_asked(&guard);
	return rc;
}

/* What argv says, apart from the memory that process_rename() writes over. */
static const char *const *copy_argv(struct launch *l, char **argv)
{
	struct vec copy = { 0 };

	for (; *argv; argv++)
		vec_add(&l->arena, &copy, arena_strdup(&l->arena, *argv));
	return (const char *const *)vec_argv(&copy);
}

/* Everything between argv and the exit code; negative errno: l->why says what failed. */
static int launch(struct launch *l, char **argv)
{
	const char *const *words = copy_argv(l, argv);
	int rc = arena_failed(&l->arena) ? failure_oom(&l->why) :
					   process_init(&l->inherited, &l->why);

	if (rc == 0)
		rc = read_settings(l, words);
	if (l->why.all)
		return check(l, rc == 0, argv, words);
	if (rc < 0)
		return rc;
	rc = inform(l);
	if (rc >= 0)
		return rc;
	if (settings_given(&l->settings, SET_INSTALL_TORCHRUN))
		return install(l);
	if (settings_given(&l->settings, SET_EXPLAIN))
		return explain_failure(l);
	if (settings_given(&l->settings, SET_CHECK_NODE))
		return check_node(l);
	if (head_node_given(&l->settings))
		return run_mpirun(l, words);
	rc = decide(l);
	if (rc == 0)
		rc = join_config(&l->settings, &l->facts, &l->topology, &l->plan, argv, &l->member,
			&l->notes, &l->why);
	key_forget_variable(environ);
	if (rc < 0)
		return rc;
	return settings_given(&l->settings, SET_DRY_RUN) ? dry_run(l) : run(l, argv);
}

/* TORCHELASTIC_ERROR_FILE, as torchrun does: why nothing was started, or the launcher itself
 * failed.
 */
static void leave_failure(const struct launch *l, int exit_code)
{
	const char *path = env_get((const char *const *)environ, "TORCHELASTIC_ERROR_FILE");
	struct failure why = { 0 };
	struct text json = { 0 };

	if (!path || !*path || settings_given(&l->settings, SET_DRY_RUN))
		return;
	failure_record_own(l->why.text, exit_code, time(NULL), &json);
	if (report_write_text("TORCHELASTIC_ERROR_FILE", path, &json, &why) < 0)
		say("warning", why.text);
}

int main(int argc, char **argv)
{
	const char *const *words = launchctl_words((const char *const *)argv);
	struct launch l = { .notes.arena = &l.arena };
	int rc;

	(void)argc;
	if (words)
		return launchctl(words, (const char *const *)environ);
	rc = launch(&l, argv);
	if (rc < 0) {
		say("error", l.why.text);
		rc = failure_exit_code(&l.why);
		leave_failure(&l, rc);
	}
	arena_done(&l.arena);
	return rc;
}
