/* saying.c - see saying.h */
#include "daemon/observe/saying.h"

#include <string.h>

#include "common/json.h"
#include "common/text.h"
#include "common/utc.h"

enum { VERSION = 1, TIME_DIGITS = 6 };

void saying_add(struct text *out, const struct saying *s, const char *level, const char *text)
{
	struct json j = { .out = out };
	char time[UTC_SIZE];

	utc_write(time, s->wall_ns, TIME_DIGITS);
	json_object_begin(&j, NULL);
	json_number(&j, "v", VERSION);
	json_string(&j, "time", time);
	json_string(&j, "level", level);
	json_number_if(&j, "node", s->node_known, s->node);
	json_string(&j, "text", text);
	json_object_end(&j);
	text_add(out, "\n");
}

/* What stands behind "launchd: level: ", and the level; a line without it stays whole. */
static const char *split(const char *line, const char **level)
{
	static const char name[] = "launchd: ";
	static const char *const levels[] = { "note", "warning", "error" };
	const char *at = line + sizeof name - 1;

	if (strncmp(line, name, sizeof name - 1) != 0)
		return line;
	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
		size_t len = strlen(levels[i]);

		if (strncmp(at, levels[i], len) != 0 || strncmp(at + len, ": ", 2) != 0)
			continue;
		*level = levels[i];
		return at + len + 2;
	}
	return line;
}

void saying_add_lines(struct text *out, const struct saying *s, const char *lines, size_t len)
{
	const char *level = "note", *end = lines + len;
	struct text line = { 0 };

	while (lines < end) {
		const char *newline = memchr(lines, '\n', (size_t)(end - lines));
		const char *stop = newline ? newline : end;
		const char *text;

		line.len = 0;
		text_add_bytes(&line, lines, (size_t)(stop - lines));
		text = split(text_string(&line), &level);
		saying_add(out, s, level, text);
		lines = newline ? newline + 1 : end;
	}
	out->failed = out->failed || line.failed;
	text_done(&line);
}
