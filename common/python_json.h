/* python_json.h - JSON as Python's json module writes it, made plain for a strict parser. Pure.
 *
 * Python writes NaN, Infinity and -Infinity, integers of any length, lists in lists of any depth,
 * and with ensure_ascii half a pair of surrogates ("\ud800"), which is how it holds a byte that is
 * not UTF-8. A strict parser refuses the whole text for one of them. */
#ifndef LAUNCHD_COMMON_PYTHON_JSON_H
#define LAUNCHD_COMMON_PYTHON_JSON_H

#include <stdbool.h>
#include <stddef.h>

enum {
	PYTHON_JSON_DEPTH = 256,                   /* what lies deeper becomes 0 */
	PYTHON_JSON_CLOSE = PYTHON_JSON_DEPTH + 1, /* bytes that python_json_close() may add */
};

struct python_json {
	char *at;
	size_t len;
	/* private */
	size_t in_string; /* of a value that is a string without an end, where it ends; 0: none is
			   */
	size_t whole;     /* where the last value that is whole ends, or what holds it begins */
	char before;      /* the sign before: one of []{},: */
	char *deep;       /* what lies too deep */
	unsigned depth;
	char open[PYTHON_JSON_DEPTH]; /* a bracket of each level */
};

/* Changes text[len] in place, and no bytes but those that a strict parser refuses: a number that is
 * none, or is too long, becomes 0, a half surrogate or a NUL in a string U+FFFD or '?'. */
void python_json_mend(struct python_json *j, char *text, size_t len);

/* Then, for a text whose end was cut off: leaves out what is not whole, and ends all that is open.
 * half_strings: a last value that is a string stays, though it is cut. The text has room for
 * PYTHON_JSON_CLOSE more bytes. */
void python_json_close(struct python_json *j, bool half_strings);

#endif
