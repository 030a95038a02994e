/* program.h - finds what the workers will execute, before any is started. */
#ifndef LAUNCHD_DAEMON_FACTS_PROGRAM_H
#define LAUNCHD_DAEMON_FACTS_PROGRAM_H

#include <stdbool.h>

#include "common/failure.h"
#include "common/vec.h"
#include "config/table.h"

struct arena;
struct settings;

struct program {
	const char *path;         /* what is executed: the Python, or the script with --no_python */
	const char *from;         /* where that was decided */
	const char *foreign_line; /* "#!/bin/sh": of a script that Python runs; NULL: none such */
	/* what makes such a script listen at the master port itself, perhaps; NULL: nothing */
	const char *own_port;
	bool tensorflow; /* such a script imports it, and seems to leave TF_CONFIG to the launcher
			  */
};

/* The command of --wrap, or another one. */
struct wrapper {
	struct vec words;
	const char *path;   /* of the first word; NULL: see why */
	struct failure why; /* why it can't be executed: counts where a worker here needs it */
};

/* Finds the Python (--python, PYTHON_EXEC, that of the virtual environment around this program,
 * python3, python) and looks whether it can run the script; with --no_python finds the script
 * itself, on PATH where it has no slash. -EINVAL: a command line that can't be meant; -ENOENT,
 * -EACCES: not there, not usable. */
int program_find(const struct settings *s, const char *const *env, struct arena *arena,
	struct program *ret, struct failure *why);

/* Whether looking for it, or for PyTorch, may hang: see rehearsal.h. */
bool program_is_far(const struct settings *s, const char *const *env, struct arena *a);

/* Why the master port is left to the script, and the store of a torch program with it, whichever
 * torch it has: an option, a variable, or what the script says. NULL: nothing. */
const char *program_needs_port(
	const struct settings *s, const char *const *env, const struct program *p);

/* A name without a slash is searched on PATH as execvp(3) does: a file that may not be executed is
 * passed over, but remembered. 0 or negative errno; *ret only for 0. */
int program_search(struct arena *a, const char *const *env, const char *name, const char **ret);

/* The file of this program, as proc(5) names it: one that was removed ends with " (deleted)". 0 or
 * negative errno; *ret only for 0. */
int program_self(struct arena *a, const char **ret);

/* Splits a command (--wrap, --preempt-watch) into words and looks for the first as for a program;
 * without one *ret is empty.
 * -EINVAL: it can't be split, or has no word. */
int wrapper_find(const struct settings *s, enum setting_id id, const char *const *env,
	struct arena *arena, struct wrapper *ret, struct failure *why);

#endif
