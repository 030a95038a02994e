/* variables.c - LAUNCHD_* and PET_* variables as settings. */
#include "config/sources.h"

#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/notes.h"
#include "config/loglevel.h"

/* The key of a variable: "NPROC_PER_NODE" as "nproc_per_node". */
static const char *key_of(struct arena *a, const char *upper, size_t len)
{
	char *key = arena_strndup(a, upper, len);

	for (char *p = key; *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p - 'A' + 'a');
	return key;
}

static bool is(const char *variable, const char *name, size_t len)
{
	return strlen(variable) == len && strncmp(variable, name, len) == 0;
}

static enum setting_id by_variable(const char *name, size_t len)
{
	for (int id = 0; id < SETTING_COUNT; id++)
		if (setting_rows[id].variable && is(setting_rows[id].variable, name, len))
			return (enum setting_id)id;
	return SETTING_COUNT;
}

/* Whether a setting can be a variable: what can be given many times, or asks for an act, can't. */
static bool has_variable(enum setting_id id)
{
	if (id == SET_CONFIG)
		return true;
	return id != SETTING_COUNT && !setting_rows[id].only_flag &&
		setting_rows[id].kind != KIND_ENV && setting_rows[id].kind != KIND_UNSET;
}

/* What torchrun's agent reads besides, and nothing here does. */
static void note_foreign(const char *entry, size_t len, const char *value, struct notes *notes)
{
	if (is("TORCHELASTIC_ENABLE_FILE_TIMER", entry, len) && strcmp(value, "1") == 0)
		notes_add(notes, NOTE_WARNING,
			"TORCHELASTIC_ENABLE_FILE_TIMER has no effect: launchd watches no timers of "
			"workers, which get no TORCHELASTIC_TIMER_FILE; --max-runtime limits how long "
			"the job may run");
	if (is("TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT", entry, len) && *value)
		notes_add(notes, NOTE_INFO,
			"TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT has no effect: node rank 0's launcher decides "
			"how the job ends, without a barrier");
	if (is("TORCHELASTIC_HEALTH_CHECK_PORT", entry, len) && *value)
		notes_add(notes, NOTE_WARNING,
			"TORCHELASTIC_HEALTH_CHECK_PORT has no effect: for a health check by HTTP give "
			"--metrics-listen [::]:%s, and ask for /metrics",
			value);
}

static int read_one(struct settings *s, const char *entry, struct notes *notes, struct failure *why)
{
	static const char ours[] = "LAUNCHD_", torchrun[] = "PET_", port[] = "_PORT";
	const size_t ours_len = sizeof ours - 1, torchrun_len = sizeof torchrun - 1;
	const size_t port_len = sizeof port - 1;
	size_t len = env_name_length(entry);
	const char *value = entry[len] ? entry + len + 1 : "";
	enum setting_id id = SETTING_COUNT;
	enum level level = LEVEL_ENVIRONMENT;

	if (is(SETTING_KEY_VARIABLE, entry, len)) {
		s->key_variable = s->key_variable || *value;
		return 0;
	}
	if (is(LOGLEVEL_VARIABLE, entry, len))
		return *value ? loglevel_read(s, value, notes, why) : 0;
	if (strncmp(entry, ours, ours_len) == 0 && len > ours_len) {
		const char *key = key_of(s->arena, entry + ours_len, len - ours_len);
		const char *nearest = settings_nearest(key, strlen(key));

		level = LEVEL_LAUNCHD;
		id = settings_find(key, strlen(key));
		if (id != SETTING_COUNT && !has_variable(id))
			notes_add(notes, NOTE_WARNING,
				"%.*s has no effect: --%s is for the command line", (int)len, entry,
				setting_rows[id].flag);
		else if (id == SETTING_COUNT && nearest)
			notes_add(notes, NOTE_WARNING,
				"%.*s is not a variable of launchd; the nearest setting is %s",
				(int)len, entry, nearest);
	} else if (strncmp(entry, torchrun, torchrun_len) == 0 && len > torchrun_len) {
		const char *key = key_of(s->arena, entry + torchrun_len, len - torchrun_len);

		level = LEVEL_PET;
		id = settings_find(key, strlen(key));
		if (id != SETTING_COUNT && !setting_rows[id].pet)
			id = SETTING_COUNT;
	} else {
		id = by_variable(entry, len);
		note_foreign(entry, len, value, notes);
	}
	if (!has_variable(id) || !*value)
		return 0;
	if (len > port_len && strncmp(entry + len - port_len, port, port_len) == 0 &&
		env_is_service_link(value)) {
		notes_add(notes, NOTE_INFO,
			"%.*s=%s is ignored: Kubernetes sets it for a service of that name",
			(int)len, entry, value);
		return 0;
	}
	return settings_put(
		s, id, value, (struct origin){ level, arena_strndup(s->arena, entry, len) }, why);
}

int settings_read_environment(
	struct settings *s, const char *const *env, struct notes *notes, struct failure *why)
{
	for (; env && *env; env++) {
		int rc = read_one(s, *env, notes, why);

		if (!failure_go_on(rc, why))
			return rc;
	}
	return arena_failed(s->arena) ? failure_oom(why) : 0;
}
