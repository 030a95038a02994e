/* settings.c - see settings.h */
#include "config/settings.h"

#include <errno.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/name.h"
#include "common/notes.h"
#include "common/signame.h"
#include "common/words.h"
#include "config/ends.h"
#include "config/rdzv_conf.h"
#include "config/value.h"

/* --unset-env A,B */
static int put_unset(struct settings *s, const char *text, struct origin from, struct failure *why)
{
	bool more = true;
	int rc = 0;

	while (more && rc == 0) {
		const char *name;
		size_t len;

		/* an empty name behind the last comma is one, too */
		more = strchr(text, ',') != NULL;
		len = list_next(&text, &name);
		rc = settings_put_env(s, arena_strndup(s->arena, name, len), NULL, from, why);
	}
	return rc;
}

static int put_env(struct settings *s, const char *text, struct origin from, struct failure *why)
{
	const char *equals = strchr(text, '=');

	if (!equals)
		return failure_usage(why, "%s: \"%s\" is not NAME=VALUE", from.where, text);
	return settings_put_env(
		s, arena_strndup(s->arena, text, (size_t)(equals - text)), equals + 1, from, why);
}

/* The place of a value, and the setting's name where the place doesn't say it. */
static const char *label(struct arena *a, const struct setting_row *row, struct origin from)
{
	const char *dashes = from.where + strspn(from.where, "-");

	if (from.level == LEVEL_FILE || from.level == LEVEL_SYSTEM_FILE)
		return arena_printf(a, "%s: %s", from.where, row->flag);
	if (from.level == LEVEL_COMMAND_LINE && dashes == from.where + 2 &&
		!name_equal(row->flag, dashes, strlen(dashes)))
		return arena_printf(a, "%s (short for --%s)", from.where, row->flag);
	return from.where;
}

static int refuse_value(const struct settings *s, const struct setting_row *row, const char *text,
	struct origin from, struct failure *why)
{
	const char *where = label(s->arena, row, from), *nearest = NULL;
	const char *wanted = value_wanted(s->arena, row);

	if (!*text)
		return failure_usage(why, "%s is empty; it needs %s", where, wanted);
	if (row->foreign && choice_index(row->foreign, text) >= 0)
		return failure_usage(
			why, "%s: \"%s\" is not supported: %s", where, text, row->instead);
	if (row->choices)
		nearest = choice_nearest(s->arena, row->choices, text);
	if (nearest)
		return failure_usage(why, "%s: \"%s\" is not %s; did you mean %s?", where, text,
			wanted, nearest);
	return failure_usage(why, "%s: \"%s\" is not %s%s%s", where, text, wanted,
		row->hint ? "; " : "", row->hint ? row->hint : "");
}

int settings_put(struct settings *s, enum setting_id id, const char *text, struct origin from,
	struct failure *why)
{
	const struct setting_row *row = &setting_rows[id];
	struct value *v = &s->value[id];
	uint64_t number = 0;

	if (row->kind == KIND_ENV)
		return put_env(s, text, from, why);
	if (row->kind == KIND_UNSET)
		return put_unset(s, text, from, why);
	if (value_parse(s->arena, row, text, &number) < 0)
		return refuse_value(s, row, text, from, why);
	if (from.level >= v->from.level)
		*v = (struct value){ .from = from, .text = text, .number = number };
	return 0;
}

/* The names that launchd gives each worker, or that decide where its worker 0 is: set by hand they
 * would make ranks that contradict each other. */
static const char *env_owner(const char *name)
{
	static const struct {
		const char *name, *flag;
	} owned[] = {
		{ "RANK", "--node_rank and --nproc_per_node" },
		{ "LOCAL_RANK", "--nproc_per_node" },
		{ "WORLD_SIZE", "--nnodes and --nproc_per_node" },
		{ "LOCAL_WORLD_SIZE", "--nproc_per_node" },
		{ "NODE_RANK", "--node_rank" },
		{ "GROUP_RANK", "--node_rank" },
		{ "GROUP_WORLD_SIZE", "--nnodes" },
		{ "ROLE_NAME", "--role" },
		{ "ROLE_RANK", "--role" },
		{ "ROLE_WORLD_SIZE", "--role" },
		{ "MASTER_ADDR", "--master_addr" },
		{ "MASTER_PORT", "--master_port" },
		{ "TORCHELASTIC_RUN_ID", "--rdzv-id" },
		{ "TORCHELASTIC_RESTART_COUNT", "--max-restarts" },
		{ "TORCHELASTIC_MAX_RESTARTS", "--max-restarts" },
		{ "TORCHELASTIC_ERROR_FILE", "nothing else" },
		{ "TORCHELASTIC_USE_AGENT_STORE", "--store" },
	};

	for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
		if (strcmp(owned[i].name, name) == 0)
			return owned[i].flag;
	return NULL;
}

int settings_put_env(struct settings *s, const char *name, const char *value, struct origin from,
	struct failure *why)
{
	const char *owner = env_owner(name);
	struct env_change **at = &s->env;

	if (!*name || strchr(name, '='))
		return failure_usage(
			why, "%s: \"%s\" can't be the name of a variable", from.where, name);
	if (value && strcmp(name, SETTING_KEY_VARIABLE) == 0)
		return failure_usage(why,
			"%s: %s is the key of the job's launchers, and never for its workers",
			from.where, name);
	if (owner)
		return failure_usage(why,
			"%s: launchd sets %s for each worker; what decides it is %s", from.where,
			name, owner);
	while (*at && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	if (!*at) {
		*at = arena_alloc(s->arena, sizeof **at);
		if (!*at)
			return failure_oom(why);
	}
	if (from.level >= (*at)->from.level) {
		(*at)->name = name;
		(*at)->value = value;
		(*at)->from = from;
	}
	return 0;
}

void settings_init(struct settings *s, struct arena *arena, bool as_torchrun)
{
	const struct origin preset = { LEVEL_PRESET, "default" };
	const struct origin torchrun = { LEVEL_PRESET, "torchrun's default" };
	struct failure ours = { 0 };

	*s = (struct settings){ .arena = arena, .as_torchrun = as_torchrun };
	for (int id = 0; id < SETTING_COUNT; id++)
		if (setting_rows[id].preset)
			(void)settings_put(s, (enum setting_id)id, setting_rows[id].preset, preset,
				&ours); /* presets are checked by a unit test */
	if (as_torchrun) {
		(void)settings_put(s, SET_USE_ENV, "1", torchrun, &ours);
		(void)settings_put(s, SET_EXPAND_ARGS, "1", torchrun, &ours);
	}
}

/* Whether a value is the preset; of a flag that says no, however it is written. */
static bool is_preset(const struct value *v, const struct setting_row *row)
{
	return v->from.level <= LEVEL_PRESET || (row->kind == KIND_FLAG && v->number == 0);
}

/* Settings whose standing is not STANDS. */
static int check_standing(const struct settings *s, struct notes *notes, struct failure *why)
{
	for (int id = 0; id < SETTING_COUNT; id++) {
		const struct setting_row *row = &setting_rows[id];
		const struct value *v = &s->value[id];

		switch (row->standing) {
		case STANDS:
			break;
		case STANDS_APART:
			if (v->from.level > LEVEL_PRESET)
				notes_add(notes, NOTE_WARNING, "%s %s",
					label(s->arena, row, v->from), row->help);
			break;
		case STANDS_LATER:
			if (!is_preset(v, row))
				return failure_usage(why, "%s: \"%s\" is %s",
					label(s->arena, row, v->from), v->text, row->help);
			break;
		case STANDS_OUT:
			if (!is_preset(v, row))
				return failure_usage(
					why, "%s %s", label(s->arena, row, v->from), row->help);
			break;
		}
	}
	return 0;
}

/* Programs can have any name; shells and Python's code only see what they can spell. */
static bool is_identifier(const char *name)
{
	static const char letters[] = "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	return strspn(name, letters) > 0 &&
		!name[strspn(name,
			"0123456789_abcdefghijklmnopqrstuvwxyz"
			"ABCDEFGHIJKLMNOPQRSTUVWXYZ")];
}

static void check_env_names(const struct settings *s, struct notes *notes)
{
	for (const struct env_change *c = s->env; c; c = c->next)
		if (c->value && !is_identifier(c->name))
			notes_add(notes, NOTE_WARNING,
				"%s: \"%s\" is set, but shells can't read a variable of that name "
				"(letters, digits and _ only, no digit first)",
				c->from.where, c->name);
}

/* The settings that say when a failed job is started again. */
static int check_restarts(const struct settings *s, struct notes *notes, struct failure *why)
{
	static const enum setting_id rules[] = { SET_RESTART_DELAY, SET_RESTART_MIN_UPTIME,
		SET_RESTART_ON, SET_NO_RESTART_ON };
	const char *on = settings_text(s, SET_RESTART_ON);
	const char *not_on = settings_text(s, SET_NO_RESTART_ON);
	bool is_signal;
	int value;

	if (on && not_on && ends_overlap(on, not_on, &is_signal, &value))
		return failure_usage(why, "%s and %s both have %s%s",
			settings_where(s, SET_RESTART_ON), settings_where(s, SET_NO_RESTART_ON),
			is_signal ? "" : "exit code ",
			is_signal ? signal_name(value) : arena_printf(s->arena, "%d", value));
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		if (settings_number(s, SET_MAX_RESTARTS) == 0 &&
			s->value[rules[i]].from.level > LEVEL_SYSTEM_FILE)
			notes_add(notes, NOTE_WARNING, "%s has no effect without --max-restarts",
				settings_label(s, rules[i]));
	return 0;
}

/* Who gives a key does not want workers that start without it when a stranger has the port. */
static void require_meeting(struct settings *s)
{
	struct failure ours = { 0 };
	struct origin key = { LEVEL_PRESET, settings_where(s, SET_KEY_FILE) };

	if (!settings_given(s, SET_KEY_FILE))
		key.where = s->key_variable ? SETTING_KEY_VARIABLE : NULL;
	if (key.where && !settings_given(s, SET_CONTROL))
		(void)settings_put(s, SET_CONTROL, "required", key, &ours); /* it is a choice */
}

int settings_check(struct settings *s, struct notes *notes, struct failure *why)
{
	const struct value *quiet = &s->value[SET_QUIET], *verbose = &s->value[SET_VERBOSE];
	int rc = check_standing(s, notes, why);

	if (rc == 0)
		rc = rdzv_conf_apply(s, notes, why);
	if (rc == 0)
		rc = check_restarts(s, notes, why);
	if (rc < 0)
		return rc;
	require_meeting(s);
	if (settings_flag(s, SET_NO_PYTHON) && !settings_flag(s, SET_USE_ENV))
		return failure_usage(why,
			"%s needs --use_env: a program that is no Python script gets its local rank "
			"in LOCAL_RANK only",
			settings_where(s, SET_NO_PYTHON));
	if (settings_flag(s, SET_NO_PYTHON) && settings_flag(s, SET_MODULE))
		return failure_usage(why,
			"%s and %s exclude each other: a module is started by Python",
			settings_where(s, SET_NO_PYTHON), settings_where(s, SET_MODULE));
	if (settings_given(s, SET_WRAP_RANKS) && !settings_given(s, SET_WRAP))
		return failure_usage(why, "%s needs --wrap, the command for those ranks",
			settings_where(s, SET_WRAP_RANKS));
	if (quiet->number && verbose->number && quiet->from.level == verbose->from.level)
		return failure_usage(why, "%s and %s exclude each other", quiet->from.where,
			verbose->from.where);
	check_env_names(s, notes);
	return arena_failed(s->arena) ? failure_oom(why) : 0;
}

enum setting_id settings_find(const char *name, size_t len)
{
	for (int id = 0; id < SETTING_COUNT; id++)
		if (name_equal(setting_rows[id].flag, name, len))
			return (enum setting_id)id;
	return SETTING_COUNT;
}

/* How many letters two names share from the begin. */
static size_t common_prefix(const char *name, const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && name_begins(name, text, n + 1))
		n++;
	return n;
}

const char *settings_nearest(const char *name, size_t len)
{
	const char *nearest = NULL, *prefixed = NULL;
	size_t best = 4, longest = 4;

	for (int id = 0; id < SETTING_COUNT; id++) {
		const char *flag = setting_rows[id].flag;
		size_t d = name_distance(flag, name, len, 3);
		size_t prefix = common_prefix(flag, name, len);

		if (d < best && d < len) {
			best = d;
			nearest = flag;
		}
		if (prefix > longest && prefix + 2 >= len) {
			longest = prefix;
			prefixed = flag;
		}
	}
	return nearest ? nearest : prefixed;
}

bool settings_given(const struct settings *s, enum setting_id id)
{
	return s->value[id].from.level > LEVEL_PRESET;
}

bool settings_flag(const struct settings *s, enum setting_id id)
{
	return s->value[id].number != 0;
}

uint64_t settings_number(const struct settings *s, enum setting_id id)
{
	return s->value[id].number;
}

const char *settings_text(const struct settings *s, enum setting_id id)
{
	return s->value[id].text;
}

const char *settings_label(const struct settings *s, enum setting_id id)
{
	return label(s->arena, &setting_rows[id], s->value[id].from);
}

const char *settings_where(const struct settings *s, enum setting_id id)
{
	return s->value[id].from.where;
}
