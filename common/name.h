/* name.h - names of settings as users write them ('-' and '_' are the same), and of variables.
 * Pure. */
#ifndef LAUNCHD_COMMON_NAME_H
#define LAUNCHD_COMMON_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the len bytes at text are the whole name, or its beginning; case counts. */
bool name_equal(const char *name, const char *text, size_t len);
bool name_begins(const char *name, const char *text, size_t len);

/* How many letters must change, come or go to make one of the other, neighbours' exchange being
 * one (optimal string alignment); at most `limit` + 1 is told apart. */
size_t name_distance(const char *name, const char *text, size_t len, size_t limit);

/* Whether a variable of that name, len bytes, is meant by the pattern: the whole name, or with a
 * '*' at its end what the name begins with. */
bool name_matches(const char *pattern, const char *name, size_t len);

/* Whether shells and Python's code can spell a variable of that name: the len bytes at text. */
bool name_is_identifier(const char *text, size_t len);

#endif
