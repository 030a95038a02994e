/* words.h - texts split into what they are made of: lists with commas, and commands as a POSIX
 * shell splits them. Pure.
 *
 * In a command quotes and backslashes mean what they mean to a shell; variables, wildcards, '~',
 * '#' and operators are letters like any other. */
#ifndef LAUNCHD_COMMON_WORDS_H
#define LAUNCHD_COMMON_WORDS_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct vec;

/* One entry of a list with commas, without the blanks around it; *at moves past it and its comma.
 * Returns its length; at the end of the list 0, as for an empty entry. */
size_t list_next(const char **at, const char **ret);

/* Adds the words of text; none where it is blank. -EINVAL: it ends inside quotes or after a
 * backslash; *ret_fault then says so ("unmatched '"), and nothing is added. */
int words_split(const char *text, struct arena *arena, struct vec *ret, const char **ret_fault);

/* Whether name stands in text as words of its own, whatever its case: "H200" in "NVIDIA H200 NVL",
 * but neither in "GH200" nor in "H2000". */
bool words_have(const char *text, const char *name);

#endif
