/* say.c - see say.h */
#include "daemon/say.h"

#include <unistd.h>

#include "common/fd.h"
#include "common/text.h"

void say_text(struct text *lines)
{
	(void)fd_write_all(STDERR_FILENO, text_string(lines), lines->len);
	text_done(lines);
}

void say(const char *level, const char *line)
{
	struct text whole = { 0 };

	text_printf(&whole, "launchd: %s: %s\n", level, line);
	say_text(&whole);
}

int print_text(struct text *out)
{
	int rc = out->failed ? 1 : fd_write_all(STDOUT_FILENO, text_string(out), out->len) < 0;

	if (rc)
		say("error", out->failed ? "out of memory" : "standard output can't be written");
	text_done(out);
	return rc;
}
