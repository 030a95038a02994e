/* settings.c - see settings.h */
#include "config/settings.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/name.h"
#include "common/vec.h"
#include "common/words.h"
#include "config/hosts.h"
#include "config/rlimits.h"
#include "config/script.h"
#include "config/value.h"

/* --unset-env A,B */
static int put_unset(struct settings *s, const char *text, struct origin from, struct failure *why)
{
	bool more = true;
	int rc = 0;

	while (more && rc == 0) {
		const char *name;
		size_t len;

		/* an empty name after the last comma counts, too */
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
		return arena_printf(a, "%s: %s", from.where, settings_key(row));
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

/* Whether the hosts are any; they are read again when it is decided who this node is. */
static int check_hosts(struct settings *s, const struct setting_row *row, const char *text,
	struct origin from, struct failure *why)
{
	struct arena_mark mark = arena_mark(s->arena);
	const struct host *first, *second;
	const char *where = label(s->arena, row, from);
	struct hosts hosts = { .colon = row->kind == KIND_HOSTS_SLOTS };
	int rc = hosts_add_list(s->arena, text, where, &hosts, why);

	second = rc < 0 ? NULL : hosts_twice(s->arena, &hosts, &first);
	if (second)
		rc = failure_usage(why, "%s: %s is listed twice", where, second->name);
	arena_rewind(s->arena, mark);
	return rc;
}

/* Likewise: the sentence names the entry that is wrong. */
static int check_rlimits(struct settings *s, const struct setting_row *row, const char *text,
	struct origin from, struct failure *why)
{
	struct arena_mark mark = arena_mark(s->arena);
	struct rlimits limits;
	int rc = rlimits_parse(text, label(s->arena, row, from), s->arena, &limits, why);

	arena_rewind(s->arena, mark);
	return rc;
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
	if (row->kind == KIND_ARGS)
		return script_put_args(s, text, from, why);
	if (value_parse(row, text, &number) < 0)
		return refuse_value(s, row, text, from, why);
	if ((row->kind == KIND_HOSTS || row->kind == KIND_HOSTS_SLOTS) &&
		check_hosts(s, row, text, from, why) < 0)
		return why->code;
	if (row->kind == KIND_RLIMITS && check_rlimits(s, row, text, from, why) < 0)
		return why->code;
	if (from.level >= v->from.level)
		*v = (struct value){ .from = from, .text = text, .number = number };
	return 0;
}

int settings_put_model(struct settings *s, enum setting_id id, const char *model, const char *text,
	struct origin from, struct failure *why)
{
	const struct setting_row *row = &setting_rows[id];
	struct model_value **at = &s->models;
	uint64_t number = 0;

	if (!row->by_model)
		return failure_usage(why, "%s: %s is the same for all GPUs: it goes into [%s]",
			from.where, settings_key(row), setting_section_names[row->section]);
	if (value_parse(row, text, &number) < 0)
		return refuse_value(s, row, text, from, why);
	for (; *at; at = &(*at)->next)
		if ((*at)->id == id && (*at)->value.from.level == from.level &&
			strcasecmp((*at)->model, model) == 0)
			return failure_usage(why, "%s: %s is set twice for \"%s\", first at %s",
				from.where, settings_key(row), model, (*at)->value.from.where);
	*at = arena_alloc(s->arena, sizeof **at);
	if (!*at)
		return failure_oom(why);
	**at = (struct model_value){ id, model, { from, text, number }, NULL };
	return 0;
}

const struct value *settings_of_model(const struct settings *s, enum setting_id id, const char *gpu)
{
	const struct value *best = &s->value[id];
	size_t longest = 0;

	for (const struct model_value *m = s->models; m; m = m->next) {
		size_t len = strlen(m->model);
		enum level level = m->value.from.level;

		if (m->id != id || !words_have(gpu, m->model) || level < best->from.level ||
			(level == best->from.level && len < longest))
			continue;
		best = &m->value;
		longest = len;
	}
	return best;
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
		{ "TORCHELASTIC_ERROR_FILE", "--log-dir" },
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
			why, "%s: \"%s\" is not a valid variable name", from.where, name);
	if (value && strcmp(name, SETTING_KEY_VARIABLE) == 0)
		return failure_usage(why,
			"%s: %s is the key of the job's launchers, and workers never see it",
			from.where, name);
	if (owner)
		return failure_usage(why, "%s: launchd sets %s for each worker, as decided by %s",
			from.where, name, owner);
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

const struct env_change *env_change_of(const struct env_change *changes, const char *name)
{
	while (changes && strcmp(changes->name, name) != 0)
		changes = changes->next;
	return changes;
}

const char *env_given(const struct env_change *changes, const char *const *env, const char *name)
{
	const struct env_change *c = env_change_of(changes, name);

	return c ? c->value : env_get(env, name);
}

void settings_init(struct settings *s, struct arena *arena, bool as_torchrun)
{
	const struct origin ours = { LEVEL_DEFAULT, SETTING_DEFAULT };
	const struct origin torchrun = { LEVEL_DEFAULT, "torchrun's default" };
	struct failure none = { 0 }; /* defaults are checked by a unit test */

	*s = (struct settings){ .arena = arena, .as_torchrun = as_torchrun };
	for (int id = 0; id < SETTING_COUNT; id++)
		if (setting_rows[id].by_default)
			(void)settings_put(
				s, (enum setting_id)id, setting_rows[id].by_default, ours, &none);
	if (as_torchrun) {
		(void)settings_put(s, SET_USE_ENV, "1", torchrun, &none);
		(void)settings_put(s, SET_EXPAND_ARGS, "1", torchrun, &none);
	}
}

enum setting_id settings_find(const char *name, size_t len)
{
	for (int id = 0; id < SETTING_COUNT; id++)
		if (!setting_rows[id].only_key && name_equal(setting_rows[id].flag, name, len))
			return (enum setting_id)id;
	return SETTING_COUNT;
}

const char *settings_key(const struct setting_row *row)
{
	return row->key ? row->key : row->flag;
}

enum setting_id settings_find_key(enum setting_section section, const char *name, size_t len)
{
	for (int id = 0; id < SETTING_COUNT; id++)
		if (setting_rows[id].section == section &&
			name_equal(settings_key(&setting_rows[id]), name, len))
			return (enum setting_id)id;
	return SETTING_COUNT;
}

bool settings_has_section(enum setting_section section)
{
	for (int id = 0; id < SETTING_COUNT; id++)
		if (setting_rows[id].section == section)
			return true;
	return false;
}

/* How many letters two names share at their start. */
static size_t common_prefix(const char *name, const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && name_begins(name, text, n + 1))
		n++;
	return n;
}

/* How many letters may be wrong in a name for it to be a typo of another: one in four, and three at
 * most. "--tf-config" is no "--config". */
static size_t typos_allowed(const char *flag, size_t len)
{
	size_t longer = strlen(flag) > len ? strlen(flag) : len;

	return longer / 4 < 3 ? longer / 4 : 3;
}

/* Among the keys of a section, or among all flags. */
static const char *nearest_in(bool keys, enum setting_section section, const char *name, size_t len)
{
	const char *nearest = NULL, *prefixed = NULL;
	size_t best = 4, longest = 4;

	for (int id = 0; id < SETTING_COUNT; id++) {
		const struct setting_row *row = &setting_rows[id];
		const char *flag = keys ? settings_key(row) : row->flag;
		size_t d = name_distance(flag, name, len, 3);
		bool is_typo = d <= typos_allowed(flag, len);
		size_t prefix = common_prefix(flag, name, len);

		if (keys ? row->section != section || row->only_flag : row->only_key)
			continue;
		if (d < best && is_typo) {
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

const char *settings_nearest(const char *name, size_t len)
{
	return nearest_in(false, SECTION_LAUNCHD, name, len);
}

const char *settings_nearest_key(enum setting_section section, const char *name, size_t len)
{
	return nearest_in(true, section, name, len);
}

bool settings_given(const struct settings *s, enum setting_id id)
{
	return s->value[id].from.level > LEVEL_DEFAULT;
}

bool settings_flag(const struct settings *s, enum setting_id id)
{
	return s->value[id].number != 0;
}

bool settings_is(const struct settings *s, enum setting_id id, const char *choice)
{
	const char *text = settings_text(s, id);

	assert(choice_index(setting_rows[id].choices, choice) >= 0);
	return text && strcmp(text, choice) == 0;
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
