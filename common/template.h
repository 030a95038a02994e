/* template.h - templates as Python's string.Template(...).safe_substitute() reads them: `$name` and
 * `${name}` are values, `$$` is a '$', and whatever else follows a '$', also a name without a
 * value, stays as it is. Names are ASCII letters, digits and '_', no digit first. Pure. */
#ifndef LAUNCHD_COMMON_TEMPLATE_H
#define LAUNCHD_COMMON_TEMPLATE_H

#include <stddef.h>

#include "common/text.h"

struct template_value {
	const char *name, *value;
};

/* Adds the template to out, with the values of the names that are in the table. Out of
 * memory, out is failed. */
void template_expand(
	const char *template, const struct template_value *values, size_t count, struct text *out);

/* The first name in the template that isn't one of "a|b|c", *ret_len bytes long; NULL: all are. */
const char *template_unknown(const char *template, const char *names, size_t *ret_len);

#endif
