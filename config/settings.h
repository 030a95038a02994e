/* settings.h - the one table of settings, and one run's values with their sources.
 *
 * A row of the table is everything about a setting: its flag, INI key and variables, its kind and
 * bounds, its preset (as text, so that one parser reads all sources), its place in --help, the man
 * page and the shells' completion. */
#ifndef LAUNCHD_CONFIG_SETTINGS_H
#define LAUNCHD_CONFIG_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/vec.h"

struct arena;
struct failure;
struct notes;

enum setting_id {
	SET_NPROC_PER_NODE,
	SET_NNODES,
	SET_NODE_RANK,
	SET_MASTER_ADDR,
	SET_MASTER_PORT,
	SET_STANDALONE,
	SET_LOCAL_ADDR,
	SET_CONTROL,
	SET_CONTROL_PORT,
	SET_JOIN_TIMEOUT,
	SET_NODE_TIMEOUT,
	SET_KEY_FILE,
	SET_INTERFACE,
	SET_STORE,
	SET_MODULE,
	SET_NO_PYTHON,
	SET_PYTHON,
	SET_USE_ENV,
	SET_LOCAL_RANK_ARG,
	SET_EXPAND_ARGS,
	SET_STDIN,
	SET_VIRTUAL_LOCAL_RANK,
	SET_ROLE,
	SET_ONLY_RANK,
	SET_WRAP,
	SET_WRAP_RANKS,
	SET_ENV,
	SET_UNSET_ENV,
	SET_MPI_ENV,
	SET_NCCL_SOCKET_IFNAME,
	SET_LOG_DIR,
	SET_REDIRECTS,
	SET_TEE,
	SET_LOCAL_RANKS_FILTER,
	SET_LOG_LINE_PREFIX_TEMPLATE,
	SET_DUPLICATE_STDOUT_FILTERS,
	SET_DUPLICATE_STDERR_FILTERS,
	SET_LOG_MAX_SIZE,
	SET_LOG_KEEP,
	SET_LOG_TIMESTAMPS,
	SET_CONSOLE_OVERFLOW,
	SET_TAIL_LINES,
	SET_EVENTS,
	SET_LOG_FORMAT,
	SET_MERGE_LOGS,
	SET_SHUTDOWN_TIMEOUT,
	SET_LEFTOVER_GRACE,
	SET_ON_SIGNAL,
	SET_SIGNALS_TO_HANDLE,
	SET_SIGNAL_SCOPE,
	SET_MAX_RUNTIME,
	SET_UNFINISHED_NOTE,
	SET_REPORT,
	SET_MAX_RESTARTS,
	SET_RESTART_DELAY,
	SET_RESTART_MIN_UPTIME,
	SET_RESTART_ON,
	SET_NO_RESTART_ON,
	SET_RDZV_BACKEND,
	SET_RDZV_ENDPOINT,
	SET_RDZV_ID,
	SET_RDZV_CONF,
	SET_CONFIG,
	SET_DRY_RUN,
	SET_QUIET,
	SET_VERBOSE,
	SET_PRINT_COMPLETION,
	SET_VERSION,
	SET_HELP,
	SET_NUMA_BINDING,
	SET_MONITOR_INTERVAL,
	SET_START_METHOD,
	SET_EVENT_LOG_HANDLER,
	SET_LOGS_SPECS,
	SET_RUN_PATH,
	SETTING_COUNT,
};

/* The key of the job's launchers, see --key-file. It has no row, as nothing may show its value. */
#define SETTING_KEY_VARIABLE "LAUNCHD_KEY"

/* Where a value was found, weakest first: a value replaces one of the same or of a lower level. */
enum level {
	LEVEL_NONE, /* not set at all */
	LEVEL_PRESET,
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

enum setting_kind {
	KIND_FLAG,         /* number is 0 or 1 */
	KIND_COUNT,        /* number, min..max of the row */
	KIND_NPROC,        /* number; 0: text is "auto", "cpu" or "gpu" */
	KIND_NNODES,       /* number, from N or N:N */
	KIND_SECONDS,      /* number is milliseconds; min and max of the row in seconds */
	KIND_TEXT,         /* any text that is not empty */
	KIND_TEXT_OR_NONE, /* any text */
	KIND_CHOICE,       /* number is the index in the row's choices */
	KIND_CONF,         /* torchrun's k=v,k=v: checked, kept as text */
	KIND_ENV,          /* NAME=VALUE, adds to the list of changes */
	KIND_UNSET,        /* NAME[,NAME...], adds to the list of changes */
	KIND_RANKS,        /* R[-R][,R[-R]...], kept as text, empty where the preset is; see
			    * ranks_contain() */
	KIND_STREAMS,      /* streams by local rank, kept as text; see streams.h */
	KIND_SIZE,         /* number is bytes, from N, NK, NM or NG; max of the row, too */
	KIND_ENDS,         /* ends of workers: exit codes and signals, kept as text; see ends.h */
};

/* What becomes of a setting that has a value. */
enum setting_standing {
	STANDS,       /* works */
	STANDS_LATER, /* only its preset is accepted: what it asks for is not built yet */
	STANDS_APART, /* means nothing here: accepted, with a warning of what is done instead */
	STANDS_OUT,   /* refused, with the way out */
};

enum setting_group {
	GROUP_JOB,
	GROUP_NODES,
	GROUP_WORKERS,
	GROUP_ENVIRONMENT,
	GROUP_OUTPUT,
	GROUP_END,
	GROUP_RESTART,
	GROUP_RDZV,
	GROUP_GENERAL,
	GROUP_LATER,
	GROUP_COUNT,
};

struct setting_row {
	const char *flag;       /* without dashes; '-' and '_' are the same to all readers */
	char letter;            /* short option; 0: none */
	unsigned original : 1;  /* a flag of torchrun, classic launch or Azure ML's launch.py */
	unsigned pet : 1;       /* torchrun reads PET_<NAME> for it */
	unsigned optional : 1;  /* its value may be left out: the first choice is meant */
	unsigned only_flag : 1; /* no INI key, no variable: it asks for an act, not a value */
	enum setting_kind kind;
	enum setting_standing standing;
	enum setting_group group;
	const char *variable; /* another variable that sets it, below PET_*; NULL: none */
	const char *metavar;
	const char *choices; /* "a|b|c" */
	const char *preset;  /* NULL: not set */
	uint64_t min, max;
	const char *help; /* what it does; for STANDS_LATER/APART/OUT: what to do or what is done */
	const char *foreign; /* "a|b": values of torchrun's that are not supported; NULL: none */
	const char *instead; /* of these */
	const char *hint;    /* added to the error about another bad value; NULL: none */
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

struct settings {
	struct arena *arena;
	struct value value[SETTING_COUNT];
	struct env_change *env; /* in order of names' first mention, one a name */
	const char *script;     /* NULL: none given */
	struct vec args;        /* what belongs to the script */
	bool as_torchrun;
	bool key_variable;  /* the environment has the job's key */
	bool warnings_only; /* by LOGLEVEL; see loglevel_least() */
};

extern const struct setting_row setting_rows[SETTING_COUNT];
extern const char *const setting_group_titles[GROUP_COUNT];

/* Fills in the presets; as_torchrun: those of torchrun (no --local_rank argument, arguments are
 * templates). Everything that settings hold is the arena's or outlives it. */
void settings_init(struct settings *s, struct arena *arena, bool as_torchrun);

/* Reads text as the value of a setting. A value of a higher level stays, but text is checked all
 * the same. -EINVAL: text is no such value; the sentence names from.where and what would be right.
 * text and from.where are borrowed for the life of the settings. */
int settings_put(struct settings *s, enum setting_id id, const char *text, struct origin from,
	struct failure *why);

/* Adds a change of the workers' environment; value NULL removes. For one name the highest level,
 * then the last one counts. -EINVAL: name can't be a variable's, or launchd itself sets it. */
int settings_put_env(struct settings *s, const char *name, const char *value, struct origin from,
	struct failure *why);

/* What no single value shows: contradictions, settings that are not supported yet, warnings, the
 * settings that --rdzv-conf means, and --control required as the default where the user gave a key.
 * -EINVAL with a sentence that names the sources. */
int settings_check(struct settings *s, struct notes *notes, struct failure *why);

/* The setting of that name, whole; SETTING_COUNT: none. */
enum setting_id settings_find(const char *name, size_t len);

/* The nearest name, within three letters or with the same begin; NULL: none is near. For "did you
 * mean". */
const char *settings_nearest(const char *name, size_t len);

/* Values. settings_given(): from anywhere but the preset. */
bool settings_given(const struct settings *s, enum setting_id id);
bool settings_flag(const struct settings *s, enum setting_id id);
uint64_t settings_number(const struct settings *s, enum setting_id id);
const char *settings_text(const struct settings *s, enum setting_id id); /* NULL: not set */
const char *settings_where(const struct settings *s, enum setting_id id);

/* The place, and the setting's name where the place does not say it. */
const char *settings_label(const struct settings *s, enum setting_id id);

/* The index of text in "a|b|c"; -1: not there. */
int choice_index(const char *choices, const char *text);

#endif
