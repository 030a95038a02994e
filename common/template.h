/* template.h - templates as Python's string.Template(...).safe_substitute() reads them: `$name` and
 * `${name}` are values, `$$` is a '$', and whatever else stands behind a '$', names without a value
 * too, stays as it is. Names are ASCII letters, digits and '_', no digit first. Pure. */
#ifndef LAUNCHD_COMMON_TEMPLATE_H
#define LAUNCHD_COMMON_TEMPLATE_H

#include <stddef.h>

#include "common/text.h"

struct template_value {
	const char *name, *value;
};

/* Adds the template to out, with the values of the names that are in the table. Out of memory is
 * out's to tell. */
void template_expand(
	const char *template, const struct template_value *values, size_t count, struct text *out);

/* The first name in the template that is none of "a|b|c", of *ret_len bytes; NULL: all are. */
const char *template_unknown(const char *template, const char *names, size_t *ret_len);

#endif
