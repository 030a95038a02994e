/* words.h - a command written as one text, split into its words as a POSIX shell splits it. Pure.
 *
 * Quotes and backslashes mean what they mean to a shell; variables, wildcards, '~', '#' and
 * operators are letters like any other. */
#ifndef LAUNCHD_COMMON_WORDS_H
#define LAUNCHD_COMMON_WORDS_H

struct arena;
struct vec;

/* Adds the words of text; none where it is blank. -EINVAL: it ends inside quotes or behind a
 * backslash; *ret_fault then says so ("a ' is not closed"), and nothing is added. */
int words_split(const char *text, struct arena *arena, struct vec *ret, const char **ret_fault);

#endif
