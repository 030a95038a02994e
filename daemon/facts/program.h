/* program.h - finds what the workers will execute, before any is started. */
#ifndef LAUNCHD_DAEMON_FACTS_PROGRAM_H
#define LAUNCHD_DAEMON_FACTS_PROGRAM_H

struct arena;
struct failure;
struct settings;

struct program {
	const char *path; /* what is executed: the Python, or the script with --no_python */
	const char *from; /* where that was decided */
};

/* Finds the Python (--python, PYTHON_EXEC, python3, python) and looks whether it can run the
 * script; with --no_python finds the script itself, on PATH where it has no slash.
 * -EINVAL: a command line that can't be meant; -ENOENT, -EACCES: not there, not usable. */
int program_find(const struct settings *s, const char *const *env, struct arena *arena,
	struct program *ret, struct failure *why);

#endif
