/* sources.h - the places settings come from, each read into one struct settings.
 *
 * The order of reading does not matter: every value carries its level (settings.h). The readers
 * are pure but for settings_load_file(); what they keep is the arena's or borrowed from argv and
 * the environment. All return 0 or -EINVAL with a sentence that names the place. Where all failures
 * are wanted (failure.h), the environment and INI text are read to their ends, with a failure a
 * variable and a line; a section that is none is told once. */
#ifndef LAUNCHD_CONFIG_SOURCES_H
#define LAUNCHD_CONFIG_SOURCES_H

#include <stddef.h>

#include "config/settings.h"

#define SYSTEM_CONFIG "/etc/launchd/launchd.conf"

/* Command line: options up to the script, then everything is the script's, but for one "--"
 * directly after it. Spellings and abbreviations: cli.c. argv[0] is not read. */
int settings_read_argv(struct settings *s, const char *const *argv, struct failure *why);

/* The words of such a command line behind argv[0], as they are, but for the options that are not
 * for the nodes of an mpirun of ours (`head` in table.h). */
int settings_words_for_nodes(
	const struct settings *s, const char *const *argv, struct vec *ret, struct failure *why);

/* LAUNCHD_* and PET_* variables, the other variable that a row names, and LOGLEVEL (loglevel.h). An
 * empty value counts as not set. A LAUNCHD_ name that is nearly a setting's gets a warning. */
int settings_read_environment(
	struct settings *s, const char *const *env, struct notes *notes, struct failure *why);

/* INI text; name is what the user calls the file. bytes need no NUL at the end. */
int settings_read_ini(struct settings *s, const char *bytes, size_t len, const char *name,
	enum level level, struct failure *why);

/* Reads an INI file of at most 1 MiB. If may_be_absent, a missing file is fine, and one in a
 * directory that this user can't look into. */
int settings_load_file(struct settings *s, const char *path, enum level level, bool may_be_absent,
	struct failure *why);

#endif
