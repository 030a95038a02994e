/* user_command.h - a command of the user's, run to its end in a helper's child (helper.h), with
 * what it prints kept from the terminal. */
#ifndef LAUNCHD_DAEMON_OS_USER_COMMAND_H
#define LAUNCHD_DAEMON_OS_USER_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text;

enum { COMMAND_SAID_BYTES = 256 }; /* of each stream; what follows is read and dropped */

/* All zeros at first. It may be in memory that is shared with the child. */
struct command_said {
	int status;                       /* as waitpid(2) has it */
	int64_t said_ms;                  /* monotonic_ms() of its first byte of stdout; 0: none */
	char said[2][COMMAND_SAID_BYTES]; /* of stdout, stderr */
};

/* In a helper's child, which does nothing else: runs the command, whose first word is a path, in
 * this process's environment. It may take as long as it likes: the helper has a limit. Negative
 * errno: *ret_what failed. */
int command_run(const char *const *argv, struct command_said *ret, const char **ret_what);

/* A copy of what the child has written, which may have been anything. */
struct command_said command_copy(const struct command_said *shared);

/* Whether it exited with 0. */
bool command_succeeded(const struct command_said *s);

/* "it exited with code 3", "it was killed by SIGSEGV". */
void command_end_add(const struct command_said *s, struct text *out);

/* "; it printed: no space", the first line of its stderr; or nothing. */
void command_words_add(const struct command_said *s, struct text *out);

#endif
