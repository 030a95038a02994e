/* settings.h - one run's settings, each value with the place that it is from. */
#ifndef LAUNCHD_CONFIG_SETTINGS_H
#define LAUNCHD_CONFIG_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/vec.h"
#include "config/table.h"

struct arena;
struct failure;
struct notes;

/* The source of a value that is the table's default. */
#define SETTING_DEFAULT "default"

/* Where a value was found, weakest first: a value replaces one of the same or of a lower level. */
enum level {
	LEVEL_NONE, /* not set at all */
	LEVEL_DEFAULT,
	LEVEL_SYSTEM_FILE, /* /etc/launchd/launchd.conf */
	LEVEL_ENVIRONMENT, /* what others say in the environment: MPI, Slurm, PyTorch's own names */
	LEVEL_PET,         /* torchrun's PET_* variables */
	LEVEL_LAUNCHD,     /* our LAUNCHD_* variables */
	LEVEL_FILE,        /* --config */
	LEVEL_COMMAND_LINE,
};

struct origin {
	enum level level;
	const char *where; /* as the user knows it: "--nnodes", "job.ini:12", "PET_NNODES" */
};

struct value {
	struct origin from;
	const char *text; /* as written */
	uint64_t number;  /* see setting_kind */
};

/* One --env or --unset-env. */
struct env_change {
	const char *name;
	const char *value; /* NULL: removed */
	struct origin from;
	struct env_change *next;
};

/* A key of [check MODEL]. */
struct model_value {
	enum setting_id id;
	const char *model;
	struct value value;
	struct model_value *next;
};

struct settings {
	struct arena *arena;
	struct value value[SETTING_COUNT];
	struct env_change *env;      /* in order of names' first mention, one a name */
	struct model_value *models;  /* as they were read */
	const char *script;          /* NULL: none given */
	struct vec args;             /* what belongs to the script */
	struct vec file_args;        /* `args` of a file; see script.h */
	const char *file_args_first; /* the line of the first of them */
	bool as_torchrun;
	bool key_variable;  /* the environment has the job's key */
	bool warnings_only; /* by LOGLEVEL; see loglevel_least() */
};

/* Fills in the defaults; as_torchrun: those of torchrun (no --local_rank argument, arguments are
 * templates). Everything that settings hold is the arena's or outlives it. */
void settings_init(struct settings *s, struct arena *arena, bool as_torchrun);

/* Reads text as the value of a setting. A value of a higher level stays, but text is checked all
 * the same. -EINVAL: text is malformed; the sentence names from.where and what would be right.
 * text and from.where are borrowed for the life of the settings. */
int settings_put(struct settings *s, enum setting_id id, const char *text, struct origin from,
	struct failure *why);

/* The same for a key of [check MODEL], in which every level stays. -EINVAL: also a setting that is
 * not by model, or one that this level has for this model. */
int settings_put_model(struct settings *s, enum setting_id id, const char *model, const char *text,
	struct origin from, struct failure *why);

/* The value of a setting for a GPU of that name: of those whose model occurs in it the one of the
 * highest level, then of the longest model. Never NULL. */
const struct value *settings_of_model(
	const struct settings *s, enum setting_id id, const char *gpu);

/* Adds a change of the workers' environment; value NULL removes. For one name the highest level,
 * then the last one counts. -EINVAL: name can't be a variable's, or launchd itself sets it. */
int settings_put_env(struct settings *s, const char *name, const char *value, struct origin from,
	struct failure *why);

/* Of `changes` (NULL: none) that of a name; NULL: the user says nothing of it. */
const struct env_change *env_change_of(const struct env_change *changes, const char *name);

/* What a worker would see of a variable without launchd's own changes: the user's, else env's.
 * NULL: nothing. */
const char *env_given(const struct env_change *changes, const char *const *env, const char *name);

/* What no single value shows: contradictions, settings that are not supported yet, warnings, the
 * settings that --rdzv-conf means, and --control required as the default where the user gave a key
 * or a list of nodes. -EINVAL with a sentence that names the sources; where all failures are wanted
 * (failure.h), each is told. */
int settings_check(struct settings *s, struct notes *notes, struct failure *why);

/* The setting of that flag, whole; SETTING_COUNT: none. */
enum setting_id settings_find(const char *name, size_t len);

/* The setting that a key in a section of an INI file means; SETTING_COUNT: none. */
enum setting_id settings_find_key(enum setting_section section, const char *name, size_t len);

/* A row's key in its section. */
const char *settings_key(const struct setting_row *row);

/* Whether a file may have that section: there are settings in it. */
bool settings_has_section(enum setting_section section);

/* The nearest name, of which at most one letter in four is wrong, or with the same begin; NULL:
 * none is near. For "did you mean". */
const char *settings_nearest(const char *name, size_t len);

/* The same among the keys of a section. */
const char *settings_nearest_key(enum setting_section section, const char *name, size_t len);

/* Values. settings_given(): from anywhere but the default. settings_is(): `choice` is one of the
 * row's choices, and is the value; never where none is set. */
bool settings_given(const struct settings *s, enum setting_id id);
bool settings_flag(const struct settings *s, enum setting_id id);
bool settings_is(const struct settings *s, enum setting_id id, const char *choice);
uint64_t settings_number(const struct settings *s, enum setting_id id);
const char *settings_text(const struct settings *s, enum setting_id id); /* NULL: not set */
const char *settings_where(const struct settings *s, enum setting_id id);

/* The place, and the setting's name where the place does not say it. */
const char *settings_label(const struct settings *s, enum setting_id id);

#endif
