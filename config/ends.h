/* ends.h - lists of ways in which a worker can end, as --restart-on has them: exit codes, ranges of
 * them and names of signals ("1,64-77,SIGSEGV"). Pure.
 *
 * A number is always an exit code, never a signal: a shell's 139 is exit code 139. */
#ifndef LAUNCHD_CONFIG_ENDS_H
#define LAUNCHD_CONFIG_ENDS_H

#include <stdbool.h>

/* 0, or -EINVAL: text isn't such a list. Exit code 0 can't be in one, as it is no failure. */
int ends_check(const char *text);

/* Whether a list, once checked, has the end: a signal's number, or an exit code. */
bool ends_contain(const char *list, bool is_signal, int value);

/* Whether two such lists have an end in common; which one, in *ret_is_signal and *ret_value. */
bool ends_overlap(const char *one, const char *other, bool *ret_is_signal, int *ret_value);

#endif
