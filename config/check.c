/* check.c - what no single value shows: see settings_check() in settings.h. */
#include "config/settings.h"

#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/name.h"
#include "common/notes.h"
#include "common/signame.h"
#include "config/lists.h"
#include "config/rdzv_conf.h"
#include "config/script.h"
#include "config/value.h"

/* Whether a value is the default, by whomever it is given; of a flag that says no, however it is
 * written. */
static bool is_default(const struct value *v, const struct setting_row *row)
{
	return v->from.level <= LEVEL_DEFAULT || (row->kind == KIND_FLAG && v->number == 0) ||
		(row->by_default && strcmp(v->text, row->by_default) == 0);
}

/* Whether a setting that is not fully supported can be. */
static int check_row(
	const struct settings *s, enum setting_id id, struct notes *notes, struct failure *why)
{
	const struct setting_row *row = &setting_rows[id];
	const struct value *v = &s->value[id];

	switch (row->support) {
	case SUPPORTED:
		break;
	case SUPPORT_IGNORED:
		if (!is_default(v, row))
			notes_add(notes, NOTE_WARNING, "%s %s", settings_label(s, id), row->help);
		break;
	case SUPPORT_REFUSED:
		if (!is_default(v, row))
			return failure_usage(why, "%s %s", settings_label(s, id), row->help);
		break;
	}
	return 0;
}

static int check_support(const struct settings *s, struct notes *notes, struct failure *why)
{
	for (int id = 0; id < SETTING_COUNT; id++)
		if (!failure_go_on(check_row(s, (enum setting_id)id, notes, why), why))
			return why->code;
	return 0;
}

static void check_env_names(const struct settings *s, struct notes *notes)
{
	/* programs can have any name; shells and Python's code only see what they can spell */
	for (const struct env_change *c = s->env; c; c = c->next)
		if (c->value && !name_is_identifier(c->name, strlen(c->name)))
			notes_add(notes, NOTE_WARNING,
				"%s: \"%s\" is set, but shells can't read a variable of that name "
				"(letters, digits and _ only, no digit first)",
				c->from.where, c->name);
}

/* The system's file has defaults for all jobs, which needn't make sense in each. */
static bool is_for_this_job(const struct settings *s, enum setting_id id)
{
	return s->value[id].from.level > LEVEL_SYSTEM_FILE;
}

/* The settings that say when a failed job is started again. */
static int check_restarts(const struct settings *s, struct notes *notes, struct failure *why)
{
	static const enum setting_id rules[] = { SET_RESTART_DELAY, SET_RESTART_MIN_UPTIME,
		SET_RESTART_ON, SET_NO_RESTART_ON, SET_RESTART_WINDOW, SET_NO_PROGRESS_RESTARTS,
		SET_RESTART_GATE, SET_RESTART_GATE_TIMEOUT };
	const char *on = settings_text(s, SET_RESTART_ON);
	const char *not_on = settings_text(s, SET_NO_RESTART_ON);
	bool is_signal;
	int value;

	if (on && not_on && ends_overlap(on, not_on, &is_signal, &value))
		return failure_usage(why, "%s and %s both contain %s%s",
			settings_label(s, SET_RESTART_ON), settings_label(s, SET_NO_RESTART_ON),
			is_signal ? "" : "exit code ",
			is_signal ? signal_name(value) : arena_printf(s->arena, "%d", value));
	if (settings_number(s, SET_NO_PROGRESS_RESTARTS) > 0 &&
		is_for_this_job(s, SET_NO_PROGRESS_RESTARTS) &&
		strcmp(settings_text(s, SET_PROGRESS), "none") == 0)
		return failure_usage(why,
			"%s needs --progress, which says what a step of the job is",
			settings_label(s, SET_NO_PROGRESS_RESTARTS));
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		if (settings_number(s, SET_MAX_RESTARTS) == 0 && is_for_this_job(s, rules[i]))
			notes_add(notes, NOTE_WARNING, "%s has no effect without --max-restarts",
				settings_label(s, rules[i]));
	return 0;
}

/* torchrun waits as long: static jobs 900 s, which is the default, and c10d's 600 s. */
static void default_join_timeout(struct settings *s)
{
	const struct origin c10d = { LEVEL_DEFAULT, "torchrun's default for c10d" };
	struct failure none = { 0 };

	if (settings_is(s, SET_RDZV_BACKEND, "c10d") && !settings_given(s, SET_JOIN_TIMEOUT))
		(void)settings_put(s, SET_JOIN_TIMEOUT, "600", c10d, &none); /* it is a time */
}

/* A script that starts its own ranks gives them all that they need itself. */
static void check_node_env(const struct settings *s, struct failure *why)
{
	static const struct {
		enum setting_id id;
		const char *choice; /* NULL: the flag */
		const char *because;
	} others[] = {
		{ SET_PER_PROCESS, NULL, "the script starts the node's ranks itself" },
		{ SET_VIRTUAL_LOCAL_RANK, NULL, "the script has no local rank" },
		{ SET_VISIBLE_DEVICES, "one", "the script has no local rank" },
		{ SET_TF_CONFIG, NULL, "the script is no task among others" },
		{ SET_JAX_ENV, NULL, "the script starts the node's ranks itself" },
		{ SET_STORE, "agent", "the script's own rank 0 hosts the store" },
		{ SET_MPI_ENV, "rewrite-slurm", "the script is no task among others" },
		{ SET_MPI_ENV, "rewrite-pmi", "the script starts the node's ranks itself" },
	};

	for (size_t i = 0; settings_flag(s, SET_NODE_ENV) && i < sizeof others / sizeof *others;
		i++)
		if (others[i].choice ? settings_is(s, others[i].id, others[i].choice) :
				       settings_flag(s, others[i].id))
			(void)failure_go_on(
				failure_usage(why, "%s and %s%s%s are mutually exclusive: %s",
					settings_label(s, SET_NODE_ENV),
					settings_label(s, others[i].id),
					others[i].choice ? " " : "",
					others[i].choice ? others[i].choice : "",
					others[i].because),
				why);
}

/* The system's file has defaults for all jobs, which give way where they make no sense. */
static bool places(const struct settings *s, enum setting_id id)
{
	const struct value *v = &s->value[id];

	return v->from.level > LEVEL_SYSTEM_FILE && strcmp(v->text, "none") != 0;
}

static void exclude(const struct settings *s, enum setting_id one, enum setting_id other,
	const char *because, struct failure *why)
{
	(void)failure_go_on(failure_usage(why, "%s and %s are mutually exclusive: %s",
				    settings_label(s, one), settings_label(s, other), because),
		why);
}

/* Where workers run: what says so twice, or of workers that others place. */
static void check_placement(const struct settings *s, struct failure *why)
{
	static const enum setting_id all[] = { SET_BIND, SET_NUMA_BINDING, SET_MEMBIND,
		SET_CPUS_PER_WORKER };
	const struct value *bind = &s->value[SET_BIND];
	bool has_list =
		places(s, SET_BIND) && choice_index(setting_rows[SET_BIND].choices, bind->text) < 0;
	bool counts = places(s, SET_CPUS_PER_WORKER);

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		if (!places(s, all[i]))
			continue;
		if (settings_flag(s, SET_NODE_ENV))
			exclude(s, SET_NODE_ENV, all[i], "the script places its ranks itself", why);
		if (settings_flag(s, SET_PER_PROCESS))
			exclude(s, SET_PER_PROCESS, all[i],
				"whoever starts one launcher for each worker binds it (mpirun "
				"--bind-to, srun --cpu-bind)",
				why);
	}
	if (places(s, SET_BIND) && places(s, SET_NUMA_BINDING))
		exclude(s, SET_BIND, SET_NUMA_BINDING, "both say which CPUs a worker may use", why);
	if (counts && places(s, SET_NUMA_BINDING))
		exclude(s, SET_CPUS_PER_WORKER, SET_NUMA_BINDING,
			"torchrun's modes say how many cores a worker has; --bind gpu or auto takes a "
			"number",
			why);
	if (counts && has_list)
		exclude(s, SET_CPUS_PER_WORKER, SET_BIND,
			"the list says how many CPUs a worker has", why);
	if (counts && bind->from.level > LEVEL_SYSTEM_FILE && !places(s, SET_BIND))
		exclude(s, SET_CPUS_PER_WORKER, SET_BIND,
			"with none there are no cores for a worker alone", why);
}

/* torchrun runs the file as a Python script then, and doesn't look at the other flag. */
static void check_run_path(const struct settings *s, enum setting_id other, struct failure *why)
{
	if (settings_flag(s, SET_RUN_PATH) && settings_flag(s, other))
		(void)failure_go_on(
			failure_usage(why,
				"%s and %s are mutually exclusive: with --run-path it is a file that Python runs",
				settings_label(s, other), settings_label(s, SET_RUN_PATH)),
			why);
}

static void check_json(const struct settings *s, struct failure *why)
{
	if (settings_flag(s, SET_JSON) && !settings_given(s, SET_CHECK_NODE))
		(void)failure_go_on(
			failure_usage(why, "%s needs --check-node, whose form it chooses",
				settings_label(s, SET_JSON)),
			why);
	else if (settings_flag(s, SET_JSON) && settings_is(s, SET_CHECK_NODE, "prometheus"))
		(void)failure_go_on(
			failure_usage(why, "%s and --check-node=prometheus are mutually exclusive",
				settings_label(s, SET_JSON)),
			why);
}

/* What GPUs workers see can't be said in two ways, and none can't be chosen from. */
static void check_devices(const struct settings *s, struct failure *why)
{
	static const enum setting_id choosing[] = { SET_GPUS, SET_GPUS_PER_WORKER };

	if (settings_flag(s, SET_VIRTUAL_LOCAL_RANK) && settings_given(s, SET_VISIBLE_DEVICES) &&
		!settings_is(s, SET_VISIBLE_DEVICES, "one"))
		(void)failure_go_on(
			failure_usage(why,
				"%s and %s %s are mutually exclusive: a virtual local rank means that each worker sees one GPU",
				settings_label(s, SET_VIRTUAL_LOCAL_RANK),
				settings_label(s, SET_VISIBLE_DEVICES),
				settings_text(s, SET_VISIBLE_DEVICES)),
			why);
	for (size_t i = 0; i < sizeof choosing / sizeof *choosing; i++)
		if (settings_is(s, SET_VISIBLE_DEVICES, "none") && settings_given(s, choosing[i]))
			(void)failure_go_on(
				failure_usage(why,
					"%s and %s none are mutually exclusive: there is no GPU to choose then",
					settings_label(s, choosing[i]),
					settings_label(s, SET_VISIBLE_DEVICES)),
				why);
}

/* What excludes something else, or needs it. Each is told where all failures are wanted, else the
 * first. */
static int check_pairs(const struct settings *s, struct failure *why)
{
	const struct value *quiet = &s->value[SET_QUIET], *verbose = &s->value[SET_VERBOSE];
	const struct env_change *tf_config = env_change_of(s->env, "TF_CONFIG");

	if (settings_given(s, SET_CLUSTER_NODES) &&
		s->value[SET_CLUSTER_NODES].from.level == s->value[SET_CLUSTER_HOSTFILE].from.level)
		(void)failure_go_on(
			failure_usage(why, "%s and %s both list the nodes: leave one of them out",
				settings_label(s, SET_CLUSTER_NODES),
				settings_label(s, SET_CLUSTER_HOSTFILE)),
			why);
	if (settings_flag(s, SET_NO_PYTHON) && !settings_flag(s, SET_USE_ENV) &&
		!settings_flag(s, SET_NODE_ENV))
		(void)failure_go_on(
			failure_usage(why,
				"%s needs --use_env: a program that isn't a Python script gets its local rank only in LOCAL_RANK",
				settings_label(s, SET_NO_PYTHON)),
			why);
	if (settings_flag(s, SET_NO_PYTHON) && settings_flag(s, SET_MODULE))
		(void)failure_go_on(
			failure_usage(why,
				"%s and %s are mutually exclusive: a module is run by Python",
				settings_label(s, SET_NO_PYTHON), settings_label(s, SET_MODULE)),
			why);
	check_json(s, why);
	check_node_env(s, why);
	check_placement(s, why);
	check_devices(s, why);
	check_run_path(s, SET_NO_PYTHON, why);
	check_run_path(s, SET_MODULE, why);
	if (settings_given(s, SET_WRAP_RANKS) && !settings_given(s, SET_WRAP))
		(void)failure_go_on(
			failure_usage(why, "%s needs --wrap, the command for those ranks",
				settings_label(s, SET_WRAP_RANKS)),
			why);
	if (settings_given(s, SET_TF_ROLES) && !settings_flag(s, SET_TF_CONFIG))
		(void)failure_go_on(
			failure_usage(why,
				"%s needs --tf-config, which tells TensorFlow of the roles",
				settings_label(s, SET_TF_ROLES)),
			why);
	if (tf_config && settings_flag(s, SET_TF_CONFIG))
		(void)failure_go_on(
			failure_usage(why,
				"%s and %s %s are mutually exclusive: it would be the same for all workers",
				settings_label(s, SET_TF_CONFIG), tf_config->from.where,
				tf_config->name),
			why);
	if (quiet->number && verbose->number && quiet->from.level == verbose->from.level)
		(void)failure_go_on(
			failure_usage(why, "%s and %s are mutually exclusive",
				settings_label(s, SET_QUIET), settings_label(s, SET_VERBOSE)),
			why);
	return why->code;
}

static bool any_given(const struct settings *s)
{
	for (int id = 0; id < SETTING_COUNT; id++)
		if (s->value[id].from.level == LEVEL_COMMAND_LINE && !setting_rows[id].only_flag)
			return true;
	return false;
}

/* "launchd train.py --nproc_per_node 2": what stands behind the script is the script's. Who gives
 * options in front of it, too, knows that. */
static void note_misplaced(const struct settings *s, struct notes *notes)
{
	if (s->args.count == 0 || any_given(s))
		return;
	for (size_t i = 0; i < s->args.count; i++) {
		const char *word = s->args.at[i];
		size_t len = strncmp(word, "--", 2) == 0 ? strcspn(word + 2, "=") : 0;
		enum setting_id id = len > 0 ? settings_find(word + 2, len) : SETTING_COUNT;

		if (id == SETTING_COUNT || !setting_rows[id].original)
			continue;
		notes_add(notes, NOTE_INFO,
			"%.*s goes to %s, as it stands behind it: options of launchd stand before the script",
			(int)len + 2, word, s->script);
		return;
	}
}

int settings_check(struct settings *s, struct notes *notes, struct failure *why)
{
	if (!failure_go_on(check_support(s, notes, why), why) ||
		!failure_go_on(rdzv_conf_apply(s, notes, why), why) ||
		!failure_go_on(check_restarts(s, notes, why), why) || check_pairs(s, why) < 0)
		return why->code;
	default_join_timeout(s);
	check_env_names(s, notes);
	script_settle(s);
	note_misplaced(s, notes);
	return arena_failed(s->arena) ? failure_oom(why) : 0;
}
