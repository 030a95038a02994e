/* torch_version.c - see torch_version.h */
#include "daemon/facts/torch_version.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.+-_!";

/* What follows "__version__", with a type ("__version__: str") or without. */
static int read_assigned(const char *text, char ret[TORCH_VERSION_SIZE])
{
	const char *end = text + strcspn(text, "\n");
	const char *equals = memchr(text, '=', (size_t)(end - text));
	const char *value = equals ? equals + 1 + strspn(equals + 1, " ") : "";
	size_t len;

	if (*value != '\'' && *value != '"')
		return -EINVAL;
	len = strspn(value + 1, letters);
	if (len == 0 || len >= TORCH_VERSION_SIZE || value[1 + len] != *value)
		return -EINVAL;
	memcpy(ret, value + 1, len);
	ret[len] = '\0';
	return 0;
}

int torch_version_find(const char *file, char ret[TORCH_VERSION_SIZE])
{
	static const char name[] = "__version__";

	for (const char *line = file; *line; line += *line == '\n') {
		if (strncmp(line, name, sizeof name - 1) == 0 &&
			strchr(" :=", line[sizeof name - 1]) && line[sizeof name - 1])
			return read_assigned(line + sizeof name - 1, ret);
		line += strcspn(line, "\n");
	}
	return -EINVAL;
}

bool torch_version_since(const char *version, unsigned major, unsigned minor)
{
	unsigned has, and_minor;

	return version && sscanf(version, "%u.%u", &has, &and_minor) == 2 &&
		(has > major || (has == major && and_minor >= minor));
}
