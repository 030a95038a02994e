/* misnamed.h - what a user may have meant by a file that can't be run, and what its first line
 * says. Reads files and directories; nothing is kept open. */
#ifndef LAUNCHD_DAEMON_FACTS_MISNAMED_H
#define LAUNCHD_DAEMON_FACTS_MISNAMED_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct failure;

/* How a file was to be run. */
enum run_by {
	RUN_BY_PYTHON,    /* read by it */
	RUN_BY_EXEC,      /* a program, by its path */
	RUN_BY_EXEC_PATH, /* a program without a slash, looked for on PATH */
};

/* Refuses `name` for rc (negative errno): the sentence begins with `what`, says what is wrong, and
 * how to mend it or which file was meant, where that shows. Returns -ENOENT or -EACCES. */
int misnamed(struct failure *why, const char *what, const char *name, enum run_by by, int rc,
	struct arena *arena);

/* The first bytes of a regular file, at most size - 1, and a NUL. "": it can't be read, is empty,
 * or is no regular file. */
void file_begin(const char *path, char *ret, size_t size);

/* The first line of a file that begins so, if it begins with "#!", as far as the kernel reads it
 * and without its newline; NULL: it doesn't. The arena's. */
const char *first_line(const char *text, struct arena *arena);

/* Whether the kernel can run what a program's first line names: execve(2) says only that a file is
 * not there. -ENOENT or -EACCES with a sentence: it is not there, may not be executed, or the line
 * ends with a carriage return, which counts as a letter of its last word. */
int first_line_check(const char *what, const char *path, struct arena *arena, struct failure *why);

#endif
