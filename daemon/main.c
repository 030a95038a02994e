/* main.c - the order of things: settings, facts, topology, plan, workers, report, exit code. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/notes.h"
#include "common/text.h"
#include "common/vec.h"
#include "config/help.h"
#include "config/sources.h"
#include "daemon/facts/facts.h"
#include "daemon/facts/outfile.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/topology.h"
#include "daemon/process.h"
#include "daemon/report/explain.h"
#include "daemon/say.h"
#include "daemon/supervise.h"
#include "daemon/workers/child.h"
#include "daemon/workers/guard.h"
#include "daemon/workers/place.h"

/* All that one run is made of, in the order in which it is decided. */
struct launch {
	struct arena arena;
	struct notes notes;
	struct failure why;
	struct heritage heritage;
	struct settings settings;
	struct facts facts;
	struct topology topology;
	struct plan plan;
};

static enum note_level least_level(const struct settings *s)
{
	const struct value *quiet = &s->value[SET_QUIET], *verbose = &s->value[SET_VERBOSE];

	if (quiet->number && verbose->number)
		return quiet->from.level > verbose->from.level ? NOTE_WARNING + 1 : NOTE_VERBOSE;
	return quiet->number ? NOTE_WARNING + 1 : verbose->number ? NOTE_VERBOSE : NOTE_INFO;
}

/* Under MPI and srun all nodes have the same command line and nearly the same environment, so one
 * of them speaks for all. */
static bool another_node_speaks(const struct launch *l)
{
	return l->topology.launcher != LAUNCHER_NONE && l->topology.identity.node_rank > 0 &&
		least_level(&l->settings) != NOTE_VERBOSE;
}

static void say_notes(const struct launch *l)
{
	if (another_node_speaks(l))
		return;
	for (const struct note *n = l->notes.first; n; n = n->next)
		if (n->level >= least_level(&l->settings))
			say(note_word(n->level), n->text);
}

static const char *program_name(const char *argv0)
{
	const char *slash = strrchr(argv0, '/');

	return slash ? slash + 1 : argv0;
}

/* Reads all sources. What only asks for information does not need the rest to be right. */
static int read_settings(struct launch *l, const char *const *argv)
{
	const char *const *env = (const char *const *)environ;
	struct settings *s = &l->settings;
	const char *name = argv[0] ? program_name(argv[0]) : "launchd";

	settings_init(s, &l->arena, strcmp(name, "torchrun") == 0);
	if (settings_read_argv(s, argv, &l->why) < 0)
		return l->why.code;
	if (settings_flag(s, SET_HELP) || settings_flag(s, SET_VERSION) ||
		settings_given(s, SET_PRINT_COMPLETION))
		return 0;
	if (settings_read_environment(s, env, &l->notes, &l->why) < 0 ||
		settings_load_file(s, SYSTEM_CONFIG, LEVEL_SYSTEM_FILE, true, &l->why) < 0)
		return l->why.code;
	if (settings_given(s, SET_CONFIG) &&
		settings_load_file(s, settings_text(s, SET_CONFIG), LEVEL_FILE, false, &l->why) < 0)
		return l->why.code;
	return settings_check(s, &l->notes, &l->why);
}

/* --help and its like. -1: none was asked for. */
static int inform(const struct settings *s)
{
	struct text out = { 0 };

	if (settings_flag(s, SET_HELP))
		help_text(&out);
	else if (settings_flag(s, SET_VERSION))
		text_add(&out, "launchd " LAUNCHD_VERSION "\n");
	else if (!settings_given(s, SET_PRINT_COMPLETION))
		return -1;
	else if (settings_number(s, SET_PRINT_COMPLETION) == 0)
		help_bash(&out);
	else
		help_zsh(&out);
	return print_text(&out);
}

/* From settings to a plan. */
static int decide(struct launch *l)
{
	unsigned *nproc_of_node;

	if (!l->settings.script)
		return failure_set(&l->why, -EINVAL,
			"no training script: launchd [options] script [script's arguments]; launchd "
			"--help has the options");
	if (facts_read(&l->settings, (const char *const *)environ, &l->arena, &l->facts, &l->why) <
			0 ||
		topology_begin(
			&l->settings, &l->facts, &l->arena, &l->topology, &l->notes, &l->why) < 0 ||
		topology_finish(&l->settings, &l->facts, false, &l->arena, &l->topology, &l->notes,
			&l->why) < 0)
		return l->why.code;
	/* nodes don't exchange their numbers yet: all are taken to have ours, as the originals do
	 */
	nproc_of_node = arena_alloc(&l->arena, l->topology.identity.nnodes * sizeof *nproc_of_node);
	if (!nproc_of_node)
		return failure_oom(&l->why);
	for (unsigned i = 0; i < l->topology.identity.nnodes; i++)
		nproc_of_node[i] = l->topology.nproc;
	if (plan_make(&l->settings, &l->facts, &l->topology, nproc_of_node, &l->plan, &l->notes,
		    &l->why) < 0)
		return l->why.code;
	return l->plan.report_path ? outfile_check(l->plan.report_path,
					     settings_where(&l->settings, SET_REPORT), &l->why) :
				     0;
}

static int dry_run(struct launch *l)
{
	const struct explained e = { &l->settings, &l->facts, &l->topology, &l->plan, &l->notes };
	struct text out = { 0 };

	if (settings_number(&l->settings, SET_DRY_RUN) == 0)
		explain_text(&e, &l->arena, &out);
	else
		explain_json(&e, &l->arena, &out);
	return print_text(&out);
}

/* The two processes of a run: the guard waits, the supervisor does the rest. */
static int run(struct launch *l, char **argv)
{
	struct guard guard;
	const struct supervision s = {
		.plan = &l->plan,
		.heritage = &l->heritage,
		.guard = &guard,
		.hostname = l->facts.hostname,
		.arena = &l->arena,
		.quiet = least_level(&l->settings) > NOTE_WARNING,
		.verbose = least_level(&l->settings) == NOTE_VERBOSE,
	};
	pid_t pid;
	int rc;

	if (l->plan.max_restarts > 0 || l->plan.store == STORE_AGENT ||
		!l->topology.identity.node_rank_known)
		return failure_set(&l->why, -EINVAL,
			"not supported yet: --max-restarts, --store agent, c10d without "
			"--node_rank");
	say_notes(l);
	if (l->plan.start_count == 0)
		return 0;
	rc = guard_init(&guard, &l->plan, &l->heritage.ignored, &l->why);
	if (rc == 0)
		rc = guard_use_cgroups(&guard, &l->arena, &l->why);
	if (rc == 0)
		rc = run_dir_make(l->plan.env, &l->arena, &guard.run_dir, &l->why);
	if (rc < 0) {
		guard_drop_cgroups(&guard);
		return rc;
	}
	pid = guard_fork(&guard, &l->why);
	if (pid < 0) {
		guard_drop_cgroups(&guard);
		(void)run_dir_remove(guard.run_dir); /* the failure before it is told */
		return pid;
	}
	if (pid == 0) {
		process_rename(argv, "rank-supervisor");
		return supervise(&s, &l->why);
	}
	rc = guard_wait(&guard, &l->why);
	if (l->why.code != 0)
		say("error", l->why.text);
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
					   process_init(&l->heritage, &l->why);

	if (rc == 0)
		rc = read_settings(l, words);
	if (rc < 0)
		return rc;
	rc = inform(&l->settings);
	if (rc >= 0)
		return rc;
	rc = decide(l);
	if (rc < 0)
		return rc;
	return settings_given(&l->settings, SET_DRY_RUN) ? dry_run(l) : run(l, argv);
}

int main(int argc, char **argv)
{
	struct launch l = { .notes.arena = &l.arena };
	int rc = launch(&l, argv);

	(void)argc;
	if (rc < 0) {
		say("error", l.why.text);
		rc = failure_exit_code(&l.why);
	}
	arena_done(&l.arena);
	return rc;
}
