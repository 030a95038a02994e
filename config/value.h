/* value.h - one value's text against its row of the table. Pure. */
#ifndef LAUNCHD_CONFIG_VALUE_H
#define LAUNCHD_CONFIG_VALUE_H

#include <stddef.h>
#include <stdint.h>

struct arena;
struct setting_row;

/* Reads text as the row's kind wants it; *ret is what struct value has as number, 0 for kinds that
 * are texts. -EINVAL or -ERANGE: it is malformed or out of bounds, *ret may be changed. */
int value_parse(const struct setting_row *row, const char *text, uint64_t *ret);

/* The index of text in "a|b|c"; -1: not there. */
int choice_index(const char *choices, const char *text);

/* The nearest of "a|b|c" for "did you mean", within one letter, or two where that is less than half
 * of the text; NULL: none. The arena's. */
const char *choice_nearest(struct arena *a, const char *choices, const char *text);

/* What --rdzv-conf's text says: moves *text past blanks and a quote, and returns the length without
 * the blanks and the same quote at the end. Scripts pass quotes that no shell has taken off. */
size_t conf_bare(const char **text);

/* What would have been right, to end the sentence "X is not ..."; the arena's or constant. */
const char *value_wanted(struct arena *a, const struct setting_row *row);

#endif
