/* template.c - see template.h */
#include "common/template.h"

#include <stdbool.h>
#include <string.h>

/* Length of the name that follows a '$', braces and all, as string.Template has it
 * ([_a-z][_a-z0-9]*, no matter the case); 0: none. */
static size_t placeholder(const char *s, const char **ret_name, size_t *ret_len)
{
	bool braced = *s == '{';
	size_t len;

	s += braced;
	if (*s >= '0' && *s <= '9')
		return 0;
	len = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
	if (len == 0 || (braced && s[len] != '}'))
		return 0;
	*ret_name = s;
	*ret_len = len;
	return len + 2 * braced;
}

static const char *find(
	const struct template_value *values, size_t count, const char *name, size_t len)
{
	for (size_t i = 0; i < count; i++)
		if (strncmp(values[i].name, name, len) == 0 && values[i].name[len] == '\0')
			return values[i].value;
	return NULL;
}

void template_expand(
	const char *template, const struct template_value *values, size_t count, struct text *out)
{
	while (*template) {
		size_t plain = strcspn(template, "$"), len, skip;
		const char *name, *value;

		text_add_bytes(out, template, plain);
		template += plain;
		if (!*template)
			break;
		skip = placeholder(template + 1, &name, &len);
		value = skip ? find(values, count, name, len) : NULL;
		text_add(out, value ? value : "$");
		if (value)
			template += 1 + skip;
		else
			template += template[1] == '$' ? 2 : 1;
	}
}

static bool is_one_of(const char *names, const char *name, size_t len)
{
	while (*names) {
		size_t n = strcspn(names, "|");

		if (n == len && strncmp(names, name, n) == 0)
			return true;
		names += n;
		names += *names == '|';
	}
	return false;
}

const char *template_unknown(const char *template, const char *names, size_t *ret_len)
{
	for (template = strchr(template, '$'); template; template = strchr(template, '$')) {
		const char *name;
		size_t len, skip = placeholder(template + 1, &name, &len);

		if (skip && !is_one_of(names, name, len)) {
			*ret_len = len;
			return name;
		}
		template += skip ? 1 + skip : template[1] == '$' ? 2 : 1;
	}
	return NULL;
}
